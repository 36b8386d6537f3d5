"""What random programs of many threads have found in the simulator (`hardware/flow`), each as small as it can be."""

import numpy as np
import pytest

import warpsmith as ws

HEAD = """.version 8.6
.target sm_90a
.address_size 64
"""
REGISTERS = ".reg .b32 %r<20>; .reg .b64 %d<10>; .reg .b16 %h; .reg .pred %p; .reg .b128 %x;"
ENTRY = f".visible .entry k(.param .u64 out, .param .align 8 .b8 blob[16]) {{ {REGISTERS} ld.param.u64 %d0, [out];"
PLACE = "mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mad.lo.u32 %r2, %r1, %r2, %r0;"
BLOB = np.array([11, 22], np.uint64)


def run(body, shape, *, grid=1, block=1, before="", **options):
    out = np.zeros(shape, np.uint64)
    text = f"{HEAD}{before}{ENTRY} {body} ret; }}"
    result = ws.simulate(text, kernel="k", grid=grid, block=block, args=[out, BLOB.tobytes()], **options)
    assert result.completed
    assert result.findings == []
    return out


@pytest.mark.parametrize("ctas", [1, 2, 3])
def test_a_128_bit_register_is_read_whole_behind_a_guarded_write_of_its_half(ctas):
    """The first half alone was stored: of two CTAs the one's value became the halves of both."""
    body = f"""{PLACE} mad.wide.u32 %d0, %r2, 16, %d0; setp.lt.u32 %p, %r0, 40;
        cvt.u64.u32 %d2, %r2; mov.b64 %d3, 7; @%p mov.b128 %x, {{%d3, %d2}}; st.global.b128 [%d0], %x;"""
    out = run(body, (32 * ctas, 2), grid=ctas, block=32, check=False)
    assert (out == np.stack([np.full(32 * ctas, 7), np.arange(32 * ctas)], axis=1)).all()


def test_arrays_without_a_length_have_that_of_their_initialiser():
    """Loads from them were out of bounds."""
    before = ".global .u32 t[] = {5, 6, 7}; .const .u16 c[][2] = {{1, 2}, {3, 4}};"
    body = "ld.global.u32 %r1, [t+8]; ld.const.u16 %h, [c+6]; cvt.u32.u16 %r2, %h; st.global.v2.u32 [%d0], {%r1, %r2};"
    assert run(body, 1, before=before) == 4 << 32 | 7


@pytest.mark.parametrize("space", [".param", ""])
def test_a_computed_parameter_address_of_lanes_that_take_no_part_is_not_looked_at(space):
    """Which parameters were meant was told from the first lane, although it may be elsewhere."""
    generic = "" if space else "cvta.param.u64 %d1, %d1;"
    body = f"""{PLACE} mad.wide.u32 %d0, %r0, 8, %d0; mov.b64 %d1, 0x7000000000000000; setp.eq.u32 %p, %r0, 0; @%p bra END;
        mov.b64 %d1, blob; {generic} and.b32 %r1, %r0, 1; mul.wide.u32 %d2, %r1, 8; add.u64 %d1, %d1, %d2;
        ld{space}.b64 %d3, [%d1]; st.global.b64 [%d0], %d3; END:"""
    out = run(body, 32, block=32)
    assert out[:5].tolist() == [0, 22, 11, 22, 11]


@pytest.mark.parametrize("seed", range(12))
def test_no_warp_is_lost_at_a_reduction_that_only_some_ctas_complete(seed):
    """Of a cohort whose lanes passed in part, the others were forgotten: a deadlock in some random schedules."""
    body = f"""{PLACE} mad.wide.u32 %d0, %r2, 8, %d0; shr.u32 %r3, %r0, 5; add.u32 %r3, %r3, %r1; setp.eq.u32 %p, %r3, 2;
        @%p bra A; bra B; A: add.u32 %r4, %r0, 1; membar.cta; atom.global.add.u64 %d3, [%d0], 0;
        B: setp.lt.u32 %p, %r0, 40; bar.red.popc.u32 %r5, 1, %p; st.global.u32 [%d0], %r5;"""
    assert (run(body, 256, grid=4, block=64, schedule="random", seed=seed) == 40).all()
