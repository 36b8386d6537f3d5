"""The PTX that nvcc (of our sources and of libraries), Triton and other compilers emitted (tests/data/ptx), packed or not."""

from __future__ import annotations

import lzma
from functools import cache
from pathlib import Path

from warpsmith.assembly.ptx import Module, parse

DATA = Path(__file__).parents[1] / "data" / "ptx"
FILES = sorted(p for p in DATA.glob("*/*.ptx*"))
LARGE = [p for p in FILES if p.parent.name == "libraries" and (".sm_80." not in p.name or p.stat().st_size > 40_000)]
"""Files with dozens of kernels of libraries: what must hold of every file is tested of these by tests/slow alone."""

QUICK = [p for p in FILES if p not in LARGE]


def text_of(path: Path) -> str:
    """The text of a file, `.ptx` or `.ptx.xz`."""
    return lzma.decompress(path.read_bytes()).decode() if path.suffix == ".xz" else path.read_text("utf-8")


def sample_text(name: str) -> str:
    """The text of sample `folder/stem`, e.g. `nvcc/control.sm_75`."""
    plain, packed = DATA / f"{name}.ptx", DATA / f"{name}.ptx.xz"
    return text_of(plain if plain.exists() else packed)


@cache
def sample(name: str) -> Module:
    """The tree of sample `folder/stem`; do not change it."""
    return parse(sample_text(name), f"{name.split('/')[1]}.ptx")
