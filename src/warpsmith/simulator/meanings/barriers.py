"""Barriers of warps, CTAs and clusters (PTX ISA 9.7.15.1 to 9.7.15.3), and fences (9.7.15.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from warpsmith.simulator.barrier import COUNT
from warpsmith.simulator.meanings.registry import machine, sync
from warpsmith.simulator.outcome import DONE, Outcome, Wait

if TYPE_CHECKING:
    from collections.abc import Callable

    from warpsmith.assembly.ptx.isa import Match
    from warpsmith.simulator.lanes import Lanes

__all__ = ["barrier", "cluster_arrive", "cluster_wait", "fence", "warp_sync"]

_NUMBER = "barriers are numbered 0 to 15; pass a number in that range"
_SIZE = "pass the number of threads that take part, rounded up to a multiple of 32"
_MOST_THREADS = 1024
"""Threads of a CTA at most, on every architecture; a barrier counts those that take part (PTX ISA 9.7.15.1)."""


@sync("bar", "barrier")
def barrier(m: Match) -> Callable[..., Outcome]:
    """Build bar and barrier in all forms: sync, arrive, red."""
    words = m.mnemonic.split(".")
    if "red" in words:
        return _reduction(m, words)
    waits = "sync" in words

    def fn(x: Lanes, number: Any, count: Any = None) -> Outcome:
        if waits and x.mask is None and x.machine.barriers.all_at_once(x, number, count):
            return DONE
        return _use(x, number, count, waits, None, None)

    return fn


def _reduction(m: Match, words: list[str]) -> Callable[..., Outcome]:
    op = next(w for w in ("popc", "and", "or") if w in words)
    counted = len(m.operands) == 4

    def fn(x: Lanes, d: Any, number: Any, *rest: Any) -> Outcome:
        count, predicate = rest if counted else (None, rest[0])

        def result(y: Lanes, which: int) -> None:
            hits, threads = np.moveaxis(y.machine.barriers.result[y.c0 : y.c1, which], -1, 0)[:, :, None]
            value = {"popc": hits.astype(np.uint32), "and": hits == threads, "or": hits > 0}[op]
            y.put(_dest_for(y, d), np.broadcast_to(value, y.shape))

        return _use(x, number, count, True, predicate, result)

    return fn


def _dest_for(x: Lanes, dest: Any) -> Any:
    """Return the destination of the same register in another rectangle."""
    return None if dest is None else x.same_register(dest)


def _use(x: Lanes, number: Any, count: Any, waits: bool, votes: Any, result: Any) -> Outcome:
    """Arrive at a barrier and perhaps wait. Lanes may name different barriers: each group in turn."""
    numbers = np.broadcast_to(np.asarray(number).astype(np.int64), x.shape)
    counts = None if count is None else np.broadcast_to(np.asarray(count).astype(np.int64), x.shape)
    active = x.active()
    used = np.unique(numbers[active]).tolist()
    if any(n >= COUNT for n in used):
        x.finding("named-barrier", f"`{x.op.text}` names barrier {max(used)}", repair=_NUMBER, stop=True)
        return DONE
    uses = [(n, c) for n in used for c in _counts(counts, active & (numbers == n))]
    groups = [(n, c, active & (numbers == n) & (True if counts is None else counts == c)) for n, c in uses]
    before = {n: x.machine.barriers.generation[x.c0 : x.c1, n].copy() for n in used}
    for n, c, lanes in groups:
        if (wrong := _wrong_count(c)) is not None:
            message = f"`{x.op.text}`: thread count {wrong[0]} of barrier {n} is {wrong[1]}"
            x.finding("named-barrier", message, lanes=lanes, repair=_SIZE, stop=True)
            return DONE
        for row in (np.flatnonzero(lanes.any(axis=1)) + x.c0).tolist():
            key = x.machine.barriers.last[row, n] = (x.op.text, x.place)
            here = lanes[row - x.c0].reshape(-1, 32).any(axis=1)
            warps = int.from_bytes(np.packbits(here, bitorder="little").tobytes(), "little")
            seen = x.machine.barriers.seen.setdefault((row, n), {})
            seen[key] = seen.get(key, 0) | warps << x.t0 // 32
        x.machine.barriers.arrive(x, n, c, votes, lanes, waits=waits)
    if not waits:
        return DONE
    if len(groups) == 1:
        n = groups[0][0]
        after = None if result is None else lambda y: result(y, n)
        return x.machine.barriers.wait(x, n, before[n], active, after)
    return _several(x, groups, before, result)


def _wrong_count(count: int | None) -> tuple[int, str] | None:
    """Return a thread count, read as signed, and what is wrong with it; None for a good one."""
    if count is None or (0 < count <= _MOST_THREADS and count % 32 == 0):
        return None
    signed = count - (1 << 32) if count >= 1 << 31 else count
    if signed > 0 and signed % 32 == 0:
        return signed, f"more than the {_MOST_THREADS} threads that a CTA has at most"
    return signed, "not a positive multiple of 32"


def _counts(counts: Any, lanes: Any) -> list[Any]:
    return [None] if counts is None else np.unique(counts[lanes]).tolist()


def _several(x: Lanes, groups: list[Any], before: dict[int, Any], result: Any) -> Outcome:
    """Wait of lanes at several barriers: each goes when its own has completed."""
    conditions = [(lanes, x.machine.barriers.condition(n, slice(x.c0, x.c1), before[n])) for n, _, lanes in groups]
    condition = _Each(conditions)
    passed = condition.ready() & x.active()
    if result is not None:
        x.finding(
            "named-barrier", "lanes of one `bar.red` name different barriers", repair="give them one barrier number", stop=True
        )
        return DONE
    if not (x.active() & ~passed).any():
        return DONE
    return Wait(condition, passed, False)


class _Each:
    """Lanes that wait for different barriers."""

    timed = False

    def __init__(self, conditions: list[Any]) -> None:
        self.conditions = conditions

    def ready(self) -> Any:
        """Say which lanes' barriers have completed."""
        return np.logical_or.reduce([lanes & c.ready() for lanes, c in self.conditions])

    def describe(self) -> str:
        """Describe the barriers that have not completed."""
        return "; ".join(c.describe() for lanes, c in self.conditions if (lanes & ~c.ready()).any())


