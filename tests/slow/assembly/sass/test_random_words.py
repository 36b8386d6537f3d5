"""Random words, and real ones with a bit flipped, beside nvdisasm: never another text, texts encode back, few are unknown."""

from __future__ import annotations

import pytest

from sass_sample import ARCHITECTURES, sample
from warpsmith.assembly.sass.table import table_names
from warpsmith.study.sass_random_words import compare, flipped_words, random_words

COUNT = 20_000


@pytest.mark.parametrize("arch", table_names())
def test_random_words(arch: str) -> None:
    found = compare(arch, random_words(arch, COUNT, 42))
    assert found.wrong == []
    assert found.exact > COUNT // 5
    assert len(found.unknown) <= found.exact // 100


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_flipped_bits_of_real_words(arch: str) -> None:
    found = compare(arch, flipped_words([w for w, _ in sample(arch)], COUNT, 43))
    assert found.wrong == []
    assert found.exact > COUNT // 2
    assert len(found.unknown) <= found.exact // 100
