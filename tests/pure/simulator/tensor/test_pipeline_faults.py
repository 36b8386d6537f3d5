"""A warp-specialised product (tensor copies, mbarriers, wgmma): clean under every schedule tried, and each fault named.

Warps 0-3 multiply, warp 4 loads. The mutations are the mistakes that people make in such kernels.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from warpsmith.assembly.ptx import parse
from warpsmith.simulator.api import SimulationResult, simulate
from warpsmith.simulator.tensormap import TensorMap

N, BK, STAGES, STEPS = 32, 64, 2, 4
A_BYTES, B_BYTES = 64 * BK * 2, N * BK * 2
ACC = ", ".join(f"%f{i}" for i in range(N // 2))


def kernel() -> str:
    init = "".join(
        f" mbarrier.init.shared::cta.b64 [%r30+{8 * i}], 1;\n mbarrier.init.shared::cta.b64 [%r31+{8 * i}], 128;\n"
        for i in range(STAGES)
    )
    zero = "".join(f" mov.f32 %f{i}, 0f00000000;\n" for i in range(N // 2))
    products = "".join(
        f" add.u64 %rd20, %rd10, {2 * k}; add.u64 %rd21, %rd11, {2 * k};\n"
        f" wgmma.mma_async.sync.aligned.m64n{N}k16.f32.bf16.bf16 {{{ACC}}}, %rd20, %rd21, %p7, 1, 1, 0, 0;\n"
        for k in range(BK // 16)
    )
    store = "".join(
        f" st.global.v2.f32 [%rd3+{i // 4 * 32 + (8 * N * 4 if i // 2 % 2 else 0)}], {{%f{i}, %f{i + 1}}};\n"
        for i in range(0, N // 2, 2)
    )
    return f"""
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .align 64 .b8 ta[128], .param .align 64 .b8 tb[128], .param .u64 out)
{{
 .reg .b64 %rd<40>; .reg .b32 %r<40>; .reg .pred %p<9>; .reg .f32 %f<{N // 2 + 1}>;
 .shared .align 1024 .b8 sa[{A_BYTES * STAGES}];
 .shared .align 1024 .b8 sb[{B_BYTES * STAGES}];
 .shared .align 8 .b64 full[{STAGES}];
 .shared .align 8 .b64 empty[{STAGES}];
 mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 5; mov.u32 %r30, full; mov.u32 %r31, empty;
 setp.ne.u32 %p1, %r1, 0;
 @%p1 bra READY;
{init} fence.mbarrier_init.release.cluster;
READY:
 bar.sync 0;
 mov.u32 %r4, 0; mov.u32 %r5, 0; // step, stage
 setp.eq.u32 %p2, %r2, 4;
 @%p2 bra PRODUCER;
 mov.u32 %r6, 0; // parity of the consumers
 setp.eq.u32 %p7, 0, 0;
{zero}CONSUME:
 shl.b32 %r8, %r5, 3; add.u32 %r7, %r30, %r8;
FULL:
 mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r7], %r6;
 @!%p3 bra FULL;
 mov.u32 %r10, sa; mad.lo.u32 %r10, %r5, {A_BYTES}, %r10; mov.u32 %r11, sb; mad.lo.u32 %r11, %r5, {B_BYTES}, %r11;
 shr.u32 %r10, %r10, 4; shr.u32 %r11, %r11, 4; cvt.u64.u32 %rd10, %r10; cvt.u64.u32 %rd11, %r11;
 or.b64 %rd10, %rd10, 0x4000004000010000; or.b64 %rd11, %rd11, 0x4000004000010000;
 wgmma.fence.sync.aligned;
{products} wgmma.commit_group.sync.aligned;
 wgmma.wait_group.sync.aligned 0;
 add.u32 %r7, %r31, %r8;
 mbarrier.arrive.shared::cta.b64 _, [%r7];
 add.u32 %r4, %r4, 1; add.u32 %r5, %r5, 1; setp.eq.u32 %p4, %r5, {STAGES};
 @%p4 mov.u32 %r5, 0;
 @%p4 xor.b32 %r6, %r6, 1; // consumer flip
 setp.lt.u32 %p5, %r4, {STEPS};
 @%p5 bra CONSUME;
 ld.param.u64 %rd1, [out];
 and.b32 %r12, %r1, 31; shr.u32 %r13, %r12, 2; and.b32 %r14, %r12, 3; shl.b32 %r15, %r2, 4; add.u32 %r15, %r15, %r13;
 mul.lo.u32 %r16, %r15, {N * 4}; shl.b32 %r17, %r14, 3; add.u32 %r16, %r16, %r17;
 cvt.u64.u32 %rd2, %r16; add.u64 %rd3, %rd1, %rd2;
{store} ret;
PRODUCER:
 and.b32 %r12, %r1, 31; setp.ne.u32 %p6, %r12, 0;
 @%p6 bra DONE;
 mov.u32 %r6, 1; // parity of the producer
 mov.u64 %rd30, ta; mov.u64 %rd31, tb; cvta.param.u64 %rd30, %rd30; cvta.param.u64 %rd31, %rd31;
LOAD:
 shl.b32 %r8, %r5, 3; add.u32 %r7, %r31, %r8;
EMPTY:
 mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r7], %r6;
 @!%p3 bra EMPTY;
 add.u32 %r9, %r30, %r8;
 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r9], {A_BYTES + B_BYTES};
 mov.u32 %r10, sa; mad.lo.u32 %r10, %r5, {A_BYTES}, %r10; mov.u32 %r11, sb; mad.lo.u32 %r11, %r5, {B_BYTES}, %r11;
 shl.b32 %r20, %r4, 6; mov.u32 %r21, 0;
 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r10], [%rd30, {{%r20, %r21}}], [%r9];
 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r11], [%rd31, {{%r20, %r21}}], [%r9];
 add.u32 %r4, %r4, 1; add.u32 %r5, %r5, 1; setp.eq.u32 %p4, %r5, {STAGES};
 @%p4 mov.u32 %r5, 0;
 @%p4 xor.b32 %r6, %r6, 1;
 setp.lt.u32 %p5, %r4, {STEPS};
 @%p5 bra LOAD;
