"""Random words, and real ones with a bit flipped, beside nvdisasm: never another text, and texts encode back."""

from __future__ import annotations

from random import Random

import pytest

from sass_sample import ARCHITECTURES, sample
from warpsmith.assembly.sass.probe.oracle import Oracle
from warpsmith.assembly.sass.probe.subject import plain
from warpsmith.assembly.sass.program import tools_of
from warpsmith.assembly.sass.table import FOLDER, table_names

COUNT = 20_000


def compare(arch: str, words: list[int]) -> None:
    """Compare the texts of words: none is printed that the disassembler rejects."""
    decoder, encoder = tools_of(arch, FOLDER)
    for word, answer in zip(words, Oracle(arch).texts(words), strict=True):
        at = 0 if answer is None else answer[0]  # not always 16 times the index: some illegal words are found by halving
        text = decoder.text(word, at)
        if text is not None:
            assert answer is not None, f"{word:#x} {text}"
            assert answer[1] == text, hex(word)
            assert decoder.text(encoder.word(text, address=at), at) == text, hex(word)


@pytest.mark.parametrize("arch", table_names())
def test_random_words(arch: str) -> None:
    draw = Random(42)
    opcodes = list(tools_of(arch, FOLDER)[0].table.by_opcode)
    words = [plain(draw.getrandbits(105)) for _ in range(COUNT // 2)]
    words += [plain(draw.getrandbits(105) & ~0xFFF | draw.choice(opcodes)) for _ in range(COUNT // 2)]
    compare(arch, words)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_flipped_bits_of_real_words(arch: str) -> None:
    draw = Random(43)
    real = [w for w, _ in sample(arch)]
    compare(arch, [plain(draw.choice(real)) ^ 1 << draw.randrange(105) for _ in range(COUNT)])
