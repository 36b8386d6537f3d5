"""Where the operands of wgmma lie in shared memory: from descriptors to 16-byte items, found once for what comes again.

A loop over tiles issues the same products at the same few places of shared memory again and again, and each is asked for
several times: when the product is issued, judged, and carried out. What depends on descriptors and rows alone is therefore
kept (`Places`), by the rows and descriptors of all products of an instruction.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, final

import numpy as np

from warpsmith.simulator.matrix_descriptor import MatrixDescriptor, decode, offsets
from warpsmith.simulator.operand_values import WIDTH

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.simulator.machine import Machine

__all__ = ["Places", "Tile", "items", "places", "span"]

_PERIOD = 1024
"""The longest swizzle pattern: descriptors that differ by a multiple of it lay elements out alike."""
_BYTES = 1 << 25
"""Of places that a launch keeps in all."""


@final
@dataclass(frozen=True, slots=True)
class Tile:
    """An operand in shared memory: `mn` x `k` elements of `type_` behind a descriptor."""

    type_: str
    mn: int
    k: int
    mn_major: bool


@final
@dataclass(slots=True, eq=False)
class Places:
    """Where one operand of `i` products of an instruction lies."""

    at: NDArray[np.int64]
    """The 16-byte items of shared memory, `[i, mn, k / T]` (or `[i, k, mn / T]`)."""
    starts: NDArray[np.int64]
    """The first byte of each, flat in shared memory; `stops`: the last one (exclusive)."""
    stops: NDArray[np.int64]
    inside: bool
    """All lie within the shared memory of their CTAs."""
    swizzle: str | None
    """The mode of the descriptors; None: they differ."""
    _cells: tuple[int, NDArray[np.int64]] = (0, np.zeros((0, 0), np.int64))

    def cells(self, size: int) -> NDArray[np.int64]:
        """Return the cells of `size` bytes (16 at most) `[i, m]` that the operands lie in."""
        if self._cells[0] != size:
            per = 16 // size
            cells = (self.at.reshape(len(self.at), -1, 1) * per + np.arange(per)).reshape(len(self.at), -1)
            self._cells = size, cells
        return self._cells[1]


@lru_cache(maxsize=512)
def _pieces(d: MatrixDescriptor, tile: Tile) -> tuple[NDArray[np.int64], int, int]:
    """Return the 16-byte pieces `[mn, k / T]` (or `[k, mn / T]`), and the first and last byte of the whole."""
    width = WIDTH[tile.type_]
    per = 128 // width
    if width < 8:  # one-bit elements: bytes stand for eight of them
        at = offsets(d, tile.mn, tile.k * width // 8, 1, mn_major=False)[:, ::16]
    else:
        at = offsets(d, tile.mn, tile.k, width // 8, mn_major=tile.mn_major)
        at = at[::per].T if tile.mn_major else at[:, ::per]
    return np.ascontiguousarray(at >> 4), int(at.min()), int(at.max()) + 16


@lru_cache(maxsize=4096)
def _split(bits: int) -> tuple[MatrixDescriptor, int]:
    d = decode(bits)
    phase = d.start % _PERIOD
    return MatrixDescriptor(phase, d.leading, d.stride, d.swizzle, d.base_offset), d.start - phase


@lru_cache(maxsize=4096)
def span(bits: int, tile: Tile) -> tuple[int, int]:
    """Return the first and last address (exclusive) that the operand's bytes lie in."""
    d, base = _split(bits)
    _, first, last = _pieces(d, tile)
    return first + base, last + base


def places(machine: Machine, rows: tuple[int, ...], bits: tuple[int, ...], tile: Tile) -> Places:
    """Return where an operand of products lies: that of `rows[i]` behind the descriptor `bits[i]`."""
    kept: _Kept = machine.state.setdefault("operand places", _Kept())
    key = rows, bits, tile
    found = kept.of.get(key)
    if found is None:
        found = _places(machine, rows, bits, tile)
        kept.bytes += found.at.nbytes
        if kept.bytes > _BYTES:
            kept.of.clear()
            kept.bytes = found.at.nbytes
        kept.of[key] = found
    return found


def items(machine: Machine, row: int, bits: int, tile: Tile) -> NDArray[np.int64]:
    """Return the 16-byte items of shared memory that an operand lies in, one dimension."""
    return _places(machine, (row,), (bits,), tile).at.reshape(-1)


@final
class _Kept:
    """The places that a launch has asked for."""

    def __init__(self) -> None:
        self.of: dict[tuple[tuple[int, ...], tuple[int, ...], Tile], Places] = {}
        self.bytes = 0


def _places(machine: Machine, rows: tuple[int, ...], bits: tuple[int, ...], tile: Tile) -> Places:
    apart = [_split(b) for b in bits]
    index = [_pieces(d, tile)[0] for d, _ in apart]
    width = machine.shared.row
    base = np.array([row * width + base for row, (_, base) in zip(rows, apart, strict=True)], np.int64)
    same = all(i is index[0] for i in index)
    at = (index[0][None] if same else np.stack(index)) + (base >> 4)[:, None, None]
    spans = np.array([span(b, tile) for b in bits], np.int64)
    own = np.array(rows, np.int64)[:, None] * width
    stop = machine.reserved_shared + machine.shared_bytes
    inside = bool((spans[:, 0] >= machine.reserved_shared).all() and (spans[:, 1] <= stop).all())
    modes = {d.swizzle for d, _ in apart}
    starts, stops = (own + spans).T
    return Places(at, starts, stops, inside, modes.pop() if len(modes) == 1 else None)
