"""Steps of all threads of a cluster together: shared memory of other CTAs, remote arrivals, stores that signal a barrier."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.hardware.flow.exchange import any_slot, cluster_barrier, slot, wait
from warpsmith.hardware.flow.nodes import Group

if TYPE_CHECKING:
    from warpsmith.hardware.flow.nodes import Node
    from warpsmith.hardware.flow.writer import Scope, Writer

__all__ = ["between_ctas"]


def _peer(w: Writer) -> str:
    """Return instructions that put the rank of another CTA (or its own) into `%t3`, a different one for each."""
    step = w.stream.below(w.shape.ctas)
    return f"mov.u32 %t3, %cluster_ctarank; add.u32 %t3, %t3, {step}; and.b32 %t3, %t3, {w.shape.ctas - 1};"


def between_ctas(w: Writer, scope: Scope) -> Node | None:
    """Return lines in which values go from CTA to CTA."""
    if not scope.cta or not w.shape.cluster:
        return None
    d, a = w.several(scope, 2)
    there = f"{slot(w, '%t0', 'dbuf', 16)} {_peer(w)} mapa.shared::cluster.u32 %t2, %t0, %t3;"
    own = any_slot(w, scope, "%t1", "dbuf", 16)
    got = f"{own} ld.shared.b32 {d}, [%t1]; {w.seen(d)}"
    kind = w.stream.below(5)
    if kind == 0:
        lines = [f"{there} st.shared::cluster.b32 [%t2], {a};", cluster_barrier(w), got]
    elif kind == 1:
        e = w.d(scope)
        lines = [f"{slot(w, '%t0', 'dbuf', 16)} st.shared.v2.b32 [%t0], {{{a}, %me}};", cluster_barrier(w)]
        lines += [f"{own} {_peer(w)} mapa.shared::cluster.u32 %t2, %t1, %t3; ld.shared::cluster.b64 {e}, [%t2];"]
    elif kind == 2:
        # a generic address of another CTA's shared memory
        lines = [
            f"{there} cvt.u64.u32 %a0, %t2; cvta.shared::cluster.u64 %a0, %a0; st.b32 [%a0], {a};",
            cluster_barrier(w),
            got,
        ]
    elif kind == 3:
        bar = "mov.u32 %t4, bars; add.u32 %t4, %t4, 24; mapa.shared::cluster.u32 %t4, %t4, %t3;"
        arrive = "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%t4];"
        lines = [
            f"{there} {bar} st.shared::cluster.b32 [%t2], {a}; {arrive}",
            wait(w, "bars+24", "%ph3", ".acquire.cluster"),
            got,
        ]
    else:
        expect = f"setp.eq.u32 %u0, %me, 3; @%u0 mbarrier.arrive.expect_tx.shared.b64 _, [bars+32], {4 * w.shape.threads};"
        bar = "mov.u32 %t4, bars; add.u32 %t4, %t4, 32; mapa.shared::cluster.u32 %t4, %t4, %t3;"
        store = f"st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%t2], {a}, [%t4];"
        lines = [expect, f"{there} {bar} {store}", wait(w, "bars+32", "%ph4", ".acquire.cluster"), got]
    return Group((*lines, cluster_barrier(w)))
