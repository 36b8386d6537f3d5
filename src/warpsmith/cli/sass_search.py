"""What `warpsmith sass --search` and `--bits` look for."""

from __future__ import annotations

import re
import signal
import struct
import threading
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from warpsmith.base.errors import InputError
from warpsmith.sass import decode

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from warpsmith.cli.sass_input import Piece
    from warpsmith.sass import Instruction

__all__ = ["Query", "parse_query"]

_LOW = (1 << 64) - 1
_PATIENCE = 5
"""Seconds that a pattern may take on one text."""


@final
@dataclass(frozen=True, slots=True)
class Query:
    """Words with some bits, and texts with some pattern; both where both are given."""

    pattern: re.Pattern[str] | None
    mask: int
    value: int

    def matches(self, piece: Piece) -> list[Instruction]:
        """Return the instructions of a piece that match, in order.

        Raises `InputError` for a pattern that takes more than five seconds on one text.
        """
        program = decode(piece.code, piece.arch)
        if not self.mask and self.pattern:
            return [program[index] for index in _with_pattern(self.pattern, list(program.texts()))]
        masks, values = (self.mask & _LOW, self.mask >> 64), (self.value & _LOW, self.value >> 64)
        found = [
            program[index]
            for index, (low, high) in enumerate(struct.iter_unpack("<QQ", program.code))
            if low & masks[0] == values[0] and high & masks[1] == values[1]
        ]
        if self.pattern is None:
            return found
        return [found[index] for index in _with_pattern(self.pattern, [i.text if i.known else None for i in found])]


def _with_pattern(pattern: re.Pattern[str], texts: Sequence[str | None]) -> list[int]:
    """Return the indexes of the texts that have a pattern; nested repetitions can take for ever on one, and are given up."""
    out: list[int] = []
    at = last = -1

    def late(*_: object) -> None:
        nonlocal last
        if at == last:
            raise InputError(
                f"--search {pattern.pattern}: takes more than {_PATIENCE} s on {texts[at]!r}; "
                "do not repeat what is repeated inside, as in (a*)*"
            )
        last = at

    with _alarm(late):
        for at, text in enumerate(texts):
            if text is not None and pattern.search(text):
                out.append(at)
    return out


@contextmanager
def _alarm(late: Callable[..., None]) -> Generator[None]:
    """Call a function now and then, where there are such signals: in the main thread of a Unix process."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, _PATIENCE, _PATIENCE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def parse_query(pattern: str | None, bits: tuple[str, ...]) -> Query | None:
    """Read `--search REGEX` and any number of `--bits MASK=VALUE`; None where neither is given."""
    if pattern is None and not bits:
        return None
    try:
        with warnings.catch_warnings():  # of sets in sets, which a later Python may have
            warnings.simplefilter("ignore", FutureWarning)
            compiled = re.compile(pattern) if pattern is not None else None
    except (re.error, OverflowError, RecursionError) as error:
        raise InputError(f"--search {str(pattern)[:100]}: no regular expression: {error}") from None
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
        if m := re.fullmatch(r"([0-9]+)\+([0-9]+)", left):
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
