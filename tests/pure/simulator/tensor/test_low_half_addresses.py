"""cp.async.mbarrier.arrive by a 32-bit register without a space, as libcu++ writes it: the low half of a generic address."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from warpsmith.assembly.ptx import parse
from warpsmith.assembly.ptx.check import check

BODY = """
 .shared .align 8 .b64 bar; .shared .align 16 .b8 data[512];
 mov.u32 %r0, bar; mov.u32 %r1, data; mad.lo.u32 %r1, %t, 4, %r1; setp.eq.u32 %p1, %t, 0;
 @%p1 mbarrier.init.shared.b64 [%r0], 32;
 bar.sync 0;
 ld.param.u64 %rd1, [in]; mul.wide.u32 %rd2, %t, 4; add.u64 %rd1, %rd1, %rd2; add.u64 %out, %out, %rd2;
 cp.async.ca.shared.global [%r1], [%rd1], 4;
 cvta.shared.u64 %rd3, %rd4;
 cp.async.mbarrier.arrive.noinc{space}.b64 [{address}];
wait: mbarrier.test_wait.parity.shared.b64 %p2, [%r0], 0;
 @!%p2 bra wait;
 ld.shared.u32 %r2, [%r1]; st.global.u32 [%out], %r2;
"""


@pytest.mark.parametrize(("space", "address"), [("", "%r0"), (".shared", "%r0"), ("", "%rd3")])
def test_the_low_half_names_the_barrier(run: Any, space: str, address: str) -> None:
    body = BODY.replace("{space}", space).replace("{address}", address)
    body = body.replace("cvta.shared.u64 %rd3, %rd4;", "cvt.u64.u32 %rd4, %r0; cvta.shared.u64 %rd3, %rd4;")
    source, out = np.arange(32, dtype=np.uint32) * 7, np.zeros(32, np.uint32)
    result = run(body, out, source, parameters=".param .u64 out, .param .u64 in", check=True)
    assert [str(f) for f in result.findings] == []
    assert out.tolist() == source.tolist()


def test_other_generic_addresses_have_64_bits():
    text = ".version 8.0\n.target sm_90\n.address_size 64\n.entry k() { .reg .b32 %r<2>; .reg .b64 %d; "
    assert check(parse(text + "cp.async.mbarrier.arrive.b64 [%r0]; ret; }")) == []
    (problem,) = check(parse(text + "mbarrier.arrive.b64 %d, [%r0]; ret; }"))
    assert problem.message == "`[%r0]`: a generic address has 64 bits, `%r0` is .b32"
