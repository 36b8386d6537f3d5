"""Allocation of tensor memory (PTX ISA 9.7.18.7): each warp by itself, or one warp of each CTA of a pair together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from warpsmith.base.findings import Related
from warpsmith.simulator.async_access import within
from warpsmith.simulator.check.tensor_memory import tensor_check
from warpsmith.simulator.findings import threads_text
from warpsmith.simulator.meanings.mbarrier import space_of
from warpsmith.simulator.meanings.registry import machine, refuse, sync
from warpsmith.simulator.outcome import DONE, Outcome, Until, Wait
from warpsmith.simulator.tensor_memory import COLUMNS, Request, tensor_memory_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from warpsmith.assembly.ptx.isa import Match
    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.meanings.registry import Function, Refused
    from warpsmith.simulator.tensor_memory import Allocation, TensorMemory

    Mask = NDArray[np.bool_]

__all__: list[str] = []

_KIND = "tmem-lifetime"
_EXCLUSIVE = "`.exclusive` of tcgen05.alloc is not modelled"


def _warps(x: Lanes) -> Iterator[tuple[int, int, Mask]]:
    """Yield (row, warp, lanes) of the active warps."""
    for c, w in np.argwhere(x.warps(x.active()).any(-1)).tolist():
        lanes = np.zeros(x.shape, np.bool_)
        lanes[c, 32 * w : 32 * w + 32] = x.active()[c, 32 * w : 32 * w + 32]
        yield x.c0 + c, x.t0 // 32 + w, lanes


def _same(x: Lanes, value: Any, lanes: Mask, what: str) -> int:
    """Return a value that all lanes of a warp must share."""
    mine = np.broadcast_to(np.asarray(value).astype(np.int64), x.shape)[lanes]
    if (mine != mine[0]).any():
        text = f"{what} of `{x.op.text}` differs between the lanes of a warp"
        x.finding("divergent-collective", text, lanes=lanes, repair="Give all 32 lanes the same value.")
    return int(mine[0])


def _permitted(x: Lanes, tm: TensorMemory, row: int, columns: int, lanes: Mask) -> bool:
    """Report what forbids an allocation for good."""
    if columns < 32 or columns > COLUMNS or columns & (columns - 1):
        text = f"{columns} columns of tensor memory: only 32, 64, 128, 256 and 512 can be allocated or freed"
        x.finding(_KIND, text, lanes=lanes, repair="Round the number of columns up to a power of two from 32 on.", stop=True)
        return False
    gone = tm.relinquished.get(row)
    if gone is not None and gone[0] == int(x.machine.row_cta[row]):
        text = "tcgen05.alloc after the CTA has relinquished the right to allocate"
        at = [Related("relinquished here", gone[1])]
        repair = "Put tcgen05.relinquish_alloc_permit behind the last allocation."
        x.finding(_KIND, text, lanes=lanes, related=at, repair=repair, stop=True)
        return False
    return True


@sync("tcgen05.alloc")
def alloc(m: Match) -> Function | Refused:
    """Allocate columns and write their address to shared memory; wait until there are as many."""
    if ".exclusive" in m.mnemonic:
        return refuse(_EXCLUSIVE)
    pair, space = "cta_group::2" in m.mnemonic, space_of(m)

    def run(x: Lanes, address: NDArray[np.int64], columns: Any) -> Outcome:
        tm = tensor_memory_of(x.machine)
        if x.machine.checking:
            tensor_check(x.machine)  # from now on it looks at what CTAs leave behind
        passed = np.zeros(x.shape, np.bool_)
        waiting: list[tuple[int, int]] = []
        for row, warp, lanes in _warps(x):
            n = _same(x, columns, lanes, "the number of columns")
            if not _permitted(x, tm, row, n, lanes):
                return DONE
            request = Request("alloc", n, 0, warp, x.place, threads_text(x, lanes))
            base = _together(x, tm, row, request, lanes) if pair else _alone(tm, row, request)
            if x.machine.findings.stop:
                return DONE
            if base is None:
                waiting.append((row, n))
                continue
            passed |= lanes
            first = lanes & (np.cumsum(lanes, axis=1) == 1)
            with within(x, first):
                word = np.broadcast_to(np.array([base], np.uint32).view(np.uint8), (*x.shape, 4))
                x.store(space, np.broadcast_to(address, x.shape), word)
        return _outcome(tm, passed, waiting, "tcgen05.alloc")

    return run


def _outcome(tm: TensorMemory, passed: Mask, waiting: list[tuple[int, int]], what: str) -> Outcome:
    if not waiting:
        return DONE
    seen = tm.version

    def ready() -> bool:
        if tm.version != seen or any((met := tm.requests.get(r)) is not None and met.base is not None for r in pairs):
            return True
        return any(tm.may_allocate(r) and tm.fit([r], n) is not None for r, n in waiting if r not in pairs)

    def text() -> str:
        row, n = waiting[0]
        lacks = f"its peer CTA has not come to {what}; " if row in pairs else ""
        return f"{what} of {n} columns on multiprocessor {tm.multiprocessor(row)}: {lacks}{tm.describe(row)}"

    pairs = {r for r, _ in waiting if r in tm.requests}
    return Wait(Until(ready, text), passed, retry=True)


def _alone(tm: TensorMemory, row: int, request: Request) -> int | None:
    """Return the first column allocated; None: wait."""
    base = tm.fit([row], request.columns) if tm.may_allocate(row) else None
    if base is not None:
        tm.take(row, base, request)
    return base


def _together(x: Lanes, tm: TensorMemory, row: int, request: Request, lanes: Mask) -> int | None:
    """Return the first column allocated in both CTAs of a pair; None: wait for the peer, or for columns."""
    peer = _peer(x, tm, row, lanes)
    if peer is None:
        return None
    mine = tm.requests.get(row)
    if mine is None:
        mine = tm.requests[row] = request
        tm.changed()
    if mine.base is None:
        other = tm.requests.get(peer)
        if other is None or other.base is not None:
            return None
        if (other.what, other.columns) != (mine.what, mine.columns):
            _disagree(x, mine, other, lanes)
            return None
        both = tm.may_allocate(row) and tm.may_allocate(peer)
        base = tm.fit([row, peer], mine.columns) if both else None
        if base is None:
            return None
        mine.base = other.base = base
        tm.take(row, base, mine)
        tm.take(peer, base, other)
    del tm.requests[row]
    return mine.base


def _peer(x: Lanes, tm: TensorMemory, row: int, lanes: Mask) -> int | None:
    peer = tm.peer(row)
    if peer is None:
        text = f"`{x.op.text}` in {tm.cta(row)}, which has no peer: its cluster has {x.machine.cluster_size} CTA(s)"
        repair = "Launch clusters of an even number of CTAs, or use .cta_group::1."
        x.finding(_KIND, text, lanes=lanes, repair=repair, stop=True)
    return peer


def _disagree(x: Lanes, mine: Request, other: Request, lanes: Mask) -> None:
    both = f"{mine.what} of {mine.columns} columns, {other.what} of {other.columns} columns"
    text = f"the CTAs of a pair come to different operations: {both}"
    at = [Related(f"tcgen05.{other.what} by {other.threads}", other.place)]
    repair = "Execute the same tcgen05.alloc and dealloc with .cta_group::2 in both CTAs, in the same order."
    x.finding(_KIND, text, lanes=lanes, related=at, repair=repair, stop=True)


@sync("tcgen05.dealloc")
def dealloc(m: Match) -> Function | Refused:
    """Free columns; with .cta_group::2 when both CTAs of the pair have come."""
    if ".exclusive" in m.mnemonic:
        return refuse("`.exclusive` of tcgen05.dealloc is not modelled")
    pair = "cta_group::2" in m.mnemonic

    def run(x: Lanes, address: Any, columns: Any) -> Outcome:
        tm = tensor_memory_of(x.machine)
        passed = np.zeros(x.shape, np.bool_)
        waiting: list[tuple[int, int]] = []
        for row, warp, lanes in _warps(x):
            at, n = _same(x, address, lanes, "the address"), _same(x, columns, lanes, "the number of columns")
            allocation = _allocation(x, tm, row, warp, at, n, lanes)
            if allocation is None:
                return DONE
            request = Request("dealloc", n, at, warp, x.place, threads_text(x, lanes))
            if x.machine.checking:
                tensor_check(x.machine).freeing(x, row, at, at + n, lanes)
            if pair and not _both_free(x, tm, row, request, lanes):
                waiting.append((row, n))
                continue
            tm.give_back(allocation, x.place)
            passed |= lanes
        return _outcome(tm, passed, waiting, "tcgen05.dealloc")

    return run


def _both_free(x: Lanes, tm: TensorMemory, row: int, request: Request, lanes: Mask) -> bool:
    """Say whether both CTAs of a pair have come to a dealloc."""
    peer = _peer(x, tm, row, lanes)
    if peer is None:
        return False
    mine = tm.requests.get(row)
    if mine is None:
        mine = tm.requests[row] = request
        tm.changed()
    other = tm.requests.get(peer)
    if mine.base is None:
        if other is None or other.base is not None:
            return False
        if (other.what, other.columns) != (mine.what, mine.columns):
            _disagree(x, mine, other, lanes)
            return False
        mine.base = other.base = 0
        tm.changed()
    del tm.requests[row]
    return True


def _allocation(x: Lanes, tm: TensorMemory, row: int, warp: int, address: int, columns: int, lanes: Mask) -> Allocation | None:
    """Return the allocation that a dealloc names; report what is wrong with it."""
    held = tm.held(row)
    found = next((a for a in held if (a.base, a.columns) == (address, columns)), None)
    if found is None:
        have = ", ".join(f"{a.columns} columns at {a.base:#x}" for a in held) or "nothing"
        text = f"tcgen05.dealloc of {columns} columns at {address:#x}, which no allocation is: {tm.cta(row)} holds {have}"
        old = next(
            (a for a in reversed(tm.allocations[1:]) if a is not None and a.freed and (a.row, a.base) == (row, address)), None
        )
        at = [Related(f"freed by `{x.op.text}` before", old.freed)] if old is not None else []
        at += [Related(f"allocated by {a.threads}", a.place) for a in held[:2]]
        repair = "Free the address that tcgen05.alloc wrote, with the same number of columns, once."
        x.finding(_KIND, text, lanes=lanes, related=at, repair=repair, stop=True)
        return None
    if found.warp != warp:
        text = f"warp {warp} frees the columns at {found.base:#x}, which warp {found.warp} has allocated"
        at = [Related(f"allocated by {found.threads}", found.place)]
        repair = "Let one warp of the CTA allocate and free tensor memory."
        x.finding(_KIND, text, lanes=lanes, severity="portability", related=at, repair=repair)
    return found


@machine("tcgen05.relinquish_alloc_permit")
def relinquish(m: Match) -> Function:
    """Give up the right to allocate: other CTAs of the multiprocessor may."""

    def run(x: Lanes) -> None:
        tm = tensor_memory_of(x.machine)
        for row, _, _ in _warps(x):
            tm.relinquish(row, x.place)

    del m
    return run
