"""What a kernel object says after ptxas: cubin, listing, resources, lines."""

from __future__ import annotations

from warpsmith import Tile, kernel, ptx, reg, smem
from warpsmith.types import f32


@kernel(in_specs=(Tile("N", f32),), out_specs=(Tile("N", f32),), grid=lambda N: (N // 128,), block=(128, 1, 1))
def double(a, out):
    pa, po = ptx.global_ptrs(a, out)
    tile = smem.alloc(f32, (128,))
    offset = (ptx.ctaid_x() * 128 + ptx.special.tid.x()) * 4
    x = reg.scalar(f32)
    ptx.ld(f32, x, ptx.addr(pa + offset))
    tile[ptx.special.tid.x()] = x
    ptx.inst.add.rn.f32(x, x, x)
    ptx.st(f32, ptx.addr(po + offset), x)
    ptx.ret()


def test_cubin_listing_and_resources():
    assert double.cubin()[:4] == b"\x7fELF"
    assert b"test_compile.py" in double.cubin()  # line information names the file
    assert "EXIT" in double.sass()
    resources = double.resources()
    assert resources.name == "double"
    assert 0 < resources.registers < 64
    assert resources.shared == 512
