"""A file format for long integer tables with small first differences.

    line 1   `warpsmith table 1; NAME; ENTRIES entries; crc32 XXXXXXXX; where it was captured`
    rest     xz: ENTRIES signed bytes, the first differences (the first against 0), −128 standing for an exception;
             then the exceptions as little-endian int64, in order

Nothing here depends on a mathematical library, so that a table is the same everywhere.
"""

from __future__ import annotations

import lzma
import re
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

from warpsmith.base.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["load", "save"]

_PIECE = 1 << 17
"""Entries taken at once: the whole as int64, several times, would be most of the memory of a small launch."""
_PRESET = 9 | lzma.PRESET_EXTREME
_HEADER = re.compile(r"warpsmith table 1; (\S+); (\d+) entries; crc32 ([0-9a-f]{8}); (.*)\n")


def save(path: Path, name: str, values: NDArray[np.int64], captured: str) -> None:
    """Write `values`; the file appears whole or not at all."""
    steps = np.diff(np.asarray(values, np.int64), prepend=0)
    small = np.abs(steps) < 128
    body = np.where(small, steps, -128).astype(np.int8).tobytes() + steps[~small].astype("<i8").tobytes()
    check = crc32(np.asarray(values, "<i8").tobytes())
    head = f"warpsmith table 1; {name}; {len(values)} entries; crc32 {check:08x}; {captured}\n"
    unfinished = path.with_suffix(".part")
    unfinished.write_bytes(head.encode() + lzma.compress(body, preset=_PRESET if len(body) > 1 << 20 else 0))
    unfinished.replace(path)


def load(path: Path, dtype: Any = np.int64) -> NDArray[Any]:
    """Return the values, which `dtype` must hold; raise `InputError` naming the file when it is no such table or is damaged."""
    data = path.read_bytes()
    at = data.find(b"\n") + 1
    m = _HEADER.fullmatch(data[:at].decode("utf-8", "replace"))
    if not m:
        raise InputError(f"{path.name}: not a table: the first line must read 'warpsmith table 1; …'")
    count = int(m[2])
    try:
        body = lzma.decompress(data[at:])
    except lzma.LZMAError as error:
        raise InputError(f"{path.name}: damaged table: {error}") from None
    steps, rest = np.frombuffer(body, np.int8, min(count, len(body))), body[count:]
    if len(steps) != count or len(rest) != 8 * int(np.count_nonzero(steps == -128)):
        raise InputError(f"{path.name}: damaged table: {len(body)} bytes do not hold {count} entries")
    values = np.empty(count, dtype)
    check, last, used = 0, 0, 0
    for start in range(0, count, _PIECE):
        piece = steps[start : start + _PIECE].astype(np.int64)
        exceptions = piece == -128
        piece[exceptions] = np.frombuffer(rest, "<i8", int(np.count_nonzero(exceptions)), 8 * used)
        used += int(np.count_nonzero(exceptions))
        piece = np.cumsum(piece) + last
        last = int(piece[-1])
        check = crc32(piece.astype("<i8").tobytes(), check)
        values[start : start + _PIECE] = piece
    if check != int(m[3], 16):
        raise InputError(f"{path.name}: damaged table: its checksum is not {m[3]}")
    return values
