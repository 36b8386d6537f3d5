"""Calling a kernel: bind arrays to parameters, allocate outputs, find the grid, run on the simulator."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, final

from warpsmith.base.errors import CapabilityError, InputError, SimulationError
from warpsmith.base.layout import Layout
from warpsmith.base.tile import unify_envs
from warpsmith.dsl import rooms
from warpsmith.dsl.configuration import Configuration, triple
from warpsmith.dsl.elements import check_array, output_dtype

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from warpsmith.assembly.ptx.tree import Parameter
    from warpsmith.base.tile import Tile
    from warpsmith.dsl.build import Built
    from warpsmith.dsl.tensor import TensorSpec

__all__ = ["Bound", "bind", "call", "simulate"]


class Callee(Protocol):
    """A kernel as a call needs it."""

    __name__: str

    @property
    def configuration(self) -> Configuration:
        """The arguments of `@kernel`."""
        ...

    @property
    def tensor_names(self) -> list[str]:
        """Names of the tensor parameters."""
        ...

    @property
    def template_params(self) -> dict[str, object]:
        """Template parameters and defaults."""
        ...

    def build(self, env: Mapping[str, int] | None = None, /, **template: object) -> Built:
        """Trace the body."""
        ...


_OPTIONS = ("check", "numerics", "schedule", "seed", "device", "jobs", "executor", "max_steps", "progress")


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


def _as_array(kernel: str, name: str, value: Any, tile: Tile) -> Any:
    np = rooms.numpy()
    if not isinstance(value, np.ndarray):
        if hasattr(value, "__cuda_array_interface__") or getattr(value, "is_cuda", False):
            raise CapabilityError(f"{kernel}: argument {name} is a GPU array; a kernel call runs numpy arrays on the simulator")
        if not hasattr(value, "__array__"):
            raise InputError(f"{kernel}: argument {name} is a {type(value).__name__}, and a numpy array is needed")
        value = np.asarray(value)
    check_array(kernel, name, value, tile.dtype)
    order = "F_CONTIGUOUS" if tile.layout is Layout.COL else "C_CONTIGUOUS"
    if not value.flags[order]:
        fix = "np.asfortranarray" if tile.layout is Layout.COL else "np.ascontiguousarray"
        raise InputError(f"{kernel}: argument {name} is not contiguous; pass {fix}({name})")
    return value


def _environment(kernel: Callee, names: Sequence[str], arrays: Sequence[Any], tiles: Sequence[Tile]) -> dict[str, int]:
    envs: list[dict[str, int]] = []
    for name, array, tile in zip(names, arrays, tiles, strict=True):
        try:
            envs.append(tile.extract_env(array.shape))
        except InputError as e:
            raise InputError(f"{kernel.__name__}: argument {name}: {e}") from None
    try:
        return unify_envs(envs)
    except InputError as e:
        raise InputError(f"{kernel.__name__}: {e}") from None


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


def _grid(kernel: Callee, env: Mapping[str, int], override: object) -> tuple[int, int, int]:
    grid = override if override is not None else kernel.configuration.grid
    if grid is None:
        raise InputError(f"{kernel.__name__}: no grid; give @kernel(grid=…) or pass grid= to the call")
    if callable(grid):
        wanted = inspect.signature(grid).parameters
        every = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in wanted.values())
        missing = [n for n, p in wanted.items() if n not in env and p.default is p.empty and p.kind is not p.VAR_KEYWORD]
        if missing:
            raise InputError(
                f"{kernel.__name__}: the grid needs {', '.join(missing)}; known dimensions: {', '.join(env) or 'none'}"
            )
        grid = grid(**{n: v for n, v in env.items() if every or n in wanted})
    return triple("grid", grid)  # type: ignore[arg-type]


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
    names = kernel.tensor_names
    n_in, n_out = len(kernel.configuration.in_specs), len(kernel.configuration.out_specs)
    if len(tensors) not in (n_in, n_in + n_out):
        raise InputError(
            f"{kernel.__name__}: {len(tensors)} tensors given, and it takes {n_in} inputs ({', '.join(names[:n_in]) or 'none'})"
            + (f", or {n_in + n_out} with its outputs ({', '.join(names[n_in:])})" if n_out else "")
        )
    tiles = (*kernel.configuration.in_specs, *kernel.configuration.out_specs)
    given = [_as_array(kernel.__name__, n, t, s) for n, t, s in zip(names, tensors, tiles, strict=False)]
    keywords = dict(keywords)
    override = keywords.pop("grid", None)
    raw = {p.name for p in kernel.configuration.raw_params}
    symbols = {s for t in tiles for s in t.symbolic_dims}
    env = _environment(kernel, names[: len(given)], given, tiles[: len(given)])
    for name in symbols & keywords.keys():
        env.setdefault(name, int(keywords[name]))  # type: ignore[call-overload]
    templates = {n: v for n, v in keywords.items() if n in kernel.template_params or (n not in raw and n not in symbols)}
    built = kernel.build(env, **templates)
    outputs = given[n_in:] or _outputs(kernel, env)
    arrays = dict(zip(names, [*given[:n_in], *outputs], strict=True))
    values = {**env, **{n: v for n, v in keywords.items() if n in raw}}
    args = _arguments(kernel, built, arrays, values)
    return Bound(
        built,
        args,
        outputs,
        _grid(kernel, {**env, **_ints(templates)}, override),
        kernel.configuration.block,
        kernel.configuration.cluster,
    )


def _ints(values: Mapping[str, object]) -> dict[str, int]:
    return {n: v for n, v in values.items() if isinstance(v, int)}


def simulate(kernel: Callee, tensors: Sequence[object], keywords: Mapping[str, object]) -> Any:
    """Run on the simulator; `.outputs` of the result holds the output arrays by position."""
    options = {n: v for n, v in keywords.items() if n in _OPTIONS}
    bound = bind(kernel, tensors, {n: v for n, v in keywords.items() if n not in _OPTIONS})
    result = rooms.simulator().simulate(
        bound.built.module, kernel=bound.built.name, grid=bound.grid, block=bound.block, cluster=bound.cluster, args=bound.args,
        dynamic_shared=bound.built.dynamic_shared, **options,
    )  # fmt: skip
    result.outputs = bound.outputs
    return result


def call(kernel: Callee, tensors: Sequence[object], keywords: Mapping[str, object]) -> Any:
    """Run on the simulator and return the outputs; raise `SimulationError` on a finding of severity error."""
    result = simulate(kernel, tensors, keywords)
    if any(f.severity == "error" for f in result.findings):
        raise SimulationError(result.findings)
    if not result.completed:
        raise KeyboardInterrupt  # the simulator turns it into a partial result, which a call has no place for
    outputs = result.outputs
    return outputs[0] if len(outputs) == 1 else tuple(outputs)
