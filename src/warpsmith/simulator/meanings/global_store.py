"""st.async and red.async with .release: asynchronous stores to global memory (PTX ISA 9.7.10.12, 9.7.15.7).

The store is ordered after what its thread did before it, and is no part of that thread's program order (8.9.1.1): the thread
itself must not rely on it. It is a strong write at its scope and forms a release pattern (8.8, pattern 5): whoever acquires
the value knows what the thread did before the instruction. No barrier and no group waits for it; it completes before its CTA
ends. `.mmio` is a strong operation like others (8.4.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from warpsmith.simulator.access import inside
from warpsmith.simulator.async_access import Lane, lanes_of, who, within
from warpsmith.simulator.asynchronous import AsyncOperation, Extent
from warpsmith.simulator.check.transit import Issuer
from warpsmith.simulator.memory import UNDEFINED
from warpsmith.simulator.reduction import reduce_into

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from warpsmith.assembly.ptx.isa import Match
    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.machine import Machine
    from warpsmith.simulator.meanings.registry import Function

__all__ = ["release_store"]


def release_store(m: Match) -> Function:
    """Store to global memory, or add to it, some time later."""
    element, reduces = m.mnemonic.rsplit(".", 1)[-1], m.row.opcode == "red"
    size = int(element[1:]) // 8
    space = "global" if m["space"] else None
    kind = f"{m.row.opcode}.async"

    def run(x: Lanes, address: Any, value: Any) -> None:
        data = np.ascontiguousarray(np.broadcast_to(np.asarray(value), x.shape))[..., None].view(np.uint8)
        undefined = x.undefined(1)
        if undefined is not None and (lanes := undefined & x.active()).any():
            x.machine.check.report_undefined(x, lanes, "stored to global memory")
        for lane in lanes_of(x):
            index = _place(x, lane, space, lane.at(address), size, kind)
            if index is not None:
                _issue(x, lane, kind, index, data[lane.c, lane.t, :size].copy(), element if reduces else "")

    return run


def _place(x: Lanes, lane: Lane, space: str | None, address: int, size: int, kind: str) -> int | None:
    """Return the index in global memory of the bytes that a lane writes; None when reported."""
    with within(x, lane.mask):
        for at in (inside(x, a, size) for a in x.locate(space, np.full(x.shape, address, np.int64), size)):
            if at.mask is not None and not at.mask[lane.c, lane.t]:
                continue
            if at.space is x.machine.global_:
                return int(at.index[lane.c, lane.t])
            x.finding(
                "out-of-bounds",
                f"the generic address {address:#x} of `{kind}` with .release is none of global memory",
                lanes=lane.mask,
                stop=True,
                repair="Make the address from one of a .global variable, or take the form that signals an mbarrier.",
            )
    return None


def _issue(x: Lanes, lane: Lane, kind: str, index: int, data: NDArray[np.uint8], element: str) -> None:
    memory = x.machine.global_
    told = _follow(x, lane, index, data.size)

    def complete(machine: Machine) -> None:
        if element:
            reduce_into(memory, np.array([index]), data[None], element, "add")
        else:
            memory.data[index : index + data.size] = data
        memory.shadow[index : index + data.size] &= 0xFF ^ UNDEFINED
        if told is not None and machine.order is not None:
            told()
        machine.progress()

    store = AsyncOperation(kind, complete, lane.row, x.place, who(x, lane))
    # its bytes are not marked as in flight: a strong read may look at them all the time
    store.followed = True
    x.issue(store)


def _follow(x: Lanes, lane: Lane, index: int, size: int) -> Callable[[], None] | None:
    """Judge the bytes and note them; return what to do when the store completes."""
    races, order, memory = x.machine.races, x.machine.order, x.machine.global_
    if races is None or order is None or races.shadow_of(memory) is None:
        return None
    thread, transit, site = x.t0 + lane.t, races.transit, races.sites.of(x.op)
    mark = transit.of_store(x, lane.row, thread)
    cells = transit.extent(Extent(memory, index, index + size))
    transit.writes(x, Issuer(lane.mask, lane.row, (thread,), False), memory, cells, mark, strength=site.strength)
    message = order.store_issued(x, lane.mask, lane.row, mark.agent - lane.row * races.columns.count, mark.ordinal)
    return lambda: order.store_completed(memory, index, message, lane.row, reduces=site.reduces)
