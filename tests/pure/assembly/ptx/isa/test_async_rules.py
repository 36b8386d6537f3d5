"""Rules of barriers, tensor memory and register budgets: each message in full."""

from __future__ import annotations

import pytest

from warpsmith.assembly.ptx.isa import match
from warpsmith.assembly.ptx.isa.rules import RULES
from warpsmith.assembly.ptx.tree import AddressOperand, Immediate, Name, Operand, VectorOperand


def problems(mnemonic: str, *operands: Operand | int | str) -> list[tuple[str, int | None, str]]:
    nodes: list[Operand] = [
        Immediate(str(o), o) if isinstance(o, int) else Name(o) if isinstance(o, str) else o for o in operands
    ]
    forms = [m for m in match(mnemonic) if len(m.operands) >= len(nodes)]
    found = [p for name in forms[0].row.rules for p in RULES[name](forms[0], nodes)]
    return [(p.message, p.operand, p.hint) for p in found]


@pytest.mark.parametrize(
    ("mnemonic", "operands", "expected"),
    [
        ("bar.sync", (16,), [("barrier 16 does not exist", 0, "a CTA has the barriers 0 to 15")]),
        ("bar.sync", (0, 33), [("thread count 33 is not a multiple of the warp size 32", 1, "write 32 or 64")]),
        ("barrier.cta.arrive.aligned", (3, 7), [("thread count 7 is not a multiple of the warp size 32", 1, "write 32")]),
        ("bar.red.popc.u32", ("%r1", -1, "%p1"), [("barrier -1 does not exist", 1, "a CTA has the barriers 0 to 15")]),
        ("setmaxnreg.inc.sync.aligned.u32", (231,), [("register count 231 is not a multiple of 8", 0, "write 224 or 232")]),
        ("bar.sync", (15, 1024), []),
        ("bar.sync", ("%r1", "%r2"), []),
        ("setmaxnreg.dec.sync.aligned.u32", (24,), []),
    ],
)
def test_constants(mnemonic: str, operands: tuple[int | str, ...], expected: list[tuple[str, int, str]]):
    assert problems(mnemonic, *operands) == expected


def test_a_load_from_tensor_memory_discards_nothing():
    address = AddressOperand(Name("%r9"))
    wanted = [("a loaded register cannot be discarded with _", 0, "name a register for every element")]
    vector = VectorOperand([Name("%r1"), Name("_")])
    assert problems("tcgen05.ld.sync.aligned.32x32b.x2.b32", vector, address) == wanted
    vector = VectorOperand([Name("%r1"), Name("%r2")])
    assert problems("tcgen05.ld.sync.aligned.32x32b.x2.b32", vector, address) == []
