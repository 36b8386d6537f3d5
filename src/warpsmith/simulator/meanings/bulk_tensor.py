"""Tensor copies (PTX ISA 9.7.10.28.5): the boxes that a tensor map describes, to and from shared memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from warpsmith.base.errors import InputError
from warpsmith.base.tensormap import PADDED
from warpsmith.simulator import tensor_copy
from warpsmith.simulator.async_access import Lane, claim, follow, lanes_of, signal, span_of, watch, who, within
from warpsmith.simulator.asynchronous import AsyncOperation, Extent
from warpsmith.simulator.barrier_access import groups
from warpsmith.simulator.check.transit import Issuer
from warpsmith.simulator.meanings.atomic import copied_step
from warpsmith.simulator.meanings.registry import machine
from warpsmith.simulator.meanings.reports import mask_width, reports
from warpsmith.simulator.meanings.tensor_override import overridden
from warpsmith.simulator.meanings.tensor_stores import stored
from warpsmith.simulator.memory import GLOBAL_BASE
from warpsmith.simulator.multicast import destinations
from warpsmith.simulator.shared_address import place_of, rank_of
from warpsmith.simulator.swizzle import FLIP_8B
from warpsmith.simulator.tensormap import decoded
from warpsmith.simulator.tma import (
    Rows,
    box_bytes,
    extent,
    inner_bytes,
    modelled,
    row_bytes,
    rows_gather,
    rows_im2col,
    rows_im2col_w,
    rows_tiled,
)
from warpsmith.simulator.two_step import two_step

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.assembly.ptx.isa import Match
    from warpsmith.base.tensormap import TensorMapFields
    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.machine import Machine
    from warpsmith.simulator.meanings.registry import Function, Refused

__all__: list[str] = []

_ADDRESSES = 1 << 62
"""What a tensor map describes beyond this, from the start of global memory on, is nowhere."""
_BEYOND = np.array([_ADDRESSES], np.int64)
_WIDE = ("im2col::w", "im2col::w::128", "im2col_no_offs::w")
"""Modes that walk along W alone; without offsets wHalo and wOffset are 0."""


class Pairing(NamedTuple):
    """How a multicast names its destinations: whether pairs share a barrier (`.cta_group::2`), and the bits of its mask."""

    paired: bool
    bits: int


def _mode(m: Match) -> str:
    words = m.mnemonic.split(".")
    return next((w for w in words if w.startswith(("tile", "im2col"))), "tile")


@machine("cp.async.bulk.tensor", "cp.reduce.async.bulk.tensor")
def tensor(m: Match) -> Function | Refused:
    """Copy a box between a tensor in global memory and shared memory, or reduce it into the tensor."""
    if (no := reports(m)) is not None:
        return no
    names = tuple(slot.name for slot in m.operands)
    spaces = {slot.name: slot.space for slot in m.operands if slot.kind == "address"}
    mode, words = _mode(m), m.mnemonic.split(".")
    pairing = Pairing("cta_group::2" in m.mnemonic, mask_width(m))
    reduction = next((w for w in words if w in ("add", "min", "max", "inc", "dec", "and", "or", "xor")), None)
    dimensions = next(int(w[0]) for w in words if w in ("1d", "2d", "3d", "4d", "5d"))

    def run(x: Lanes, *operands: Any) -> None:
        v = dict(zip(names, operands, strict=False))
        maps: dict[int, TensorMapFields] = {}
        for lane in lanes_of(x):
            f = _map_of(x, lane, v["m"], dimensions, mode, maps)
            if f is None:
                continue
            offsets = [lane.at(o) for o in v["o"]] if v.get("o") is not None else []
            coordinates = [lane.at(c) for c in _split(v["m"][1], mode, dimensions)[1]]
            modelled(f)
            if not _starts_on_sixteen(x, lane, f, coordinates[0]):
                continue
            if "mbar" not in v and not stored(x, lane, f, coordinates, mode, reduction):
                continue
            rows = _rows(f, coordinates, offsets, mode)
            if not _in_memory(x, lane, f, rows):
                continue
            if "mbar" in v:
                _load(x, lane, v, spaces, f, rows, pairing)
            else:
                _store(x, lane, v, spaces, f, rows, reduction)

    return run


def _starts_on_sixteen(x: Lanes, lane: Lane, f: TensorMapFields, column: int) -> bool:
    """Report a copy whose innermost coordinate is no multiple of 16 bytes: an H200 stops with an illegal instruction.

    Seen for loads, stores, reductions and prefetches, tiled and im2col, with and without swizzle.
    """
    if f.element in PADDED and column % 128:
        x.finding(
            "out-of-bounds",
            f"a tensor copy of {f.element} starts at innermost coordinate {column}; it must be a multiple of 128",
            lanes=lane.mask,
            stop=True,
            repair="Start boxes at multiples of 128 elements.",
        )
        return False
    if f.slice_bytes or column * f.bits % 128 == 0:
        return True
    x.finding(
        "out-of-bounds",
        f"a tensor copy starts at innermost coordinate {column}, {column * f.bits // 8} bytes from the start of its row; "
        "the GPU takes multiples of 16 bytes",
        lanes=lane.mask,
        stop=True,
        repair=f"Start boxes at multiples of {128 // f.bits} elements and leave out what you do not need.",
    )
    return False


def _rows(f: TensorMapFields, coordinates: list[int], offsets: list[int], mode: str) -> Rows:
    if mode in _WIDE:
        halo, offset = offsets or (0, 0)
        return rows_im2col_w(f, coordinates, halo, offset, 128 if mode == "im2col::w::128" else f.pixels)
    if mode.startswith("im2col"):
        return rows_im2col(f, coordinates, offsets)
    if mode in ("tile::gather4", "tile::scatter4"):
        return rows_gather(f, coordinates)
    return rows_tiled(f, coordinates)


def _split(operands: list[Any], mode: str, dimensions: int) -> tuple[list[Any], list[Any]]:
    """Return what overrides fields of the tensor map, and the coordinates."""
    at = len(operands) - (5 if mode.endswith("4") else dimensions)
    return operands[:at], operands[at:]


def _map_of(
    x: Lanes, lane: Lane, operands: Any, dimensions: int, mode: str, met: dict[int, TensorMapFields]
) -> TensorMapFields | None:
    """Read and check the 128 bytes of the lane's tensor map; None when it was reported.

    `operands` are its address and a list: what overrides its fields, then the coordinates. `met` keeps good maps by their
    address, for the other lanes of the instruction, where it means the same bytes to all.
    """
    address, others = operands[0], _split(operands[1], mode, dimensions)
    f = met.get(lane.at(address))
    if f is None and (f := _read_map(x, lane, address, dimensions, mode, met)) is None:
        return None
    return overridden(x, lane, f, *others) if others[0] else f


def _read_map(
    x: Lanes, lane: Lane, address: Any, dimensions: int, mode: str, met: dict[int, TensorMapFields]
) -> TensorMapFields | None:  # fmt: skip
    span = span_of(x, lane, None, lane.at(address), 128)
    if span is None:
        return None
    space, index = span
    if (index % space.row if space is x.machine.shared else index) % 64:
        _bad_map(x, lane, f"the tensor map at {lane.at(address):#x} is not aligned to 64 bytes")
        return None
    space.note_read(index, 128)
    try:
        f = decoded(space.data[index : index + 128].tobytes())
    except InputError as error:
        _bad_map(x, lane, f"the 128 bytes at {lane.at(address):#x} are {error}")
        return None
    if f.rank != dimensions:
        _bad_map(x, lane, f"a {dimensions}d copy with a tensor map of rank {f.rank}")
        return None
    if (f.mode == "tiled") == mode.startswith("im2col"):
        _bad_map(x, lane, f"a copy in {mode} mode with a tensor map in {f.mode} mode")
        return None
    if mode in _WIDE and f.swizzle in ("none", FLIP_8B):
        _bad_map(x, lane, f"a copy in {mode} mode with a tensor map of swizzle {f.swizzle}, which this mode has not")
        return None
    if mode in _WIDE and f.interleave != "none":
        _bad_map(x, lane, f"a copy in {mode} mode with a tensor map of interleave {f.interleave}, which this mode has not")
        return None
    if space in (x.machine.global_, x.machine.const, x.machine.params):
        met[lane.at(address)] = f
    return f


def _in_memory(x: Lanes, lane: Lane, f: TensorMapFields, rows: Rows) -> bool:
    """Report a box that reaches beyond the array it lies in.

    The tensor may reach beyond: maps of sequences one behind the other describe more than there is, so that what lies
    outside of a sequence is outside of the tensor (CUTLASS's and Triton's attention).
    """
    start, size = f.address - GLOBAL_BASE, extent(f)
    found, distance = x.machine.global_.allocation_near(start)
    if found is not None and not distance and start + size <= found.start + found.size:
        return True
    at, length = _rows_of(f, rows) if start + size < _ADDRESSES else (_BEYOND, size)
    if not at.size or length <= 0:
        if found is not None and not distance:
            return True
    else:
        found, distance = x.machine.global_.allocation_near(int(at.min()))
        if found is not None and not distance and int(at.max()) + length <= found.start + found.size:
            return True
    name = f"`{found.name}`" if found is not None else "any allocation"
    text = f"the tensor map describes {size} bytes from {f.address:#x} on, and this box reaches beyond {name}"
    _bad_map(x, lane, text)
    return False


def _bad_map(x: Lanes, lane: Lane, message: str) -> None:
    x.finding(
        "out-of-bounds",
        message,
        lanes=lane.mask,
        stop=True,
        repair="Pass the tensor map of this array as a const __grid_constant__ parameter or in global memory.",
    )


def _load(
    x: Lanes, lane: Lane, v: dict[str, Any], spaces: dict[str, str | None], f: TensorMapFields, rows: Rows, pairing: Pairing
) -> None:
    size = len(rows.offsets) * row_bytes(f)
    target = _box(x, lane, spaces["d"], lane.at(v["d"]), len(rows.offsets), f)
    if target is None:
        return
    if not _barrier_in_reach(x, lane, spaces["mbar"], lane.at(v["mbar"])):
        return
    with within(x, lane.mask):
        address = np.full(x.shape, lane.at(v["mbar"]), np.int64)
        barrier = next((index for index, _ in groups(x, spaces["mbar"], address)), None)
    if barrier is None:
        return
    shared, width = x.machine.shared, x.machine.shared.row
    if v.get("mask") is None and not _signals_own(x, lane, target, barrier, paired=pairing.paired):
        return
    loaded = _rows_of(f, rows)
    for to, at in destinations(x, lane, v.get("mask"), target, barrier, paired=pairing.paired, bits=pairing.bits):
        copy = AsyncOperation("cp.async.bulk.tensor", _never, lane.row, x.place, who(x, lane))
        copy.writes = [Extent(shared, to, to + box_bytes(f, to % width, len(rows.offsets)))]
        signals = watch(x, lane, at, copy)
        if signals is None:
            continue

        def complete(machine: Machine, copy: AsyncOperation = copy, to: int = to, signals: Any = signals) -> None:
            row, offset = divmod(to, width)
            tensor_copy.load(f, rows, machine.global_, f.address - GLOBAL_BASE, machine.shared, row * width, offset)
            machine.counters.bytes[copy.kind] += size
            machine.progress()
            signal(machine, signals, copy, size)

        copy.complete = complete
        claim(x, lane, copy)
        follow(x, lane, copy, signals)
        if x.machine.races is not None:
            x.machine.races.tags.note(to, len(rows.offsets) * inner_bytes(f), f.swizzle)
        if (races := x.machine.races) is not None and races.global_ is not None:
            issuer = Issuer(lane.mask, lane.row, (x.t0 + lane.t,))
            cells = races.transit.rows(x.machine.global_, *loaded)
            races.transit.reads(x, issuer, x.machine.global_, cells, [races.transit.of_barrier(signals)])
        x.issue(copy)


def _rows_of(f: TensorMapFields, rows: Rows) -> tuple[NDArray[np.int64], int]:
    """Return where the rows of a copy that exist start in global memory, and their bytes."""
    offsets = rows.offsets if rows.valid is None else rows.offsets[rows.valid]
    return offsets + (f.address - GLOBAL_BASE + rows.first), rows.last - rows.first


def _barrier_in_reach(x: Lanes, lane: Lane, space: str | None, address: int) -> bool:
    """Report a copy to `.shared::cta` whose barrier is given by a cluster address: it would not be signalled."""
    if space != "shared::cta" or rank_of(address) == lane.row % x.machine.cluster_size:
        return True
    x.finding(
        "out-of-bounds",
        "a tensor copy to .shared::cta signals an mbarrier by a cluster address; such copies signal their own CTA only",
        lanes=lane.mask,
        stop=True,
        repair="Write .shared::cluster as destination: the barrier may then lie in the peer with .cta_group::2.",
    )
    return False


def _signals_own(x: Lanes, lane: Lane, target: int, barrier: int, *, paired: bool) -> bool:
    """Report a barrier that lies neither in the destination's CTA nor (with `.cta_group::2`) in its peer."""
    width, first = x.machine.shared.row, int(x.machine.cluster_first[lane.row])
    there, here = barrier // width - first, target // width - first
    if there == here or (paired and there == here ^ 1):
        return True
    x.finding(
        "out-of-bounds",
        f"a tensor copy to CTA {here} of the cluster signals an mbarrier of CTA {there}",
        lanes=lane.mask,
        stop=True,
        repair="Signal a barrier of the CTA that receives the box, or with .cta_group::2 one of its peer (rank ^ 1).",
    )
    return False


