"""Programs of the spellings of tensor copies that the others leave out, and of instructions that write tensor maps.

One program for each form of the declarations that the architecture executes: other ranks, modes left out, cache hints.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from warpsmith.assembly.ptx.isa import rows
from warpsmith.hardware.machine_case import executable
from warpsmith.hardware.tensor_program import TensorProgram, load_program, random_map, source, store_program
from warpsmith.simulator.tensormap import TensorMap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from warpsmith.assembly.ptx.isa import Match

__all__ = ["spelled_programs"]

_ARCH = "sm_90a"
_SHAPES = {1: (64,), 2: (16, 32), 3: (4, 6, 32), 4: (3, 4, 5, 16), 5: (2, 3, 4, 5, 8)}
_POLICY = "createpolicy.fractional.L2::evict_last.b64 %rd9, 1.0;"
_ADDRESS = 0x7F0000000000
"""Where the tensor of a rewritten map lies: nobody copies from there."""


def spelled_programs(known: set[str]) -> Iterator[TensorProgram]:
    """Yield programs of the forms that are not in `known`."""
    for row in rows("cp"):
        for m in executable(row, _ARCH):
            words = m.mnemonic.split(".")
            if "bulk" in words and "tensor" in words and m.mnemonic not in known:
                yield _copy(m, words)
    for row in rows("tensormap"):
        for m in executable(row, _ARCH):
            if "replace" in m.mnemonic:
                yield from _replacements(m)
            else:
                yield _copied_map(m)


# --- copies -------------------------------------------------------------------------------------------------------------


def _copy(m: Match, words: list[str]) -> TensorProgram:
    rank = int(next(w for w in words if w in ("1d", "2d", "3d", "4d", "5d"))[0])
    columns = any(w.startswith("im2col") for w in words)
    made, size = _columns(rank, stored="bulk_group" in words) if columns else _tile(rank)
    at = [0, *[1] * (rank - 2), 0] if columns else [4, *[1] * (rank - 1)]
    offsets = f", {{{', '.join(['1'] * (rank - 2))}}}" if "im2col" in words else ""
    mask = ", 1" if any(w.startswith("multicast") for w in words) else ""
    hint = ", %rd9" if "L2::cache_hint" in words else ""
    name = f"spelled {m.mnemonic}"
    if "prefetch" in words:
        line = f"{_POLICY} {m.mnemonic} [%rd1, {{{', '.join(map(str, at))}}}]{offsets}{hint};"
        return store_program(name, made, at, size, m.mnemonic, line=line)
    if "bulk_group" in words:
        line = f"{_POLICY} {m.mnemonic} [%rd1, {{{', '.join(map(str, at))}}}], [%r1]{hint};"
        return store_program(name, made, at, size, m.mnemonic, line=line)
    return load_program(name, made, at, size, m.mnemonic, tail=f"{offsets}{mask}{hint}", before=_POLICY)


def _tile(rank: int) -> tuple[Callable[[], TensorMap], int]:
    dims = _SHAPES[rank]
    box = tuple(max(1, d // 2) for d in dims)
    return random_map(np.uint32, dims, box=box), 4 * math.prod(box)


def _columns(rank: int, *, stored: bool) -> tuple[Callable[[], TensorMap], int]:
    shape = {3: (3, 9, 8), 4: (2, 6, 5, 8), 5: (2, 4, 4, 5, 8)}[rank]
    corners = (0 if stored else -1,) * (rank - 2)
    return random_map(np.uint32, shape, lower=corners, upper=corners, channels=8, pixels=16), 16 * 8 * 4


# --- maps ---------------------------------------------------------------------------------------------------------------

_FIELDS: dict[str, tuple[str, ...]] = {
    "global_address": ("%rd5",), "rank": ("%r5",), "global_stride": ("0, %rd6", "1, %rd6"),
    "box_dim": ("0, 32", "2, 5"), "global_dim": ("0, 77", "2, 100000"), "element_stride": ("0, 2", "1, 3"),
    "elemtype": tuple(map(str, range(13))), "interleave_layout": ("0", "1", "2"), "swizzle_mode": ("0", "1", "2", "3"),
    "fill_mode": ("0", "1"),
}  # fmt: skip
"""Field -> the operands behind the address."""


def _image() -> np.ndarray:
    array = np.zeros((6, 32, 64), np.float16)
    held = TensorMap(array, box=(2, 16, 32), swizzle="64B").encode(_ADDRESS)
    return np.frombuffer(held, np.uint8).copy()


def _arguments() -> list[Any]:
    return [np.zeros(128, np.uint8), _image(), np.zeros(128, np.uint8)]


_HEAD = """ .shared .align 128 .b8 buf[128];
 ld.param.u64 %rd1, [image]; ld.param.u64 %rd2, [scratch]; shl.b32 %r1, %t, 2; cvt.u64.u32 %rd3, %r1; add.u64 %rd4, %rd1, %rd3;
 mov.u32 %r2, buf; add.u32 %r3, %r2, %r1; ld.global.b32 %r4, [%rd4]; st.shared.b32 [%r3], %r4; add.u64 %out, %out, %rd3;
 mov.u64 %rd5, 0x7f1234567800; mov.u64 %rd6, 0x340; mov.u32 %r5, 1; bar.warp.sync -1; setp.ne.u32 %p1, %t, 0;
"""
_PARAMETERS = ".param .u64 image, .param .u64 scratch"


def _replacements(m: Match) -> Iterator[TensorProgram]:
    words = m.mnemonic.split(".")
    shared = "shared::cta" in words
    place = "[%r2]" if shared else "[%rd1]"
    back = "ld.shared.b32 %r6, [%r3];" if shared else "ld.volatile.global.b32 %r6, [%rd4];"
    for operands in _FIELDS[words[3]]:
        replace = f" @%p1 bra SKIP;\n {m.mnemonic} {place}, {operands};\nSKIP:\n"
        body = f"{_HEAD}{replace} bar.warp.sync -1; {back} st.global.b32 [%out], %r6;\n"
        yield TensorProgram(f"map {m.mnemonic} {operands}", source(_PARAMETERS, body), _arguments, 32)


def _copied_map(m: Match) -> TensorProgram:
    body = f"""{_HEAD} {m.mnemonic} [%rd2], [%r2], 128;
 fence.proxy.tensormap::generic.acquire.sys [%rd2], 128; bar.warp.sync -1;
 add.u64 %rd7, %rd2, %rd3; ld.volatile.global.b32 %r6, [%rd7]; st.global.b32 [%out], %r6;
"""
    return TensorProgram(f"map {m.mnemonic}", source(_PARAMETERS, body), _arguments, 32)
