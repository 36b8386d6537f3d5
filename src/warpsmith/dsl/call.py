"""Calling a kernel: bind arrays to parameters, allocate outputs, find the grid, run on the simulator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from warpsmith.base.errors import InputError, SimulationError
from warpsmith.base.layout import Layout
from warpsmith.dsl import launching, rooms
from warpsmith.dsl.binding import block_of, check_options, environment, grid_of, split_keywords
from warpsmith.dsl.elements import check_array, output_dtype
from warpsmith.dsl.operators_of_torch import call_operator

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from warpsmith.assembly.ptx.module import Module
    from warpsmith.assembly.ptx.tree import Parameter
    from warpsmith.base.tile import Tile
    from warpsmith.dsl.binding import Callee
    from warpsmith.dsl.build import Built
    from warpsmith.dsl.tensor import TensorSpec

__all__ = ["Bound", "bind", "call", "module_of", "run", "simulate"]


_OPTIONS = (
    "check", "numerics", "schedule", "seed", "device", "jobs", "executor", "max_steps", "progress", "lines", "watch",
    "against_gpu",
)  # fmt: skip


@final
@dataclass(slots=True)
class Bound:
    """A kernel with its arguments: all that a launch needs."""

    built: Built
    args: list[object]
    outputs: list[Any]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    fresh: list[Any]
    """The outputs that the caller did not give."""


def _as_array(kernel: str, name: str, value: Any, tile: Tile) -> Any:
    np = rooms.numpy()
    if not isinstance(value, np.ndarray):
        if not hasattr(value, "__array__"):
            raise InputError(f"{kernel}: argument {name} is a {type(value).__name__}, and a numpy array is needed")
        value = np.asarray(value)
    check_array(kernel, name, value, tile.dtype)
    order = "F_CONTIGUOUS" if tile.layout is Layout.COL else "C_CONTIGUOUS"
    if not value.flags[order]:
        fix = "np.asfortranarray" if tile.layout is Layout.COL else "np.ascontiguousarray"
        raise InputError(f"{kernel}: argument {name} is not contiguous; pass {fix}({name})")
    return value


def _outputs(kernel: Callee, env: Mapping[str, int]) -> list[Any]:
    np = rooms.numpy()
    out: list[Any] = []
    for tile in kernel.configuration.out_specs:
        try:
            shape = tile.resolve_shape(env)
        except InputError as e:
            raise InputError(f"{kernel.__name__}: output {tile}: {e}; pass it as a keyword argument") from None
        out.append(np.zeros(shape, output_dtype(tile.dtype), order="F" if tile.layout is Layout.COL else "C"))
    return out


def _raw_value(kernel: str, p: Parameter, values: Mapping[str, object]) -> object:
    if p.name not in values:
        raise InputError(f"{kernel}: the parameter {p.name!r} of raw_params needs a value; pass {p.name}=…")
    return values[p.name]


def _arguments(kernel: Callee, built: Built, arrays: Mapping[str, Any], values: Mapping[str, object]) -> list[object]:
    by_name: dict[str, TensorSpec] = {}
    for t in built.tensors:
        by_name[t.name] = t
        if t.descriptor_name:
            by_name[t.descriptor_name] = t
    out: list[object] = []
    for p in built.parameters:
        tensor = by_name.get(p.name)
        if tensor is None:
            out.append(_raw_value(kernel.__name__, p, values))
        elif p.shape:
            out.append(rooms.tensor_map(tensor.tile, arrays[tensor.name]))
        else:
            out.append(arrays[tensor.name])
    return out


def bind(kernel: Callee, tensors: Sequence[object], keywords: Mapping[str, object]) -> Bound:
    """Check and bind the arguments; outputs are allocated unless they are given behind the inputs."""
    c, names = kernel.configuration, kernel.tensor_names
    n_in, tiles = len(c.in_specs), (*c.in_specs, *c.out_specs)
    kernel.check_count(len(tensors))
    given = [_as_array(kernel.__name__, n, t, s) for n, t, s in zip(names, tensors, tiles, strict=False)]
    env = environment(kernel, names, [a.shape for a in given], tiles)
    env, templates, values, override = split_keywords(kernel, env, keywords)
    built = kernel.build(env, **templates)
    outputs = given[n_in:] or _outputs(kernel, env)
    arrays = dict(zip(names, [*given[:n_in], *outputs], strict=True))
    args = _arguments(kernel, built, arrays, values)
    grid = grid_of(kernel, {**env, **{n: v for n, v in templates.items() if isinstance(v, int)}}, override)
    return Bound(built, args, outputs, grid, block_of(kernel), c.cluster, [] if given[n_in:] else outputs)


def simulate(kernel: Callee, tensors: Sequence[Any], keywords: Mapping[str, object]) -> Any:
    """Run on the simulator; `.outputs` of the result holds the output arrays by position, of the inputs' library."""
    arrays = rooms.arrays_of(tensors[0]) if tensors else None
    check_options(kernel, keywords, _OPTIONS)
    options = {n: v for n, v in keywords.items() if n in _OPTIONS}
    bound = _bound(kernel, arrays, tensors, keywords)
    result = rooms.simulate(
        bound.built.module, kernel=bound.built.name, grid=bound.grid, block=bound.block, cluster=bound.cluster, args=bound.args,
        dynamic_shared=bound.built.dynamic_shared, undefined=bound.fresh, **options,
    )  # fmt: skip
    result.outputs = bound.outputs
    if kernel.roles:
        result.timeline = result.timeline.named(kernel.roles)
    if arrays is not None:
        given = tensors[len(kernel.configuration.in_specs) :]
        result.outputs = list(given) or [arrays.from_numpy(o) for o in bound.outputs]
    return result


