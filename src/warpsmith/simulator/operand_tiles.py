"""Operands of tcgen05 in shared memory: from descriptors to values (PTX ISA 9.7.18.4.1, 9.7.18.10.4, 9.7.18.10.6).

    13:0   start address >> 4          48:46  0b001
    29:16  leading dimension byte      51:49  base offset
           offset >> 4                 52     29:16 is the address >> 4 at which rows go on behind
                                              their 128 bytes (sm_103, K = 96)
    45:32  stride dimension byte       63:61  swizzle: 0 none, 1 128B in 32-byte atoms, 2 128B, 4 64B, 6 32B
           offset >> 4

Floats of 6 and 4 bits stand sixteen to 16 bytes, from the lowest bit on, the rest being padding; those of `.kind::mxf4` and
`mxf4nvf4` two to a byte, the lower half first. In tensor memory each of the former has a byte, in bits 5:0 (e2m1: 5:2).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, final

import numpy as np

from warpsmith.base.errors import CapabilityError
from warpsmith.simulator.matrix_descriptor import MatrixDescriptor, offsets
from warpsmith.simulator.memory import UNDEFINED
from warpsmith.simulator.operand_values import WIDTH, values

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.simulator.machine import Machine

__all__ = ["BITS", "Operand", "decode", "decompressed", "from_bytes", "items", "read", "rows_of_bytes", "span"]

_SWIZZLES = {0: "none", 1: "128B_atom_32B", 2: "128B", 4: "64B", 6: "32B"}
_PERIOD = 1024
BITS = {"e2m3": 6, "e3m2": 6, "e2m1": 4}
"""Bits of an element that does not fill its byte."""


@final
@dataclass(frozen=True, slots=True)
class Operand:
    """A matrix of `mn` x `k` elements (`k` bytes of `.cp`) behind a descriptor."""

    type_: str
    """Element type; `bytes` for what `tcgen05.cp` copies."""
    mn: int
    k: int
    mn_major: bool = False
    packed: bool = False

    @property
    def row_bytes(self) -> int:
        """Bytes of a row along K."""
        return self.k if self.type_ == "bytes" else self.k // 2 if self.packed else self.k * WIDTH[self.type_] // 8


@lru_cache(maxsize=4096)
def decode(bits: int) -> MatrixDescriptor:
    """Return the fields of a shared memory descriptor; raise `CapabilityError` for what has no meaning or model."""
    swizzle = _SWIZZLES.get(bits >> 61)
    if swizzle is None:
        raise CapabilityError(
            f"simulator: matrix descriptor {bits:#018x}: swizzle {bits >> 61} has no meaning; use 0, 1, 2, 4 or 6"
        )
    if bits >> 46 & 7 != 1:
        raise CapabilityError(
            f"simulator: matrix descriptor {bits:#018x}: bits 48:46 are {bits >> 46 & 7:#05b}; "
            "tcgen05 descriptors have 0b001 there"
        )
    absolute = bool(bits >> 52 & 1)
    if absolute and swizzle != "128B":
        raise CapabilityError(
            f"simulator: matrix descriptor {bits:#018x}: an absolute leading dimension (bit 52) is not modelled with swizzle "
            f"{swizzle}; use 128B"
        )
    return MatrixDescriptor(
        start=(bits & 0x3FFF) << 4, leading=(bits >> 16 & 0x3FFF) << 4, stride=(bits >> 32 & 0x3FFF) << 4,
        swizzle=swizzle, base_offset=bits >> 49 & 7, absolute=absolute,
    )  # fmt: skip


@lru_cache(maxsize=512)
def _pieces(d: MatrixDescriptor, operand: Operand) -> tuple[NDArray[np.int64], int, int]:
    """Return the 16-byte items `[mn, pieces]` (MN-major: `[k, pieces]`), and the first and last byte of the whole."""
    if d.swizzle == "128B_atom_32B" and not operand.mn_major:
        raise CapabilityError(
            "simulator: 128B swizzling in 32-byte atoms is not modelled for K-major operands; use 128B swizzling"
        )
    if d.absolute and (operand.mn_major or not operand.packed):
        raise CapabilityError(
            "simulator: an absolute leading dimension (bit 52 of a matrix descriptor) is not modelled but for packed K-major "
            "operands (K = 96 of .kind::mxf4 and mxf4nvf4)"
        )
    if operand.packed and not d.absolute and d.swizzle == "128B" and d.start % 128 + operand.row_bytes > 128:
        raise CapabilityError(
            f"simulator: rows of {operand.row_bytes} bytes from byte {d.start % 128} of 128 on go beyond them; set bit 52 of "
            "the matrix descriptor and give the address at which they go on (bits 29:16)"
        )
    if not operand.mn_major:
        at = offsets(d, operand.mn, operand.row_bytes, 1, mn_major=False)[:, ::16]
    else:
        size = WIDTH[operand.type_] // 8
        at = offsets(d, operand.mn, operand.k, size, mn_major=True)[:: 16 // size].T
    return np.ascontiguousarray(at >> 4), int(at.min()), int(at.max()) + 16


def _split(d: MatrixDescriptor) -> tuple[MatrixDescriptor, int]:
    phase = d.start % _PERIOD
    base = d.start - phase
    leading = d.leading - base if d.absolute else d.leading
    return MatrixDescriptor(phase, leading, d.stride, d.swizzle, d.base_offset, d.absolute), base


def span(bits: int, operand: Operand) -> tuple[int, int]:
    """Return the first and last address (exclusive) that the operand's bytes lie in."""
    d, base = _split(decode(bits))
    _, first, last = _pieces(d, operand)
    return first + base, last + base


