"""Tiles: dimensions, TMA views, wgmma presets."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from warpsmith import Layout, Tile, kernel, ptx, smem
from warpsmith.base.errors import InputError, KernelError
from warpsmith.specs import unify_envs
from warpsmith.types import bf16, e4m3, f32, tf32
from warpsmith.wgmma_layout import LayoutType, Major, layout_for_a, layout_for_b, pick_gmma_layout


def test_dimensions():
    t = Tile("M", 4, "K", bf16)
    assert (t.rank, t.symbolic_dims, t.layout) == (3, ("M", "K"), Layout.ROW)
    assert t.resolve_shape({"M": 2, "K": 3}) == (2, 4, 3)
    assert t.extract_env((2, 4, 3)) == {"M": 2, "K": 3}
    assert t.matches((2, 4, 3), bf16)
    assert not t.matches((2, 5, 3), bf16)
    assert not t.matches((2, 4, 3), f32)
    assert not Tile("N", "N", f32).matches((2, 3), f32)
    assert Tile("M", dtype=bf16, layout=Layout.COL) == Tile("M", bf16, Layout.COL)
    assert unify_envs([{"M": 1}, {"K": 2}, {"M": 1}]) == {"M": 1, "K": 2}


def test_the_tma_view_runs_from_the_innermost_dimension():
    box = Tile("M", "K", bf16, Layout.TMA_128B, tma_box=(32, 64)).descriptor({"M": 128, "K": 256})
    assert (box.extents, box.strides, box.box, box.swizzle, box.nbytes) == ((256, 128), (512,), (64, 32), "128B", 4096)
    four = Tile(2, 3, 8, 64, f32, tma_box=(1, 1, 8, 32)).descriptor({})
    assert (four.extents, four.strides, four.box) == ((64, 8, 3, 2), (256, 2048, 6144), (32, 8, 1, 1))
    column = Tile(64, 32, f32, Layout.COL, tma_box=(64, 8)).descriptor({})
    assert (column.extents, column.strides, column.box) == ((64, 32), (256,), (64, 8))


def test_the_three_dimensional_view():
    t = Tile("M", "K", bf16, tma_box=(16, 128), tma_rank=3, tma_padding=True).descriptor({"M": 64, "K": 256})
    assert (t.extents, t.strides, t.box) == ((64, 64, 4), (512, 128), (72, 16, 2))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Tile(), "Tile: a dimension is a positive int or a name, got ()"),
        (lambda: Tile(0, f32), "Tile: a dimension is a positive int or a name, got (0,)"),
        (lambda: Tile(f32, 4), "Tile: 4 is out of place; write Tile(dims…, dtype, layout)"),
        (lambda: Tile(4, 4, f32, tma_box=(4,)), "Tile: tma_box (4,) has 1 extents for 2 dimensions"),
        (
            lambda: Tile(4, 4, f32, tma_box=(4, 2)),
            "Tile: the inner extent of a TMA box is a multiple of 16 bytes, and 2 x f32 is 8",
        ),
        (lambda: Tile(4, 4, f32, tma_box=(300, 4)), "Tile: a TMA box has extents from 1 to 256, got 300 in tma_box=(300, 4)"),
        (lambda: Tile(4, 4, 4, f32, tma_rank=2), "Tile: tma_rank=2 does not fit 3 dimensions; rank 3 views two as three"),
        (lambda: Tile(4, 4, f32, tma_padding=True), "Tile: tma_padding=True needs tma_rank=3"),
    ],
)  # fmt: skip
def test_tiles_that_cannot_be(make, message):
    with pytest.raises(KernelError) as caught:
        make()
    assert f"error: {message}" in str(caught.value)


def test_shapes_that_do_not_fit():
    with pytest.raises(InputError, match=r"^a tensor of shape \(2,\) where Tile\('M', 'K', f32\) has 2 dimensions$"):
        Tile("M", "K", f32).extract_env((2,))
    with pytest.raises(InputError, match=r"^the dimension 'K' has no value; known: M$"):
        Tile("M", "K", f32).resolve_shape({"M": 1})
    with pytest.raises(InputError, match=r"^the dimension 'M' is 1 in one tensor and 2 in another$"):
        unify_envs([{"M": 1}, {"M": 2}])


def test_wgmma_presets():
    a = Tile.wgmma_a("M", "K", bf16, tile_m=64, tile_k=64)
    assert (a.layout, a.tma_box) == (Layout.TMA_128B, (64, 64))
    assert Tile.wgmma_a("M", "K", bf16, tile_m=64, tile_k=16).layout is Layout.TMA_32B
    assert Tile.wgmma_b("K", "N", bf16, tile_k=64, tile_n=128).tma_box == (64, 64)
    assert Tile.wgmma_a("M", "K", e4m3, tile_m=64, tile_k=64).layout is Layout.TMA_64B


def test_matrix_layouts():
    a = layout_for_a(dtype=bf16, m=64, k=16)
    assert (a.layout_type, a.leading_byte_offset, a.stride_byte_offset) == (LayoutType.B32, 16, 256)
    assert (a.tma_swizzle, a.smem_swizzle, a.swizzle_code) == ("32B", "32B", 3)
    b = layout_for_b(dtype=bf16, k=64, n=256)
    assert (b.layout_type, b.leading_byte_offset, b.stride_byte_offset) == (LayoutType.B128, 8192, 1024)
    plain = pick_gmma_layout(elem_bytes=4, m_or_n=64, k=4, major=Major.K)
    assert (plain.layout_type, plain.leading_byte_offset, plain.stride_byte_offset) == (LayoutType.INTERLEAVE, 1024, 128)
    assert layout_for_a(dtype=tf32, m=64, k=32).layout_type is LayoutType.B128


def test_a_padded_three_dimensional_store_on_the_simulator():
    @kernel(
        in_specs=(Tile("M", "K", bf16, tma_box=(16, 128), tma_rank=3),),
        out_specs=(Tile("M", "K", bf16, tma_box=(16, 128), tma_rank=3),),
        grid=lambda M, K: (M // 16, K // 128), block=(32, 1, 1),
    )  # fmt: skip
    def copy(A, B):
        tile, bar = smem.alloc(bf16, (2, 16, 64)), smem.mbarrier(1)[0]
        row, column = ptx.ctaid_x() * 16, ptx.ctaid_y() * 128
        with ptx.if_(ptx.special.tid.x() == 0):
            ptx.mbarrier.init(bar, 1)
            ptx.fence.proxy_async_shared_cta()
            ptx.mbarrier.arrive_expect_tx(bar, 4096)
            ptx.tma.load_3d(dst=tile, src=A, row=row, col=column, mbar=bar)
            ptx.mbarrier.wait(bar, 0)
            ptx.tma.store_3d(dst=B, src=tile, row=row, col=column)
            ptx.cp.async_.bulk.commit_group()
            ptx.cp.async_.bulk.wait_group(0)
        ptx.ret()

    a = np.random.default_rng(0).standard_normal((32, 256)).astype(ml_dtypes.bfloat16)
    assert (copy(a) == a).all()
