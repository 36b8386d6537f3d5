"""The fidelity report, matched whole: what ran, on which architecture."""

import numpy as np
import pytest

import warpsmith as ws

CODE = """
.version 8.6
.target {arch}
.address_size 64
.visible .entry k(.param .u64 p)
{{
    .reg .b64 %rd<2>; .reg .b32 %r<3>; .reg .f32 %f<5>; .reg .f64 %d<3>; .reg .b16 %h<2>; .reg .pred %q;
    ld.param.u64 %rd1, [p];
    ld.global.f32 %f1, [%rd1];
    mov.b16 %h1, 0;
    mov.f64 %d1, 0d3FF0000000000000;
    {body}
    st.global.f32 [%rd1], %f1;
    ret;
}}
"""


def report(body, arch="sm_90", **options):
    result = ws.simulate(CODE.format(arch=arch, body=body), grid=1, block=1, args=[np.ones(4, np.float32)], **options)
    assert result.findings == []
    return str(result.fidelity)


H200 = "hardware-checked; bit for bit what an H200 gave"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("", "exact"),
        ("add.rn.f32 %f1, %f1, %f1;", f"elementwise instructions: {H200}"),
        ("ex2.approx.ftz.f32 %f1, %f1;", f"ex2.approx.f32: {H200}, for every operand"),
        ("sin.approx.f32 %f1, %f1;", f"sin.approx.f32: {H200}, for every operand"),
        ("div.full.f32 %f1, %f1, %f1;", f"div.full.f32: {H200}, for captured operands"),
        ("tanh.approx.f16 %h1, %h1;", f"tanh.approx.f16: {H200}, for every operand"),
        (
            "rsqrt.approx.f64 %d1, %d1;",
            f"rsqrt.approx.f64: {H200}, for captured operands",
        ),
        (
            "mul.f32 %f2, %f1, %f1; sub.f32 %f1, %f2, %f1;",
            f"elementwise instructions: {H200}\nmul.f32 and add.f32: exact; computed unfused; ptxas may contract them: "
            "write .rn or compile with --fmad=false to compare bits",
        ),
        (
            "red.global.add.f32 [%rd1], %f1;",
            "floating atomics: exact; in the order of this schedule; hardware's order varies, and its rounding with it",
        ),
        ("mov.u32 %r1, %clock;", "clocks: not modelled; they count what was simulated, not the time hardware takes"),
        ("mov.u32 %r1, %smid;", "%smid: not modelled; hardware places CTAs and warps as it likes"),
    ],
)
def test_report_on_hopper(body, expected):
    assert report(body) == expected


def test_other_architectures_have_not_been_compared():
    assert report("ex2.approx.f32 %f1, %f1; add.rn.f32 %f1, %f1, %f1;", "sm_80") == (
        "ex2.approx.f32: approximate; what sm_90 gives; sm_80 may differ within the manual's bound\n"
        "elementwise instructions: exact; as the manual defines them; compared with sm_90, not with sm_80"
    )


def test_what_did_not_run_is_not_reported():
    skipped = "setp.ne.b32 %q, 0, 0; @%q bra THERE; bra END; THERE: ex2.approx.f32 %f1, %f1; END:"
    assert report(skipped) == f"elementwise instructions: {H200}"


def _tiles(arch):
    """A tile of 4 numbers comes, and goes elsewhere."""
    barrier = "[mbar]"
    complete = "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
    body = f"""
    .shared .align 128 .b8 tile[16]; .shared .align 8 .b64 mbar; .reg .b32 %t; .reg .b64 %m, %s; .reg .pred %p;
    mov.b64 %m, from; mov.b64 %s, into; cvta.param.u64 %m, %m; cvta.param.u64 %s, %s;
    mbarrier.init.shared.b64 {barrier}, 1; fence.mbarrier_init.release.cluster; fence.proxy.async;
    mbarrier.arrive.expect_tx.shared.b64 _, {barrier}, 16;
    {complete} [tile], [%m, {{0}}], {barrier};
WAIT: mbarrier.try_wait.parity.shared.b64 %p, {barrier}, 0;
    @!%p bra WAIT;
    cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%s, {{0}}], [tile];
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
    ret;
    """
    maps = ".param .align 64 .b8 from[128], .param .align 64 .b8 into[128]"
    return f".version 8.6\n.target {arch}\n.address_size 64\n.visible .entry k({maps})\n{{{body}}}\n"


@pytest.mark.parametrize(
    ("arch", "expected"),
    [
        ("sm_90", f"tensor copies: {H200}: tiles and im2col, every swizzle and interleaving, loads, stores and reductions"),
        ("sm_100", "tensor copies: exact; as the manual defines them; what sm_90 has was compared with an H200"),
    ],
)
def test_tensor_copies(arch, expected):
    source, target = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    maps = [ws.TensorMap(a, box=(4,)) for a in (source, target)]
    result = ws.simulate(_tiles(arch), grid=1, block=1, args=maps)
    assert result.findings == []
    np.testing.assert_array_equal(target, source)
    assert expected in str(result.fidelity).splitlines()
