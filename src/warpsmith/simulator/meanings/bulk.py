"""Bulk asynchronous copies and reductions, their groups, and prefetches (PTX ISA 9.7.10.28.4, 9.7.10.28.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from warpsmith.simulator.async_access import Lane, claim, follow, lanes_of, signal, span_of, watch, who
from warpsmith.simulator.asynchronous import AsyncOperation, Extent
from warpsmith.simulator.barrier_access import groups
from warpsmith.simulator.meanings.atomic import copied_step
from warpsmith.simulator.meanings.registry import machine, sync
from warpsmith.simulator.meanings.reports import mask_width, reports
from warpsmith.simulator.memory import GLOBAL_BASE, OUTSIDE, UNDEFINED
from warpsmith.simulator.multicast import destinations
from warpsmith.simulator.outcome import Outcome
from warpsmith.simulator.reduction import reduce_into
from warpsmith.simulator.two_step import two_step
from warpsmith.simulator.units import units_of

if TYPE_CHECKING:
    from warpsmith.assembly.ptx.isa import Match
    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.machine import Machine
    from warpsmith.simulator.meanings.registry import Function, Refused
    from warpsmith.simulator.memory import Space

__all__: list[str] = []


@machine("cp.async.bulk", "cp.reduce.async.bulk")
def bulk(m: Match) -> Function | Refused:
    """Copy or reduce a run of bytes between global memory and shared memory, or to another CTA's shared memory."""
    if (no := reports(m)) is not None:
        return no
    names = tuple(slot.name for slot in m.operands)
    spaces = {slot.name: slot.space for slot in m.operands if slot.kind == "address"}
    op, mask_bits = _reduction(m), mask_width(m)

    def run(x: Lanes, *operands: Any) -> None:
        v = dict(zip(names, operands, strict=False))
        for lane in lanes_of(x):
            size = lane.at(v["size"])
            if size % 16 or size < 0:
                x.finding(
                    "out-of-bounds",
                    f"a bulk copy of {size} bytes: the size must be a multiple of 16",
                    lanes=lane.mask,
                    repair="Copy a multiple of 16 bytes and pad the buffer.",
                )
                continue
            edges = _edges(x, lane, v)
            if size == 0 or edges is None:
                continue
            source = _source(x, lane, spaces["a"], lane.at(v["a"]), size, edges)
            if source is None:
                continue
            if "mbar" in v:
                _to_shared(x, lane, v, spaces, source, size, op, edges, mask_bits)
            else:
                target = span_of(x, lane, spaces["d"], lane.at(v["d"]), size)
                if target is not None:
                    bits = lane.at(v["mask"]) & 0xFFFF if "mask" in v else 0xFFFF
                    _to_global(x, lane, source, target, size, op, bits)

    return run


def _reduction(m: Match) -> tuple[str, str] | None:
    """Return (operation, element type) of a reduction, None for a copy."""
    if not m.row.pattern.startswith("cp.reduce"):
        return None
    words = m.mnemonic.split(".")
    op = next(w for w in words if w in ("and", "or", "xor", "add", "inc", "dec", "min", "max"))
    return op, words[-1]


def _edges(x: Lanes, lane: Lane, v: dict[str, Any]) -> tuple[int, int] | None:
    """Return how many bytes at the beginning and the end `.ignore_oob` leaves out; None when they were reported."""
    if "left" not in v:
        return 0, 0
    left, right = lane.at(v["left"]), lane.at(v["right"])
    if 0 <= left < 16 and 0 <= right < 16:
        return left, right
    x.finding(
        "out-of-bounds",
        f"a bulk copy with .ignore_oob ignores {left} bytes at the beginning and {right} at the end; 0 to 15 are possible",
        lanes=lane.mask,
        repair="Round the addresses to multiples of 16 and ignore what this adds.",
    )
    return None


def _source(
    x: Lanes, lane: Lane, space: str | None, address: int, size: int, edges: tuple[int, int]
) -> tuple[Space, int] | None:
    """Return (space, flat index) of the source; bytes that `.ignore_oob` leaves out may lie outside. None when reported."""
    if edges == (0, 0):
        return span_of(x, lane, space, address, size)
    memory, index = x.machine.global_, address - GLOBAL_BASE
    if address % 16:
        x.machine.check.misaligned(x, memory, np.full(x.shape, address, np.int64), 16, lane.mask)
        return None
    first, last = index + edges[0], index + size - edges[1]
    kept = memory.shadow[max(first, 0) : max(last, 0)]
    if first < 0 or len(kept) < last - first or (last > first and kept.max() >= OUTSIDE):
        gap = 0 if first < 0 or len(kept) == 0 else int(np.argmax(kept >= OUTSIDE))
        at = np.full(x.shape, address + edges[0] + gap, np.int64)
        x.machine.check.outside(x, memory, at, 1, lane.mask)
        return None
    return memory, index


