"""Rules of barriers, tensor memory and register budgets: each message in full."""

from __future__ import annotations

import pytest

from warpsmith.assembly.ptx.isa import match
from warpsmith.assembly.ptx.isa.rules import RULES
from warpsmith.assembly.ptx.tree import AddressOperand, Immediate, Name, Operand, VectorOperand

AT = AddressOperand(Name("%rd1"))
POWERS = "write 32, 64, 128, 256 or 512"


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
        ("bar.arrive", (0, 0), [("an arrival needs the number of threads of the barrier", 1, "write a multiple of 32")]),
        ("mbarrier.init.shared::cta.b64", (AT, 0), [("arrival count 0 is not positive", 1, "write 1 or more")]),
        (
            "mbarrier.init.shared::cta.b64",
            (AT, 1 << 20),
            [("arrival count 1048576 is more than an mbarrier holds", 1, "write at most 1048575")],
        ),
        (
            "mbarrier.try_wait.parity.shared::cta.b64",
            ("%p1", AT, 2),
            [("2 is not a parity", 2, "write 0 for even phases, 1 for odd ones")],
        ),
        (
            "cp.async.bulk.global.shared::cta.bulk_group",
            (AT, AT, 40),
            [("size 40 is not a multiple of 16 between 0 and 1048560", 2, "write 32 or 48")],
        ),
        (
            "cp.async.bulk.global.shared::cta.bulk_group",
            (AT, AT, -1),
            [("size -1 is not a multiple of 16 between 0 and 1048560", 2, "write 0")],
        ),
        (
            "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.ignore_oob",
            (AT, AT, 32, 16, 0, AT),
            [("16 bytes cannot be ignored at one end", 3, "write 0 to 15")],
        ),
        ("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32", (AT, 48), [("48 columns cannot be allocated", 1, POWERS)]),
        ("tcgen05.alloc.exclusive.cta_group::1.sync.aligned.b32", (AT, 96), []),
        (
            "tcgen05.alloc.exclusive.cta_group::1.sync.aligned.b32",
            (AT, 40),
            [("40 columns cannot be allocated", 1, "write a multiple of 32")],
        ),
        ("setmaxnreg.inc.sync.aligned.u32", (7,), [("register count 7 is not a multiple of 8", 0, "write 24")]),
        ("bar.sync", (15, 1024), []),
        ("bar.sync", ("%r1", "%r2"), []),
        ("setmaxnreg.dec.sync.aligned.u32", (24,), []),
    ],
)
def test_constants(mnemonic: str, operands: tuple[Operand | int | str, ...], expected: list[tuple[str, int, str]]):
    assert problems(mnemonic, *operands) == expected


def test_a_load_from_tensor_memory_discards_nothing():
    address = AddressOperand(Name("%r9"))
    wanted = [("a loaded register cannot be discarded with _", 0, "name a register for every element")]
    vector = VectorOperand([Name("%r1"), Name("_")])
    assert problems("tcgen05.ld.sync.aligned.32x32b.x2.b32", vector, address) == wanted
    vector = VectorOperand([Name("%r1"), Name("%r2")])
    assert problems("tcgen05.ld.sync.aligned.32x32b.x2.b32", vector, address) == []


def test_a_source_is_not_longer_than_its_copy():
    (form,) = [m for m in match("cp.async.ca.shared.global") if any(o.name == "size" for o in m.operands)]
    found = [p for name in form.row.rules for p in RULES[name](form, [AT, AT, Immediate("4", 4), Immediate("8", 8)])]
    assert [(p.message, p.operand, p.hint) for p in found] == [("source size 8 exceeds the copy size 4", 3, "write 0 to 4")]
