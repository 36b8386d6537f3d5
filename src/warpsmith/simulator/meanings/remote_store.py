"""st.async and red.async: stores and reductions in a CTA of the cluster that signal its mbarrier (9.7.9.12, 9.7.13.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from warpsmith.simulator.access import inside
from warpsmith.simulator.async_access import Lane, follow, lanes_of, signal, watch, who, within
from warpsmith.simulator.asynchronous import AsyncOperation, Extent
from warpsmith.simulator.barrier_access import groups
from warpsmith.simulator.meanings.global_store import release_store
from warpsmith.simulator.meanings.registry import machine
from warpsmith.simulator.memory import UNDEFINED
from warpsmith.simulator.reduction import reduce_into

if TYPE_CHECKING:
    from warpsmith.assembly.ptx.isa import Match
    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.machine import Machine
    from warpsmith.simulator.meanings.registry import Function

__all__: list[str] = []


@machine("st.async", "red.async")
def remote(m: Match) -> Function:
    """Store or reduce asynchronously; the bytes complete on the barrier of the destination CTA."""
    names = ["mbar" if slot.name == "m" else slot.name for slot in m.operands]
    if "mbar" not in names:
        return release_store(m)
    words = m.mnemonic.split(".")
    op = next((w for w in words if w in ("inc", "dec", "min", "max", "and", "or", "xor", "add")), None)
    element = words[-1]
    space = "shared::cluster" if "shared::cluster" in words else None  # None: both addresses are generic

    def run(x: Lanes, *operands: Any) -> None:
        v = dict(zip(names, operands, strict=False))
        parts = v["b"] if isinstance(v["b"], list | tuple) or np.asarray(v["b"]).ndim == 3 else [v["b"]]
        data = np.stack(
            [np.ascontiguousarray(np.broadcast_to(np.asarray(p), x.shape))[..., None].view(np.uint8) for p in parts], -2
        )
        data = data.reshape(*x.shape, -1)
        undefined = x.undefined(names.index("b"))
        for lane in lanes_of(x):
            flag = UNDEFINED if undefined is not None and undefined[lane.c, lane.t] else 0
            _issue(x, lane, v, space, (data[lane.c, lane.t].copy(), flag), op, element)

    return run


def _issue(x: Lanes, lane: Lane, v: dict[str, Any], space: str | None, value: Any, op: str | None, element: str) -> None:
    """Put the store of a lane in flight; `value` are its bytes, and the flag of those that nobody wrote, or 0."""
    data, flag = value
    size = data.size
    with within(x, lane.mask):
        address, n = np.full(x.shape, lane.at(v["a"]), np.int64), min(size, 16)
        at = [inside(x, a, n) for a in x.locate(space, address, n)]
        index = next((int(a.index[lane.c, lane.t]) for a in at if a.mask is None or a.mask[lane.c, lane.t]), None)
        barrier = next((i for i, _ in groups(x, space, np.full(x.shape, lane.at(v["mbar"]), np.int64))), None)
    if index is not None and any(a.space is not x.machine.shared for a in at):
        x.finding(
            "out-of-bounds",
            f"the generic address {lane.at(v['a']):#x} of an asynchronous remote store is none of shared memory",
            lanes=lane.mask,
            stop=True,
            repair="Make the address with mapa from one of a .shared variable.",
        )
        return
    if index is None or barrier is None:
        return
    shared = x.machine.shared
    store = AsyncOperation("st.async" if op is None else "red.async", lambda _: None, lane.row, x.place, who(x, lane))
    store.writes = [Extent(shared, index, index + size)]
    signals = watch(x, lane, barrier, store)
    if signals is None:
        return

    def complete(machine: Machine) -> None:
        if op is None:
            shared.data[index : index + size] = data
        else:
            reduce_into(shared, np.array([index]), data[None], element, op)
        shared.shadow[index : index + size] |= flag
        machine.progress()
        signal(machine, signals, store, size)

    store.complete = complete
    follow(x, lane, store, signals, proxied=False, strength=0 if op is None else 3)
    x.issue(store)
