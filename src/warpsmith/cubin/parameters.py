"""Kernel parameters as `.nv.info.<kernel>` states them: KPARAM_INFO, and KPARAM_INFO_V2 beyond 4 KiB."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from warpsmith.base.errors import CubinError
from warpsmith.cubin.attributes import INFO, attribute_id
from warpsmith.cubin.binary import align_up
from warpsmith.cubin.info import SIZED, Attribute

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Parameter", "lay_out_parameters", "parameter_attributes", "read_parameters"]

_KPARAM = struct.Struct("<IHHI")
_ANY_BANK = 0x1F
_SIZE_SHIFT, _BANK_SHIFT, _SPACE_SHIFT = 18, 12, 8
_LARGEST_V1 = 1 << 14


@final
@dataclass(frozen=True, slots=True)
class Parameter:
    """One kernel parameter: its place in the call, its byte offset from the first parameter, its size in bytes."""

    ordinal: int
    offset: int
    size: int


def read_parameters(attributes: Sequence[Attribute]) -> list[Parameter]:
    """Return the parameters by ordinal."""
    out: list[Parameter] = []
    for a in attributes:
        if a.name not in ("KPARAM_INFO", "KPARAM_INFO_V2"):
            continue
        if len(a.payload) != _KPARAM.size:
            raise CubinError(f"{a.name} has {len(a.payload)} bytes, not {_KPARAM.size}")
        _, ordinal, offset, word = _KPARAM.unpack(a.payload)
        out.append(Parameter(ordinal, offset, word >> _SIZE_SHIFT if a.name == "KPARAM_INFO" else word))
    return sorted(out, key=lambda p: p.ordinal)


def lay_out_parameters(sizes: Sequence[int | tuple[int, int]], base: int) -> list[Parameter]:
    """Place parameters one behind the other as ptxas does, aligned in the constant bank, where the first may stand at `base`.

    `sizes` holds bytes, or (bytes, alignment); a size alone aligns to itself, at most to 8.
    """
    out: list[Parameter] = []
    cursor = 0
    for ordinal, item in enumerate(sizes):
        size, alignment = item if isinstance(item, tuple) else (item, 1 << min(3, max(item, 1).bit_length() - 1))
        if size < 1 or alignment < 1 or alignment & (alignment - 1):
            raise CubinError(
                f"parameter {ordinal} has {size} bytes aligned to {alignment}; write a size, or (size, power of two)"
            )
        cursor = align_up(base + cursor, alignment) - base
        out.append(Parameter(ordinal, cursor, size))
        cursor += size
    return out


def parameter_attributes(parameters: Sequence[Parameter]) -> list[Attribute]:
    """Return the attributes of parameters, last one first as ptxas writes them."""
    out: list[Attribute] = []
    for p in sorted(parameters, key=lambda p: -p.ordinal):
        if p.size >= _LARGEST_V1:
            raise CubinError(f"parameter {p.ordinal} has {p.size} bytes; at most {_LARGEST_V1 - 1} can be described")
        word = p.size << _SIZE_SHIFT | _ANY_BANK << _BANK_SHIFT | 0 << _SPACE_SHIFT
        out.append(Attribute(SIZED, attribute_id(INFO, "KPARAM_INFO"), _KPARAM.pack(0, p.ordinal, p.offset, word)))
    return out
