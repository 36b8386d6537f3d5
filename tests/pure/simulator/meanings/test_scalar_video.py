"""Selectors, merges and signs of the scalar video instructions, whole programs against integer arithmetic."""

import itertools

import numpy as np
import pytest

from warpsmith.assembly.ptx.parser import parse
from warpsmith.simulator.api import simulate

VALUES = [0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0x12345678, 0x7FFFFFFF, 0x80000000, 0x80FF7F01, 0xFFFFFFFF]
TYPES = ("u32", "s32")
SOURCES = [("", "b1"), ("b0", "h1"), ("b3", ""), ("h0", "b2")]


def operand(name, selector, minus=False):
    return ("-" if minus else "") + name + (selector and f".{selector}")


def inputs():
    rng = np.random.default_rng(7)
    rows = [*itertools.product(VALUES, VALUES, (0x11223344, 0xFEDCBA98)), *rng.integers(0, 1 << 32, (96, 3)).tolist()]
    return np.array(rows, np.uint32)


def run(lines, subject="scalar video instructions", level="exact"):
    """The results `[line, thread]` of instructions on every row of `inputs`; the report says `level` of `subject`."""
    rows = inputs()
    count = len(rows)
    out = np.zeros((len(lines), count), np.uint32)
    stores = "".join(f"{line}; st.global.b32 [%o+{4 * count * i}], %d;\n" for i, line in enumerate(lines))
    text = f""".version 8.8
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 in)
{{
.reg .b64 %o, %i; .reg .b32 %t, %a, %b, %c, %d;
ld.param.u64 %o, [out]; ld.param.u64 %i, [in]; mov.u32 %t, %tid.x;
mad.wide.u32 %o, %t, 4, %o; mad.wide.u32 %i, %t, 12, %i;
ld.global.b32 %a, [%i]; ld.global.b32 %b, [%i+4]; ld.global.b32 %c, [%i+8];
{stores}ret;
}}
"""
    result = simulate(parse(text), kernel="k", grid=(1, 1, 1), block=(count, 1, 1), args=[out, rows], check=False)
    assert result.completed
    assert result.fidelity.notes[subject][0] == level
    return out


def check(reference, forms):
    """Compare forms (mnemonic, selectors of d, a, b, signs of a, b, c)."""
    lines = []
    for mnemonic, (d, a, b), (na, nb, nc) in forms:
        third = (
            f", {operand('%c', '', nc)}"
            if d or mnemonic.startswith("vmad") or {"add", "min", "max"} & set(mnemonic.split("."))
            else ""
        )
        lines.append(f"{mnemonic} {operand('%d', d)}, {operand('%a', a, na)}, {operand('%b', b, nb)}{third}")
    rows = inputs().tolist()
    for line, (mnemonic, selectors, minus), got in zip(lines, forms, run(lines), strict=True):
        opcode, *words = mnemonic.split(".")
        want = [reference.video(opcode, words, row, selectors, minus) for row in rows]
        assert got.tolist() == want, line


PLAIN = (False, False, False)


@pytest.mark.parametrize("opcode", ["vadd", "vsub", "vabsdiff", "vmin", "vmax"])
def test_arithmetic(reference, opcode):
    types = [".".join(t) for t in itertools.product(TYPES, repeat=3)]
    forms = []
    for i, (t, sat) in enumerate(itertools.product(types, ("", ".sat"))):
        a, b = SOURCES[i % 4]
        forms += [(f"{opcode}.{t}{sat}", (d, a, b), PLAIN) for d in ("", "b0", "b2", "h0", "h1")]
        forms += [(f"{opcode}.{t}{sat}", (d, "", ""), PLAIN) for d in ("b1", "b3", "h1")]
        forms += [(f"{opcode}.{t}{sat}.{op}", ("", a, b), PLAIN) for op in ("add", "min", "max")]
    check(reference, forms)


def test_shifts(reference):
    forms = []
    for i, (op, d, a, sat, mode) in enumerate(
        itertools.product(("vshl", "vshr"), TYPES, TYPES, ("", ".sat"), ("clamp", "wrap"))
    ):
        name = f"{op}.{d}.{a}.u32{sat}.{mode}"
        forms += [(name, (part, *SOURCES[i % 4]), PLAIN) for part in ("", "b1", "h1")] + [(name, ("h0", "", ""), PLAIN)]
        forms += [(f"{name}.{second}", ("", *SOURCES[i % 4]), PLAIN) for second in ("add", "min", "max")]
    check(reference, forms)


def test_comparisons(reference):
    forms = []
    for i, (a, b, op) in enumerate(itertools.product(TYPES, TYPES, ("eq", "ne", "lt", "le", "gt", "ge"))):
        name = f"vset.{a}.{b}.{op}"
        forms += [(name, (part, *SOURCES[i % 4]), PLAIN) for part in ("", "b3", "h0")]
        forms += [(f"{name}.{second}", ("", *SOURCES[i % 4]), PLAIN) for second in ("add", "min", "max")]
    check(reference, forms)


def test_products(reference):
    signs = [PLAIN, (True, False, False), (False, True, False), (False, False, True)]
    forms = []
    for i, (d, a, b, sat, scale) in enumerate(itertools.product(TYPES, TYPES, TYPES, ("", ".sat"), ("", ".shr7", ".shr15"))):
        sources = SOURCES[i % 4]
        forms += [(f"vmad.{d}.{a}.{b}{sat}{scale}", ("", *s), minus) for minus in signs for s in (("", ""), sources)]
        forms.append((f"vmad.{d}.{a}.{b}.po{sat}{scale}", ("", *sources), PLAIN))
    check(reference, forms)


def test_known_results():
    got = run(
        ["vadd.u32.u32.u32 %d.b1, 0x2ff, 1, 0x11223344", "vmad.s32.s32.s32 %d, -%a, 3, 1", "vadd.s32.s32.s32 %d, %a.b0, 0"]
    )
    rows = inputs()
    assert (got[0] == 0x11220044).all()
    assert (got[1] == 1 - 3 * rows[:, 0]).all()
    assert (got[2] == rows[:, 0].astype(np.int8).astype(np.int32).view(np.uint32)).all()
