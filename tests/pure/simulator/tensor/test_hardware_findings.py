"""What captures on an H200 taught that the manual leaves open, by hand-made values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.pure.simulator.tensor.test_tensor_copies import MAP, load, loading

from warpsmith.simulator.tensormap import TensorMap


@pytest.mark.parametrize(("dtype", "width"), [(np.float16, 2), (np.float32, 4), (np.float64, 8)])
def test_nan_fill_repeats_the_code_of_out_of_bounds(run: Any, dtype: Any, width: int) -> None:
    a = np.ones((8, 16), dtype)
    got = load(run, TensorMap(a, box=(8, 16), fill="nan"), [0, 8], 128 * width)
    assert (got.view(np.uint16) == 0x7FF7).all()


@pytest.mark.parametrize("element", ["f32_ftz", "tf32_ftz"])
def test_loads_of_ftz_types_keep_subnormals(run: Any, element: str) -> None:
    a = np.full((4, 4), 0x00452000, np.uint32).view(np.float32)
    got = load(run, TensorMap(a, box=(4, 4), element=element), [0, 0], 64)
    assert (got.view(np.uint32) == 0x00452000).all()


def test_an_im2col_copy_starts_at_a_multiple_of_16_bytes(run: Any) -> None:
    tensor_map = TensorMap(np.zeros((2, 6, 5, 16), np.float16), lower=(-1, -1), upper=(-1, -1), channels=8, pixels=48)
    r = run(loading(4, [4, -1, -1, 0], 768, "im2col", ", {0, 0}"), np.zeros(768, np.uint8), tensor_map, parameters=MAP)
    assert not r.completed
    assert "starts at innermost coordinate 4, 8 bytes" in r.findings[0].message


def reduced(run: Any, op: str, old: np.ndarray, new: np.ndarray, dtype: Any) -> np.ndarray:
    """16 bytes of memory after a bulk reduction of `new` into `old`."""
    memory = old.view(dtype).copy()
    body = f""" .shared .align 16 .b8 buf[16]; ld.param.u64 %rd1, [memory]; ld.param.u64 %rd2, [new]; mov.u32 %r1, buf;
 ld.global.b64 %rd3, [%rd2]; ld.global.b64 %rd4, [%rd2+8]; st.shared.b64 [%r1], %rd3; st.shared.b64 [%r1+8], %rd4;
 fence.proxy.async; cp.reduce.async.bulk.global.shared::cta.bulk_group.{op} [%rd1], [%r1], 16;
 cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"""
    run(body, memory, new.view(dtype).copy(), parameters=".param .u64 memory, .param .u64 new", block=1)
    return memory.view(old.dtype)


def test_a_bulk_sum_of_f32_keeps_subnormals_and_gives_the_canonical_nan(run: Any) -> None:
    old = np.array([0x00000003, 0x7F812345, 0x3F800000, 0x80000000], np.uint32)
    new = np.array([0x00000004, 0x3F800000, 0xFFC00001, 0x00000000], np.uint32)
    assert reduced(run, "add.f32", old, new, np.float32).tolist() == [0x00000007, 0x7FFFFFFF, 0x7FFFFFFF, 0]


def test_a_bulk_minimum_of_two_nans_is_the_canonical_one(run: Any) -> None:
    old = np.array([0xFEDD, 0x3C00, 0x7E01, 0xBC00] * 2, np.uint16)
    new = np.array([0x7D00, 0x7E01, 0x3C00, 0x3C00] * 2, np.uint16)
    assert reduced(run, "min.f16", old, new, np.float16).tolist() == [0x7FFF, 0x3C00, 0x3C00, 0xBC00] * 2


def test_parameters_of_the_kernel_lie_in_the_window_of_global_memory(run: Any) -> None:
    out = np.zeros(1, np.uint32)
    body = """ mov.b64 %rd1, out; cvta.param.u64 %rd1, %rd1; isspacep.global %p1, %rd1; selp.b32 %r1, 1, 0, %p1;
 st.global.b32 [%out], %r1;"""
    run(body, out, block=1)
    assert out[0] == 1


def test_wmma_of_tf32_is_a_chain_of_two_products(run: Any) -> None:
    """2³⁰ − 2³⁰ in the first four of k, 1 in the last: one sum of eight would lose the 1."""
    a, b, c = np.zeros((16, 8), np.float32), np.zeros((8, 16), np.float32), np.zeros((16, 16), np.float32)
    a[0, 0], a[0, 1], a[0, 7], b[0, 0], b[1, 0], b[7, 0] = 2.0**15, -(2.0**15), 1, 2.0**15, 2.0**15, 1
    body = """ ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [c];
 wmma.load.a.sync.aligned.row.m16n16k8.global.tf32 {%r0,%r1,%r2,%r3}, [%rd1];
 wmma.load.b.sync.aligned.row.m16n16k8.global.tf32 {%r4,%r5,%r6,%r7}, [%rd2];
 wmma.load.c.sync.aligned.row.m16n16k8.global.f32 {%f0,%f1,%f2,%f3,%f4,%f5,%f6,%f7}, [%rd3];
 wmma.mma.sync.aligned.row.row.m16n16k8.f32.tf32.tf32.f32 {%f8,%f9,%f10,%f11,%f12,%f13,%f14,%f15}, {%r0,%r1,%r2,%r3},
   {%r4,%r5,%r6,%r7}, {%f0,%f1,%f2,%f3,%f4,%f5,%f6,%f7};
 wmma.store.d.sync.aligned.row.m16n16k8.global.f32 [%rd3], {%f8,%f9,%f10,%f11,%f12,%f13,%f14,%f15};"""
    run(body, a, b, c, parameters=".param .u64 a, .param .u64 b, .param .u64 c", numerics="exact")
    assert c[0, 0] == 1
