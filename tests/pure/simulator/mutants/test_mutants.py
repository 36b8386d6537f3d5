# ruff: noqa: E501 (one mutant a line)
"""Mutation tests: small correct kernels, broken in one place each. Every fault is named by its kind at the line at fault.

The kernels are the files in `kernels/`. A mutant replaces one piece of the text. The finding must have the kind and stand at
the line whose text begins with `at` in the broken kernel.
`python tests/pure/simulator/mutants/test_mutants.py` prints the table of kinds and mutants.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

from warpsmith.simulator import TensorMap, simulate

KERNELS = Path(__file__).with_name("kernels")
SCHEDULES = 3
"""Random schedules of each correct kernel here; `tests/slow/simulator/test_mutants_are_clean.py` tries twenty."""


def zeros(n: int) -> Any:
    return np.zeros(n, np.uint32)


WORDS = np.arange(512, dtype=np.uint32)


A, B = (np.arange(n * 64).reshape(n, 64).astype(ml_dtypes.bfloat16) % 7 for n in (64, 8))


def stored_tiles() -> tuple[Any, ...]:
    """Return a tensor map of twelve rows, the rows, and room for the sums."""
    y = np.where(np.arange(384) // 128 == 1, 7, 0).astype(np.uint32).reshape(12, 32)
    return TensorMap(y, box=(4, 32)), y, zeros(128)


def tile_of(matrix: Any) -> Any:
    return TensorMap(matrix, box=(len(matrix), 64), swizzle="128B")


def fragments(d: Any) -> Any:
    """Return D `[64, 8]` as the 128 threads hold it, four values each."""
    thread, i = np.arange(128)[:, None], np.arange(4)
    row, column = thread // 32 * 16 + thread % 32 // 4 + i // 2 * 8, thread % 4 * 2 + i % 2
    return d[row, column].reshape(-1)


FRAGMENTS = fragments(A[:, :16].astype(np.float32) @ B[:, :16].astype(np.float32).T)


class Launch(NamedTuple):
    """How to run a kernel, and what its last array must hold then."""

    grid: int
    block: int
    args: Callable[[], tuple[Any, ...]]
    expected: Any


LAUNCHES = {
    "tile": Launch(1, 64, lambda: (WORDS[:64].copy(), zeros(64), 60), np.where(WORDS[:64] < 60, 63 - WORDS[:64], 0)),
    "reduction": Launch(1, 128, lambda: (WORDS[:128].copy(), zeros(1)), WORDS[:128].sum(keepdims=True)),
    "ping_pong": Launch(1, 128, lambda: (zeros(64),), 4 * WORDS[:64] + 6),
    "cp_async": Launch(
        1, 64, lambda: (WORDS[:256].copy(), zeros(64)), np.roll(WORDS[:256].reshape(4, 64), 32, axis=1).sum(axis=0)
    ),
    "pipeline": Launch(1, 160, lambda: (WORDS.copy(), zeros(128)), WORDS.reshape(4, 128).sum(axis=0)),
    "product": Launch(1, 128, lambda: (np.zeros(512, np.float32),), np.full(512, 32, np.float32)),
    "cluster": Launch(2, 32, lambda: (WORDS[:64].copy(), zeros(64)), np.roll(WORDS[:64], 32)),
    "handover": Launch(2, 64, lambda: (WORDS[:64].copy(), zeros(64), zeros(1), zeros(64)), 64 - WORDS[:64]),
    "epilogue": Launch(
        1, 128, lambda: (np.where(np.arange(256) < 128, 0, 7).astype(np.uint32), zeros(128)), 2 * WORDS[:128] + 15
    ),
    "tensor_store": Launch(1, 128, stored_tiles, 3 * WORDS[:128] + 24),
    "peer": Launch(2, 32, lambda: (WORDS[:64].copy(), zeros(64)), np.roll(WORDS[:64], 32) + 1),
    "tensor": Launch(1, 128, lambda: (np.zeros(256, np.float32),), np.full(256, 48, np.float32)),
    "tile_product": Launch(1, 128, lambda: (tile_of(A), tile_of(B), np.zeros(512, np.float32)), FRAGMENTS),
}


def text_of(kernel: str) -> str:
    return (KERNELS / f"{kernel}.ptx").read_text()


def launch(kernel: str, text: str, **order: Any) -> tuple[Any, Any]:
    """Run; return the result and the last array."""
    how = LAUNCHES[kernel]
    args = how.args()
    result = simulate(text, grid=how.grid, block=how.block, cluster=how.grid, args=args, max_steps=4000, **order)
    return result, [a for a in args if isinstance(a, np.ndarray)][-1]


@pytest.mark.parametrize("kernel", LAUNCHES)
def test_the_correct_kernel_is_clean(kernel: str) -> None:
    for order in ({}, *({"schedule": "random", "seed": s} for s in range(SCHEDULES))):
        result, out = launch(kernel, text_of(kernel), **order)
        assert [str(f) for f in result.findings] == []
        assert result.completed
        assert np.array_equal(out, LAUNCHES[kernel].expected)


# --- the mutants ------------------------------------------------------------------------------------------------------


class Mutant(NamedTuple):
    """In `kernel`, the first `old` becomes `new`; expected: a finding of `kind` at the first line that begins with `at`."""

    kind: str
    kernel: str
    what: str
    old: str
    new: str
    at: str
    seeds: int = 0
    """Among so many random schedules one shows it; 0: the fair one does."""


INIT = " mbarrier.init.shared::cta.b64"
ARRIVE = " mbarrier.arrive.shared::cta.b64 _, [%r11];\n"
EXPECT = " mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r10], "
COPY = " cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r12], [%rd1], 512, [%r10];\n"
FENCE, COMMIT, WAIT = (
    f" wgmma.{w};\n" for w in ("fence.sync.aligned", "commit_group.sync.aligned", "wait_group.sync.aligned 0")
)
ON_FULL = " mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r10], %r7;"
ON_FREE = " mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r11], %r7;"
HERE = " mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r5], 0;"
CLUSTER = " barrier.cluster.arrive.aligned;\n"
AGAIN = " barrier.cluster.arrive.release.aligned;\n"
SUMS = " shfl.sync.bfly.b32 %r4, %r2, %r3, 31, 0xffffffff;\n"
PROXY = " fence.proxy.async.shared::cta;\n"
TILE = " cp.async.bulk.global.shared::cta"
ADDED = " cp.reduce.async.bulk"
BOX, BOX_ADDED = " cp.async.bulk.tensor.2d.global", " cp.reduce.async.bulk.tensor"
BOX_LOADED = (
    " cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r7], [%rd0, {0, 8}], [full];\n"
)
SECOND = COMMIT + " wgmma.mma_async"

MUTANTS = [
    Mutant("deadlock", "pipeline", "nobody gives a stage back", ARRIVE, "", ON_FREE),
    Mutant("deadlock", "pipeline", "a count above the arrivals", "[%r3], 128;", "[%r3], 129;", ON_FREE),
    Mutant("deadlock", "pipeline", "the producer starts with the other parity", " mov.u32 %r7, 1;", " mov.u32 %r7, 0;", ON_FULL),
    Mutant("deadlock", "pipeline", "one load too few", "%r5, 4;\n @%p5 bra LOAD", "%r5, 3;\n @%p5 bra LOAD", ON_FULL),
    Mutant("deadlock", "ping_pong", "the reader never says free", " bar.arrive 2, 128;\n", "", " bar.sync 2, 128;"),
    Mutant("deadlock", "tile", "more threads awaited than there are", " bar.sync 0;", " bar.sync 0, 96;", " bar.sync 0, 96;"),
    Mutant("deadlock", "cluster", "one CTA waits for a third message", "[%r5], 1;", "[%r5], 2;", HERE),
    Mutant("deadlock", "pipeline", "a consumer that waits a second time", " @!%p3 bra FULL;\n", " @!%p3 bra FULL;\n xor.b32 %r20, %r7, 1;\nAGAIN:\n mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r10], %r20;\n @!%p3 bra AGAIN;\n", " mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r10], %r20;"),
    Mutant("phase-alias", "pipeline", "every consumer arrives twice", ARRIVE, ARRIVE + ARRIVE, ON_FREE),
    Mutant("phase-alias", "pipeline", "the consumers give a stage back before they have it", "FULL:\n", ARRIVE + "FULL:\n", ON_FREE),
    Mutant("phase-alias", "pipeline", "half of the count", "[%r3], 128;", "[%r3], 64;", ON_FREE),
    Mutant("over-arrival", "pipeline", "a count below the consumers", "[%r3], 128;", "[%r3], 127;", ARRIVE.rstrip()),
    Mutant("over-arrival", "pipeline", "consumers arrive at the full barrier", ARRIVE, ARRIVE.replace("%r11", "%r10"), ARRIVE.replace("%r11", "%r10").rstrip()),
    Mutant("over-arrival", "pipeline", "the producer arrives twice", COPY, " mbarrier.arrive.shared::cta.b64 _, [%r10];\n" + COPY, " mbarrier.arrive.shared::cta.b64 _, [%r10];"),
    Mutant("over-arrival", "cluster", "two arrivals without a wait", CLUSTER, CLUSTER + AGAIN, AGAIN.rstrip()),
    Mutant("tx-mismatch", "pipeline", "fewer bytes announced than copied", EXPECT + "512", EXPECT + "496", ON_FULL),
    Mutant("tx-mismatch", "pipeline", "more bytes announced than copied", EXPECT + "512", EXPECT + "528", ON_FULL),
    Mutant("tx-mismatch", "pipeline", "a copy of half the bytes", "[%rd1], 512,", "[%rd1], 256,", ON_FULL),
    Mutant("tx-mismatch", "pipeline", "no copy at all", COPY, "", ON_FULL),
    Mutant("tx-mismatch", "cluster", "a message for every second lane", "[%r5], 128;", "[%r5], 64;", " st.async"),
    Mutant("uninitialised-barrier", "pipeline", "a barrier nobody initialises", INIT + " [%r2+8], 1;\n", "", EXPECT),
    Mutant("uninitialised-barrier", "pipeline", "a barrier at the wrong index", " add.u32 %r10, %r2, %r9;", " add.u32 %r10, %r4, %r9;", ON_FULL),
    Mutant("uninitialised-barrier", "pipeline", "an initialisation nobody waits for", " bar.sync 0;\n", "", ON_FULL),
    Mutant("uninitialised-barrier", "pipeline", "overwritten by data", " bar.sync 0;\n", " bar.sync 0;\n @!%p1 st.shared.b64 [%r2], %rd1;\n", ON_FULL),
    Mutant("uninitialised-barrier", "cluster", "no initialisation", INIT + " [%r5], 1;\n", "", " mbarrier.arrive.expect_tx"),
    Mutant("async-read-before-complete", "pipeline", "the answer of the wait is not looked at", " @!%p3 bra FULL;\n", "", " ld.shared", 12),
    Mutant("async-read-before-complete", "pipeline", "the consumers start with the other parity", " mov.u32 %r7, 0;", " mov.u32 %r7, 1;", " ld.shared", 12),
    Mutant("async-read-before-complete", "pipeline", "the consumers forget to flip", " @%p4 xor.b32 %r7, %r7, 1;\n setp.lt.u32 %p5, %r5, 4;\n @%p5 bra CONSUME;", " setp.lt.u32 %p5, %r5, 4;\n @%p5 bra CONSUME;", " ld.shared", 12),
    Mutant("async-read-before-complete", "cp_async", "no wait for the group", " cp.async.wait_group 1;\n", "", " ld.shared"),
    Mutant("async-read-before-complete", "cp_async", "one group too many in flight", "wait_group 1", "wait_group 2", " ld.shared"),
    Mutant("async-read-before-complete", "cp_async", "the group is not closed", " cp.async.commit_group;\nSTEP", "STEP", " ld.shared"),
    Mutant("async-read-before-complete", "cp_async", "the neighbour's copy is not awaited", " bar.sync 0;\n", "", " ld.shared", 12),
    Mutant("async-read-before-complete", "cluster", "the message is not awaited", " @!%p2 bra WAIT;\n", "", " ld.shared"),
    Mutant("register-before-wait", "product", "no fence", FENCE, "", " wgmma.mma_async"),
    Mutant("register-before-wait", "product", "no wait", WAIT, "", " st.global"),
    Mutant("register-before-wait", "product", "a wait that leaves one group", WAIT, WAIT.replace("0;", "1;"), " st.global"),
    Mutant("register-before-wait", "product", "the last group is not closed", COMMIT + WAIT, WAIT, " st.global"),
    Mutant("register-before-wait", "product", "scaled between two products", SECOND, COMMIT + " mul.f32 %f1, %f1, %f2;\n wgmma.mma_async", " mul.f32"),
    Mutant("register-before-wait", "product", "written under a predicate before the wait", WAIT, " @%p1 mov.f32 %f3, 0f00000000;\n" + WAIT, " @%p1 mov.f32"),
    Mutant("named-barrier", "ping_pong", "a count that is no multiple of the warp", " bar.sync 1, 128;", " mov.u32 %r9, 120;\n bar.sync 1, %r9;", " bar.sync 1, %r9;"),
    Mutant("named-barrier", "ping_pong", "a number over 15", " bar.arrive 1, 128;", " mov.u32 %r9, 16;\n bar.arrive %r9, 128;", " bar.arrive %r9, 128;"),
    Mutant("named-barrier", "ping_pong", "counts that differ", "bar.arrive 2, 128", "bar.arrive 2, 96", " bar.arrive 2, 96;"),
    Mutant("named-barrier", "tile", "more threads than the count", " bar.sync 0;", " bar.sync 1, 32;", " bar.sync 1, 32;"),
    Mutant("out-of-bounds", "tile", "one word too far", "[%r6+252]", "[%r6+256]", " ld.shared"),
    Mutant("out-of-bounds", "tile", "an index scaled twice", " mul.wide.u32 %rd3, %r1, 4;", " mul.wide.u32 %rd3, %r1, 8;", " ld.global"),
    Mutant("out-of-bounds", "tile", "a word at an odd address", "[%r6+252]", "[%r6+250]", " ld.shared"),
    Mutant("out-of-bounds", "cp_async", "the last step loads, too", " setp.gt.u32 %p2, %r7, 2;", " setp.gt.u32 %p2, %r7, 3;", " cp.async.ca.shared.global [%r10]"),
    Mutant("out-of-bounds", "pipeline", "a third stage", " xor.b32 %r6, %r6, 1;\n setp.eq.u32 %p4, %r6, 0;\n @%p4 xor.b32 %r7, %r7, 1;\n setp.lt.u32 %p5, %r5, 4;\n @%p5 bra LOAD;", " add.u32 %r6, %r6, 2;\n setp.lt.u32 %p5, %r5, 4;\n @%p5 bra LOAD;", ON_FREE),
    Mutant("uninitialised-read", "tile", "the tile is not filled", " st.shared.u32 [%r5], %r2;\n", "", " @%p1 st.global"),
    Mutant("uninitialised-read", "tile", "the barrier is missing", " bar.sync 0;\n", "", " @%p1 st.global", 12),
    Mutant("uninitialised-read", "tile", "a register written on one path only", " mov.u32 %r8, 0;\n @%p1 mov", " @!%p1 mov", " @%p1 st.global"),
    Mutant("uninitialised-read", "reduction", "the sums are not stored", " st.shared.u32 [%r8], %r2;\n", "", " st.global"),
    Mutant("shared-race", "tile", "no barrier between the store and the load", " bar.sync 0;\n", "", " ld.shared"),
    Mutant("shared-race", "tile", "a barrier of the warp alone", " bar.sync 0;", " bar.warp.sync 0xffffffff;", " ld.shared"),
    Mutant("shared-race", "tile", "two threads store to a word", " shl.b32 %r4, %r1, 2;", " shl.b32 %r4, %r1, 1;\n and.b32 %r4, %r4, 0xfc;", " st.shared"),
    Mutant("shared-race", "reduction", "no barrier before the sums are read", " bar.sync 0;\n", "", " ld.shared"),
    Mutant("shared-race", "ping_pong", "the reader arrives and does not wait", " bar.sync 1, 128;", " bar.arrive 1, 128;", " st.shared"),
    Mutant("shared-race", "ping_pong", "the reader frees the words before it reads them", " bar.sync 1, 128;\n", " bar.sync 1, 128;\n bar.arrive 2, 128;\n", " st.shared"),
    Mutant("global-race", "handover", "the flag does not wait for the other warp", " bar.sync 1, 64;\n", "", " ld.global.u32 %r3, [%rd6+252]"),
    Mutant("global-race", "handover", "the flag is released to the CTA only", "st.release.gpu", "st.release.cta", " ld.global.u32 %r3, [%rd6+252]"),
    Mutant("global-race", "handover", "a relaxed store and no fence", "st.release.gpu", "st.relaxed.gpu", " ld.global.u32 %r3, [%rd6+252]"),
    Mutant("global-race", "handover", "a relaxed load and no fence", "ld.acquire.gpu", "ld.relaxed.gpu", " ld.global.u32 %r3, [%rd6+252]"),
    Mutant("global-race", "handover", "the other warp does not wait for the flag", " bar.sync 2, 64;\n", "", " ld.global.u32 %r3, [%rd6+252]"),
    Mutant("global-race", "handover", "a weak flag", " @%p1 st.release.gpu.global.u32", " @%p1 st.global.u32", " ld.acquire"),
    Mutant("shared-race", "pipeline", "the consumers give a stage back before they have read it", " ld.shared.u32 %r14, [%r12];\n add.u32 %r8, %r8, %r14;\n" + ARRIVE, ARRIVE + " ld.shared.u32 %r14, [%r12];\n add.u32 %r8, %r8, %r14;\n", COPY.rstrip()),
    Mutant("missing-proxy-fence", "epilogue", "no fence before a copy out of shared memory", PROXY + " bar.sync 0", " bar.sync 0", TILE),
    Mutant("missing-proxy-fence", "epilogue", "no fence before a reduction", PROXY + " bar.sync 2", " bar.sync 2", ADDED),
    Mutant("missing-proxy-fence", "epilogue", "the fence stands before the store", " st.shared.u32 [%r2], %r4;\n" + PROXY + " bar.sync 0", PROXY + " st.shared.u32 [%r2], %r4;\n bar.sync 0", TILE),
    Mutant("missing-proxy-fence", "epilogue", "the fence of one thread does not cover the others", PROXY + " bar.sync 0", " @%p1" + PROXY + " bar.sync 0", TILE),
    Mutant("missing-proxy-fence", "epilogue", "a fence of the generic proxy", PROXY + " bar.sync 0", " fence.acq_rel.cta;\n bar.sync 0", TILE),
    Mutant("missing-proxy-fence", "pipeline", "the stage is cleared before the first copy", " bar.sync 0;\n", " mov.u32 %r21, stages;\n st.shared.u32 [%r21], 0;\n bar.sync 0;\n", COPY.rstrip()),
    Mutant("async-overwrite", "epilogue", "the tile is written while it is read", " cp.async.bulk.wait_group.read 0;\n", "", " st.shared.u32 [%r2], %r4;\n" + PROXY + " bar.sync 2"),
    Mutant("async-overwrite", "epilogue", "one group too many in flight", "wait_group.read 0", "wait_group.read 1", " st.shared.u32 [%r2], %r4;\n" + PROXY + " bar.sync 2"),
    Mutant("async-overwrite", "epilogue", "only the issuing thread knows that the tile has been read", " bar.sync 1;\n", "", " st.shared.u32 [%r2], %r4;\n" + PROXY + " bar.sync 2"),
    Mutant("async-read-before-complete", "epilogue", "the sums are read before they are there", " cp.async.bulk.wait_group 0;", " cp.async.bulk.wait_group.read 0;", " ld.global.u32 %r6"),
    Mutant("async-read-before-complete", "epilogue", "the copy has been read, not written", " cp.async.bulk.wait_group 0;", " cp.async.bulk.wait_group 1;", " ld.global.u32 %r6"),
    Mutant("async-read-before-complete", "epilogue", "only the issuing thread has waited", " bar.sync 3;\n", "", " ld.global.u32 %r5"),
    Mutant("empty-commit", "epilogue", "the group is not closed before its source is reused", " cp.async.bulk.commit_group;\n cp.async.bulk.wait_group.read", " cp.async.bulk.wait_group.read", " cp.async.bulk.wait_group.read 0;"),
    Mutant("empty-commit", "epilogue", "another thread closes the group", " cp.async.bulk.commit_group;\n cp.async.bulk.wait_group.read 0;\nFIRST:\n", "FIRST:\n @%p1 bra CLOSED;\n cp.async.bulk.commit_group;\nCLOSED:\n cp.async.bulk.wait_group.read 0;\n", " cp.async.bulk.commit_group;"),
    Mutant("empty-commit", "epilogue", "the sum is not committed", " cp.async.bulk.commit_group;\n cp.async.bulk.wait_group 0", " cp.async.bulk.wait_group 0", " cp.async.bulk.wait_group 0;"),
    Mutant("missing-proxy-fence", "tensor_store", "no fence before a tensor store", PROXY + " bar.sync 0", " bar.sync 0", BOX),
    Mutant("missing-proxy-fence", "tensor_store", "no fence before a tensor reduction", PROXY + " bar.sync 2", " bar.sync 2", BOX_ADDED),
    Mutant("missing-proxy-fence", "tensor_store", "no fence before a tensor load of what threads stored", " fence.proxy.async.global;\n", "", BOX_LOADED),
    Mutant("missing-proxy-fence", "tensor_store", "a fence of shared memory before a tensor load of what threads stored to global memory", " fence.proxy.async.global;\n", PROXY, BOX_LOADED),
    Mutant("missing-proxy-fence", "tensor_store", "a fence of global memory before a tensor store", PROXY + " bar.sync 0", " fence.proxy.async.global;\n bar.sync 0", BOX),
    Mutant("async-overwrite", "tensor_store", "the source of a tensor store is written before it has been read", " cp.async.bulk.wait_group.read 0;\n", "", " st.shared.u32 [%r2], %r4;\n" + PROXY + " bar.sync 2"),
    Mutant("async-overwrite", "tensor_store", "threads write where a tensor store is on its way", "FIRST:\n bar.sync 1;\n", "FIRST:\n bar.sync 1;\n st.global.u32 [%rd5], %r1;\n", " st.global.u32 [%rd5], %r1;"),
    Mutant("async-overwrite", "tensor_store", "threads write what a tensor load has yet to read", "LOADED:\n", "LOADED:\n st.global.u32 [%rd5+1024], %r1;\n", " st.global.u32 [%rd5+1024], %r1;"),
    Mutant("async-read-before-complete", "tensor_store", "the tile is read before it is there", " cp.async.bulk.wait_group 0;", " cp.async.bulk.wait_group.read 0;", " ld.global.u32 %r5"),
    Mutant("async-read-before-complete", "tensor_store", "the sums of a tensor reduction are read before they are there", " cp.async.bulk.wait_group 0;", " cp.async.bulk.wait_group 1;", " ld.global.u32 %r6"),
    Mutant("async-read-before-complete", "tensor_store", "only the thread that stored the tile has waited", " bar.sync 3;\n", "", " ld.global.u32 %r5"),
    Mutant("async-read-before-complete", "tensor_store", "a tensor load of rows that a tensor store has yet to write", "FIRST:\n bar.sync 1;\n", "FIRST:\n bar.sync 1;\n mov.u32 %r7, back;\n @!%p1 bra EARLY;\n mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [full], 512;\n" + BOX_LOADED.replace("8}", "0}") + "EARLY:\n", BOX_LOADED.replace("8}", "0}").rstrip()),
    Mutant("setmaxnreg-budget", "product", "raised to fewer registers", FENCE, " setmaxnreg.dec.sync.aligned.u32 80;\n setmaxnreg.inc.sync.aligned.u32 40;\n" + FENCE, " setmaxnreg.inc"),
    Mutant("setmaxnreg-budget", "product", "lowered to more registers", FENCE, " setmaxnreg.dec.sync.aligned.u32 40;\n setmaxnreg.dec.sync.aligned.u32 80;\n" + FENCE, " setmaxnreg.dec.sync.aligned.u32 80;"),
    Mutant("setmaxnreg-budget", "product", "lowered by one warp of four", FENCE, " setp.gt.u32 %p2, %r1, 31;\n @%p2 bra KEEP;\n setmaxnreg.dec.sync.aligned.u32 40;\nKEEP:\n" + FENCE, " setmaxnreg.dec"),
    Mutant("descriptor-mismatch", "tile_product", "A is read with 64 bytes", "or.b64 %rd3, %rd3, 0x4", "or.b64 %rd3, %rd3, 0x8", " wgmma.mma_async"),
    Mutant("descriptor-mismatch", "tile_product", "B is read with 32 bytes", "or.b64 %rd4, %rd4, 0x4", "or.b64 %rd4, %rd4, 0xc", " wgmma.mma_async"),
    Mutant("descriptor-mismatch", "tile_product", "B is read without a swizzle", "or.b64 %rd4, %rd4, 0x4", "or.b64 %rd4, %rd4, 0x0", " wgmma.mma_async"),
    Mutant("cluster-exit", "peer", "no barrier behind the last access", " barrier.cluster.arrive.release.aligned;\n barrier.cluster.wait.acquire.aligned;\n", "", " ld.shared::cluster"),
    Mutant("cluster-exit", "peer", "an arrival and no wait", " barrier.cluster.wait.acquire.aligned;\n", "", " ld.shared::cluster"),
    Mutant("cluster-exit", "peer", "a barrier of the CTA alone", " barrier.cluster.arrive.release.aligned;\n barrier.cluster.wait.acquire.aligned;\n", " bar.sync 0;\n", " ld.shared::cluster"),
    Mutant("register-before-wait", "product", "written under a predicate that the block sets", WAIT, " setp.lt.u32 %p3, %r1, 40;\n @%p3 mov.f32 %f3, 0f00000000;\n" + WAIT, " @%p3 mov.f32"),
    Mutant("peer-lifetime", "peer", "no barrier before the first access", " barrier.cluster.arrive.aligned;\n barrier.cluster.wait.aligned;\n", "", " ld.shared::cluster"),
    Mutant("peer-lifetime", "peer", "an arrival and no wait before the first access", " barrier.cluster.wait.aligned;\n", "", " ld.shared::cluster"),
    Mutant("peer-lifetime", "peer", "a barrier of the CTA before the first access", " barrier.cluster.arrive.aligned;\n barrier.cluster.wait.aligned;\n", " bar.sync 0;\n", " ld.shared::cluster"),
    Mutant("tmem-alias", "tensor", "no wait for the first product", "FIRST:\n mbarrier.try_wait.parity.shared::cta.b64 %p4, [done], 0;\n @!%p4 bra FIRST;\n", "FIRST:\n", " tcgen05.ld.sync.aligned.32x32b.x8.b32 {%f0"),
    Mutant("tmem-alias", "tensor", "no wait for the second product", "SECOND:\n mbarrier.try_wait.parity.shared::cta.b64 %p4, [done], 1;\n @!%p4 bra SECOND;\n", "SECOND:\n", " tcgen05.ld.sync.aligned.32x32b.x8.b32 {%f8"),
    Mutant("tmem-alias", "tensor", "the second wait is for the phase before", "[done], 1;\n @!%p4 bra SECOND", "[done], 0;\n @!%p4 bra SECOND", " tcgen05.ld.sync.aligned.32x32b.x8.b32 {%f8"),
    Mutant("tmem-alias", "tensor", "A is stored again behind the product that reads it", "FIRST:\n mbarrier", "FIRST:\n tcgen05.st.sync.aligned.32x32b.x1.b32 [%r7], {%r9};\n tcgen05.wait::st.sync.aligned;\n mbarrier", " tcgen05.st.sync.aligned.32x32b.x1"),
    Mutant("missing-tcgen05-wait", "tensor", "no wait for the stores of A", " tcgen05.wait::st.sync.aligned;\n", "", " tcgen05.mma.cta_group::1.kind::f16 [%r5], [%r8], %rd1, %r11, %p3"),
    Mutant("missing-tcgen05-wait", "tensor", "no wait for the loads of D", " tcgen05.wait::ld.sync.aligned;\n tcgen05.fence", " tcgen05.fence", " tcgen05.mma.cta_group::1.kind::f16 [%r5], [%r8], %rd1, %r11, %p2"),
    Mutant("missing-tcgen05-wait", "tensor", "a wait for loads in place of stores", " tcgen05.wait::st.sync.aligned;\n", " tcgen05.wait::ld.sync.aligned;\n", " tcgen05.mma.cta_group::1.kind::f16 [%r5], [%r8], %rd1, %r11, %p3"),
    Mutant("missing-tcgen05-wait", "tensor", "three warps wait for their stores", " tcgen05.wait::st.sync.aligned;\n", " @%p1 bra STORED;\n tcgen05.wait::st.sync.aligned;\nSTORED:\n", " tcgen05.mma.cta_group::1.kind::f16 [%r5], [%r8], %rd1, %r11, %p3"),
    Mutant("missing-tcgen05-fence", "tensor", "no fence behind the stores of A", " tcgen05.wait::st.sync.aligned;\n tcgen05.fence::before_thread_sync;\n", " tcgen05.wait::st.sync.aligned;\n", " tcgen05.mma.cta_group::1.kind::f16 [%r5], [%r8], %rd1, %r11, %p3"),
    Mutant("missing-tcgen05-fence", "tensor", "no fence before the first product", " bar.sync 0;\n tcgen05.fence::after_thread_sync;\n shr", " bar.sync 0;\n shr", " tcgen05.mma.cta_group::1.kind::f16 [%r5], [%r8], %rd1, %r11, %p3"),
    Mutant("missing-tcgen05-fence", "tensor", "no fence before the first load", " @!%p4 bra FIRST;\n tcgen05.fence::after_thread_sync;\n", " @!%p4 bra FIRST;\n", " tcgen05.ld.sync.aligned.32x32b.x8.b32 {%f0"),
    Mutant("missing-tcgen05-fence", "tensor", "no fence behind the first load", " tcgen05.wait::ld.sync.aligned;\n tcgen05.fence::before_thread_sync;\n bar.sync 0;\n tcgen05.fence::after_thread_sync;\n", " tcgen05.wait::ld.sync.aligned;\n bar.sync 0;\n tcgen05.fence::after_thread_sync;\n", " tcgen05.mma.cta_group::1.kind::f16 [%r5], [%r8], %rd1, %r11, %p2"),
    Mutant("missing-tcgen05-fence", "tensor", "a fence behind the barrier in place of before it", " tcgen05.fence::before_thread_sync;\n bar.sync 0;\n tcgen05.fence::after_thread_sync;\n shr", " bar.sync 0;\n tcgen05.fence::before_thread_sync;\n tcgen05.fence::after_thread_sync;\n shr", " tcgen05.mma.cta_group::1.kind::f16 [%r5], [%r8], %rd1, %r11, %p3"),
    Mutant("tmem-alias", "tensor", "no barrier between the stores of A and the product", " tcgen05.fence::before_thread_sync;\n bar.sync 0;\n tcgen05.fence::after_thread_sync;\n shr", " tcgen05.fence::before_thread_sync;\n tcgen05.fence::after_thread_sync;\n shr", " tcgen05.mma.cta_group::1.kind::f16 [%r5], [%r8], %rd1, %r11, %p3"),
    Mutant("tmem-alias", "tensor", "no barrier between the loads and the next product", " tcgen05.fence::before_thread_sync;\n bar.sync 0;\n tcgen05.fence::after_thread_sync;\n @!%p2 bra SECOND", " tcgen05.fence::before_thread_sync;\n tcgen05.fence::after_thread_sync;\n @!%p2 bra SECOND", " tcgen05.mma.cta_group::1.kind::f16 [%r5], [%r8], %rd1, %r11, %p2"),
    Mutant("tmem-lifetime", "tensor", "nobody frees the columns", " tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r5, 64;\n", "", " tcgen05.alloc"),
    Mutant("tmem-lifetime", "tensor", "the columns of A are not allocated", "[slot], 64;", "[slot], 32;", " tcgen05.st"),
    Mutant("tmem-lifetime", "tensor", "another warp frees the columns", " @!%p1 bra FREED;\n", " setp.ne.u32 %p5, %r2, 1;\n @%p5 bra FREED;\n", " tcgen05.dealloc"),
    Mutant("tmem-lifetime", "tensor", "the right to allocate is given up first", " tcgen05.alloc", " tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\n tcgen05.alloc", " tcgen05.alloc"),
    Mutant("tmem-lifetime", "tensor", "the columns are freed before the last load", "SECOND:\n", "SECOND:\n @!%p1 bra GONE;\n tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r5, 64;\nGONE:\n", " tcgen05.dealloc"),
    Mutant("empty-commit", "tensor", "another thread commits", " tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];\nFIRST:\n", "FIRST:\n setp.ne.u32 %p6, %r1, 32;\n @%p6 bra LATER;\n tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];\nLATER:\n", " tcgen05.commit"),
    Mutant("trap", "tile", "a trap on the way", " bar.sync 0;\n", " bar.sync 0;\n @!%p1 trap;\n", " @!%p1 trap"),
    Mutant("trap", "reduction", "a trap in one warp", " bar.sync 0;\n", " bar.sync 0;\n setp.gt.u32 %p3, %r1, 63;\n @%p3 trap;\n", " @%p3 trap"),
    Mutant("trap", "handover", "a trap of the reader", "READY:\n", "READY:\n trap;\n", " trap"),
    Mutant("livelock", "tile", "a loop without an end", " bar.sync 0;\n", " bar.sync 0;\nSPIN:\n add.u32 %r10, %r1, 1;\n add.u32 %r1, %r10, 1;\n bra SPIN;\n", " add.u32 %r10, %r1, 1;"),
    Mutant("livelock", "reduction", "a step that never gets small", " shr.u32 %r3, %r3, 1;", " xor.b32 %r3, %r3, 1;\n add.u32 %r3, %r3, 16;", " shfl.sync.bfly"),
    Mutant("livelock", "handover", "the reader counts for ever", "READY:\n", "READY:\n add.u32 %r1, %r1, 3;\n bra READY;\n", " add.u32 %r1, %r1, 3;"),
    Mutant("divergent-collective", "reduction", "a shuffle in a branch", SUMS, " and.b32 %r12, %r1, 1;\n setp.eq.u32 %p1, %r12, 0;\n @%p1 bra ODD;\n" + SUMS + "ODD:\n", SUMS.rstrip()),
    Mutant("divergent-collective", "reduction", "a mask that leaves lanes out", "%r10, 0xf;", "%r10, 0x7;", " redux.sync"),
    Mutant("divergent-collective", "product", "a commit by half of the warpgroup", COMMIT, " setp.gt.u32 %p2, %r1, 63;\n @%p2 bra OVER;\n" + COMMIT + "OVER:\n", COMMIT.rstrip()),
    Mutant("leftover", "pipeline", "the last stage is not consumed", "%r5, 4;\n @%p5 bra CONSUME", "%r5, 3;\n @%p5 bra CONSUME", COPY.rstrip()),
    Mutant("leftover", "ping_pong", "the reader frees once more", " ld.param.u64 %rd1", " bar.arrive 2, 128;\n ld.param.u64 %rd1", " bar.arrive 2, 128;\n ld.param"),
    Mutant("leftover", "product", "the kernel ends with a product in flight", WAIT + " ld.param.u64 %rd3, [out];\n mul.wide.u32 %rd4, %r1, 16;\n add.u64 %rd3, %rd3, %rd4;\n st.global.v4.f32 [%rd3], {%f1, %f2, %f3, %f4};\n", "", " wgmma.mma_async"),
    Mutant("leftover", "cp_async", "the kernel ends with a copy in flight", " st.global.u32 [%rd2], %r6;", " cp.async.ca.shared.global [%r4], [%rd2], 4;", " cp.async.ca.shared.global [%r4], [%rd2], 4;"),
]  # fmt: skip
"""Kinds that the issue names, at least three mutants of each."""


def broken(m: Mutant) -> str:
    text = text_of(m.kernel)
    assert m.old in text
    return text.replace(m.old, m.new, 1)


def found(m: Mutant) -> list[tuple[str, int]]:
    """Return (kind, line) of every finding, of the first schedule that shows what is expected."""
    seen: list[tuple[str, int]] = []
    for order in [{"schedule": "random", "seed": s} for s in range(m.seeds)] or [{}]:
        result, _ = launch(m.kernel, broken(m), **order)
        seen = [(f.kind, f.where.line) for f in result.findings if f.where is not None]
        if (m.kind, line_of(m)) in seen:
            break
    return seen


def line_of(m: Mutant) -> int:
    text = broken(m)
    return text.count("\n", 0, text.index("\n" + m.at) + 1) + 1


@pytest.mark.parametrize("m", MUTANTS, ids=lambda m: f"{m.kind}: {m.what}")
def test_the_fault_is_named_at_its_line(m: Mutant) -> None:
    assert (m.kind, line_of(m)) in found(m)


def test_every_kind_has_three_mutants() -> None:
    kinds = Counter(m.kind for m in MUTANTS)
    assert len(kinds) == 27
    assert min(kinds.values()) >= 3


if __name__ == "__main__":
    for kind, n in Counter(m.kind for m in MUTANTS).items():
        print(f"{kind} ({n})")
        for m in MUTANTS:
            if m.kind == kind:
                kinds = ", ".join(dict.fromkeys(k for k, _ in found(m)))
                print(f"  {m.kernel:<10} {m.what:<46} {kinds}")
