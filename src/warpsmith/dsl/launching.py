"""Kernel calls on GPU arrays: judged once for each kind of arguments, then a look-up, the addresses and the driver call."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, final

from warpsmith.base.errors import InputError
from warpsmith.base.layout import Layout
from warpsmith.base.tensormap import TensorMapFields
from warpsmith.dsl import rooms
from warpsmith.dsl.binding import block_of, environment, grid_of, split_keywords
from warpsmith.dsl.elements import check_element, element_name
from warpsmith.dsl.keywords import NO_KEYWORDS, Keywords, packer, sort_keywords
from warpsmith.dsl.operators_of_torch import call_operator
from warpsmith.dsl.reproduce import reproduction

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from warpsmith.base.tile import Tile
    from warpsmith.dsl.binding import Callee
    from warpsmith.dsl.build import Built

__all__ = ["launch", "map_fields", "prepare"]

_PLANS_KEPT = 4096
"""Kinds of arguments of one kernel that are remembered."""


@final
class Prepared(NamedTuple):
    """What is kept for one kind of arguments."""

    run: Callable[[Sequence[int], int, Sequence[Any]], None]
    allocators: tuple[Callable[[], Any], ...]
    """Of the outputs that the caller does not pass."""
    device: int
    inputs: int
    built: Built
    text: str
    """The PTX that was compiled, kept to see edits where the caller holds the module."""
    recorded: bool
    """A tensor may be watched by automatic differentiation."""
    arrays: Any
    """The adapter of the library."""
    same: Callable[..., bool] | None
    """Says of arrays whether they are of the kinds this was prepared for, but for the low bits of addresses, which are zero."""
    straight: Callable[[Sequence[str]], Any] | None
    """Makes the one function that does a whole call with these keywords."""
    made: dict[tuple[str, ...], Any]
    """What it has made."""


def launch(kernel: Callee, arrays: Any, tensors: tuple[Any, ...], keywords: dict[str, Any], *, recorded: bool = False) -> Any:
    """Launch on the GPU that holds the tensors, in the library's current stream or `stream=`; return the outputs.

    With `recorded` a call that automatic differentiation records goes through the kernel's operator.
    """
    call = sort_keywords(kernel, keywords) if keywords else NO_KEYWORDS
    everything = (*tensors, *call.arrays.values()) if call.arrays else tensors
    latest = call.key, len(tensors)
    entry: Prepared | None = kernel.latest.get(latest)
    low: int = 1
    addresses: list[int] = []
    if entry is not None and entry.same is not None and entry.same(*everything):
        low, addresses = arrays.addresses(everything)
    if entry is None or low or entry.built.shared_out:
        found = _find(kernel, arrays, tensors, everything, call)
        if found is None:
            return call_operator(kernel, tensors, keywords)
        entry, addresses = found
        kernel.latest[latest] = entry
        _keep_straight(kernel, entry, (len(tensors), *keywords), call)
    if entry.recorded and recorded and arrays.recording(tensors):
        return call_operator(kernel, tensors, keywords)
    if call.stream is None:
        stream = arrays.stream(entry.device, everything)
    else:
        stream = call.stream
        arrays.wait(entry.device, stream, everything)
    return _run(entry, tensors, addresses, stream, call.values)


def _keep_straight(kernel: Callee, entry: Prepared, key: tuple[Any, ...], call: Keywords) -> None:
    """Keep the straight call of the latest launch with this count and keywords; none for keywords that a launch depends on."""
    keywords = key[1:]
    plain = tuple(n for n in keywords if n != "stream") == call.names and not (call.rest or call.arrays)
    if entry.straight is None or not plain:
        kernel.quick.pop(key, None)
        return
    if keywords not in entry.made:
        entry.made[keywords] = entry.straight(keywords)
    kernel.quick[key] = entry.made[keywords]


def _run(entry: Prepared, tensors: tuple[Any, ...], addresses: list[int], stream: int, values: Sequence[Any]) -> Any:
    outputs: Any = tensors[entry.inputs :]
    if entry.allocators:
        outputs = [make() for make in entry.allocators]
        addresses[entry.inputs : entry.inputs] = [entry.arrays.address(o) for o in outputs]
    entry.run(addresses, stream, values)
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def _find(
    kernel: Callee, arrays: Any, tensors: tuple[Any, ...], everything: tuple[Any, ...], call: Keywords
) -> tuple[Prepared, list[int]] | None:
    """Return the launch prepared for these arguments and their addresses; None for tensors that stand for others."""
    try:
        key, addresses = arrays.probe(everything)
    except Exception:  # whatever an adapter makes of another library's array
        _check_library(kernel, arrays, everything)
        if arrays.abstract(tensors):
            return None
        raise
    key = arrays, key, call.key, len(tensors)
    entry: Prepared | None = kernel.plans.get(key)
    if entry is None or (entry.built.shared_out and entry.built.text() != entry.text):
        _check_library(kernel, arrays, everything)
        if len(kernel.plans) >= _PLANS_KEPT:
            kernel.plans.clear()
            kernel.latest.clear()
            kernel.quick.clear()
        entry = kernel.plans[key] = _prepare(kernel, arrays, tensors, call)
    return entry, addresses


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
    if 0 in facts.shape:
        return
    strides = facts.strides if column else tuple(reversed(facts.strides))
    if any(e > 1 and s != w for e, s, w in zip(facts.shape if column else reversed(facts.shape), strides, wanted, strict=True)):
        order = "column-major (the transpose of a contiguous array)" if column else "contiguous; pass .contiguous() or a copy"
        raise InputError(f"{kernel}: argument {name} has strides {facts.strides} in bytes; it must be {order}")
    align = min(facts.itemsize & -facts.itemsize, 16)
    if facts.address % align:
        raise InputError(f"{kernel}: argument {name} is at {facts.address:#x}, no multiple of its element's {align} bytes")


def _prepare(kernel: Callee, arrays: Any, tensors: Sequence[Any], call: Keywords) -> Prepared:
    kernel.check_count(len(tensors))
    facts = [_facts(kernel, arrays, n, t) for n, t in zip(kernel.tensor_names, tensors, strict=False)]
    extra = {n: _facts(kernel, arrays, n, v) for n, v in call.arrays.items()}
    plan, built, env, text = prepare(kernel, facts, extra, call)
    run, device = plan.run, plan.context.device
    allocators: tuple[Callable[[], Any], ...] = ()
    if len(tensors) == kernel.input_count:
        allocators = tuple(
            arrays.allocator(t.resolve_shape(env), element_name(t.dtype), device, t.layout is Layout.COL)
            for t in kernel.configuration.out_specs
        )
    if (folder := rooms.launch("dump").dump_folder()) is not None:
        run = _dumping(kernel, plan, facts, folder)
    recorded = any(getattr(t, "requires_grad", False) for t in tensors)
    same = (
        arrays.guard((*tensors, *call.arrays.values())) if all(f.address % 16 == 0 for f in (*facts, *extra.values())) else None
    )
    straight: Callable[[Sequence[str]], Any] | None = None
    if same is not None and run == plan.run and not call.arrays:
        room, given = rooms.launch("straight"), len(tensors)
        outputs, code = room.Outputs(kernel.input_count, allocators), arrays.code(device)
        straight = partial(room.straight_call, plan, built, given, outputs, code, same, recorded)
    return Prepared(run, allocators, device, kernel.input_count, built, text, recorded, arrays, same, straight, {})


def _dumping(
    kernel: Callee, plan: Any, facts: Sequence[Any], folder: Any
) -> Callable[[Sequence[int], int, Sequence[Any]], None]:
    """Return a launch that keeps the inputs first."""
    names = kernel.tensor_names[: kernel.input_count]

    def run(addresses: Sequence[int], stream: int, values: Sequence[Any]) -> None:
        now = [f._replace(address=a) for f, a in zip(facts, addresses, strict=False)]
        plan.dumped = str(rooms.launch("dump").dump_inputs(folder, kernel.__name__, plan.context, names, now))
        plan.run(addresses, stream, values)

    return run


def prepare(
    kernel: Callee, facts: Sequence[Any], extra: Mapping[str, Any], call: Keywords
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
    env, templates, values, override = split_keywords(kernel, env, {**call.rest, **extra})
    built = kernel.build(env, **templates)
    text = built.text()
    context = rooms.launch("context").context(devices.pop() if devices else 0)
    grid = grid_of(kernel, {**env, **{n: v for n, v in templates.items() if isinstance(v, int)}}, override)
    shape = rooms.launch("binding").LaunchShape(grid, block_of(kernel), c.cluster, built.dynamic_shared, *call.flags)
    function = context.function(rooms.complain(rooms.compiled(built, kernel.arch, kernel.__name__)).cubin, built.name)
    describe = reproduction(kernel, built, env, {n: v for n, v in call.rest.items() if n != "grid"}, call.names)
    arguments = _arguments(kernel, built, env, values, list(extra), call.names)
    every = len(tiles) + len(extra)
    return rooms.launch("plan").Plan(context, function, shape, arguments, every, describe), built, env, text


def map_fields(tile: Tile, env: Mapping[str, int]) -> TensorMapFields:
    """Return the tensor map of a tensor whose dimensions are `env`, at address 0."""
    box = tile.descriptor(env)
    return TensorMapFields(
        element=rooms.map_element(tile.dtype.name), address=0, dims=box.extents, strides=box.strides, box=box.box,
        element_strides=(1,) * len(box.extents), swizzle=box.swizzle or "none",
    )  # fmt: skip


def _arguments(
    kernel: Callee, built: Built, env: Mapping[str, int], values: Mapping[str, Any], named: list[str], numbers: Sequence[str]
) -> list[Any]:
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
        elif p.name in numbers:
            out.append(plan.NumberArgument(numbers.index(p.name), *packer(kernel.__name__, p)))
        elif p.name in values:
            out.append(rooms.pack_value(values[p.name], p, f"{kernel.__name__}: the parameter {p.name!r}"))
        else:
            raise InputError(f"{kernel.__name__}: the parameter {p.name!r} of raw_params needs a value; pass {p.name}=…")
    return out