@machine("bar.warp")
def warp_sync(m: Match) -> Callable[..., None]:
    """Build bar.warp.sync: the lanes have met before it runs."""

    def fn(x: Lanes, members: Any) -> None:
        x.names_itself(members)
        if x.machine.order is not None:
            x.machine.order.warp_sync(x)

    del m
    return fn


@sync("barrier.cluster.arrive")
def cluster_arrive(m: Match) -> Callable[..., Outcome]:
    """Build barrier.cluster.arrive."""
    relaxed = "relaxed" in m.mnemonic

    def fn(x: Lanes) -> Outcome:
        if x.machine.order is not None:
            x.machine.order.cluster_arrive(x, x.active(), relaxed=relaxed)
        twice = x.machine.cluster_barrier.arrive(x)
        if twice.any():
            message = "a thread arrives at the cluster barrier a second time without a wait between"
            x.finding("over-arrival", message, lanes=twice, repair="alternate barrier.cluster.arrive and barrier.cluster.wait")
        return DONE

    return fn


@sync("barrier.cluster.wait")
def cluster_wait(m: Match) -> Callable[..., Outcome]:
    """Build barrier.cluster.wait."""

    def fn(x: Lanes) -> Outcome:
        barrier_ = x.machine.cluster_barrier
        barrier_.begin_wait(x)
        passed = barrier_.passed(x) & x.active()
        barrier_.leave(x, passed)
        if not (x.active() & ~passed).any():
            return DONE
        return Wait(_ClusterPhase(x), passed, True)

    del m
    return fn


class _ClusterPhase:
    """Waits for the phase of the cluster barrier."""

    timed = False

    def __init__(self, x: Lanes) -> None:
        self.machine, self.rect = x.machine, x.rect

    def ready(self) -> Any:
        """Say which lanes' phase is complete."""
        return self.machine.cluster_barrier.passed(self.machine.lanes(self.rect))

    def describe(self) -> str:
        """Say who is missing."""
        return self.machine.cluster_barrier.describe(self.rect[0])


@machine("fence", "membar")
def fence(m: Match) -> Callable[..., None]:
    """Build fences: memory here is sequentially consistent, so that they order nothing further."""

    def fn(x: Lanes, *_: Any) -> None:
        if x.machine.order is not None:
            x.machine.order.fence(x, m.mnemonic)
        hook = x.machine.fence_hook
        if hook is not None:
            hook(x, m)

    return fn
