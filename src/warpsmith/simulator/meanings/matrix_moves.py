"""ldmatrix, stmatrix and movmatrix (PTX ISA 9.7.14.5.15 to 9.7.14.5.17)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from warpsmith.base.errors import CapabilityError
from warpsmith.simulator.access import quick
from warpsmith.simulator.check.loads import Piece
from warpsmith.simulator.meanings.mbarrier import space_of
from warpsmith.simulator.meanings.registry import machine
from warpsmith.simulator.operands import VectorDest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.assembly.ptx.isa import Match
    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.meanings.registry import Function

__all__: list[str] = []

_LANE = np.arange(32)
_ROW, _PAIR = _LANE // 4, _LANE % 4
"""Row of a lane in an 8x8 matrix, and its pair of neighbouring 16-bit elements."""
_BITS = {"b8": 8, "b6x16_p32": 6, "b4x16_p64": 4, "s4": 4}
"""Bits of an element in memory: sixteen of them from the lowest bit of a row on. A row has 16 bytes, the rest of which is
padding; one of s4, "a sequence of signed 4-bit elements", has 8."""


def _rows(x: Lanes, address: NDArray[np.int64], count: int, height: int = 8) -> NDArray[np.int64]:
    """Return the row addresses `[matrix, row, C, W]` that the first height·count lanes of each warp give, aligned to 16."""
    given = x.warps(address)
    used = x.active() & (np.arange(x.shape[1]) % 32 < height * count)
    if ((address & 15) != 0)[used].any():
        x.machine.check.misaligned(x, x.machine.shared, address, 16, used & ((address & 15) != 0))
    rows = np.moveaxis(given[..., : height * count], -1, 0)
    if x.machine.traffic is not None:
        x.machine.traffic.matrices(x, rows)
    return rows.reshape(count, height, *rows.shape[1:])


def _per_lane(x: Lanes, rows: NDArray[np.int64], row: NDArray[np.intp], offset: NDArray[np.intp]) -> NDArray[np.int64]:
    """Return for each lane the address of its row plus its offset, `[C, T]`."""
    return x.threads_of(np.moveaxis(rows[row], 0, -1) + offset)


_PIECES = {
    False: [Piece(_ROW, 4 * _PAIR, 4)],
    True: [Piece(2 * _PAIR, 2 * _ROW, 2), Piece(2 * _PAIR + 1, 2 * _ROW, 2)],
}
"""What each lane reads of a matrix of 16-bit elements; True: transposed."""


@machine("ldmatrix")
def ldmatrix(m: Match) -> Function:
    """Load 8x8 matrices of 16-bit elements; each lane gets two neighbours of a row (with .trans: of a column)."""
    if "m8n8" not in m.mnemonic:
        return _load_bytes(m)
    count, trans, space = int(str(m["num"])[1:]), bool(m.get("trans")), space_of(m)
    pieces = _PIECES[trans]

    def run(x: Lanes, d: Any, address: NDArray[np.int64]) -> None:
        dests = d if isinstance(d, list) else [d]
        matrices = _rows(x, np.broadcast_to(address, x.shape), count)
        if (words := _at_once(x, space, matrices, pieces)) is not None:
            _put_all(x, dests, words)
            return
        for dest, rows in zip(dests, matrices, strict=True):
            parts = [x.load_items(space, _per_lane(x, rows, p.rows, p.offsets), p.n) for p in pieces]
            word = np.ascontiguousarray(np.concatenate([p[0] for p in parts], axis=-1))
            x.put(dest, word.view(np.uint32)[..., 0])
            undefined = [p[1].any(-1) for p in parts if p[1] is not None]
            if undefined:
                x.put_undefined(dest, np.logical_or.reduce(undefined))

    return run


def _at_once(
    x: Lanes, space: str | None, matrices: NDArray[np.int64], pieces: list[Piece]
) -> NDArray[np.uint32] | None:  # fmt: skip
    """Return registers `[matrix, C, T]` where all rows are good and none has flags; None where a closer look is due."""
    if x.mask is not None:
        return None
    count, _, ctas, warps = matrices.shape
    found = quick(x, space, matrices.transpose(0, 2, 3, 1).reshape(count, ctas, warps * 8), 16)
    if found is None:
        return None
    where, start = found
    index = start >> 4
    if where.shadows[16].take(index, mode="clip").any():
        return None
    where.note_read(start, 16)
    if x.machine.races is not None:
        x.machine.races.loads.matrices(x, where, start, pieces)
    items = where.views[16].take(index, mode="clip")
    if len(pieces) == 1:
        return items.view(np.uint32).reshape(count, *x.shape)
    halves = items.view(np.uint16).reshape(count, ctas, warps, 4, 2, 8).transpose(0, 1, 2, 5, 3, 4)
    return np.ascontiguousarray(halves).view(np.uint32).reshape(count, *x.shape)


def _put_all(x: Lanes, dests: list[Any], words: NDArray[np.uint32]) -> None:
    """Write registers `[n, C, T]` of all lanes."""
    if isinstance(dests, VectorDest) and dests.array is not None and x.machine.registers.undefined is None:
        np.copyto(dests.array, words.view(dests.array.dtype))
        return
    for dest, word in zip(dests, words, strict=True):
        x.put(dest, word)


def _load_bytes(m: Match) -> Function:
    """Load matrices of 8-bit elements, or of 6 or 4 bits that end up in the low bits of a byte.

    Elements of s4 are extended with their sign. m8n16: a lane gets four neighbours of row lane / 4. m16n16 (always transposed):
    its two registers get four neighbours of columns lane / 4 and lane / 4 + 8, that is, the fragment of an 8-bit A of mma.
    (Figures 105 and 106 of the manual.)
    """
    source = m.mnemonic.rpartition(".")[2]
    bits, signed, width = _BITS[source], source == "s4", 8 if source == "s4" else 16
    tall = "m16n16" in m.mnemonic
    count, space, height = int(str(m["num"])[1:]), space_of(m), 16 if tall else 8
    rows_of = [4 * _PAIR + k for k in range(4)] if tall else [_ROW]

    def run(x: Lanes, d: Any, address: NDArray[np.int64]) -> None:
        dests = d if isinstance(d, list) else [d]
        address = np.broadcast_to(address, x.shape)
        if signed and ((address & 15) == 8)[x.active() & (np.arange(x.shape[1]) % 32 < 8 * count)].any():
            raise CapabilityError("simulator: ldmatrix of .s4 from rows at odd multiples of 8 bytes is not modelled")
        matrices = _rows(x, address, count, height)
        for i, dest in enumerate(dests):
            rows = matrices[i * count // len(dests)]
            loaded = [x.load_items(space, _per_lane(x, rows, row, 0 * row), width) for row in rows_of]
            if tall:
                parts = [_element(part, bits, _ROW + 8 * (i % 2)) for part in loaded]
            else:
                parts = [_element(loaded[0], bits, 4 * _PAIR + k, signed=signed) for k in range(4)]
            x.put(dest, np.ascontiguousarray(np.stack([p[0] for p in parts], axis=-1)).view(np.uint32)[..., 0])
            undefined = [p[1] for p in parts if p[1] is not None]
            if undefined:
                x.put_undefined(dest, np.logical_or.reduce(undefined))

    return run


def _element(
    row: tuple[NDArray[np.uint8], Any], bits: int, column: NDArray[np.intp], *, signed: bool = False
) -> tuple[NDArray[np.uint8], Any]:
    """Return each lane's element in `column` of its row `[C, T, n]` as a byte, and whether it is undefined (None: none)."""
    data, flags = row
    threads = np.arange(data.shape[1])
    bit = bits * column[threads % 32]
    first, last = bit // 8, (bit + bits - 1) // 8
    pair = data[:, threads, first].astype(np.uint16) | data[:, threads, last].astype(np.uint16) << np.uint16(8)
    value = pair >> (bit % 8).astype(np.uint16) & np.uint16((1 << bits) - 1)
    undefined = None if flags is None else flags[:, threads, first] | flags[:, threads, last]
    if signed:
        sign = np.uint16(1 << bits - 1)
        value = (value ^ sign) - sign & np.uint16(0xFF)
    return value.astype(np.uint8), undefined


