"""A program for one wgmma: operands laid out in an image of shared memory by the descriptor's own rules."""

from __future__ import annotations

import numpy as np

from warpsmith.simulator.matrix_descriptor import MatrixDescriptor, encode, offsets

__all__ = ["A_AT", "BYTES", "B_AT", "PARAMETERS", "body", "tile"]

A_AT, B_AT, BYTES = 0, 16384, 49152


def tile(matrix: np.ndarray, start: int, swizzle: str, mn_major: bool, memory: np.ndarray) -> int:
    """Lay a matrix `[mn, k]` out in the image of shared memory; return its descriptor."""
    mn, k = matrix.shape
    size = matrix.dtype.itemsize
    span = {"none": 16, "32B": 32, "64B": 64, "128B": 128}[swizzle]
    if mn_major:
        leading, stride = (128 * (mn * size // 16), 128) if swizzle == "none" else (16 * span, 8 * span)
        if swizzle != "none" and k > 16:
            leading = k * span
    else:
        leading, stride = 128, max(8 * span, 256) if swizzle == "none" else 8 * span
    d = MatrixDescriptor(start, leading, stride, swizzle)
    at = offsets(d, mn, k, size, mn_major=mn_major)[..., None] + np.arange(size) - 1024
    memory[at] = np.ascontiguousarray(matrix)[..., None].view(np.uint8).reshape(mn, k, size)
    return encode(d)


def body(instruction: str, n_registers: int, a_registers: int, tail: str, repeats: int = 1, selector: int | None = None) -> str:
    """Fill shared memory from `image`, multiply, store D. With a `selector` the metadata are the fifth row of `fragment`."""
    d = ", ".join(f"%r{i}" for i in range(n_registers))
    a = "{" + ", ".join(f"%r{200 + i}" for i in range(a_registers)) + "}" if a_registers else "%rd10"
    loads = "".join(f" ld.global.b32 %r{200 + i}, [%rd6+{512 * i}];\n" for i in range(a_registers))
    zero = "".join(f" mov.b32 %r{i}, 0;\n" for i in range(n_registers))
    stores = "".join(f" st.global.b32 [%out+{512 * i}], %r{i};\n" for i in range(n_registers))
    sparse, metadata = "", ""
    if selector is not None:
        sparse, metadata = ".sp", f" %r199, {selector},"
        loads += " ld.global.b32 %r199, [%rd6+2048];\n"
    multiply = f" wgmma.mma_async{sparse}.sync.aligned.{instruction} {{{d}}}, {a}, %rd11,{metadata} %p2{tail};\n" * repeats
    return f""" .shared .align 1024 .b8 buf[{BYTES}];
 ld.param.u64 %rd1, [image]; ld.param.u64 %rd10, [da]; ld.param.u64 %rd11, [db]; ld.param.u64 %rd6, [fragment];
 mov.u32 %r250, buf; shl.b32 %r251, %t, 4; add.u32 %r252, %r250, %r251; cvt.u64.u32 %rd2, %r251; add.u64 %rd3, %rd1, %rd2;
 mov.u32 %r253, 0;
FILL:
 ld.global.v4.b32 {{%r254,%r255,%r256,%r257}}, [%rd3]; st.shared.v4.b32 [%r252], {{%r254,%r255,%r256,%r257}};
 add.u32 %r252, %r252, 2048; add.u64 %rd3, %rd3, 2048; add.u32 %r253, %r253, 1;
 setp.lt.u32 %p1, %r253, {BYTES // 2048}; @%p1 bra FILL;
 fence.proxy.async.shared::cta; bar.sync 0;
 mul.wide.u32 %rd4, %t, 4; add.u64 %out, %out, %rd4; add.u64 %rd6, %rd6, %rd4;
{loads}{zero} setp.eq.u32 %p2, 0, 0;
 wgmma.fence.sync.aligned;
{multiply} wgmma.commit_group.sync.aligned;
 wgmma.wait_group.sync.aligned 0;
{stores}"""


PARAMETERS = ".param .u64 out, .param .u64 image, .param .u64 da, .param .u64 db, .param .u64 fragment"
