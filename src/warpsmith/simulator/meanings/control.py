"""Control flow and miscellany (PTX ISA 9.7.12, 9.7.21): what is not carried out by the engine itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from warpsmith.simulator.meanings.registry import Refused, control, machine, refuse, sync
from warpsmith.simulator.outcome import DONE, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from warpsmith.assembly.ptx.isa import Match
    from warpsmith.simulator.lanes import Lanes

__all__ = ["elect", "nanosleep", "nothing", "setmaxnreg", "trap"]

control("bra", "brx", "call", "ret", "exit", "mov")


@machine("trap")
def trap(m: Match) -> Callable[..., None]:
    """Build trap: the launch ends."""

    def fn(x: Lanes) -> None:
        x.finding(
            "trap",
            "the kernel executed `trap`",
            repair="look at the condition that led here: the kernel asked to abort",
            stop=True,
        )

    del m
    return fn


@machine("brkpt", "pmevent")
def nothing(m: Match) -> Callable[..., None]:
    """Build what only tools see: breakpoints and performance events."""

    def fn(x: Lanes, *_: Any) -> None:
        del x

    del m
    return fn


@sync("nanosleep")
def nanosleep(m: Match) -> Callable[..., Outcome]:
    """Build nanosleep: others go first, and time passes."""

    def fn(x: Lanes, time: Any) -> Outcome:
        x.machine.instructions_run += int(np.max(np.broadcast_to(time, x.shape)))
        x.yields = True
        return DONE

    del m
    return fn


@machine("elect")
def elect(m: Match) -> Callable[..., None]:
    """Build elect.sync: the lowest lane of the member mask is elected; all members learn its number."""

    def fn(x: Lanes, pair: Any, members: Any) -> None:
        d, p = pair if isinstance(pair, tuple) else (pair, None)
        masks = x.warps(np.broadcast_to(np.asarray(members, np.uint32), x.shape))
        active = x.warps(x.active())
        mask = np.bitwise_or.reduce(np.where(active, masks, 0), axis=-1, keepdims=True) & x.lane_masks()[..., None]
        lowest = np.bitwise_count((mask & (~mask + np.uint32(1))) - np.uint32(1)).astype(np.uint32)
        leader = x.threads_of(lowest)
        x.put(d, leader)
        lane = (np.arange(x.t0, x.t1, dtype=np.uint32) & 31)[None]
        x.put(p, np.broadcast_to(leader == lane, x.shape))

    del m
    return fn


@machine("griddepcontrol")
def griddepcontrol(m: Match) -> Callable[..., None]:
    """Build griddepcontrol: one grid runs at a time, so that the grids it depends on have ended."""

    def fn(x: Lanes) -> None:
        x.machine.fidelity.note("griddepcontrol", "exact", "launches run one after the other; a wait finds its grids ended")

    del m
    return fn


@sync("setmaxnreg")
def setmaxnreg(m: Match) -> Callable[..., Outcome]:
    """Build setmaxnreg: `.dec` gives registers of the CTA's pool back, `.inc` waits for them."""
    grow = m["action"] == "inc"

    def fn(x: Lanes, count: Any) -> Outcome:
        return x.machine.register_budget.change(x, int(count), grow=grow)

    return fn


@machine("alloca", "stacksave", "stackrestore")
def stack(m: Match) -> Callable[..., None] | Refused:
    """Build alloca, stacksave and stackrestore: a stack of local memory per thread."""
    opcode = m.row.opcode

    def top(x: Lanes) -> Any:
        return x.machine.local_top[x.c0 : x.c1, x.t0 : x.t1]

    def alloca(x: Lanes, d: Any, size: Any, align: Any = None) -> None:
        view = top(x)
        step = 8 if align is None else int(align)
        start = -(-view // step) * step
        wanted = np.minimum(np.asarray(size).astype(np.uint64), np.uint64(1 << 40)).astype(np.int64)
        end = start + wanted
        full = (end > x.machine.local.size) & x.active()
        if full.any():
            message = f"`{x.op.text}` needs more than the {x.machine.local.size} bytes of local memory of a thread"
            x.finding("out-of-bounds", message, lanes=full, repair="allocate less, or declare the array in .local", stop=True)
            return
        np.copyto(view, end, where=x.active())
        x.put(d, start.astype(d.dtype))

    def save(x: Lanes, d: Any) -> None:
        x.put(d, top(x).astype(d.dtype))

    def restore(x: Lanes, a: Any) -> None:
        np.copyto(top(x), np.asarray(a).astype(np.int64), where=x.active())

    chosen = {"alloca": alloca, "stacksave": save, "stackrestore": restore}.get(opcode)
    return chosen if chosen is not None else refuse("it has no model")
