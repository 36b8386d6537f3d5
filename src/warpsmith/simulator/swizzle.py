"""Swizzles: which 16-byte (or wider) pieces of shared memory trade places (PTX ISA 5.5.7, swizzling modes).

A swizzle is an exclusive-or of address bits with higher address bits, so it is its own inverse and works on absolute
`shared::cta` addresses: pieces move within a 128-byte line, by the line's number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

__all__ = ["FLIP_8B", "MODES", "Swizzle", "swizzle"]


@final
@dataclass(frozen=True, slots=True)
class Swizzle:
    """`count` address bits from `bit` on are combined with the `count` bits from `bit + shift` on."""

    name: str
    count: int
    bit: int
    shift: int
    span: int
    """Bytes of the innermost dimension that a swizzled box may have at most; 0: no limit."""

    @property
    def period(self) -> int:
        """Bytes after which the pattern repeats."""
        return 1 << (self.bit + self.shift + self.count) if self.count else 16


MODES = {
    "none": Swizzle("none", 0, 4, 3, 0),
    "32B": Swizzle("32B", 1, 4, 3, 32),
    "64B": Swizzle("64B", 2, 4, 3, 64),
    "128B": Swizzle("128B", 3, 4, 3, 128),
    "128B_atom_32B": Swizzle("128B_atom_32B", 2, 5, 2, 128),
    "128B_atom_32B_flip_8B": Swizzle("128B_atom_32B_flip_8B", 2, 5, 2, 128),
    "128B_atom_64B": Swizzle("128B_atom_64B", 1, 6, 1, 128),
}
"""By name. The atom variants move pieces of 32 or 64 bytes; `flip_8B` also swaps the halves of 16-byte pieces in odd lines."""

FLIP_8B = "128B_atom_32B_flip_8B"


def swizzle(mode: str, address: Any) -> Any:
    """Return where the byte meant for `address` (an int or an int64 array) lies under `mode`."""
    m = MODES[mode]
    if not m.count:
        return address
    mask = ((1 << m.count) - 1) << m.bit
    return address ^ ((address >> m.shift) & mask)