def module_of(kernel: Callee, tensors: Sequence[Any], keywords: Mapping[str, object]) -> Module:
    """Return the module that `simulate` runs with these arguments."""
    return _bound(kernel, rooms.arrays_of(tensors[0]) if tensors else None, tensors, keywords).built.module


def _bound(kernel: Callee, arrays: Any, tensors: Sequence[Any], keywords: Mapping[str, object]) -> Bound:
    host = tensors if arrays is None else [_on_host(kernel, arrays, t) for t in tensors]
    return bind(kernel, host, {n: v for n, v in keywords.items() if n not in _OPTIONS})


def _on_host(kernel: Callee, arrays: Any, value: Any) -> Any:
    if rooms.arrays_of(value) is not arrays:
        return value
    if arrays.on_gpu(value):
        raise InputError(
            f"{kernel.__name__}: an array of {arrays.name} is on a GPU; the simulator takes arrays of the host: copy it"
        )
    return arrays.to_numpy(value)


def call(kernel: Callee, tensors: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Run where the tensors are and return the outputs, seen by automatic differentiation if it records."""
    arrays = rooms.arrays_of(tensors[0]) if tensors else None
    if arrays is not None and not arrays.functional:
        if arrays.on_gpu(tensors[0]):
            return launching.launch(kernel, arrays, tensors, keywords, recorded=True)
        if arrays.recording(tensors) or arrays.abstract(tensors):
            return call_operator(kernel, tensors, keywords)
    return run(kernel, tensors, keywords)


def run(kernel: Callee, tensors: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Run where the tensors are; on the simulator raise `SimulationError` for an error it finds."""
    arrays = rooms.arrays_of(tensors[0]) if tensors else None
    if arrays is not None and arrays.functional:
        return arrays.call(kernel, tensors, keywords)
    if arrays is not None and arrays.on_gpu(tensors[0]):
        return launching.launch(kernel, arrays, tensors, keywords)
    result = simulate(kernel, tensors, keywords)
    if any(f.severity == "error" for f in result.findings):
        raise SimulationError(result.findings)
    if not result.completed:
        raise KeyboardInterrupt  # the simulator turns it into a partial result, which a call has no place for
    outputs = result.outputs
    return outputs[0] if len(outputs) == 1 else tuple(outputs)
