"""A kernel with its keywords as a foreign function of XLA."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from warpsmith.base.errors import SimulationError
from warpsmith.base.layout import Layout
from warpsmith.dsl import call, launching
from warpsmith.dsl.binding import environment, frozen, split_keywords
from warpsmith.dsl.elements import check_element, element_name, itemsize_of
from warpsmith.dsl.keywords import sort_keywords

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from warpsmith.dsl.binding import Callee

__all__ = ["Foreign", "foreign"]


@final
class Foreign:
    """`ForeignKernel` of the room `launch`."""

    def __init__(self, kernel: Callee, keywords: dict[str, Any]) -> None:
        self.kernel, self.keywords = kernel, keywords
        self.targets: dict[Any, Any] = {}

    def column_major(self) -> list[bool]:
        """Say of each input whether it is column-major."""
        return [t.layout is Layout.COL for t in self.kernel.configuration.in_specs]

    def outputs(self, shapes: Sequence[tuple[int, ...]], dtypes: Sequence[str]) -> list[tuple[tuple[int, ...], str, bool]]:
        """Return (shape, element type, column-major) of each output; raise `InputError` for inputs that do not fit."""
        k, c = self.kernel, self.kernel.configuration
        for name, dtype, tile in zip(k.tensor_names, dtypes, c.in_specs, strict=False):
            check_element(k.__name__, name, dtype, itemsize_of(dtype), tile.dtype)
        env = environment(k, k.tensor_names, shapes, c.in_specs)
        env = split_keywords(k, env, self.keywords)[0]
        return [(t.resolve_shape(env), element_name(t.dtype), t.layout is Layout.COL) for t in c.out_specs]

    def run(self, arrays: list[Any]) -> None:
        """Simulate; raise `SimulationError` for an error that it finds."""
        count = self.kernel.input_count
        result = call.simulate(self.kernel, arrays[:count], self.keywords)
        if any(f.severity == "error" for f in result.findings):
            raise SimulationError(result.findings)
        for to, made in zip(arrays[count:], result.outputs, strict=True):
            to[...] = made

    def prepare(self, facts: list[Any]) -> Callable[[Sequence[int], int], None]:
        """Return the launch on a GPU as a function of addresses and stream."""
        call = sort_keywords(self.kernel, self.keywords)
        plan = launching.prepare(self.kernel, facts, {}, call)[0]
        return lambda addresses, stream: plan.run(addresses, stream, call.values)


def foreign(kernel: Callee, keywords: dict[str, Any]) -> Foreign:
    """Return the foreign function of a kernel with these keywords, made once."""
    key = "foreign", frozen(keywords)
    if key not in kernel.operators:
        kernel.operators[key] = Foreign(kernel, dict(keywords))
    return kernel.operators[key]
