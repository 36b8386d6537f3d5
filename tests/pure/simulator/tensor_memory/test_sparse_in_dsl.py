"""Sparse block-scaled products written in the DSL, for the problems of test_sparse_scaled."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tcgen05_program import laid_out
from warpsmith import Tile, kernel, ptx, reg, smem
from warpsmith.types import f32, u32

TEXT = runpy.run_path(str(Path(__file__).with_name("test_sparse_scaled.py")))
Case, FORMS, factor_words = TEXT["Case"], TEXT["FORMS"], TEXT["BLOCK"]["factor_words"]
T = ptx.tcgen05
A_AT, B_AT, WORDS, N = 0, 16384, 4608, 16
E, SA, SB = 64, 68, 72
"""Columns of the metadata (two) and of the factors of A (four: 128 rows) and of B (one)."""


def product(case: Any) -> Any:
    """A kernel that stores metadata and factors in tensor memory, multiplies, and writes D by columns."""
    _, kind, *more = case.form.replace("::", ".").split(".")
    vector = None if more == ["block_scale"] else more[-1]
    a, b = case.types
    how = T.make_instr_desc(
        kind, m=128, n=N, a_dtype=a, b_dtype=b, sparse=True, factor_dtype="ue4m3" if case.ue4m3 else "ue8m0",
        factor_a_id=case.ids[0], factor_b_id=case.ids[1],
    )  # fmt: skip

    @kernel(
        in_specs=(Tile(WORDS, u32), Tile(7, 128, u32)), out_specs=(Tile(N, 128, f32),), grid=(1, 1, 1), block=(128, 1, 1),
        arch="sm_100a",
    )  # fmt: skip
    def multiply(image: Any, words: Any, d: Any) -> None:
        source, held, target = ptx.global_ptrs(image, words, d)
        tile, slot, done = smem.alloc(u32, (WORDS,), align=1024), smem.alloc(u32, (1,)), smem.mbarrier(1)[0]
        thread = ptx.special.tid.x()
        some = reg.array(u32, 7)
        for at in range(0, WORDS, 128):
            ptx.inst.ld.global_.b32(some[0], ptx.addr(source + thread * 4, 4 * at))
            tile[thread + at] = some[0]
        with ptx.if_(thread == 0):
            ptx.mbarrier.init(done, 1)
        ptx.fence.proxy_async_shared_cta()
        with ptx.if_(thread < 32):
            T.alloc(slot, 128)
        T.fence_before_thread_sync()
        ptx.bar.sync()
        T.fence_after_thread_sync()
        memory = slot[0]
        mine = memory + ((thread >> 5) << 21)
        for at in range(7):
            ptx.inst.ld.global_.b32(some[at], ptx.addr(held + thread * 4, 512 * at))
        T.st(mine + E, some[:2])
        T.st(mine + SA, some[2:6])
        T.st(mine + SB, some[6:])
        T.wait_st()
        T.fence_before_thread_sync()
        ptx.bar.sync()
        T.fence_after_thread_sync()
        with ptx.if_(thread == 0):
            da, db = (T.descriptor(tile, byte_offset=at, stride_bytes=1024) for at in (A_AT, B_AT))
            T.mma(
                memory, da, db, how, kind=kind, enable_input_d=False, sparse=True, sparse_metadata=memory + E,
                scale_a=memory + SA, scale_b=memory + SB, scale_vec=vector,
            )  # fmt: skip
            T.commit(done)
        ptx.mbarrier.wait(done, 0)
        T.fence_after_thread_sync()
        out = reg.array(f32, N)
        T.ld(out, mine)
        T.wait_ld()
        for column in range(N):
            ptx.inst.st.global_.f32(ptx.addr(target + thread * 4, 512 * column), out[column])
        T.fence_before_thread_sync()
        ptx.bar.sync()
        with ptx.if_(thread < 32):
            T.dealloc(memory, 128)

    return multiply


@pytest.mark.parametrize("case", FORMS, ids=lambda c: c.form[6:])
@pytest.mark.parametrize("options", [{}, {"schedule": "adversarial"}])
def test_each_kind(case: Any, options: dict[str, Any]) -> None:
    image = np.zeros(4 * WORDS, np.uint8)
    laid_out(case.bytes_of(case.stored, case.types[0]), A_AT, "128B", False, image)
    laid_out(case.bytes_of(case.b, case.types[1]), B_AT, "128B", False, image)
    rows = [np.tile(factor_words(f, i).T, (1, 4)) for f, i in zip((case.sa, case.sb), case.ids, strict=True)]
    words = np.concatenate([case.metadata(), *rows])
    r = product(case).simulate(image.view(np.uint32), words, **options)
    assert r.completed, str(r)
    assert not r.findings, str(r)
    assert np.array_equal(r.outputs[0].T, case.want())
