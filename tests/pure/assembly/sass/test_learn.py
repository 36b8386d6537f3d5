"""Learning forms from made-up disassemblers, whose rules are known: rows print what these print, wherever they cover a word."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest

from warpsmith.assembly.sass.floats import format_float
from warpsmith.assembly.sass.probe.form import Start, learn_form
from warpsmith.assembly.sass.probe.serve import serve
from warpsmith.assembly.sass.probe.subject import plain

OPCODE = 0x123


def field(word: int, low: int, width: int) -> int:
    return word >> low & ((1 << width) - 1)


def register(kind: str, number: int, top: int) -> str:
    return f"{kind}Z" if number == top else f"{kind}{number}"


def pair(word: int) -> str | None:
    """Print a pair of halves, of binary16 or of bfloat16; the formats' bits exclude each other."""
    single, brain = field(word, 78, 1), field(word, 85, 1)
    if single and brain:
        return None
    kind = "bf16" if brain else "f16"
    numbers = ", ".join(format_float(kind, field(word, low, 16)) for low in (48, 32))
    return f"PAIR{'.F32' if single else '.BF16' if brain else ''} {register('R', field(word, 16, 8), 255)}, {numbers}"


def address(word: int) -> str | None:
    """Print one number of a uniform register twice, the second one greater."""
    number = field(word, 64, 6)
    behind = f"desc[{register('UR', min(number + 1, 63), 63)}]" if field(word, 101, 1) else ""
    return f"COPY [{register('R', field(word, 16, 8), 255)}+{register('UR', number, 63)}], {behind}[R{field(word, 24, 4)}]"


class Made:
    """An oracle of one class."""

    def __init__(self, prints: Callable[[int], str | None]) -> None:
        self.prints = prints

    def texts(self, words: Sequence[int]) -> list[tuple[int, str] | None]:
        texts = [self.prints(w) if w & 0xFFF == OPCODE else None for w in words]
        return [None if t is None else (16 * i, t) for i, t in enumerate(texts)]

    def classes(self, words: Sequence[int]) -> list[tuple[str, str] | None]:
        return [("made_", "table") if w & 0xFFF == OPCODE else None for w in words]


@pytest.mark.parametrize(
    ("prints", "base"),
    [
        pytest.param(pair, OPCODE | 1 << 78 | 0x3C00 << 48, id="pair from F32"),
        pytest.param(pair, OPCODE | 1 << 85, id="pair from BF16"),
        pytest.param(address, OPCODE, id="address"),
        pytest.param(address, OPCODE | 1 << 101 | 4 << 64, id="address with descriptor"),
    ],
)
def test_all_words_are_printed(prints: Callable[[int], str | None], base: int) -> None:
    oracle = Made(prints)
    starts, rows = [Start("made_", plain(base))], []
    while starts:
        studies = serve(oracle, {s: learn_form(s) for s in starts})  # type: ignore[arg-type]
        assert [(s.wrong, s.log) for s in studies.values()] == [(0, [])] * len(starts)
        rows += [s.row for s in studies.values() if s.row]
        starts = [m for s in studies.values() for m in s.more]
        assert len(rows) < 6
    draw = random.Random(3)
    for _ in range(3000):
        word = plain(draw.getrandbits(105) & ~0xFFF | OPCODE)
        expected = prints(word)
        texts = [t for r in rows if r.covers(word) and (t := r.text(word)) is not None]
        assert set(texts) == ({expected} if expected else set())
