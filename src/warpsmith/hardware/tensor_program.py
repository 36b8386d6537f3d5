"""A program that shows what tensor hardware does, and the frames of those that copy boxes of tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from warpsmith.simulator.tensormap import TensorMap

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["TensorProgram", "load_program", "random_map", "source", "store_program"]

_TRIES = 200
"""How often a load is waited for: where fewer bytes arrive than are expected, what did arrive is seen all the same."""


@final
@dataclass(frozen=True, slots=True)
class TensorProgram:
    """A kernel `k` with its arguments; the first is the output."""

    name: str
    text: str
    arguments: Callable[[], list[Any]]
    block: int = 128


def source(parameters: str, body: str) -> str:
    """Return a module with a kernel `k` of an output and some parameters."""
    return f""".version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out, {parameters})
{{
 .reg .b32 %r<300>; .reg .b64 %rd<40>; .reg .f64 %fd<40>; .reg .pred %p<10>; .reg .b32 %t; .reg .b64 %out;
 mov.u32 %t, %tid.x; ld.param.u64 %out, [out];
{body}
 ret;
}}
"""


def random_map(dtype: Any, shape: tuple[int, ...], **options: Any) -> Callable[[], TensorMap]:
    """Return what makes the map of a tensor of random numbers, the same each time."""

    def make() -> TensorMap:
        rng = np.random.default_rng(21)
        array = (rng.standard_normal(shape) * 2.0 ** rng.integers(-3, 4, shape)).astype(np.float32)
        if np.dtype(dtype).kind in "iu":
            return TensorMap(rng.integers(0, 100, shape).astype(dtype), **options)
        if dtype == np.float32:
            array.view(np.uint32)[..., ::5] &= 0x807FFFFF  # subnormals
        return TensorMap(array.astype(dtype), **options)

    return make


def load_program(
    name: str,
    tensor_map: Callable[[], TensorMap],
    at: list[int],
    size: int,
    copy: str,
    *,
    tail: str = "",
    sent: int | None = None,
    before: str = "",
    told: bool = False,
) -> TensorProgram:
    """The `size` bytes where a box lies in shared memory, of which `sent` (None: all) arrive.

    `copy` is the mnemonic, `tail` the operands behind the barrier, `before` what stands before the copy. With `told` a word
    follows that is 1 where the barrier got the bytes it expected.
    """
    end = f"selp.u32 %r8, 1, 0, %p2; @!%p1 st.global.b32 [%out+{size}], %r8;" if told else ""
    total = size + 4 * told
    where = ", ".join(map(str, at))
    body = f""" .shared .align 1024 .b8 buf[{size}]; .shared .align 8 .b64 bar;
 mov.u32 %r1, buf; mov.u32 %r2, bar; mov.u64 %rd1, map; cvta.param.u64 %rd1, %rd1;
 setp.ne.u32 %p1, %t, 0; mov.u32 %r3, %t; mov.u32 %r7, 0;
CLEAR:
 setp.ge.u32 %p3, %r3, {size // 4};
 @%p3 bra CLEARED;
 shl.b32 %r4, %r3, 2; add.u32 %r5, %r1, %r4; st.shared.b32 [%r5], 0xCCCCCCCC; add.u32 %r3, %r3, 128;
 bra CLEAR;
CLEARED:
 fence.proxy.async.shared::cta; bar.sync 0;
 @%p1 bra LOADED;
 mbarrier.init.shared::cta.b64 [%r2], 1; fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;
 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], {sent or size};
 {before}
 {copy} [%r1], [%rd1, {{{where}}}], [%r2]{tail};
LOADED:
 bar.sync 0;
WAIT:
 mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0; add.u32 %r7, %r7, 1; setp.lt.and.u32 %p4, %r7, {_TRIES}, !%p2;
 @%p4 bra WAIT;
 mov.u32 %r3, %t;
COPY:
 setp.ge.u32 %p3, %r3, {size // 4};
 @%p3 bra DONE;
 shl.b32 %r4, %r3, 2; add.u32 %r5, %r1, %r4; ld.shared.b32 %r6, [%r5];
 cvt.u64.u32 %rd2, %r4; add.u64 %rd3, %out, %rd2; st.global.b32 [%rd3], %r6; add.u32 %r3, %r3, 128;
 bra COPY;
DONE:
{end}"""
    parameters = ".param .align 64 .b8 map[128]"
    return TensorProgram(f"load {name}", source(parameters, body), lambda: [np.zeros(total, np.uint8), tensor_map()])


def store_program(
    name: str, tensor_map: Callable[[], TensorMap], at: list[int], size: int, copy: str, *, narrow: bool = False,
    line: str = "",
) -> TensorProgram:  # fmt: skip
    """The whole tensor after a box of counted words was stored, or reduced, into it: by `copy`, or as `line` says."""
    where = ", ".join(map(str, at))
    total = tensor_map().memory.nbytes
    # numbers near one in each half of a word for floating types
    ones = "and.b32 %r6, %r3, 63; mul.lo.u32 %r6, %r6, 0x00110013; add.u32 %r6, %r6, 0x3C003C00;"
    word = ones if narrow else "mul.lo.u32 %r6, %r3, 77;"
    body = f""" .shared .align 1024 .b8 buf[{size}];
 mov.u32 %r1, buf; mov.u64 %rd1, map; cvta.param.u64 %rd1, %rd1; setp.ne.u32 %p1, %t, 0;
 mov.u32 %r3, %t; ld.param.u64 %rd4, [tensor];
FILL:
 setp.ge.u32 %p3, %r3, {size // 4};
 @%p3 bra FILLED;
 shl.b32 %r4, %r3, 2; add.u32 %r5, %r1, %r4; {word} st.shared.b32 [%r5], %r6; add.u32 %r3, %r3, 128;
 bra FILL;
FILLED:
 fence.proxy.async.shared::cta; bar.sync 0;
 @%p1 bra STORED;
 {line or f"{copy} [%rd1, {{{where}}}], [%r1];"}
 cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; fence.proxy.async.global;
STORED:
 fence.acq_rel.gpu; bar.sync 0;
 mov.u32 %r3, %t;
COPY:
 setp.ge.u32 %p3, %r3, {total // 4};
 @%p3 bra DONE;
 shl.b32 %r4, %r3, 2; cvt.u64.u32 %rd2, %r4; add.u64 %rd3, %rd4, %rd2; ld.volatile.global.b32 %r6, [%rd3];
 add.u64 %rd3, %out, %rd2; st.global.b32 [%rd3], %r6; add.u32 %r3, %r3, 128;
 bra COPY;
DONE:
"""

    def arguments() -> list[Any]:
        made = tensor_map()
        return [np.zeros(total, np.uint8), made, made.memory]

    return TensorProgram(f"store {name}", source(".param .align 64 .b8 map[128], .param .u64 tensor", body), arguments)