def _box(x: Lanes, lane: Lane, space: str | None, address: int, count: int, f: TensorMapFields) -> int | None:
    """Return the flat index of a box of `count` rows in shared memory; None when it was reported."""
    need = 128
    if place_of(address) % need:
        x.finding(
            "out-of-bounds",
            f"the shared memory address {address:#x} of a tensor copy is not aligned to {need} bytes",
            lanes=lane.mask,
            repair=f"Align the buffer to {need} bytes (1024 for a 128-byte swizzle whose pattern starts with the buffer).",
        )
        return None
    span = span_of(x, lane, space, address, box_bytes(f, address, count))
    return None if span is None else span[1]


def _never(_: Machine) -> None:
    """Stand in until the copy is complete as an object."""


def _store(
    x: Lanes,
    lane: Lane,
    v: dict[str, Any],
    spaces: dict[str, str | None],
    f: TensorMapFields,
    rows: Rows,
    reduction: str | None,
) -> None:
    size = len(rows.offsets) * row_bytes(f)
    source = _box(x, lane, spaces["a"], lane.at(v["a"]), len(rows.offsets), f)
    if source is None:
        return
    shared, width = x.machine.shared, x.machine.shared.row
    row, offset = divmod(source, width)
    kind = "cp.async.bulk.tensor" if reduction is None else "cp.reduce.async.bulk.tensor"

    def read(machine: Machine) -> Any:
        return tensor_copy.gather(f, len(rows.offsets), shared, row * width, offset)

    step = None if reduction is None else copied_step(reduction, f.element)

    def write(machine: Machine, held: Any) -> bool:
        machine.counters.bytes[kind] += size
        return tensor_copy.store(f, rows, held, machine.global_, f.address - GLOBAL_BASE, reduction, step)

    strength = 0 if reduction is None else 3
    reads = [Extent(shared, source, source + box_bytes(f, offset, len(rows.offsets)))]
    two_step(x, lane, kind, read, write, reads, [], strength=strength, rows=_rows_of(f, rows))


@machine("cp.async.bulk.prefetch.tensor")
def prefetch(m: Match) -> Function | Refused:
    """Check the tensor map; the cache is not modelled."""
    names = tuple(slot.name for slot in m.operands)
    if (no := reports(m)) is not None:
        return no
    mode = _mode(m)
    dimensions = next(int(w[0]) for w in m.mnemonic.split(".") if w in ("1d", "2d", "3d", "4d", "5d"))

    def run(x: Lanes, *operands: Any) -> None:
        v = dict(zip(names, operands, strict=False))
        for lane in lanes_of(x):
            f = _map_of(x, lane, v["m"], dimensions, mode, {})
            if f is not None:
                column = lane.at(_split(v["m"][1], mode, dimensions)[1][0])
                modelled(f)
                _starts_on_sixteen(x, lane, f, column)

    return run
