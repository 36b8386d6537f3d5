"""Every declared row of the scalar, warp and atomic sections has one meaning, or is refused by name."""

import re

import pytest

from warpsmith.assembly.ptx.isa import match, rows
from warpsmith.hardware.scalar_forms import mnemonics
from warpsmith.simulator.meanings import registry

SECTIONS = re.compile(r"9\.7\.(1|2|3|4|5|6|7|8|9|20)\.|9\.7\.10\.(6|7|24|25)$|9\.7\.15\.(5|6|10|11|12|13|15)$")
ROWS = [r for r in rows() if SECTIONS.match(r.section)]

REFUSED = {
    r"stochastic rounding \(\.rs\) is modelled to \.bf16x2 only: how random bits line up elsewhere is left open",
    r"fma\.oob is not modelled",
    r"conversions of \.ue5m3 are not modelled: its exponent bias is not in the manual",
    r"vmad with \.sat or a scale is not modelled",
    r"vshl\.sat is not modelled",
    r"min and max as second operation of a scalar video instruction are not modelled",
    r"whether the product of f16x2 and bf16x2 converts its factor first, and how, is left open",
    r"what \.ftz flushes in sums and products of f32x2 rounded to f16x2 is left open",
    r"how sums of f32x2 without \.rz are rounded to bf16x2 is left open",
    r"merging a result into a part of the third operand is not modelled",
}


def test_the_sections_are_declared():
    opcodes = {r.opcode for r in ROWS}
    assert {"add", "fma", "setp", "cvt", "shfl", "atom", "redux", "lop3", "addc", "prmt"} <= opcodes
    assert len(ROWS) > 300


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.id)
def test_row_has_a_meaning_or_is_refused_by_name(row):
    for mnemonic in mnemonics(row):
        m = next(m for m in match(mnemonic) if m.row is row)
        built = registry.build(m)
        if isinstance(built, registry.Refused):
            assert any(re.fullmatch(p, built.reason) for p in REFUSED), (mnemonic, built.reason)
        else:
            assert callable(built.fn)
