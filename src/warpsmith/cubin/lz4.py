"""LZ4 block format, decompression only (lz4/doc/lz4_Block_format.md): fat binaries of CUDA 11 and 12 hold single blocks."""

from __future__ import annotations

from warpsmith.base.errors import CubinError

__all__ = ["decompress"]

_SHORTEST_MATCH = 4


def decompress(data: bytes, size: int) -> bytes:
    """Return the `size` bytes of a block.

    Raise `CubinError` where it is cut off, refers back too far, or gives another size.
    """
    out = bytearray()
    at, end = 0, len(data)
    while at < end:
        token = data[at]
        count, at = _length(data, token >> 4, at + 1)
        if at + count > end or len(out) + count > size:
            raise CubinError(f"LZ4: {count} literal bytes do not fit", offset=at)
        out += data[at : at + count]
        at += count
        if at == end:
            break
        if at + 2 > end:
            raise CubinError("LZ4: the block ends inside a distance", offset=at)
        distance = data[at] | data[at + 1] << 8
        count, at = _length(data, token & 15, at + 2)
        count += _SHORTEST_MATCH
        if not 0 < distance <= len(out) or len(out) + count > size:
            raise CubinError(f"LZ4: a match of {count} bytes at distance {distance} does not fit", offset=at)
        _copy(out, distance, count)
    if len(out) != size:
        raise CubinError(f"LZ4: the block holds {len(out)} bytes, {size} were announced", offset=end)
    return bytes(out)


def _length(data: bytes, nibble: int, at: int) -> tuple[int, int]:
    """Return a length and where what follows it begins: 15 in the token goes on in bytes, up to one that is not 255."""
    if nibble < 15:
        return nibble, at
    total = nibble
    while True:
        if at >= len(data):
            raise CubinError("LZ4: the block ends inside a length", offset=at)
        byte = data[at]
        at += 1
        total += byte
        if byte != 255:
            return total, at


def _copy(out: bytearray, distance: int, count: int) -> None:
    start = len(out) - distance
    if distance >= count:
        out += out[start : start + count]
        return
    piece = bytes(out[start:])  # overlaps what it makes: the piece repeats
    out += (piece * (count // distance + 1))[:count]
