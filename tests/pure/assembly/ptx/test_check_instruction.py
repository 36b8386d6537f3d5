"""`check_instruction`, the checker's entry for builders: verdicts are kept by shape, values and names stay their own."""

from __future__ import annotations

import time

import pytest

from warpsmith.assembly.ptx.check import check_instruction, register
from warpsmith.assembly.ptx.tree import AddressOperand, Immediate, Instruction, Name, Operand, PairOperand, VectorOperand
from warpsmith.base.errors import InputError

REGISTERS = {f"%r{k}": register("b32") for k in range(20)} | {f"%d{k}": register("b64") for k in range(4)}
REGISTERS |= {f"%p{k}": register("pred") for k in range(4)} | {f"%f{k}": register("f32") for k in range(4)}


def said(
    mnemonic: str, *operands: Operand | str, version: tuple[int, int] = (8, 0), arch: str = "sm_90a", guard: str = ""
) -> list[str]:
    nodes = [Name(o) if isinstance(o, str) else o for o in operands]
    instruction = Instruction(mnemonic, nodes, Name(guard) if guard else None)
    return [p.message for p in check_instruction(instruction, REGISTERS.get, version, arch)]


def test_good_ones() -> None:
    assert said("add.s32", "%r1", "%r2", Immediate("5", 5)) == []
    assert said("ld.global.v2.f32", VectorOperand([Name("%r1"), Name("_")]), AddressOperand(Name("%d1"), 8)) == []
    assert said("setp.eq.s32", PairOperand(Name("%p1"), Name("%p2")), "%r1", "%r2", guard="%p3") == []


def test_the_same_shape_names_its_own_operands() -> None:
    for name in ("%r1", "%r2", "%r3"):
        wanted = f"`{name}` is .b32, an operand of type .f64 is wanted (.b64, .f64)"
        assert said("add.f64", "%d1", "%d2", name) == [wanted]


def test_undeclared_names_are_told_apart() -> None:
    assert said("add.s32", "%r1", "%r2", "%x") == ["`%x` is not declared"]
    assert said("add.s32", "%r1", "%r2", "%y") == ["`%y` is not declared"]
    assert said("add.s32", "%r1", "%r2", "%r3", guard="%z") == ["the guard `%z` is not declared"]


def test_values_matter_where_a_row_restricts_them() -> None:
    def shuffle(lut: int) -> list[str]:
        return said("lop3.b32", "%r1", "%r2", "%r3", "%r4", Immediate(str(lut), lut))

    assert shuffle(255) == []
    assert shuffle(300) == ["`300` is outside 0 … 255"]
    assert shuffle(301) == ["`301` is outside 0 … 255"]
    assert shuffle(1) == []


def test_version_and_architecture() -> None:
    assert said("elect.sync", PairOperand(Name("_"), Name("%p1")), Immediate("-1", -1), version=(7, 8)) == [
        "`elect` needs PTX 8.0, the module is 7.8"
    ]
    assert said("elect.sync", PairOperand(Name("_"), Name("%p1")), Immediate("-1", -1), arch="sm_80") == [
        "`elect` needs sm_90+, the target is sm_80"
    ]
    with pytest.raises(InputError, match=r"^unknown architecture 'sm_1'"):
        said("elect.sync", PairOperand(Name("_"), Name("%p1")), Immediate("-1", -1), arch="sm_1")


def test_a_kept_verdict_costs_microseconds() -> None:
    instruction = Instruction("fma.rn.f32", [Name("%f1"), Name("%f2"), Name("%r3"), Name("%f0")])
    assert check_instruction(instruction, REGISTERS.get, (8, 0), "sm_90a") == []
    best = 1.0
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(2000):
            check_instruction(instruction, REGISTERS.get, (8, 0), "sm_90a")
        best = min(best, (time.perf_counter() - start) / 2000)
    assert best < 25e-6  # 2 µs on an idle machine


def test_selectors_of_scale_factors_may_be_constants_and_fragments_not_alone() -> None:
    mnemonic = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0"
    zero = Immediate("0", 0)
    four, two = VectorOperand([Name("%r1")] * 4), VectorOperand([Name("%r1")] * 2)
    sums, selector = VectorOperand([Name(f"%f{k}") for k in range(4)]), VectorOperand([zero, zero])
    rest = (sums, "%r1", selector, "%r1", selector)
    assert said(mnemonic, sums, four, two, *rest, version=(8, 7), arch="sm_120a") == []
    wanted = ["`{0, 0}` holds constants alone, a register is wanted among them"]
    assert said(mnemonic, sums, four, selector, *rest, version=(8, 7), arch="sm_120a") == wanted
    some = VectorOperand([Name("%r1"), zero])
    assert said(mnemonic, sums, four, some, *rest, version=(8, 7), arch="sm_120a") == []


@pytest.mark.parametrize("value", [-1, 256])
def test_positions_of_bit_fields_end_at_255(value: int) -> None:
    bad, top = Immediate(str(value), value), Immediate("255", 255)
    wanted = [f"`{value}` is outside 0 … 255"]
    assert said("bfe.u32", "%r1", "%r2", top, top) == []
    assert said("bfe.u32", "%r1", "%r2", bad, top) == wanted
    assert said("bfe.s64", "%d1", "%d2", top, bad) == wanted
    assert said("bfi.b32", "%r1", "%r2", "%r3", bad, top) == wanted
    assert said("bfi.b64", "%d1", "%d2", "%d3", top, bad) == wanted
    assert said("bfe.u32", "%r1", Immediate("256", 256), top, top) == []
    assert said("bfi.b32", "%r1", Immediate("256", 256), Immediate("-1", -1), top, top) == []
