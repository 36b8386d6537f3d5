"""Altered words of real libraries: where the table has a text, it is the disassembler's."""

from __future__ import annotations

import random

import pytest

from sass_sample import ARCHITECTURES, code, sample
from warpsmith import sass
from warpsmith.assembly.sass.probe.oracle import Oracle
from warpsmith.assembly.sass.probe.subject import plain


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_altered_words(arch: str) -> None:
    draw = random.Random(11)
    words: list[int] = []
    # words of forms that the table lacks are counted where the samples are decoded
    known = [
        word for (word, _), text in zip(sample(arch), sass.decode(code(arch), arch).texts(), strict=True) if text is not None
    ]
    for word in draw.sample(known, min(2500, len(known))):
        for _ in range(draw.choice((1, 2, 3))):
            word ^= 1 << draw.randrange(12, 105)
        words.append(plain(word))
    program = sass.decode(b"".join(w.to_bytes(16, "little") for w in words), arch)
    wrong = unknown = 0
    for answer, mine in zip(Oracle(arch).texts(words), program.texts(), strict=True):
        if answer is not None:
            unknown += mine is None
            wrong += mine is not None and mine != answer[1]
    assert wrong <= len(words) // 500
    assert unknown <= len(words) // 50
