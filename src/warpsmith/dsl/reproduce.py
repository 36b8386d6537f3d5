"""How a launch on the GPU is run again on the simulator, as text for messages."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from warpsmith.dsl.binding import Callee
    from warpsmith.dsl.build import Built

__all__ = ["reproduction"]


def _at_module_level(kernel: Callee) -> bool:
    module = sys.modules.get(kernel.fn.__module__)
    return module is not None and getattr(module, kernel.__name__, None) is kernel


def reproduction(
    kernel: Callee, built: Built, env: Mapping[str, int], constants: Mapping[str, object], numbers: Sequence[str]
) -> Callable[[Sequence[Any]], str]:
    """Return a function that writes the command (or, for a kernel made by a function, the call) with arrays of these shapes.

    It is given the values of `numbers`.

    The arrays are random where the launch had its own: a fault that depends on them needs the arrays that
    `WARPSMITH_DUMP` keeps.
    """

    def text(values: Sequence[Any]) -> str:
        parameters = {**constants, **dict(zip(numbers, values, strict=False))}
        shapes = [(t.name, t.dtype, t.tile.resolve_shape(env)) for t in built.tensors[: len(kernel.configuration.in_specs)]]
        if _at_module_level(kernel):
            arrays = [f"-a '{dtype}[{'x'.join(map(str, shape))}]=normal'" for _, dtype, shape in shapes]
            pairs = [f"-p {n}={v!r}" for n, v in parameters.items()]
            return " ".join([f"warpsmith simulate {kernel.fn.__code__.co_filename}:{kernel.__name__}", *arrays, *pairs])
        words = [f"{name}  # {dtype} {list(shape)}, on the CPU" for name, dtype, shape in shapes]
        keywords = "".join(f", {n}={v!r}" for n, v in parameters.items())
        where = f"{kernel.fn.__code__.co_filename}:{kernel.fn.__code__.co_firstlineno}"
        names = ", ".join(name for name, *_ in shapes)
        return "\n".join(
            [f"{kernel.__name__}.simulate({names}{keywords})  # the kernel of {where}", *(f"  {w}" for w in words)]
        )

    return text
