"""Shared memory of a cluster as one space: the rank of a CTA from bit 24 on, the place in its own shared memory below.

Measured on an H200, where a CTA's own addresses hold its rank, too; `mapa` (PTX ISA 9.7.10.26) leaves the form open, and
CUTLASS masks the rank out. The functions take numbers and arrays of them.
"""

from __future__ import annotations

from typing import Any

__all__ = ["place_of", "rank_of", "window_of"]

_RANK = 24
_PLACE = (1 << _RANK) - 1


def rank_of(address: Any) -> Any:
    """Return the rank of the CTA that an address of `.shared::cluster` belongs to."""
    return address >> _RANK


def place_of(address: Any) -> Any:
    """Return the byte in the shared memory of its CTA that an address of `.shared::cluster` means."""
    return address & _PLACE


def window_of(rank: Any) -> Any:
    """Return the first address of the CTA of a rank."""
    return rank << _RANK
