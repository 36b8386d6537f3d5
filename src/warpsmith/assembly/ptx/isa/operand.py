"""Operands of a row: what the table writes (`OperandSpec`), and what one mnemonic makes of it (`OperandSlot`)."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, final

from warpsmith.assembly.ptx.isa.counts import COMPUTED_TYPES, COUNTS, SELECTORS
from warpsmith.base.ptx_types import TYPES, PtxType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = ["BadColumnError", "Kind", "OperandSlot", "OperandSpec", "Value", "parse_operands"]

Kind = Literal["value", "address", "immediate", "label", "predicate", "list"]
Direction = Literal["read", "write", "update"]
Value = str | bool | None
"""What a mnemonic chose: the word of a choice, True or False for a flag, None for a choice left out."""


class BadColumnError(Exception):
    """A column does not parse: `offset` characters into it, for the reason `message`. The loader adds file and line."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset = offset
        self.message = message


@final
@dataclass(frozen=True, slots=True)
class OperandSlot:
    """One operand place of a matched instruction, everything resolved."""

    name: str
    kind: Kind = "value"
    direction: Direction = "read"
    type: PtxType | None = None
    """None for addresses, labels, lists, untyped operands and plain integer immediates."""
    count: int | None = None
    """Elements of the brace vector; None for a plain operand. A vector of one needs its braces too, unless `bare`."""
    first: PtxType | None = None
    """Type of the first element where it differs from the others' (the layer of an array texture before its coordinates)."""
    bare: bool = False
    """A vector of one element may be written without braces (texture and surface coordinates)."""
    optional: bool = False
    """May be left out; only trailing operands are."""
    since: tuple[int, int] | None = None
    """PTX version that introduced this optional operand, when later than the row's."""
    space: str | None = None
    """Address space of an address as the mnemonic spells it (`shared::cta`); None for a generic address."""
    choices: tuple[int, ...] = ()
    """Values an immediate may have; empty for any."""
    range: tuple[int, int] | None = None
    """Inclusive range of an immediate."""
    pair: OperandSlot | None = None
    """Second part of `d|p`; its `optional` says whether `|p` may be left out."""
    inner: tuple[OperandSlot, ...] = ()
    """Address: what follows the base inside the brackets (sampler, coordinate vector)."""
    negatable: bool = False
    """A predicate that may be written `!p`."""
    register_only: bool = False
    """No immediate allowed."""
    sink: bool = False
    """A written operand that may be `_`."""
    untyped: bool = False
    """Any register of the type's width; of any width when `type` is None."""
    bits: bool = False
    """Only a register of bits (`.b32`) holds it, or the address, none of integers or floats."""
    symbol: bool = False
    """The name of a variable, function or kernel, with an offset, may stand here."""
    signed: bool = False
    """A minus may stand before the operand (`vmad`)."""
    selectors: tuple[str, ...] = ()
    """Byte and half selectors the operand may carry (`a.h0`); empty for none."""


@final
@dataclass(frozen=True, slots=True)
class OperandSpec:
    """One operand as the row writes it; `resolve` turns it into an `OperandSlot` for the words of a mnemonic."""

    slot: OperandSlot
    offset: int
    """Where it stands in the operand column."""
    type_ref: str = ""
    """Choice name, PTX type, `any`, or `function(arguments)`."""
    first_ref: str = ""
    """Like `type_ref`, for the first element of a vector."""
    count_ref: str = ""
    """Integer, choice name or `(function)`."""
    space_ref: str = ""
    condition: tuple[str, bool, tuple[str, ...]] | None = None
    """(flag or choice, wanted, values): present exactly when it holds."""
    pair: OperandSpec | None = None
    inner: tuple[OperandSpec, ...] = ()

    def resolve(self, values: Mapping[str, Value], default_type: PtxType | None) -> OperandSlot | None:
        """Return the slot for `values`, None when its condition leaves it out."""
        if self.condition and not _holds(self.condition, values):
            return None
        slot = self.slot
        if slot.kind == "address":
            inner = tuple(s for spec in self.inner if (s := spec.resolve(values, default_type)))
            return replace(slot, space=_space(self.space_ref, values), inner=inner)
        type_ = _type(self.type_ref, values, default_type if slot.kind == "value" else None)
        kind: Kind = "predicate" if slot.kind == "value" and type_ is not None and type_.kind == "pred" else slot.kind
        pair = self.pair.resolve(values, default_type) if self.pair else None
        first = _type(self.first_ref, values, type_)
        first = None if first is type_ else first
        return replace(slot, kind=kind, type=type_, first=first, count=_count(self.count_ref, values), pair=pair)

    def references(self) -> Iterable[tuple[int, str, str]]:
        """Yield (offset, what, name) of everything this operand refers to, for the loader's proof."""
        if self.condition:
            yield self.offset, "condition", self.condition[0]
        if self.type_ref and self.type_ref != "any":
            yield self.offset, "type", self.type_ref
        if self.first_ref:
            yield self.offset, "type", self.first_ref
        if self.count_ref:
            yield self.offset, "count", self.count_ref
        if self.space_ref:
            yield self.offset, "space", self.space_ref
        for spec in (*self.inner, *((self.pair,) if self.pair else ())):
            yield from spec.references()


