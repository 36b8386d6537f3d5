"""Special registers whose value depends on the launch: sizes of shared memory (PTX ISA 10.30, 10.31)."""

from __future__ import annotations

import numpy as np

from warpsmith.simulator import simulate

PTX = """\
.version 8.1
.target sm_90
.address_size 64
.extern .shared .align 16 .b8 dynamic[];
.visible .entry sizes(.param .u64 out) {
.reg .b64 %rd<2>; .reg .b32 %r<5>; .shared .b8 own[200];
ld.param.u64 %rd1, [out];
mov.u32 %r1, %total_smem_size; mov.u32 %r2, %aggr_smem_size; mov.u32 %r3, %dynamic_smem_size;
mov.u32 %r4, dynamic; st.shared.b32 [own], %r4;
st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4};
ret; }
"""


def test_sizes_of_shared_memory() -> None:
    out = np.zeros(4, np.uint32)
    result = simulate(PTX, grid=1, block=1, args=[out], dynamic_shared=100)
    assert not result.findings
    assert out[:3].tolist() == [384, 384 + 1024, 100]  # 208 + 100 bytes, in units of 128
