"""Programs for tcgen05: shared memory filled from an image, tensor memory allocated, a middle part, columns stored."""

from __future__ import annotations

import numpy as np

from warpsmith.simulator.matrix_descriptor import MatrixDescriptor, offsets

__all__ = ["A_AT", "BYTES", "B_AT", "descriptor", "instruction", "laid_out", "module", "wait"]

A_AT, B_AT, BYTES = 0, 32768, 98304
_SWIZZLE = {"none": 0, "128B_atom_32B": 1, "128B": 2, "64B": 4, "32B": 6}
_SPAN = {"none": 16, "32B": 32, "64B": 64, "128B": 128, "128B_atom_32B": 128}


def descriptor(start: int, leading: int, stride: int, swizzle: str) -> int:
    """The 64 bits of a shared memory descriptor (PTX ISA 9.7.18.4.1)."""
    return start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | 1 << 46 | _SWIZZLE[swizzle] << 61


def laid_out(matrix: np.ndarray, at: int, swizzle: str, mn_major: bool, memory: np.ndarray) -> int:
    """Lay bytes or elements `[mn, k]` out in the image of shared memory at offset `at`; return the descriptor."""
    mn, k = matrix.shape
    size, span = matrix.dtype.itemsize, _SPAN[swizzle]
    if mn_major:
        tall = 4 if swizzle == "128B_atom_32B" else 8
        leading, stride = (128 * (mn * size // 16), 128) if swizzle == "none" else (max(k, 8) * span, tall * span)
    else:
        leading, stride = 128, 256 if swizzle == "none" else 8 * span
    where = offsets(MatrixDescriptor(1024 + at, leading, stride, swizzle), mn, k, size, mn_major=mn_major)
    memory[where[..., None] + np.arange(size) - 1024] = (
        np.ascontiguousarray(matrix)[..., None].view(np.uint8).reshape(mn, k, size)
    )
    return descriptor(1024 + at, leading, stride, swizzle)


def instruction(m: int, n: int, d: int, a: int, b: int, *, ta: bool = False, tb: bool = False, **bits: int) -> int:
    """An instruction descriptor without block scaling; `bits`: negate_a, negate_b, saturate."""
    more = bits.get("saturate", 0) << 3 | bits.get("negate_a", 0) << 13 | bits.get("negate_b", 0) << 14
    return d << 4 | a << 7 | b << 10 | int(ta) << 15 | int(tb) << 16 | n // 8 << 17 | m // 16 << 24 | more


def wait(parity: int = 0, label: str = "WAIT", barrier: str = "bar") -> str:
    """Wait for a phase of a barrier."""
    return f"""{label}: mbarrier.try_wait.parity.shared::cta.b64 %p9, [{barrier}], {parity};
 @!%p9 bra {label};
"""


def module(
    middle: str, *, columns: int = 512, group: int = 1, target: str = "sm_100a", threads: int = 128, head: str = "",
    parameters: str = "", tail: str = "", bytes_: int = BYTES, directives: str = "",
) -> str:  # fmt: skip
    """A kernel `k(out, image, …)`: `%tmem` is the address, `%mine` it with the lanes of the warp, `%out` 4 bytes a thread.

    `middle` runs in all threads; `%first` is true in thread 0 and `%zero` in warp 0.
    """
    more = f", {parameters}" if parameters else ""
    return f"""
.version 8.8
.target {target}
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 image{more}) {directives}
{{
 .reg .b32 %r<400>; .reg .b64 %rd<80>; .reg .pred %p<12>; .reg .pred %first, %zero;
 .reg .b32 %t, %tmem, %mine, %warp; .reg .b64 %out;
 .shared .align 1024 .b8 buf[{bytes_}];
 .shared .align 8 .b64 bar;
 .shared .align 8 .b64 bar2;
 .shared .align 4 .b32 slot;
 mov.u32 %t, %tid.x; shr.u32 %warp, %t, 5; setp.eq.u32 %first, %t, 0; setp.eq.u32 %zero, %warp, 0;
 ld.param.u64 %rd1, [image];
 mov.u32 %r300, %cluster_ctarank; mul.wide.u32 %rd70, %r300, {bytes_}; add.u64 %rd1, %rd1, %rd70;
 mov.u32 %r250, buf; shl.b32 %r251, %t, 4; add.u32 %r252, %r250, %r251; cvt.u64.u32 %rd2, %r251; add.u64 %rd3, %rd1, %rd2;
 mov.u32 %r253, 0;
FILL:
 ld.global.v4.b32 {{%r254,%r255,%r256,%r257}}, [%rd3]; st.shared.v4.b32 [%r252], {{%r254,%r255,%r256,%r257}};
 add.u32 %r252, %r252, {16 * threads}; add.u64 %rd3, %rd3, {16 * threads}; add.u32 %r253, %r253, 1;
 setp.lt.u32 %p1, %r253, {bytes_ // (16 * threads)}; @%p1 bra FILL;
 @!%first bra INITIALISED;
 mbarrier.init.shared::cta.b64 [bar], 1;
 mbarrier.init.shared::cta.b64 [bar2], 1;
 fence.mbarrier_init.release.cluster;
INITIALISED:
 fence.proxy.async.shared::cta;
 @!%zero bra ALLOCATED;
 tcgen05.alloc.cta_group::{group}.sync.aligned.shared::cta.b32 [slot], {columns};
ALLOCATED:
{head} bar.sync 0;
 tcgen05.fence::after_thread_sync;
 ld.shared.b32 %tmem, [slot];
 and.b32 %r299, %warp, 3; shl.b32 %r299, %r299, 21; add.u32 %mine, %tmem, %r299;
 ld.param.u64 %out, [out]; mul.lo.u32 %r301, %r300, {threads}; add.u32 %r302, %r301, %t;
 mul.wide.u32 %rd4, %r302, 4; add.u64 %out, %out, %rd4;
{middle}
 tcgen05.fence::before_thread_sync;
{tail} bar.sync 0;
 @!%zero bra DONE;
 tcgen05.dealloc.cta_group::{group}.sync.aligned.b32 %tmem, {columns};
DONE:
 ret;
}}
"""