def _holds(condition: tuple[str, bool, tuple[str, ...]], values: Mapping[str, Value]) -> bool:
    name, wanted, among = condition
    value = values[name]
    present = value in among if among else bool(value)
    return present == wanted


def _space(ref: str, values: Mapping[str, Value]) -> str | None:
    if not ref:
        space = values.get("space")
        return space if isinstance(space, str) else None
    if ref in values and not isinstance(values[ref], bool):  # a flag may be called like a space
        value = values[ref]
        return value if isinstance(value, str) else ref if value else None  # a flag such as .shared::cluster is the space
    return None if ref == "generic" else ref


def _type(ref: str, values: Mapping[str, Value], default: PtxType | None) -> PtxType | None:
    if not ref:
        return default
    if ref == "any":
        return None
    name, paren, arguments = ref.partition("(")
    if paren:
        function: Callable[..., str] = COMPUTED_TYPES[name]
        words = [values.get(a, a) for a in arguments[:-1].split(",")] if arguments != ")" else [values]
        return TYPES[function(*words)]
    if name in values:
        value = values[name]
        return TYPES[value] if isinstance(value, str) else default
    return TYPES[name]


def _count(ref: str, values: Mapping[str, Value]) -> int | None:
    if not ref:
        return None
    if ref.isdigit():
        return int(ref)
    if ref.startswith("("):
        return COUNTS[ref[1:-1]](values)
    value = values[ref]
    if not isinstance(value, str):
        return None
    digits = re.search(r"\d+", value)
    return int(digits[0]) if digits else None


# --- parsing --------------------------------------------------------------------------------------------------------

_OPERAND = re.compile(
    r"""(?P<direction>[>+])? (?P<marks>[-!%&=\#@]*) (?P<name>[A-Za-z_]\w*)
        (?: \* (?P<bare>\?)? (?P<count>\d+ | [A-Za-z_]\w* | \(\w+\)) )?
        (?: : (?P<type>[A-Za-z_][\w]* (?: \([\w,]*\) )?) (?: \^ (?P<first>\w+ (?: \([\w,]*\) )?) )? )?
        (?: < (?P<selectors>\w+) > )?
        (?P<bang>!)? (?P<sink>~)?
        (?: \{ (?P<values>-?\d+ (?: \.\.-?\d+ | (?:\|-?\d+)* )) \} )?
        (?P<optional>\? (?: \( (?P<condition>[^()]+) \) )? (?: @(?P<since>\d+\.\d+) )? )? $""",
    re.VERBOSE,
)
_ADDRESS = re.compile(r"^\[(?P<body>.*)\](?P<optional>\?(?:\((?P<condition>[^()]+)\))?)?$")
_BASE = re.compile(r"(?P<marks>[&=]?)(?P<name>[A-Za-z_]\w*)(?::(?P<space>[A-Za-z_][\w:]*))?$")
_LIST = re.compile(r"\((?P<name>[A-Za-z_]\w*)\)(?P<optional>\?)?$")
_DIRECTIONS: dict[str | None, Direction] = {None: "read", ">": "write", "+": "update"}


