"""Words of real libraries: nvdisasm's exact text, and the same word back from the text."""

from __future__ import annotations

import pytest

from sass_sample import ARCHITECTURES, code, sample
from warpsmith import sass

UNKNOWN: dict[str, int] = {}
"""Architecture -> words of its sample whose form the table lacks; the list may only shrink."""


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_texts_are_those_of_the_disassembler(arch: str) -> None:
    expected = [text for _, text in sample(arch)]
    assert len(expected) > 1900
    texts = sass.decode(code(arch), arch).texts()
    wrong = [(w, e, t) for (w, e), t in zip(sample(arch), texts, strict=True) if t is not None and t != e]
    assert wrong == []
    assert texts.count(None) == UNKNOWN.get(arch, 0)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_text_control_and_unprinted_bits_give_the_word_back(arch: str) -> None:
    program = sass.decode(code(arch), arch)
    canonical = 0
    for i in filter(lambda i: i.known, program[::3]):
        back = sass.encode(i.text, arch, i.control, unprinted=i.unprinted, address=i.address)
        assert back == bytes(i), i
        canonical += not i.unprinted & ~(7 << 125)
    assert canonical > 0.9 * len(program[::3])


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_listing_assembles_to_the_same_bytes(arch: str) -> None:
    part = code(arch)[: 16 * 400]
    assert sass.assemble(sass.decode(part, arch).listing(), arch) == part


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_fields_cover_every_bit_once(arch: str) -> None:
    for i in filter(lambda i: i.known, sass.decode(code(arch), arch)[::40]):
        seen = 0
        for name, f in i.fields.items():
            for low, width in f.bits:
                bits = ((1 << width) - 1) << low
                assert not seen & bits, (name, i)
                seen |= bits
        assert seen == (1 << 128) - 1, i
        assert sum(_place(f) for f in i.fields.values()) == i.raw


def _place(f: sass.FieldValue) -> int:
    word, value = 0, f.value
    for low, width in f.bits:
        word |= (value & ((1 << width) - 1)) << low
        value >>= width
    return word
