"""A kernel on an interleaved tensor (NC/8HWC8): load a box, add one to every channel, store it."""

from __future__ import annotations

import numpy as np
import pytest

import warpsmith as ws
from warpsmith import Tile, kernel, ptx, reg, smem
from warpsmith.types import b32, f16, s32, u64

HEIGHT, WIDTH = 3, 8
BOX = {"box": (1, 8, HEIGHT, WIDTH), "interleave": "16B"}
PAIRS = HEIGHT * WIDTH * 4
"""Words of two channels in a box, which has one slice of eight channels."""


@kernel(
    out_specs=(Tile(2 * PAIRS, f16),), block=(32, 1, 1), grid=(1,),
    raw_params=[("b8.align64.array128", "image"), *(("s32", n) for n in ("w", "h", "c"))],
)  # fmt: skip
def add_one(out):
    """Load the box at (w, h, slice c) of image 0, add one to what it holds, store it in its place and in `out`."""
    tile, bar = smem.alloc(f16, (2 * PAIRS,), align=128), smem.mbarrier(1)[0]
    (po,) = ptx.global_ptrs(out)
    tid = ptx.special.tid.x()
    image = ptx.param(u64, "image")
    ptx.cvta.param(image, image)
    at = [*(ptx.param(s32, name) for name in ("w", "h", "c")), 0]
    with ptx.if_(tid == 0):
        ptx.mbarrier.init(bar, 1)
        ptx.fence.proxy_async_shared_cta()
        ptx.mbarrier.arrive_expect_tx(bar, 4 * PAIRS)
        ptx.cp.async_.bulk.tensor_4d(dst=tile, src=image, coord=at, mbar=bar)
    ptx.bar.sync(0)
    ptx.mbarrier.wait(bar, 0)
    pair, one = reg.scalar(b32), reg.scalar(b32, 0x3C003C00)
    for i in ptx.range_(tid * 4, 4 * PAIRS, 128):
        ptx.inst.ld.shared.b32(pair, ptx.addr(tile, i))
        ptx.inst.add.rn.f16x2(pair, pair, one)
        ptx.inst.st.shared.b32(ptx.addr(tile, i), pair)
        ptx.inst.st.global_.b32(ptx.addr(po, i), pair)
    ptx.fence.proxy_async_shared_cta()
    ptx.bar.sync(0)
    with ptx.if_(tid == 0):
        ptx.cp.async_.bulk.tensor_4d.store(dst=image, src=tile, coord=at)
        ptx.cp.async_.bulk.commit_group()
        ptx.cp.async_.bulk.wait_group(0)
    ptx.ret()


def an_image() -> np.ndarray:
    return np.random.default_rng(4).integers(0, 50, (1, 4, 5, 11, 8)).astype(np.float16)


def test_a_box_of_a_slice() -> None:
    a = an_image()
    before = a.copy()
    r = add_one.simulate(image=ws.TensorMap(a, **BOX), w=3, h=1, c=2)
    assert r.completed
    assert [str(f) for f in r.findings] == []
    before[0, 2, 1:4, 3:11] += 1
    assert (a == before).all()
    assert (r.outputs[0].reshape(HEIGHT, WIDTH, 8) == a[0, 2, 1:4, 3:11]).all()


@pytest.mark.parametrize("at", [(6, 3, 3), (10, 0, 2), (11, 4, 0), (0, 0, 4)])
def test_what_lies_past_the_tensor_reads_as_zero_and_is_not_written(at: tuple[int, int, int]) -> None:
    a, (w, h, c) = an_image(), at
    before = a.copy()
    r = add_one.simulate(image=ws.TensorMap(a, **BOX), w=w, h=h, c=c)
    assert r.completed
    assert [str(f) for f in r.findings] == []
    want = np.zeros((1, HEIGHT, WIDTH, 8), np.float16)
    inside = before[0, c : c + 1, h : h + HEIGHT, w : w + WIDTH]
    want[: len(inside), : inside.shape[1], : inside.shape[2]] = inside
    assert (r.outputs[0].reshape(want.shape) == want + 1).all()
    before[0, c : c + 1, h : h + HEIGHT, w : w + WIDTH] += 1
    assert (a == before).all()


@pytest.mark.parametrize("at", [(-1, 1, 1), (3, -2, 1), (3, 1, -1)])
def test_a_store_before_the_tensor_is_named(at: tuple[int, int, int]) -> None:
    """The load may begin there: what lies outside is zero. The store may not."""
    w, h, c = at
    r = add_one.simulate(image=ws.TensorMap(an_image(), **BOX), w=w, h=h, c=c)
    assert not r.completed
    (found,) = r.findings
    assert (found.kind, found.severity) == ("out-of-bounds", "error")
    assert found.message == f"a tensor store starts at coordinates ({w}, {h}, {c}, 0); none may be negative"
    assert "test_interleaved.py:" in str(found.where)