def parse_operands(text: str) -> tuple[OperandSpec, ...]:
    """Parse an operand column (`-` for none); raise `BadColumnError`."""
    if text == "-":
        return ()
    specs = tuple(_operand(part, offset) for part, offset in _split(text, ","))
    missing = None
    for spec in specs:
        if spec.slot.optional:
            missing = spec
        elif missing and not spec.condition:
            raise BadColumnError(spec.offset, f"required operand {spec.slot.name!r} after optional {missing.slot.name!r}")
    return specs


def _split(text: str, separator: str, base: int = 0) -> Iterable[tuple[str, int]]:
    depth = start = 0
    for at, c in enumerate(text + separator):
        if c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        elif c == separator and (depth == 0 or at == len(text)):
            part = text[start:at]
            yield part.strip(), base + start + len(part) - len(part.lstrip())
            start = at + 1


def _operand(text: str, offset: int) -> OperandSpec:
    if text.startswith("["):
        return _address(text, offset)
    if m := _LIST.match(text):
        return OperandSpec(OperandSlot(m["name"], "list", optional=bool(m["optional"])), offset)
    parts = list(_split(text, "|", offset))
    first = _plain(*parts[0])
    if len(parts) == 1:
        return first
    if len(parts) > 2:
        raise BadColumnError(offset, f"a pair has two parts: {text!r}")
    second = _plain(*parts[1])
    if first.slot.optional:
        raise BadColumnError(offset, f"only the second part of a pair may be optional: {text!r}")
    return replace(first, pair=second)


def _version(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    major, _, minor = text.partition(".")
    return int(major), int(minor)


def _condition(text: str | None) -> tuple[str, bool, tuple[str, ...]] | None:
    if not text:
        return None
    name, _, among = text.partition("=")
    return name.lstrip("!"), not name.startswith("!"), tuple(among.split("|")) if among else ()


def _plain(text: str, offset: int) -> OperandSpec:
    m = _OPERAND.match(text)
    if not m:
        raise BadColumnError(offset, f"not an operand: {text!r}")
    marks: str = m["marks"]
    kind: Kind = "immediate" if "#" in marks else "label" if "@" in marks else "value"
    values: str = m["values"] or ""
    if values and kind != "immediate":
        raise BadColumnError(offset, f"only an immediate has a value list: {text!r}")
    if m["selectors"] and m["selectors"] not in SELECTORS:
        raise BadColumnError(offset, f"unknown selectors {m['selectors']!r}; known: {', '.join(SELECTORS)}")
    low, dots, high = values.partition("..")
    slot = OperandSlot(
        m["name"],
        kind,
        _DIRECTIONS[m["direction"]],
        optional=bool(m["optional"]) and not m["condition"],
        choices=tuple(int(v) for v in values.split("|")) if values and not dots else (),
        range=(int(low), int(high)) if dots else None,
        negatable="!" in marks,
        register_only=bool(m["bang"]),
        sink=bool(m["sink"]),
        untyped="%" in marks,
        symbol="&" in marks,
        signed="-" in marks,
        bits="=" in marks,
        bare=bool(m["bare"]),
        since=_version(m["since"]),
        selectors=SELECTORS[m["selectors"]] if m["selectors"] else (),
    )
    return OperandSpec(slot, offset, m["type"] or "", m["first"] or "", m["count"] or "", "", _condition(m["condition"]))


def _address(text: str, offset: int) -> OperandSpec:
    m = _ADDRESS.match(text)
    parts = list(_split(m["body"], ",", offset + 1)) if m else []
    base = _BASE.match(parts[0][0]) if parts else None
    if not m or not base:
        raise BadColumnError(offset, f"not an address: {text!r}")
    inner = tuple(_plain(p[1:-1], at + 1) if p.startswith("{") and p.endswith("}") else _plain(p, at) for p, at in parts[1:])
    optional = bool(m["optional"]) and not m["condition"]
    slot = OperandSlot(base["name"], "address", optional=optional, bits="=" in base["marks"])
    return OperandSpec(slot, offset, space_ref=base["space"] or "", condition=_condition(m["condition"]), inner=inner)