DONE:
 ret;
}}
"""


def launch(source: str, **options: Any) -> tuple[SimulationResult, float]:
    """Run; return the result and the largest error."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((rows, BK * STEPS)).astype(ml_dtypes.bfloat16) for rows in (64, N))
    out = np.zeros((64, N), np.float32)
    args = [TensorMap(a, box=(64, BK), swizzle="128B"), TensorMap(b, box=(N, BK), swizzle="128B"), out]
    r = simulate(parse(source), kernel="k", grid=(1, 1, 1), block=(160, 1, 1), args=args, max_steps=4000, **options)
    return r, float(np.abs(out - a.astype(np.float32) @ b.astype(np.float32).T).max())


@pytest.mark.parametrize("seed", range(20))
def test_the_correct_kernel_is_clean_under_every_schedule(seed: int) -> None:
    r, error = launch(kernel(), schedule="random", seed=seed, numerics="fast")
    assert r.completed
    assert [str(f) for f in r.findings] == []
    assert error < 1e-4


WAIT_FULL, WAIT_EMPTY = " @!%p3 bra FULL;\n", " @!%p3 bra EMPTY;\n"
ARRIVE = " mbarrier.arrive.shared::cta.b64 _, [%r7];\n"
COPY_B = kernel()[
    kernel().index(" cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r11]") :
].partition("\n")[0]
WAIT_GROUP, COMMIT = " wgmma.wait_group.sync.aligned 0;\n", " wgmma.commit_group.sync.aligned;\n"
FULL = " add.u32 %r7, %r30, %r8;\nFULL:\n"
ARRIVE_EARLY = " add.u32 %r7, %r31, %r8;\n" + ARRIVE
TWICE = "\n mbarrier.arrive.shared::cta.b64 _, [%r9];"
LAST_INIT = f" mbarrier.init.shared::cta.b64 [%r30+{8 * STAGES - 8}], 1;\n"
BYTES = f"], {A_BYTES + B_BYTES};"