def _to_shared(
    x: Lanes, lane: Lane, v: dict[str, Any], spaces: dict[str, str | None], source: tuple[Space, int], size: int,
    reduction: tuple[str, str] | None, edges: tuple[int, int], mask_bits: int,
) -> None:  # fmt: skip
    target = span_of(x, lane, spaces["d"], lane.at(v["d"]), size)
    if target is None:
        return
    address = np.full(x.shape, lane.at(v["mbar"]), np.int64)
    before, x.mask = x.mask, lane.mask
    barrier = next((index for index, _ in groups(x, spaces["mbar"], address)), None)
    x.mask = before
    if barrier is None:
        return
    for to, at in destinations(x, lane, v.get("mask"), target[1], barrier, bits=mask_bits):
        copy = AsyncOperation(
            "cp.async.bulk" if reduction is None else "cp.reduce.async.bulk", _never, lane.row, x.place, who(x, lane)
        )
        copy.reads = [Extent(source[0], source[1] + edges[0], max(source[1] + edges[0], source[1] + size - edges[1]))]
        copy.writes = [Extent(target[0], to, to + size)]
        signals = watch(x, lane, at, copy)
        if signals is None:
            continue

        def complete(machine: Machine, copy: AsyncOperation = copy, to: int = to, signals: Any = signals) -> None:
            _move(source, (target[0], to), size, reduction, edges)
            machine.counters.bytes[copy.kind] += size
            machine.progress()
            signal(machine, signals, copy, size)

        copy.complete = complete
        claim(x, lane, copy)
        follow(x, lane, copy, signals, strength=0 if reduction is None else 3)
        x.issue(copy)


def _to_global(
    x: Lanes, lane: Lane, source: tuple[Space, int], target: tuple[Space, int], size: int,
    reduction: tuple[str, str] | None, bits: int,
) -> None:  # fmt: skip
    """Issue a copy out of shared memory; bit i of `bits` (`.cp_mask`) says whether byte i of each 16 is copied."""
    kept = np.array([bits >> i & 1 for i in range(16)], np.bool_)
    kind = "cp.async.bulk" if reduction is None else "cp.reduce.async.bulk"

    def read(_: Machine) -> Any:
        source[0].note_read(source[1], size)
        piece = slice(source[1], source[1] + size)
        return source[0].data[piece].copy(), source[0].shadow[piece] & UNDEFINED

    def write(machine: Machine, held: Any) -> bool:
        data, flags = held
        mask = np.resize(kept, size)
        if bits == 0xFFFF:
            _put(data, flags, target, size, reduction)
        else:
            _put_kept(data, flags, target, mask)
        machine.counters.bytes[kind] += size // 16 * bits.bit_count()
        return bool(flags[mask].any())

    two_step(
        x,
        lane,
        kind,
        read,
        write,
        [Extent(source[0], source[1], source[1] + size)],
        [Extent(target[0], a, b) for a, b in _written(target[1], size, bits)],
        strength=0 if reduction is None else 3,
    )


def _written(start: int, size: int, bits: int) -> list[tuple[int, int]]:
    """Return the runs of bytes that a copy of `size` bytes to `start` writes."""
    if bits == 0xFFFF:
        return [(start, start + size)]
    edges = [i for i in range(17) if (bits >> i & 1) != (bits << 1 >> i & 1)]
    runs = list(zip(edges[::2], edges[1::2], strict=True))
    return [(at + first, at + stop) for at in range(start, start + size, 16) for first, stop in runs]


def _never(_: Machine) -> None:
    """Stand in until the copy is complete as an object."""


def _move(
    source: tuple[Space, int], target: tuple[Space, int], size: int, reduction: tuple[str, str] | None, edges: tuple[int, int]
) -> None:  # fmt: skip
    space, at = source
    if edges == (0, 0):
        space.note_read(at, size)
        piece = slice(at, at + size)
        _put(space.data[piece], space.shadow[piece] & UNDEFINED, target, size, reduction)
        return
    data, flags = np.zeros(size, np.uint8), np.full(size, UNDEFINED, np.uint8)
    first, last = edges[0], size - edges[1]
    if last > first:
        space.note_read(at + first, last - first)
        data[first:last] = space.data[at + first : at + last]
        flags[first:last] = space.shadow[at + first : at + last] & UNDEFINED
    _put(data, flags, target, size, reduction)


def _put(data: Any, flags: Any, target: tuple[Space, int], size: int, reduction: tuple[str, str] | None) -> None:
    space, at = target
    if reduction is None:
        space.data[at : at + size] = data
        if flags.any():
            space.shadow[at : at + size] |= flags
        return
    op, element = reduction
    width = {"16": 2, "32": 4, "64": 8}[element[-2:]]
    reduce_into(space, np.arange(at, at + size, width), data.reshape(-1, width), element, op, copied_step(op, element))


def _put_kept(data: Any, flags: Any, target: tuple[Space, int], kept: Any) -> None:
    """Write the bytes that `kept` chooses, one flag a byte."""
    space, at = target
    place = slice(at, at + kept.size)
    space.data[place][kept] = data[kept]
    space.shadow[place][kept] |= flags[kept]


@machine("cp.async.bulk.prefetch")
def prefetch(m: Match) -> Function:
    """Check the address; the cache is not modelled."""
    names = tuple(slot.name for slot in m.operands)

    def run(x: Lanes, *operands: Any) -> None:
        v = dict(zip(names, operands, strict=False))
        for lane in lanes_of(x):
            if (size := lane.at(v["size"])) >= 16:
                span_of(x, lane, "global", lane.at(v["a"]), size)

    return run


@machine("cp.async.bulk.commit_group")
def commit(m: Match) -> Function:
    """Close the open group of bulk copies."""

    def run(x: Lanes) -> None:
        units_of(x.machine).bulk.commit(x)

    return run


@sync("cp.async.bulk.wait_group")
def wait(m: Match) -> Function:
    """Wait for all but the latest n groups: complete, or with `.read` until their sources have been read."""
    read = bool(m.get("read"))

    def run(x: Lanes, n: Any) -> Outcome:
        groups = units_of(x.machine).bulk
        if x.machine.races is not None:
            kinds = ("cp.async.bulk.read",) if read else ("cp.async.bulk.read", "cp.async.bulk")
            x.machine.races.transit.waited(x, kinds, groups, int(n))
        return groups.wait(x, int(n), read=read)

    return run
