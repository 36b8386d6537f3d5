"""The text of a traced kernel reads back to the same text, and an edit of its tree shows."""

from __future__ import annotations

import pytest

from warpsmith import Tile, kernel, ptx, reg, smem
from warpsmith.assembly.ptx.check import check
from warpsmith.assembly.ptx.tree import Instruction
from warpsmith.kernels.attention import ampere, hopper
from warpsmith.kernels.attention.hopper_config import Config as HopperConfig
from warpsmith.types import f32, u32


@kernel(in_specs=(Tile(64, f32, tma_box=(32,)),), block=(64, 1, 1))
def mixed(A):
    tile, bar = smem.alloc(f32, (2, 32)), smem.mbarrier(2)
    ptx.declare(".visible .global .align 4 .b32 counter;")
    a = reg.scalar(u32, 1, name="a")
    with ptx.if_(a == 3):
        ptx.cp.async_.bulk.tensor_1d(dst=tile[1], src=A.tma_desc(), coord=(-5,), mbar=bar[1], pred=a > 2)
    with ptx.scope():
        ptx.raw(".reg .f32 %q<2>; mov.f32 %q1, 0f7FC00001;")
        ptx.mbarrier.wait(bar[1], 0)
    ptx.pragma("nounroll")
    ptx.st(u32, "counter", a)
    ptx.ret()


KERNELS = {
    "mixed": lambda: mixed,
    "hopper attention": lambda: hopper.build(HopperConfig(heads=1, sequence=128)),
    "ampere attention": lambda: ampere.build(ampere.Config(heads=1, sequence=128)),
}


@pytest.mark.parametrize("name", KERNELS)
def test_text_reads_back(name):
    k = KERNELS[name]()
    assert str(ptx.parse(k.ptx())) == k.ptx()
    assert str(ptx.parse(k.ptx(loc=False))) == k.ptx(loc=False)


@pytest.mark.parametrize("name", KERNELS)
def test_the_whole_module_is_accepted_by_the_checker(name):
    assert check(KERNELS[name]().module()) == []


def test_an_edit_of_the_tree_shows():
    @kernel
    def body():
        ptx.inst.add.u32(reg.scalar(u32), reg.scalar(u32), 1)

    add = next(s for s in body.module().entry("body").body or [] if isinstance(s, Instruction))
    add.mnemonic = "sub.u32"
    assert "\tsub.u32 \t" in body.ptx()
