"""What `warpsmith sass --search` and `--bits` look for."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from warpsmith.base.errors import InputError
from warpsmith.sass import decode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warpsmith.cli.sass_input import Piece
    from warpsmith.sass import Instruction

__all__ = ["Query", "parse_query"]

_LOW = (1 << 64) - 1


@final
@dataclass(frozen=True, slots=True)
class Query:
    """Words with some bits, and texts with some pattern; both where both are given."""

    pattern: re.Pattern[str] | None
    mask: int
    value: int

    def matches(self, piece: Piece) -> Iterator[Instruction]:
        """Yield the instructions of a piece that match, in order."""
        program = decode(piece.code[: len(piece.code) // 16 * 16], piece.arch)
        if not self.mask and self.pattern:
            found = self.pattern.search
            for index, text in enumerate(program.texts()):
                if text is not None and found(text):
                    yield program[index]
            return
        masks, values = (self.mask & _LOW, self.mask >> 64), (self.value & _LOW, self.value >> 64)
        for index, (low, high) in enumerate(struct.iter_unpack("<QQ", program.code)):
            if low & masks[0] == values[0] and high & masks[1] == values[1]:
                i = program[index]
                if self.pattern is None or (i.known and self.pattern.search(i.text)):
                    yield i


def parse_query(pattern: str | None, bits: tuple[str, ...]) -> Query | None:
    """Read `--search REGEX` and any number of `--bits MASK=VALUE`; None where neither is given."""
    if pattern is None and not bits:
        return None
    try:
        compiled = re.compile(pattern) if pattern is not None else None
    except re.error as error:
        raise InputError(f"--search {pattern}: no regular expression: {error}") from None
    mask = value = 0
    for text in bits:
        one, two = _pair(text)
        if mask & one and (mask & one & value) != (mask & one & two):
            raise InputError(f"--bits {text}: contradicts another --bits, so that no word matches")
        mask, value = mask | one, value | two
    return Query(compiled, mask, value)


def _pair(text: str) -> tuple[int, int]:
    left, equals, right = text.partition("=")
    try:
        if m := re.fullmatch(r"(\d+)\+(\d+)", left):
            low, width = min(int(m[1]), 128), min(int(m[2]), 129)
            mask, value = ((1 << width) - 1) << low, int(right, 0) << low
        else:
            mask, value = int(left, 0), int(right, 0)
    except ValueError:
        equals = ""
        mask = value = 0
    if not equals:
        raise InputError(f"--bits {text}: write MASK=VALUE, e.g. 0xfff=0x210, or LOW+WIDTH=VALUE, e.g. 105+4=0xf")
    if mask >> 128 or mask <= 0 or value < 0:
        raise InputError(f"--bits {text}: a word has 128 bits, of which the mask takes at least one")
    if value & ~mask:
        raise InputError(f"--bits {text}: the value has bits outside the mask: {value & ~mask:#x}")
    return mask, value