def items(machine: Machine, row: int, bits: int, operand: Operand) -> NDArray[np.int64]:
    """Return the 16-byte items of shared memory that the operand lies in, `[mn, pieces]` (MN-major: `[k, pieces]`)."""
    d, base = _split(decode(bits))
    return _pieces(d, operand)[0] + (row * machine.shared.row + base >> 4)


def rows_of_bytes(machine: Machine, where: NDArray[np.int64]) -> tuple[NDArray[np.uint8], NDArray[np.bool_] | None]:
    """Return the bytes `[rows, n]` of 16-byte items `[rows, pieces]`, and which rows have undefined ones (None: none)."""
    data = np.ascontiguousarray(machine.shared.views[16].take(where, mode="clip")).view(np.uint8).reshape(len(where), -1)
    flags = machine.shared.shadows[16].take(where, mode="clip").view(np.uint8) & UNDEFINED
    return data, flags.reshape(len(where), -1).astype(np.bool_) if flags.any() else None


def read(machine: Machine, row: int, bits: int, operand: Operand) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    """Return the values `[mn, k]` of an operand of a CTA, and which of its rows have undefined bytes (None: none)."""
    data, flags = rows_of_bytes(machine, items(machine, row, bits, operand))
    bad: Any = None
    if operand.mn_major:
        elements = values(data.view(f"u{WIDTH[operand.type_] // 8}"), operand.type_).T
        if flags is not None:
            bad = flags.reshape(operand.k, operand.mn, -1).any(axis=(0, 2))
        return elements, bad
    if flags is not None:
        bad = flags.any(axis=1)
    if operand.type_ in BITS and not operand.packed:
        data = decompressed(data, BITS[operand.type_])
    return from_bytes(data, operand), bad


def decompressed(data: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """Return bytes of which each holds one element, from sixteen elements in every 16 bytes `[rows, n]`.

    An element of 4 bits goes to bits 5:2 of its byte, one of 6 bits to bits 5:0.
    """
    groups = np.unpackbits(data.reshape(-1, 16), axis=1, bitorder="little")[:, : 16 * bits].reshape(-1, 16, bits)
    out = np.zeros((*groups.shape[:2], 8), np.uint8)
    low = 2 if bits == 4 else 0
    out[..., low : low + bits] = groups
    return np.packbits(out, axis=-1, bitorder="little").reshape(data.shape)


def from_bytes(data: NDArray[np.uint8], operand: Operand) -> NDArray[Any]:
    """Return values `[rows, k]` of rows of bytes in which each element stands alone (or two share a byte: `packed`)."""
    if operand.packed:
        both = np.stack([data & np.uint8(15), data >> np.uint8(4)], axis=-1).reshape(len(data), -1)
        return values(both << np.uint8(2), operand.type_)
    return values(np.ascontiguousarray(data).view(f"u{WIDTH[operand.type_] // 8}"), operand.type_)