@machine("stmatrix")
def stmatrix(m: Match) -> Function:
    """Store 8x8 matrices of 16-bit elements, or 16x8 ones of 8 bits."""
    if "m8n8" not in m.mnemonic:
        return _store_bytes(m)
    count, trans, space = int(str(m["num"])[1:]), bool(m.get("trans")), space_of(m)

    def run(x: Lanes, address: NDArray[np.int64], source: Any) -> None:
        matrices = _rows(x, np.broadcast_to(address, x.shape), count)
        for i in range(count):
            rows, value = matrices[i], np.broadcast_to(np.asarray(source[i]), x.shape).astype(np.uint32)
            if not trans:
                x.store(space, _per_lane(x, rows, _ROW, 4 * _PAIR), np.ascontiguousarray(value)[..., None].view(np.uint8))
                continue
            for k in (0, 1):
                half = (value >> np.uint32(16 * k)).astype(np.uint16)
                x.store(space, _per_lane(x, rows, 2 * _PAIR + k, 2 * _ROW), half[..., None].view(np.uint8))

    return run


def _store_bytes(m: Match) -> Function:
    """Store 16x8 matrices of 8-bit elements, held as accumulators are (two rows, two columns a lane), one column a row."""
    count, space = int(str(m["num"])[1:]), space_of(m)

    def run(x: Lanes, address: NDArray[np.int64], source: Any) -> None:
        matrices = _rows(x, np.broadcast_to(address, x.shape), count)
        for i in range(count):
            value = np.broadcast_to(np.asarray(source[i]), x.shape).astype(np.uint32)
            for k in range(4):
                byte = (value >> np.uint32(8 * k)).astype(np.uint8)
                x.store(space, _per_lane(x, matrices[i], 2 * _PAIR + k % 2, _ROW + 8 * (k // 2)), byte[..., None])

    return run


@machine("movmatrix")
def movmatrix(m: Match) -> Function:
    """Transpose an 8x8 matrix of 16-bit elements held by a warp."""

    def run(x: Lanes, d: Any, a: Any) -> None:
        halves = np.ascontiguousarray(x.warps(np.broadcast_to(np.asarray(a), x.shape)))[..., None].view(np.uint16)
        matrix = halves.reshape(*halves.shape[:-2], 8, 8)
        turned = np.ascontiguousarray(np.swapaxes(matrix, -1, -2)).reshape(*halves.shape)
        x.put(d, x.threads_of(turned.view(np.uint32)[..., 0]))

    return run
