"""Words drawn from rows of every table: text and back, bits and back. `tests/slow` has every row."""

from __future__ import annotations

from random import Random

import pytest

from sass_rows import words_of
from warpsmith import sass
from warpsmith.assembly.sass.control import CONTROL_MASK, Control
from warpsmith.assembly.sass.program import tools_of
from warpsmith.assembly.sass.table import FOLDER, table_names


@pytest.mark.parametrize("arch", table_names())
def test_the_text_of_a_word_encodes_to_a_word_with_that_text(arch: str) -> None:
    decoder, encoder = tools_of(arch, FOLDER)
    rows = decoder.table.rows[::6]
    known = 0
    for _, word in words_of(rows, 3, 7):
        text = decoder.text(word, 0x4000)
        if text is None:
            continue
        known += 1
        back = encoder.word(text, address=0x4000)
        assert decoder.text(back, 0x4000) == text, (hex(word), hex(back))
    assert known > 2.8 * len(rows)


@pytest.mark.parametrize("arch", table_names())
def test_text_control_and_unprinted_bits_are_the_word(arch: str) -> None:
    """Every bit of random words comes back, whatever the control bits and bits 125 to 127 are."""
    decoder, _ = tools_of(arch, FOLDER)
    draw = Random(3)
    tried = 0
    for row, word in words_of(decoder.table.rows[::6], 2, 8):
        control = next(c for c in iter(lambda: draw.getrandbits(20), None) if _accepted(row.notes, c))
        word = word & ~CONTROL_MASK | control << 105 | draw.getrandbits(3) << 125
        i = sass.decode(word.to_bytes(16, "little"), arch, base=0x100)[0]
        if not i.known or i.form != row.name:  # other control rules
            continue
        assert sass.encode(i.text, arch, i.control, unprinted=i.unprinted, address=0x100) == bytes(i), i
        assert sass.assemble(sass.decode(bytes(i), arch).listing(), arch) == bytes(i)
        tried += 1
    assert tried > len(decoder.table.rows[::6])


def _accepted(notes: dict[str, str], control: int) -> bool:
    c = Control.of(control << 105)
    if "issues" in notes and not int(notes["issues"], 16) >> (c.reuse << 5 | (not c.yield_) << 4 | c.stall) & 1:
        return False
    pairs = ((c.write, notes.get("write")), (c.read, notes.get("read")))
    return all(n is None or m is None or int(m, 16) >> n & 1 for n, m in pairs)
