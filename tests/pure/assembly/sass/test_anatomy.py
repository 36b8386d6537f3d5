"""Every bit of a word is explained, once."""

from __future__ import annotations

import pytest

from sass_sample import ARCHITECTURES, code
from warpsmith import sass
from warpsmith.assembly.sass.anatomy import anatomy


def explained(word: int, arch: str = "sm_90a") -> dict[str, str]:
    (i,) = sass.decode(word.to_bytes(16, "little"), arch)
    return {",".join(f"{low}+{width}" for low, width in p.bits): p.meaning for p in anatomy(i)}


def test_a_load() -> None:
    parts = explained(0x000EA2000C1E19000000100406047981)
    assert parts["0+12"] == "LDG: Load from global memory."
    assert parts["16+8"] == "R4: write"
    assert parts["24+8"] == "R6.64: read R6 to R7"
    assert parts["32+6"] == "UR4: read UR4 to UR5"
    assert parts["40+24"] == "0x10: a number in two's complement"
    assert parts["12+3"] == "PT, which the text does not show"
    assert parts["73+3"] == ("nothing printed (others: 0 `.U8`, 1 `.S8`, 2 `.U16`, 3 `.S16`, 5 `.64`, 6 `.128`, 7 `.INVALID7`)")
    assert parts["38+2"] == "not looked at by the disassembler"
    assert parts["105+4"] == "stall: 1 cycles until the next instruction of the warp"
    assert parts["110+3"] == "write: scoreboard 2 is released when the result is there"
    assert parts["122+3"] == "reuse: no operand is kept for the next instruction"


def test_an_unknown_word() -> None:
    parts = explained(0x000FE2007FFFE0FF0000000302017210)
    assert parts["12+93"] == "no form of sm_90a covers the word: bits 91 for iadd3_noimm__RRR_RRR"


def test_reuse_without_bit_109() -> None:
    assert explained(0x7918 | 1 << 122 | 1 << 105)["122+3"] == "1, not printed without bit 109"


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_every_bit_once(arch: str) -> None:
    for i in sass.decode(code(arch), arch)[::7]:
        bits = [low + k for p in anatomy(i) for low, width in p.bits for k in range(width)]
        assert sorted(bits) == list(range(128)), i
