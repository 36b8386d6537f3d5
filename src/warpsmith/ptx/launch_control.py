"""`ptx.clusterlaunchcontrol`: take over the work of clusters not yet launched (PTX ISA 9.7.15.18, 9.7.15.19).

ptx.clusterlaunchcontrol.try_cancel(slot, bar)          16 bytes arrive in `slot`, counted by the mbarrier
answer = ptx.clusterlaunchcontrol.answer(slot)          after waiting for it
p = ptx.clusterlaunchcontrol.is_canceled(answer)        true: this CTA has the work of first_ctaid(answer)
"""

from __future__ import annotations

from warpsmith.base.place import error
from warpsmith.base.ptx_types import TYPES
from warpsmith.dsl.address import address
from warpsmith.dsl.registers import NegPred, Reg
from warpsmith.dsl.trace import current

__all__ = ["answer", "first_ctaid", "is_canceled", "try_cancel"]

Pred = Reg | NegPred | None


def try_cancel(slot: object, mbar: object, *, multicast: bool = False, pred: Pred = None) -> None:
    """Ask for a cluster not yet launched; the answer of 16 bytes goes to `slot` (in every CTA with `multicast`)."""
    words = "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes"
    words += ".multicast::cluster::all" if multicast else ""
    current().emit(f"{words}.b128", (address(slot), address(mbar)), pred)


def answer(slot: object, *, pred: Pred = None) -> Reg:
    """Load the 16 bytes of an answer from shared memory."""
    trace = current()
    result = trace.new(TYPES["b128"])
    trace.emit("ld.shared.b128", (result, address(slot)), pred)
    return result


def _answer(value: object) -> Reg:
    if not isinstance(value, Reg) or value.dtype.bits != 128:
        shown = f"{value.name} is {value.dtype}" if isinstance(value, Reg) else f"{type(value).__name__} is none"
        raise error(f"an answer is a 128-bit register, and {shown}", "load it with ptx.clusterlaunchcontrol.answer(slot)")
    return value


def is_canceled(handle: Reg, *, pred: Pred = None) -> Reg:
    """Return the predicate: the request succeeded."""
    trace = current()
    result = trace.new(TYPES["pred"])
    trace.emit("clusterlaunchcontrol.query_cancel.is_canceled.pred.b128", (result, _answer(handle)), pred)
    return result


def first_ctaid(handle: Reg, *, dim: str | None = None, pred: Pred = None) -> Reg | list[Reg]:
    """Return the first CTA of the cluster taken over: [x, y, z], or the one of `dim`. Undefined unless `is_canceled`."""
    trace = current()
    if dim is None:
        four = [trace.new(TYPES["b32"]) for _ in range(4)]
        trace.emit("clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128", (four, _answer(handle)), pred)
        return four[:3]
    if dim not in ("x", "y", "z"):
        raise error(f'dim is "x", "y" or "z", not {dim!r}')
    result = trace.new(TYPES["b32"])
    trace.emit(f"clusterlaunchcontrol.query_cancel.get_first_ctaid::{dim}.b32.b128", (result, _answer(handle)), pred)
    return result
