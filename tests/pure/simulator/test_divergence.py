"""Threads that part and meet: nested branches, loops, roles of single lanes, waiting within a warp."""

import numpy as np
import pytest

from warpsmith.simulator import simulate

ORDERS = [{}, *({"schedule": "random", "seed": s} for s in range(4))]


@pytest.fixture(params=ORDERS, ids=["fair", "random0", "random1", "random2", "random3"])
def order(request):
    return request.param


def kernel(body, shared=""):
    return f"""
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 in)
{{
  .reg .b32 %r<40>; .reg .b64 %rd<20>; .reg .pred %p<20>;
  {shared}
  ld.param.u64 %rd1, [out];
  ld.param.u64 %rd2, [in];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd1, %rd3;
  add.s64 %rd5, %rd2, %rd3;
  ld.global.u32 %r2, [%rd5];
  {body}
  st.global.u32 [%rd4], %r3;
  ret;
}}"""


def run(text, values, order, block=None, **options):
    out = np.zeros(len(values), np.uint32)
    result = simulate(text, grid=1, block=block or len(values), args=[out, values], **order, **options)
    assert not result.findings, str(result)
    assert result.completed
    return out, result


def test_nested_branches_meet_again_before_a_shuffle(order):
    text = kernel("""
  and.b32 %r4, %r2, 1; and.b32 %r5, %r2, 2; mov.u32 %r3, 0;
  setp.eq.u32 %p1, %r4, 0; setp.eq.u32 %p2, %r5, 0;
  @%p1 bra EVEN;
  @%p2 bra ODD_LOW;
  add.u32 %r3, %r3, 300; bra ODD_END;
ODD_LOW: add.u32 %r3, %r3, 100;
ODD_END: add.u32 %r3, %r3, 1; bra END;
EVEN: @%p2 bra EVEN_LOW;
  add.u32 %r3, %r3, 200; bra END;
EVEN_LOW: add.u32 %r3, %r3, 50;
END:
  shfl.sync.bfly.b32 %r6, %r3, 1, 31, 0xffffffff;
  add.u32 %r3, %r3, %r6;""")
    values = np.random.default_rng(0).integers(0, 4, 96).astype(np.uint32)
    out, _ = run(text, values, order)
    own = np.array([50, 101, 200, 301])[values]
    assert np.array_equal(out, own + own[np.arange(96) ^ 1])


def test_loops_with_a_break_and_a_continue(order):
    text = kernel("""
  mov.u32 %r3, 0; mov.u32 %r4, 0;
LOOP:
  setp.ge.u32 %p1, %r4, %r2; @%p1 bra DONE;
  add.u32 %r4, %r4, 1;
  rem.u32 %r5, %r4, 3; setp.eq.u32 %p2, %r5, 0; @%p2 bra LOOP;
  add.u32 %r3, %r3, %r4;
  setp.gt.u32 %p3, %r3, 100; @%p3 bra DONE;
  bra LOOP;
DONE:
  activemask.b32 %r6; setp.ne.u32 %p4, %r6, 0xffffffff; @%p4 add.u32 %r3, %r3, 100000;""")
    values = np.arange(64, dtype=np.uint32) % 37

    def one(n):
        total = i = 0
        while i < n:
            i += 1
            if i % 3 == 0:
                continue
            total += i
            if total > 100:
                break
        return total

    out, _ = run(text, values, order)
    assert out.tolist() == [one(int(v)) for v in values]


def test_one_lane_takes_a_long_role(order):
    text = kernel("""
  setp.ne.u32 %p1, %r1, 5; mov.u32 %r3, 7; @%p1 bra END;
  mov.u32 %r4, 0;
LOOP: add.u32 %r3, %r3, %r4; add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, 1000; @%p2 bra LOOP;
END: vote.sync.ballot.b32 %r5, %p1, 0xffffffff; add.u32 %r3, %r3, %r5;""")
    out, _ = run(text, np.zeros(32, np.uint32), order)
    ballot = 0xFFFFFFFF ^ 32
    want = np.full(32, (7 + ballot) & 0xFFFFFFFF, np.uint32)
    want[5] = (7 + 999 * 500 + ballot) & 0xFFFFFFFF
    assert np.array_equal(out, want)


