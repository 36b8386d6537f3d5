"""Kernel calls on GPU arrays: judged once for each kind of arguments, then a look-up, the addresses and the driver call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, final

from warpsmith.base.errors import InputError
from warpsmith.base.layout import Layout
from warpsmith.base.tensormap import TensorMapFields
from warpsmith.dsl import rooms
from warpsmith.dsl.binding import environment, frozen, grid_of, split_keywords
from warpsmith.dsl.elements import check_element, element_name
from warpsmith.dsl.operators_of_torch import call_operator
from warpsmith.dsl.reproduce import reproduction

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from warpsmith.assembly.ptx.tree import Parameter
    from warpsmith.base.tile import Tile
    from warpsmith.dsl.binding import Callee
    from warpsmith.dsl.build import Built

__all__ = ["launch", "map_fields", "prepare"]

_PLANS_KEPT = 4096
"""Kinds of arguments of one kernel that are remembered."""
_OPTIONS = ("stream", "cooperative", "programmatic")


@final
class Prepared(NamedTuple):
    """What is kept for one kind of arguments."""

    run: Callable[[Sequence[int], int], None]
    allocators: tuple[Callable[[], Any], ...]
    """Of the outputs that the caller does not pass."""
    device: int
    inputs: int
    built: Built
    text: str
    """The PTX that was compiled, kept to see edits where the caller holds the module."""
    recorded: bool
    """A tensor may be watched by automatic differentiation."""


def launch(
    kernel: Callee, arrays: Any, tensors: tuple[Any, ...], keywords: dict[str, Any], run: Callable[..., Any] | None = None
) -> Any:
    """Launch on the GPU that holds the tensors, in the library's current stream or `stream=`; return the outputs.

    With `run` a call that automatic differentiation records goes through an operator that does `run`.
    """
    given = keywords
    stream: Any = None
    options: tuple[bool, bool] = (False, False)
    named: dict[str, Any] = {}
    kept: Any = ()
    if keywords:
        stream, options, named, keywords = _options(kernel, dict(keywords))
        kept = (*options, frozen(keywords), *named)
    everything = (*tensors, *named.values()) if named else tensors
    try:
        key, addresses = arrays.probe(everything)
    except Exception:  # whatever an adapter makes of another library's array
        _check_library(kernel, arrays, everything)
        raise
    entry: Prepared | None = kernel.plans.get((arrays, key, kept, len(tensors)))
    if entry is None or (entry.built.shared_out and entry.built.text() != entry.text):
        _check_library(kernel, arrays, everything)
        if len(kernel.plans) >= _PLANS_KEPT:
            kernel.plans.clear()
        entry = _prepare(kernel, arrays, tensors, named, keywords, options)
        kernel.plans[arrays, key, kept, len(tensors)] = entry
    if entry.recorded and run is not None and arrays.recording(tensors):
        return call_operator(kernel, tensors, given, run)
    outputs: Any = tensors[entry.inputs :]
    if entry.allocators:
        outputs = [make() for make in entry.allocators]
        addresses[entry.inputs : entry.inputs] = [arrays.address(o) for o in outputs]
    if stream is None:
        stream = arrays.stream(entry.device, everything)
    entry.run(addresses, stream)
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def _options(kernel: Callee, keywords: dict[str, Any]) -> tuple[Any, tuple[bool, bool], dict[str, Any], dict[str, Any]]:
    """Split keywords into stream, (cooperative, programmatic), raw parameters that are arrays, and the rest."""
    own = {*kernel.template_params, *(p.name for p in kernel.configuration.raw_params)}
    given = {n: keywords.pop(n) for n in _OPTIONS if n in keywords and n not in own}
    stream = given.get("stream")
    named = {n: v for n, v in keywords.items() if rooms.arrays_of(v) is not None}
    rest = {n: v for n, v in keywords.items() if n not in named}
    flags = bool(given.get("cooperative")), bool(given.get("programmatic"))
    return None if stream is None else rooms.launch("arrays").stream_handle(stream), flags, named, rest


def _check_library(kernel: Callee, arrays: Any, values: Sequence[Any]) -> None:
    for i, v in enumerate(values):
        if rooms.arrays_of(v) is not arrays:
            raise InputError(
                f"{kernel.__name__}: argument {i} is a {type(v).__module__}.{type(v).__qualname__} beside arrays of "
                f"{arrays.name}; pass arrays of one library"
            )
        if not arrays.on_gpu(v):
            raise InputError(f"{kernel.__name__}: argument {i} is in the host's memory and others are on a GPU; move it there")


def _facts(kernel: Callee, arrays: Any, name: str, value: Any) -> Any:
    try:
        return arrays.facts(value)
    except InputError as e:
        raise InputError(f"{kernel.__name__}: argument {name} is {e}") from None


def _check(kernel: str, name: str, facts: Any, tile: Tile) -> None:
    """Raise `InputError` unless an array can be the argument that a tile describes."""
    check_element(kernel, name, facts.dtype, facts.itemsize, tile.dtype)
    column = tile.layout is Layout.COL
    step, wanted = facts.itemsize, []
    for extent in facts.shape if column else reversed(facts.shape):
        wanted.append(step)
        step *= extent
    strides = facts.strides if column else tuple(reversed(facts.strides))
    if any(e > 1 and s != w for e, s, w in zip(facts.shape if column else reversed(facts.shape), strides, wanted, strict=True)):
        order = "column-major (the transpose of a contiguous array)" if column else "contiguous; pass .contiguous() or a copy"
        raise InputError(f"{kernel}: argument {name} has strides {facts.strides} in bytes; it must be {order}")
    align = min(facts.itemsize & -facts.itemsize, 16)
    if facts.address % align:
        raise InputError(f"{kernel}: argument {name} is at {facts.address:#x}, no multiple of its element's {align} bytes")


def _prepare(
    kernel: Callee, arrays: Any, tensors: Sequence[Any], named: Mapping[str, Any], keywords: dict[str, Any],
    options: tuple[bool, bool],
) -> Prepared:  # fmt: skip
    kernel.check_count(len(tensors))
    facts = [_facts(kernel, arrays, n, t) for n, t in zip(kernel.tensor_names, tensors, strict=False)]
    extra = {n: _facts(kernel, arrays, n, v) for n, v in named.items()}
    plan, built, env, text = prepare(kernel, facts, extra, keywords, options)
    allocators: tuple[Callable[[], Any], ...] = ()
    if len(tensors) == kernel.input_count:
        allocators = tuple(
            arrays.allocator(t.resolve_shape(env), element_name(t.dtype), plan.context.device, t.layout is Layout.COL)
            for t in kernel.configuration.out_specs
        )
    recorded = any(getattr(t, "requires_grad", False) for t in tensors)
    return Prepared(plan.run, allocators, plan.context.device, kernel.input_count, built, text, recorded)


def prepare(
    kernel: Callee, facts: Sequence[Any], extra: Mapping[str, Any], keywords: dict[str, Any], options: tuple[bool, bool]
) -> tuple[Any, Built, dict[str, int], str]:
    """Judge arguments, compile and load; return the plan, the trace, the dimensions and the PTX.

    `facts` describe the inputs, or the inputs and the outputs; `extra` arrays for raw parameters.
    """
    c, names = kernel.configuration, kernel.tensor_names
    tiles = (*c.in_specs, *c.out_specs)
    for n, f, tile in zip(names, facts, tiles, strict=False):
        _check(kernel.__name__, n, f, tile)
    devices = {f.device for f in (*facts, *extra.values())}
    if len(devices) > 1:
        raise InputError(f"{kernel.__name__}: the arguments are on devices {sorted(devices)}; move them to one")
    env = environment(kernel, names, [f.shape for f in facts], tiles)
    env, templates, values, override = split_keywords(kernel, env, {**keywords, **extra})
    built = kernel.build(env, **templates)
    text = built.text()
    context = rooms.launch("context").context(devices.pop() if devices else 0)
    grid = grid_of(kernel, {**env, **{n: v for n, v in templates.items() if isinstance(v, int)}}, override)
    shape = rooms.launch("binding").LaunchShape(grid, c.block, c.cluster, built.dynamic_shared, *options)
    function = context.function(rooms.toolchain().compile_ptx(text, kernel.arch, name=kernel.__name__).cubin, built.name)
    numbers = {n: v for n, v in values.items() if n not in env and n not in extra}
    describe = reproduction(kernel, built, env, {**templates, **numbers})
    arguments = _arguments(kernel, built, env, values, list(extra))
    every = len(tiles) + len(extra)
    return rooms.launch("plan").Plan(context, function, shape, arguments, every, describe), built, env, text


def map_fields(tile: Tile, env: Mapping[str, int]) -> TensorMapFields:
    """Return the tensor map of a tensor whose dimensions are `env`, at address 0."""
    box = tile.descriptor(env)
    return TensorMapFields(
        element=rooms.map_element(tile.dtype.name), address=0, dims=box.extents, strides=box.strides, box=box.box,
        element_strides=(1,) * len(box.extents), swizzle=box.swizzle or "none",
    )  # fmt: skip


def _arguments(kernel: Callee, built: Built, env: Mapping[str, int], values: Mapping[str, Any], named: list[str]) -> list[Any]:
    """Return what is passed for each parameter of the kernel."""
    plan = rooms.launch("plan")
    index = {t.name: i for i, t in enumerate(built.tensors)}
    maps = {t.descriptor_name: t for t in built.tensors if t.descriptor_name}
    extra = {n: len(built.tensors) + i for i, n in enumerate(named)}
    out: list[Any] = []
    for p in built.parameters:
        if p.name in maps and p.shape:
            tensor = maps[p.name]
            out.append(plan.MapArgument(index[tensor.name], map_fields(tensor.tile, env)))
        elif p.name in index:
            out.append(plan.PointerArgument(index[p.name]))
        elif p.name in extra:
            out.append(plan.PointerArgument(extra[p.name]))
        else:
            out.append(_raw(kernel.__name__, p, values))
    return out


def _raw(kernel: str, p: Parameter, values: Mapping[str, Any]) -> bytes:
    if p.name not in values:
        raise InputError(f"{kernel}: the parameter {p.name!r} of raw_params needs a value; pass {p.name}=…")
    return rooms.pack_value(values[p.name], p, f"{kernel}: the parameter {p.name!r}")
