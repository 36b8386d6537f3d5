"""Words of real libraries with nvdisasm's own text, kept in `tests/data/sass`."""

from __future__ import annotations

import lzma
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "data" / "sass"
ARCHITECTURES = tuple(sorted(p.name.partition(".")[0] for p in FOLDER.glob("*.words.xz")))


@cache
def sample(arch: str) -> tuple[tuple[int, str], ...]:
    """Return (word, text); the word stands at the address 16 times its index."""
    lines = lzma.decompress((FOLDER / f"{arch}.words.xz").read_bytes()).decode().split("\n")
    return tuple((int(line[:32], 16), line[33:]) for line in lines if line and not line.startswith("#"))


def code(arch: str) -> bytes:
    """Return the words as code."""
    return b"".join(word.to_bytes(16, "little") for word, _ in sample(arch))
