"""The words of `tests/data/sass/audit.sample.xz`: drawn from all code of four libraries."""

from __future__ import annotations

import lzma
from pathlib import Path

FILE = Path(__file__).parents[1] / "data/sass/audit.sample.xz"


def audit_sample() -> dict[str, list[int]]:
    """Return architecture -> words."""
    data = lzma.decompress(FILE.read_bytes())
    out: dict[str, list[int]] = {}
    at = 0
    while at < len(data):
        end = data.index(b"\n", at)
        line, at = data[at:end].decode(), end + 1
        if line.startswith("#"):
            continue
        arch, count = line.split()[0], int(line.split()[1])
        columns = data[at : at + 16 * count]
        words = bytearray(16 * count)
        for byte in range(16):
            words[byte::16] = columns[byte * count : (byte + 1) * count]
        out[arch] = [int.from_bytes(words[i : i + 16], "little") for i in range(0, len(words), 16)]
        at += 16 * count + 1
    return out
