"""Registers: what our tables say of real words is what nvdisasm's life ranges show."""

from __future__ import annotations

import random

import pytest

from cubin_corpus import cubins
from sass_sample import ARCHITECTURES, sample
from warpsmith import sass
from warpsmith.assembly.sass.control import CONTROL_MASK, NO_CONTROL
from warpsmith.assembly.sass.probe.liveness import LifeRanges
from warpsmith.assembly.sass.probe.publish_roles import STEERING
from warpsmith.study.sass_roles import Agreement, compare_cubin

WORDS = 600


def drawn(arch: str) -> list[sass.Instruction]:
    """Seeded words of libraries, without those that need functions of their own."""
    words = [w & ~CONTROL_MASK | NO_CONTROL for w, _ in sample(arch)]
    program = sass.decode(b"".join(w.to_bytes(16, "little") for w in words), arch)
    known = [i for i in program if i.known and i.mnemonic not in STEERING]
    return random.Random(5).sample(known, min(WORDS, len(known)))


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_words_of_libraries(arch: str) -> None:
    found = drawn(arch)
    total = Agreement()
    for i, marks in zip(found, LifeRanges(arch).marks([i.raw for i in found]), strict=True):
        assert marks is not None, i
        total.add(i, marks)
    assert total.compared > 300
    assert not total.differing, total.examples
    assert total.incomplete.total() <= total.compared // 200


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100a", "sm_120a"])
def test_code_of_ptxas(arch: str) -> None:
    """In code with branches, calls and jump tables, too."""
    total = Agreement()
    compare_cubin(cubins()[f"ptxas-13.5-{arch}"], LifeRanges(arch), total)
    assert total.compared > 300
    assert (total.equal, total.unknown) == (total.compared, 0), total.examples