MUTATIONS: list[tuple[str, str, str, str]] = [
    ("register-before-wait", "no fence before the first product", " wgmma.fence.sync.aligned;\n", ""),
    ("register-before-wait", "no wait before the results are stored", WAIT_GROUP, ""),
    ("register-before-wait", "a wait that leaves one group", WAIT_GROUP, " wgmma.wait_group.sync.aligned 1;\n"),
    ("register-before-wait", "an accumulator scaled between commit and wait", COMMIT, COMMIT + " mul.f32 %f1, %f1, %f1;\n"),
    (
        "register-before-wait",
        "an accumulator changed behind the fence",
        " wgmma.fence.sync.aligned;\n",
        " wgmma.fence.sync.aligned;\n mul.f32 %f1, %f1, %f1;\n",
    ),
    ("async-read-before-complete", "the answer of try_wait is not looked at", WAIT_FULL, ""),
    (
        "async-read-before-complete",
        "the consumers begin with the other parity",
        " mov.u32 %r6, 0; // parity",
        " mov.u32 %r6, 1; //",
    ),
    ("deadlock", "the consumers wait at the empty barriers", " add.u32 %r7, %r30, %r8;\n", " add.u32 %r7, %r31, %r8;\n"),
    ("async-overwrite", "the producer does not look at try_wait", WAIT_EMPTY, ""),
    (
        "async-overwrite",
        "the stage is given back before the products have read it",
        WAIT_GROUP + " add.u32 %r7, %r31, %r8;\n" + ARRIVE,
        " add.u32 %r7, %r31, %r8;\n" + ARRIVE + WAIT_GROUP,
    ),
    ("tx-mismatch", "fewer bytes announced than copied", BYTES, f"], {A_BYTES};"),
    ("tx-mismatch", "more bytes announced than copied", BYTES, f"], {A_BYTES + B_BYTES + 512};"),
    ("tx-mismatch", "one of the two copies is missing", COPY_B, ""),
    ("over-arrival", "a count below the number of consumers", "], 128;\n", "], 127;\n"),
    ("phase-alias", "every consumer arrives twice", ARRIVE, ARRIVE + ARRIVE),
    ("phase-alias", "the consumers give a stage back before they have it", FULL, ARRIVE_EARLY + FULL),
    ("over-arrival", "the full barrier is arrived at twice", COPY_B, COPY_B + TWICE),
    ("over-arrival", "every consumer arrives at the full barrier", " add.u32 %r7, %r31, %r8;\n" + ARRIVE, ARRIVE),
    ("uninitialised-barrier", "the last full barrier is not initialised", LAST_INIT, ""),
    ("out-of-bounds", "barriers are initialised behind their array", "mov.u32 %r30, full;", "mov.u32 %r30, full+64;"),
    (
        "uninitialised-barrier",
        "the consumers look for the barriers in the tiles",
        "add.u32 %r7, %r30, %r8;\nFULL:",
        "mov.u32 %r7, sa;\nFULL:",
    ),
    (
        "uninitialised-barrier",
        "the barriers are overwritten",
        " bar.sync 0;\n",
        " bar.sync 0;\n @!%p1 st.shared.b64 [%r30], %rd0; bar.sync 0;\n",
    ),
    ("deadlock", "a count above the number of consumers", "], 128;\n", "], 129;\n"),
    ("deadlock", "the producer begins with the other parity", " mov.u32 %r6, 1; // parity", " mov.u32 %r6, 0; //"),
    ("deadlock", "the consumers never give a stage back", ARRIVE, ""),
    ("leftover", "the kernel ends with products in flight", WAIT_GROUP, ""),
    (
        "leftover",
        "one copy too many at the end",
        f"setp.lt.u32 %p5, %r4, {STEPS};\n @%p5 bra LOAD;",
        f"setp.lt.u32 %p5, %r4, {STEPS + 1};\n @%p5 bra LOAD;",
    ),
]


@pytest.mark.parametrize(("kind", "what", "old", "new"), MUTATIONS, ids=[m[1] for m in MUTATIONS])
def test_every_fault_is_named(kind: str, what: str, old: str, new: str) -> None:
    source = kernel()
    assert old in source
    broken = source.replace(old, new)
    r, _ = launch(broken, numerics="fast", schedule="fair")
    assert kind in {f.kind for f in r.findings}, r.findings
    finding = next(f for f in r.findings if f.kind == kind)
    assert finding.severity == "error"
    assert finding.where is not None
    assert finding.threads
    assert finding.repair
    assert finding.related or kind in ("uninitialised-barrier", "out-of-bounds")


@pytest.mark.parametrize("seed", [1, 3])
def test_faults_are_seen_by_chance_too(seed: int) -> None:
    """A third of the mutations under a random order of everything; copies in flight at the end may complete before it."""
    for kind, what, old, new in MUTATIONS[seed % 3 :: 3]:
        r, _ = launch(kernel().replace(old, new), numerics="fast", schedule="random", seed=seed)
        assert r.findings or kind == "leftover", what
