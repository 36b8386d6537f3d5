"""Instruction words as arrays of shape (n, 2), unsigned 64-bit: low half, high half."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from warpsmith.base.errors import CubinError
from warpsmith.cubin.elf import SectionType, read_file_header, read_section_headers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warpsmith.cubin import Found

__all__ = ["PREFIXES", "Words", "code_of", "distinct", "index_of", "integers", "mix", "text_key"]

Words: TypeAlias = NDArray[np.uint64]

_EXECUTABLE = 0x4
_LOW = np.uint64((1 << 41) - 1)
"""Bits 64–104, in the high half."""
_STEADY = np.uint64(1 << 45)
"""Bit 109: with it, the reuse bits are printed."""
_REUSE = np.uint64(7 << 58)
_ROUNDS = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


PREFIXES = 4096
"""Into so many ranges the numbers that `mix` gives are divided."""


def code_of(item: Found) -> Iterator[Words]:
    """Return the words of each section of machine code in a cubin; raise `CubinError` for a damaged one."""
    data = item.read()
    try:
        for index, s in enumerate(read_section_headers(data, read_file_header(data))):
            if s.type == SectionType.PROGBITS and s.flags & _EXECUTABLE and s.size:
                if s.size % 16:
                    raise CubinError(f"section {index} of {s.size} bytes of code is no whole number of words", offset=s.offset)
                yield np.frombuffer(data, "<u8", s.size // 8, s.offset).reshape(-1, 2)
    except CubinError as error:
        raise CubinError(error.message, offset=error.offset, file=f"{item.path}@{item.offset:#x}") from None


def text_key(words: Words) -> Words:
    """Return what a word's text can depend on: bits 0–104, and the reuse bits where bit 109 says that they are reuse."""
    out = words.copy()
    high = words[:, 1]
    out[:, 1] = (high & _LOW) | np.where(high & _STEADY, high & _REUSE, np.uint64(0))
    return out


def mix(words: Words, seed: int = 0) -> NDArray[np.uint64]:
    """Return a 64-bit number for each word that looks random and depends on the word and the seed alone (splitmix64)."""
    a, b, c = (np.uint64(k) for k in _ROUNDS)
    out = np.full(len(words), seed & (1 << 64) - 1, np.uint64)
    with np.errstate(over="ignore"):
        for half in (words[:, 0], words[:, 1]):
            out = (out ^ half) + a
            out = (out ^ (out >> np.uint64(30))) * b
            out = (out ^ (out >> np.uint64(27))) * c
            out ^= out >> np.uint64(31)
    return out


def distinct(words: Words) -> Words:
    """Return the different words, ordered by `mix` of their text keys: words that print alike stand together."""
    if not len(words):
        return words.reshape(0, 2)
    words = words[np.lexsort((mix(words, 1), mix(text_key(words))))]
    keep = np.ones(len(words), bool)
    keep[1:] = (words[1:] != words[:-1]).any(1)
    return words[keep]


def index_of(words: Words) -> NDArray[np.int64]:
    """Return where each of the `PREFIXES` ranges begins in words ordered as `distinct` does, and the end."""
    prefix = mix(text_key(words)) >> np.uint64(52)
    return np.searchsorted(prefix, np.arange(PREFIXES + 1, dtype=np.uint64)).astype(np.int64)


def integers(words: Words) -> list[int]:
    """Return the words as numbers of 128 bits."""
    return [low | high << 64 for low, high in words.tolist()]
