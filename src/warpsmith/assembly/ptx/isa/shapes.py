"""Write the operands of a matched instruction in every shape its slots allow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from warpsmith.assembly.ptx.isa.rules import RULES
from warpsmith.assembly.ptx.tree import AddressOperand, CallArguments, Immediate, Name, Operand, PairOperand, VectorOperand
from warpsmith.base.ptx_types import TYPES, PtxType

if TYPE_CHECKING:
    from warpsmith.assembly.ptx.isa.operand import OperandSlot
    from warpsmith.assembly.ptx.isa.row import Match

__all__ = ["POOLS", "Shape", "build", "shapes", "takes_constant"]

POOLS = {"pred": "%p", "b8": "%c", "b16": "%h", "b32": "%r", "b64": "%d", "b128": "%q"}
"""Register type -> name prefix of the registers that are written."""


@final
@dataclass(frozen=True, slots=True)
class Shape:
    """One way to write the operands of a row."""

    drop: int = 0
    """How many trailing optional operands are left out."""
    second: bool = True
    """Write the optional second part of pairs."""
    immediate: int = -1
    """Index of the operand written as a constant; -1 for none."""
    variant: int = 0
    """Picks among values of immediates, selectors, negation, sinks, offsets, names of variables."""


def shapes(m: Match) -> tuple[Shape, ...]:
    """Return the shapes of the operands of a match: all present, each optional left out, each constant, each variant."""
    slots = m.operands
    out = [Shape(), Shape(variant=1)]
    optional = sum(s.optional for s in slots)
    out += [Shape(drop=n) for n in range(1, optional + 1)]
    if any(s.pair and s.pair.optional for s in slots):
        out.append(Shape(second=False))
    out += [Shape(immediate=n) for n, s in enumerate(slots) if _takes_constant(s)]
    most = max((_variants(s) for s in slots), default=1)
    out += [Shape(variant=n) for n in range(2, most)]
    return tuple(out)


def build(m: Match, shape: Shape) -> list[Operand] | None:
    """Return operands for a match in the given shape; None when a rule forbids them."""
    slots = list(m.operands)
    for _ in range(shape.drop):
        if slots and slots[-1].optional:
            slots.pop()
    counters = dict.fromkeys(POOLS.values(), 0)
    operands = [_operand(m, s, shape, n == shape.immediate, counters) for n, s in enumerate(slots)]
    for name in m.row.rules:
        if any(True for _ in RULES[name](m, operands)):
            return None
    return operands


def _takes_constant(s: OperandSlot) -> bool:
    if s.kind != "value" or s.direction != "read" or s.count is not None or s.register_only or s.untyped or s.selectors:
        return False
    return s.type is not None and takes_constant(s.type)


def _variants(s: OperandSlot) -> int:
    if s.kind == "immediate":
        return len(s.choices) or 3
    return 6 if s.selectors else 2


def _operand(m: Match, s: OperandSlot, shape: Shape, constant: bool, counters: dict[str, int]) -> Operand:
    if s.kind == "immediate":
        return _immediate(s, shape.variant)
    if s.kind == "address":
        return _address(m, s, shape, counters)
    if s.kind == "label":
        return Name(_label(m, s))
    if s.kind == "list":
        return CallArguments([_register("b32", counters)])
    if s.name == "_":
        return Name("_")
    if constant and s.type is not None:
        return _constant(s.type)
    if (
        s.symbol
        and shape.variant == 1
        and s.type is not None
        and s.type.bits == 64
        and s.type.kind != "float"
        and not m.get("space")
    ):
        return Name("gvar", offset=4)
    first = _value(s, shape, counters)
    if s.pair is not None and (shape.second or not s.pair.optional):
        return PairOperand(first, _value(s.pair, shape, counters))
    return first


def _value(s: OperandSlot, shape: Shape, counters: dict[str, int]) -> Operand:
    pool = _pool(s.type)
    if s.count is not None and (s.count > 1 or not s.bare or shape.variant % 2):
        elements: list[Operand] = [_register(pool, counters) for _ in range(s.count)]
        if s.sink and s.count > 1 and shape.variant == 1:
            elements[0] = Name("_")
        return VectorOperand(elements)
    name = _register(pool, counters)
    if s.negatable and shape.variant == 1:
        name.negated = True
    if s.signed and shape.variant == 1 and s.name == "a":
        name.minus = True
    if s.selectors and shape.variant:
        name.member = s.selectors[(shape.variant * 37) % len(s.selectors)]
    if s.sink and s.count is None and shape.variant == 1 and s.pair is not None:
        name.name = "_"
    return name


def _pool(type_: PtxType | None) -> str:
    if type_ is None:
        return "b32"
    if type_.kind == "pred":
        return "pred"
    return f"b{max(8, TYPES[type_.reg].bits)}"


def _register(pool: str, counters: dict[str, int]) -> Name:
    prefix = POOLS[pool]
    counters[prefix] += 1
    return Name(f"{prefix}{counters[prefix] - 1}")


def _immediate(s: OperandSlot, variant: int) -> Immediate:
    if s.choices:
        value = s.choices[variant % len(s.choices)]
    elif s.range:
        low, high = s.range
        value = (low, high, (low + high) // 16 * 8)[variant % 3]
        value = min(max(value, low), high)
    else:
        value = 8
    return Immediate(str(value), value)


def takes_constant(type_: PtxType) -> bool:
    """Say whether ptxas takes constants of a type: integers and bits, f32 and f64, but no 16-bit floats and no packed types."""
    if type_.kind == "float":
        return type_.name in ("f32", "f64")
    return type_.lanes == 1 and type_.bits in (8, 16, 32, 64, 128)


def _constant(type_: PtxType) -> Immediate:
    if type_.kind == "float":
        if type_.bits == 64:
            return Immediate("0d3FF0000000000000", 1.0, "f64")
        if type_.bits == 32:
            return Immediate("0f3F800000", 1.0, "f32")
    return Immediate("16", 16)


def _address(m: Match, s: OperandSlot, shape: Shape, counters: dict[str, int]) -> AddressOperand:
    space = s.space or ""
    values = [_value(i, shape, counters) for i in s.inner if not i.optional]
    inner = tuple(v for v in values if isinstance(v, (VectorOperand, Name)))
    if space in ("tmem", "fabric"):
        base = _register("b32", counters)
    elif space.startswith("param"):
        base = Name("local" if space == "param::func" or m.row.opcode == "st" else "formal")
    else:
        base = _register("b64", counters)
    offset = 16 if shape.variant == 1 and not inner and m.row.opcode not in _NO_OFFSET else 0
    return AddressOperand(base, offset, inner)


_NO_OFFSET = frozenset({"txq", "suq", "tex", "tld4"})


def _label(m: Match, s: OperandSlot) -> str:
    if m.row.opcode == "bra":
        return "$target"
    if m.row.opcode == "brx":
        return "$targets"
    lists = "".join(o.name for o in m.operands if o.kind == "list")
    return f"$prototype_{lists}" if s.name == "t" else f"function_{lists}"
