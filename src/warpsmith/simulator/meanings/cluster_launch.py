"""Cluster launch control: clusters take over the work of clusters that have not started (PTX ISA 9.7.15.18, 9.7.15.19).

The 16 bytes of an answer are opaque to programs; here: x, y, z of the cancelled cluster's first CTA, 32 bits each, and a
word that is 1 where the request succeeded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from warpsmith.simulator.async_access import claim, follow, lanes_of, signal, span_of, watch, who, within
from warpsmith.simulator.asynchronous import AsyncOperation, Extent
from warpsmith.simulator.barrier_access import groups
from warpsmith.simulator.meanings.registry import machine
from warpsmith.simulator.memory import UNDEFINED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.assembly.ptx.isa import Match
    from warpsmith.simulator.async_access import Lane
    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.machine import Machine
    from warpsmith.simulator.mbarrier import MBarrier
    from warpsmith.simulator.meanings.registry import Function

__all__: list[str] = []

_SIZE = 16


@machine("clusterlaunchcontrol.try_cancel")
def try_cancel(m: Match) -> Function:
    """Ask for a cluster that has not started; the answer comes like a copy of 16 bytes, to one CTA or to all of the cluster."""
    space = next(slot.space for slot in m.operands if slot.kind == "address")
    everyone = "multicast::cluster::all" in m.mnemonic

    def run(x: Lanes, address: Any, barrier: Any) -> None:
        for lane in lanes_of(x):
            target = span_of(x, lane, space, lane.at(address), _SIZE)
            with within(x, lane.mask):
                index = next((i for i, _ in groups(x, space, np.full(x.shape, lane.at(barrier), np.int64))), None)
            if target is not None and index is not None:
                _ask(x, lane, target[1], index, everyone=everyone)

    return run


def _ask(x: Lanes, lane: Lane, target: int, index: int, *, everyone: bool) -> None:
    """Put a request in flight. One operation stands for it in each CTA that is answered; the first to complete asks."""
    m, width = x.machine, x.machine.shared.row
    first = int(m.cluster_first[lane.row])
    rows = range(first, first + m.cluster_size) if everyone else [target // width]
    answer: list[NDArray[np.uint8]] = []
    for row in rows:
        op = AsyncOperation("clusterlaunchcontrol.try_cancel", _never, lane.row, x.place, who(x, lane))
        to = row * width + target % width
        op.writes = [Extent(m.shared, to, to + _SIZE)]
        signals = watch(x, lane, row * width + index % width, op)
        if signals is None:
            continue
        op.complete = _completion(op, to, signals, answer)
        claim(x, lane, op)
        follow(x, lane, op, signals)
        x.issue(op)


def _completion(op: AsyncOperation, to: int, signals: MBarrier, answer: list[NDArray[np.uint8]]) -> Any:
    def complete(machine: Machine) -> None:
        if not answer:
            cancelled = machine.cancel() if machine.cancel is not None else None
            words = (0, 0, 0, 0) if cancelled is None else (*cancelled, 1)
            answer.append(np.array(words, np.uint32).view(np.uint8))
        piece = slice(to, to + _SIZE)
        machine.shared.data[piece] = answer[0]
        machine.shared.shadow[piece] &= np.uint8(0xFF ^ UNDEFINED)
        machine.progress()
        signal(machine, signals, op, _SIZE)

    return complete


def _never(_: Machine) -> None:
    raise AssertionError("an operation without a completion")


@machine("clusterlaunchcontrol.query_cancel")
def query_cancel(m: Match) -> Function:
    """Read an answer: whether a cluster was cancelled, and the number of its first CTA."""
    words = m.mnemonic.split(".")
    axis = next(("xyz".index(w[-1]) for w in words if w.startswith("get_first_ctaid::")), None)

    def run(x: Lanes, d: Any, handle: Any) -> None:
        low, high = (np.broadcast_to(np.asarray(h).astype(np.uint64), x.shape) for h in handle)
        mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
        parts = [(part & mask).astype(np.uint32) for part in (low, low >> half, high, high >> half)]
        if "is_canceled" in words:
            x.put(d, parts[3] != 0)
        elif axis is not None:
            x.put(d, parts[axis])
        else:
            for dest, part in zip(d, [*parts[:3], np.zeros_like(parts[0])], strict=True):
                x.put(dest, part)

    return run
