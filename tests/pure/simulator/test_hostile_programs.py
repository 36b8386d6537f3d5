"""Programs that reach where they may not, or ask for more than there is: each ends with a finding at its line."""

# ruff: noqa: E501 (messages stand in one line each)

import numpy as np
import pytest

from warpsmith.base.errors import CapabilityError
from warpsmith.simulator import simulate
from warpsmith.simulator.cfg import order_blocks

HEAD = ".version 8.6\n.target sm_90a\n.address_size 64\n.extern .func (.param .b64 r) malloc(.param .b64 n);\n.visible .entry k(.param .u64 a) {\n"
DECLARE = """.reg .b32 %r<32>; .reg .b64 %d<4>; .reg .f32 %f<8>; .reg .pred %p<3>; .shared .align 1024 .b8 s[4096];
ld.param.u64 %d1, [a]; mov.u32 %r1, s; mov.u32 %r2, %tid.x; setp.eq.u32 %p1, %r2, 0;
@%p1 mbarrier.init.shared.b64 [%r1], 1; fence.mbarrier_init.release.cluster; bar.sync 0; mov.u64 %d2, 0;
"""
WGMMA = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %d2, %d2, 1, 1, 1, 0, 0;"


def run(text, block=128, **options):
    return simulate(
        HEAD + DECLARE + text + "\nret; }", grid=1, block=block, args=[np.zeros(64, np.uint32)], max_steps=500, **options
    )


BOUND = "bound the index by the size of the array, or guard the access with a predicate"
END = "lies just past the end of shared variable `s` (4096 bytes)"
FAULTS = [
    ("cp.async.ca.shared.global [%r1+4096], [%d1], 16;", f"`cp.async.ca.shared.global` of 16 bytes at shared address 0x1400 {END}", BOUND),
    ("mov.u32 %r3, 4; cp.async.ca.shared.global [%r1+16], [%d1+256], 16, %r3;", "`cp.async.ca.shared.global` of 4 bytes at global address 0x700000000200 lies just past the end of argument 0 (`a`) (256 bytes)", BOUND),
    ("@%p1 st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r1+4096], %r2, [%r1];", f"store of 4 bytes at shared address 0x1400 {END}", BOUND),
    ("mov.u64 %d3, -16; st.global.u32 [%d3], 1;", "store of 4 bytes at global address 0xfffffffffffffff0 lies in no allocation of global memory", BOUND),
    ("alloca.u64 %d3, 0xffffffffff;", "`alloca.u64` needs more than the 1024 bytes of local memory of a thread", "allocate less, or declare the array in .local"),
    ("mov.u64 %d2, -16; alloca.u64 %d3, %d2;", "`alloca.u64` needs more than the 1024 bytes of local memory of a thread", "allocate less, or declare the array in .local"),
    ("L: bra L;", "4 warps wait and nothing in flight can release them", "follow the chain: the first barrier or value that nobody will signal any more needs an arrival, or a smaller count"),
    ("L: add.u32 %r3, %r3, 1; bra L;", "the launch was ended after max_steps=500 blocks", "look at the loops named above; raise max_steps if the kernel only needs longer"),
]  # fmt: skip


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize(("text", "message", "repair"), FAULTS, ids=range(len(FAULTS)))
def test_faults_that_end_the_launch(text, message, repair, check):
    result = run(text, check=check)
    assert not result.completed
    found = [f for f in result.findings if f.severity == "error"]
    assert [(f.message, f.repair, f.where.line) for f in found] == [(message, repair, 9)]


@pytest.mark.parametrize("block", [32, 96, 100, 160])
def test_a_warpgroup_cut_short(block):
    result = run(
        "mov.u64 %d2, 64; " + WGMMA + " wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;", block=block
    )
    assert [f.message for f in result.findings if f.kind == "divergent-collective"] == [
        "`wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16` is executed by a part of a warpgroup"
    ]


def test_a_copy_across_two_arrays():
    a, b = np.zeros(64, np.uint32), np.zeros(64, np.uint32)
    text = (
        HEAD.replace("k(.param .u64 a", "k(.param .u64 a, .param .u64 b")
        + DECLARE
        + ("@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1+128], [%d1], 768, [%r1];\nret; }")
    )
    result = simulate(text, grid=1, block=32, args=[a, b])
    assert [f.message for f in result.findings if f.severity == "error"] == [
        "`cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes` of 16 bytes at global address 0x700000000200 lies just past the end of argument 0 (`a`) (256 bytes)"
    ]


def test_what_is_not_modelled_is_refused_at_its_line():
    with pytest.raises(CapabilityError) as caught:
        run("mov.u64 %d2, -1; wgmma.fence.sync.aligned; " + WGMMA)
    assert (
        str(caught.value)
        == "<string>:9: simulator: a matrix descriptor with base offset 7 is not modelled; align the 32B pattern to 256 bytes"
    )


def test_malloc_without_end_gives_null_pointers():
    text = """mov.u32 %r3, 0; L: { .param .b64 n; .param .b64 r; st.param.b64 [n], 0x4000000; call (r), malloc, (n); ld.param.b64 %d3, [r]; }
add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 9; @%p2 bra L; st.global.u64 [%d1], %d3;"""
    out = np.ones(64, np.uint32)
    assert simulate(HEAD + DECLARE + text + "\nret; }", grid=1, block=32, args=[out]).completed
    assert out[:2].tolist() == [0, 0]


def test_the_order_of_many_blocks():
    """A chain, and a loop around it: linear in the blocks."""
    count = 20_000
    for last in ([], [1]):
        blocks = [Chained([n + 1]) for n in range(count)] + [Chained(last)]
        order_blocks(blocks, 0, set(range(count + 1)))
        assert [b.order[-1] for b in blocks[1:]] == (list(range(count)) if last else list(range(1, count + 1)))


class Chained:
    def __init__(self, following):
        self.following, self.order = following, ()

    def successors(self):
        return self.following
