"""Constants of PTX text as numpy scalars of the type an instruction wants."""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from warpsmith.assembly.ptx.tree import Immediate
    from warpsmith.base.ptx_types import PtxType

__all__ = ["constant", "constant_bits"]

_HEX_FLOAT = re.compile(r"(-?)0([fFdD])([0-9a-fA-F]+)$")


def _bits_of(immediate: Immediate, bits: int) -> int:
    """Return the constant as `bits` bits: integers wrap, floats are encoded in that width."""
    if immediate.kind == "int":
        return int(immediate.value) & ((1 << bits) - 1)
    m = _HEX_FLOAT.match(immediate.text)
    exact = int(m[3], 16) if m and not m[1] else None
    single = immediate.kind == "f32"
    if exact is not None and bits == (32 if single else 64):
        return exact
    value = float(immediate.value)
    if bits == 64:
        return struct.unpack("<Q", struct.pack("<d", value))[0]
    if bits == 32:
        return int(np.float32(value).view(np.uint32))
    return int(np.float16(value).view(np.uint16))


def constant(immediate: Immediate, type_: PtxType, dtype: Any) -> Any:
    """Return a constant operand of `type_` as the scalar (`[2]` array of halves for 128 bits) a meaning is given."""
    if type_.kind == "pred":
        return np.bool_(immediate.value != 0)
    if type_.bits == 128:
        bits = _bits_of(immediate, 128)
        return np.array([bits & (1 << 64) - 1, bits >> 64], np.uint64).reshape(2, 1, 1)
    width = np.dtype(dtype).itemsize * 8
    raw = _bits_of(immediate, width)
    return np.array(raw, f"u{width // 8}").view(dtype)[()]


def constant_bits(immediate: Immediate, type_: PtxType) -> bytes:
    """Return a constant as the little-endian bytes of a variable of `type_`."""
    width = max(8, type_.bits)
    return _bits_of(immediate, width).to_bytes(width // 8, "little")
