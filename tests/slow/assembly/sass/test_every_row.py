"""Words drawn from every row of every table: the text encodes to a word with that text."""

from __future__ import annotations

import pytest

from sass_rows import words_of
from warpsmith.assembly.sass.program import tools_of
from warpsmith.assembly.sass.table import FOLDER, table_names


@pytest.mark.parametrize("arch", table_names())
def test_texts_encode_to_a_word_with_that_text(arch: str) -> None:
    decoder, encoder = tools_of(arch, FOLDER)
    known = 0
    for _, word in words_of(decoder.table.rows, 24, 11):
        text = decoder.text(word, 0x4000)
        if text is not None:
            known += 1
            assert decoder.text(encoder.word(text, address=0x4000), 0x4000) == text, hex(word)
    assert known > 23 * len(decoder.table.rows)
