"""Thread-block clusters: barrier, ranks, peers' shared memory."""

from __future__ import annotations

from warpsmith.base.place import error
from warpsmith.base.ptx_types import TYPES
from warpsmith.dsl.address import in_register
from warpsmith.dsl.registers import NegPred, Reg
from warpsmith.dsl.special import sreg
from warpsmith.dsl.trace import current
from warpsmith.ptx.mbarrier import arrive_remote

__all__ = ["arrive", "arrive_multicast", "arrive_remote", "map_shared_u32", "rank", "sync", "wait"]

Pred = Reg | NegPred | None


def arrive(*, aligned: bool = False, pred: Pred = None) -> None:
    """Arrive at the cluster barrier (release)."""
    current().emit(f"barrier.cluster.arrive{'.aligned' if aligned else ''}", (), pred)


def wait(*, aligned: bool = False, pred: Pred = None) -> None:
    """Wait until all threads of the cluster have arrived (acquire)."""
    current().emit(f"barrier.cluster.wait{'.aligned' if aligned else ''}", (), pred)


def sync(*, aligned: bool = False, pred: Pred = None) -> None:
    """Arrive at the cluster barrier and wait there."""
    arrive(aligned=aligned, pred=pred)
    wait(aligned=aligned, pred=pred)


def rank(cta_rank: int | Reg) -> Reg:
    """Return the predicate `%cluster_ctarank == cta_rank`."""
    return sreg("%cluster_ctarank") == cta_rank


def map_shared_u32(bar_addr: object, cta_id: int | Reg, *, pred: Pred = None) -> Reg:
    """Return the cluster address of the same shared-memory offset in CTA `cta_id`."""
    trace = current()
    result = trace.new(TYPES["u32"])
    trace.emit("mapa.shared::cluster.u32", (result, in_register(trace, bar_addr), cta_id), pred)
    return result


def arrive_multicast(bar_addr: object, mask: int | Reg, count: int | Reg = 1, *, pred: Pred = None) -> None:
    """Arrive on the barrier at the same offset in every CTA of the cluster whose rank's bit is set in the 16-bit `mask`.

    PTX has no multicast arrive: this is one mapa and one remote arrive for each rank; with a register `mask` each under the
    rank's bit.
    """
    trace = current()
    here = in_register(trace, bar_addr)
    if isinstance(mask, int):
        if not 0 < mask < 1 << 16:
            raise error(f"a cluster mask has bits 0 to 15 and at least one of them, not {mask:#x}")
        for cta in range(16):
            if mask >> cta & 1:
                arrive_remote(here, cta, count, pred=pred)
        return
    if not isinstance(mask, Reg):
        raise error(f"a cluster mask is an int or a register, not {type(mask).__name__}")
    bits = mask
    if mask.dtype.bits == 16:
        bits = trace.new(TYPES["u32"])
        trace.emit("cvt.u32.u16", (bits, mask))
    ranks = sreg("%cluster_nctarank")
    for cta in range(16):
        chosen = (bits & (1 << cta)) != 0
        both = trace.new(TYPES["pred"])
        trace.emit("setp.gt.and.u32", (both, ranks, cta, chosen))
        if pred is not None:
            trace.emit("and.pred", (both, both, pred if isinstance(pred, Reg) else _positive(pred)))
        arrive_remote(here, cta, count, pred=both)


def _positive(pred: NegPred) -> Reg:
    trace = current()
    result = trace.new(TYPES["pred"])
    trace.emit("not.pred", (result, pred.reg))
    return result