def test_lanes_of_one_warp_hand_over_through_shared_memory(order):
    """The waiting lanes come first in the text: only independent progress of the lanes ends the wait."""
    text = kernel(
        """
  mov.u32 %r10, flag;
  setp.eq.u32 %p1, %r1, 31; @%p1 bra PRODUCE;
WAIT: ld.volatile.shared.u32 %r4, [%r10]; setp.eq.u32 %p2, %r4, 0; @%p2 bra WAIT;
  ld.volatile.shared.u32 %r3, [%r10+4]; bra END;
PRODUCE: mov.u32 %r5, 42; st.volatile.shared.u32 [%r10+4], %r5; membar.cta; mov.u32 %r6, 1;
  st.volatile.shared.u32 [%r10], %r6; mov.u32 %r3, 43;
END:""",
        ".shared .align 4 .b32 flag[2];",
    )
    text = text.replace("ld.param.u64 %rd1, [out];", "ld.param.u64 %rd1, [out]; st.shared.u32 [flag], 0; bar.sync 0;")
    out, result = run(text, np.zeros(32, np.uint32), order)
    assert out.tolist() == [42] * 31 + [43]
    assert result.counters.warp_instructions < 2000


def test_producer_and_consumer_ctas_through_global_memory(order):
    text = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 box)
{
  .reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .pred %p<4>;
  ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [box];
  mov.u32 %r6, %tid.x; setp.ne.u32 %p1, %r6, 0; @%p1 ret;
  mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, 1; @%p1 bra PRODUCE;
WAIT: ld.acquire.gpu.global.u32 %r2, [%rd2]; setp.ne.u32 %p2, %r2, 3; @%p2 bra WAIT;
  ld.global.u32 %r3, [%rd2+4]; st.global.u32 [%rd1], %r3; ret;
PRODUCE: mov.u32 %r4, 0;
MORE: add.u32 %r4, %r4, 1; mul.lo.u32 %r5, %r4, 11; st.global.u32 [%rd2+4], %r5; st.release.gpu.global.u32 [%rd2], %r4;
  setp.lt.u32 %p3, %r4, 3; @%p3 bra MORE; ret;
}"""
    out, box = np.zeros(1, np.uint32), np.zeros(2, np.uint32)
    result = simulate(text, grid=2, block=32, args=[out, box], **order)
    assert not result.findings, str(result)
    assert out[0] == 33


def test_the_grid_may_be_larger_than_the_device():
    text = kernel("mov.u32 %r3, %smid; atom.global.add.u32 %r4, [%rd1+4], 1;").replace(
        "add.s64 %rd4, %rd1, %rd3;", "mov.u64 %rd4, %rd1;"
    )
    values = np.zeros(32, np.uint32)
    out = np.zeros(32, np.uint32)
    result = simulate(text, grid=5000, block=32, args=[out, values])
    assert result.completed
    assert out[1] == 5000 * 32


def test_a_branch_by_index_beyond_its_table_is_reported():
    text = kernel("""
  mov.u32 %r3, 1;
TABLE: .branchtargets A, B;
  brx.idx %r2, TABLE;
A: add.u32 %r3, %r3, 10; bra END;
B: add.u32 %r3, %r3, 20;
END:""")
    out, _ = run(text, np.arange(64, dtype=np.uint32) % 2, {})
    assert out.tolist() == [11, 21] * 32
    result = simulate(text, grid=1, block=32, args=[np.zeros(32, np.uint32), np.arange(32, dtype=np.uint32) % 3])
    assert [(f.kind, f.message) for f in result.findings] == [("out-of-bounds", "`brx.idx` with index 2 of 2 targets")]
    assert not result.completed


def test_device_functions_with_registers_and_results(order):
    text = kernel("""
  { .param .b32 a; .param .b32 b; .param .b32 r;
    st.param.b32 [a], %r2; st.param.b32 [b], %r1;
    call (r), gcd, (a, b);
    ld.param.b32 %r3, [r]; }""")
    function = """
.func (.param .b32 r) gcd(.param .b32 a, .param .b32 b)
{
  .reg .b32 %x<6>; .reg .pred %q<2>;
  ld.param.b32 %x1, [a]; ld.param.b32 %x2, [b];
LOOP: setp.eq.u32 %q1, %x2, 0; @%q1 bra DONE; rem.u32 %x3, %x1, %x2; mov.u32 %x1, %x2; mov.u32 %x2, %x3; bra LOOP;
DONE: st.param.b32 [r], %x1; ret;
}
"""
    text = text.replace(".visible .entry", function + ".visible .entry")
    values = np.random.default_rng(2).integers(1, 1000, 64).astype(np.uint32)
    out, _ = run(text, values, order)
    assert np.array_equal(out, np.gcd(values, np.arange(64)))
