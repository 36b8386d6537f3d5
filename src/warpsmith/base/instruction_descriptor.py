"""Instruction descriptors of tcgen05.mma: 32 bits that say shape, types and signs (PTX ISA 9.7.18.4.2).

bits    f16, tf32, f8f6f4, i8          mxf8f6f4, mxf4, mxf4nvf4
1:0     sparsity selector              0
2       sparse                         sparse
3       saturate (i8)                  0
5:4     type of D                      scale factor id of B
9:7     type of A                      type of A
12:10   type of B                      type of B (mxf4, mxf4nvf4: 11:10)
13      negate A                       negate A
14      negate B                       negate B
15      A along M ("transpose")        A along M
16      B along N ("transpose")        B along N
22:17   N / 8                          N / 8
23      0                              type of scale factors: 0 ue4m3, 1 ue8m0
28:24   M / 16                         28:27: M / 128
31:30   largest shift (.ws)            30:29: scale factor id of A
31                                     K is 96 (dense mxf4, mxf4nvf4)
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache
from typing import final

__all__ = [
    "DEPTH", "KINDS", "SHIFTS", "TYPES", "Field", "InstructionDescriptor", "decode", "encode", "fields_of", "shape_problem",
]  # fmt: skip

_NARROW = {0: "e4m3", 1: "e5m2", 3: "e2m3", 4: "e3m2", 5: "e2m1"}
TYPES: dict[str, tuple[dict[int, str], dict[int, str]]] = {
    "f16": ({0: "f16", 1: "f32"}, {0: "f16", 1: "bf16"}),
    "tf32": ({1: "f32"}, {2: "tf32"}),
    "f8f6f4": ({0: "f16", 1: "f32"}, _NARROW),
    "i8": ({2: "s32"}, {0: "u8", 1: "s8"}),
    "mxf8f6f4": ({}, _NARROW),
    "mxf4": ({}, {1: "e2m1"}),
    "mxf4nvf4": ({}, {1: "e2m1"}),
}
"""Kind -> types of D, and of A and B, by their numbers."""
KINDS = tuple(TYPES)
DEPTH = {"f16": 16, "tf32": 8, "f8f6f4": 32, "i8": 32, "mxf8f6f4": 32, "mxf4": 64, "mxf4nvf4": 64}
"""Kind -> K of a dense product; a sparse one has twice that."""
SHIFTS = (0, 8, 16, 32)
"""Largest shifts of B in `.ws`, by their numbers."""
_FACTORS = ("ue4m3", "ue8m0")


@final
@dataclass(frozen=True, slots=True)
class InstructionDescriptor:
    """The fields of a descriptor, by meaning."""

    kind: str
    m: int
    n: int
    d: str
    a: str
    b: str
    sparse: bool = False
    selector: int = 0
    """Sparsity selector, 0 to 3."""
    saturate: bool = False
    negate_a: bool = False
    negate_b: bool = False
    a_mn_major: bool = False
    b_mn_major: bool = False
    shift: int = 0
    """Number of the largest shift of B in `.ws`: see `SHIFTS`."""
    factor: str = ""
    """Type of the scale factors; empty without block scaling."""
    factor_a: int = 0
    """Scale factor id of A, 0 to 3."""
    factor_b: int = 0
    k96: bool = False
    """K is 96 (dense mxf4 and mxf4nvf4 of sm_103a)."""

    @property
    def k(self) -> int:
        """The depth of the product."""
        return 96 if self.k96 else DEPTH[self.kind] * (2 if self.sparse else 1)

    @property
    def packed(self) -> bool:
        """Whether two elements share a byte."""
        return self.kind in ("mxf4", "mxf4nvf4")


@final
@dataclass(frozen=True, slots=True)
class Field:
    """One run of bits: what it is called, and how its number reads."""

    low: int
    width: int
    name: str
    attribute: str
    """Attribute of `InstructionDescriptor`; empty: must be zero."""
    texts: tuple[tuple[int, str], ...] = ()
    """Number -> value; empty: the number times `unit`."""
    unit: int = 1

    def number(self, bits: int) -> int:
        """Return the field's bits."""
        return bits >> self.low & (1 << self.width) - 1

    def text(self, bits: int) -> str:
        """Return the value in words; `?` for a number without meaning."""
        number = self.number(bits)
        if self.texts:
            return dict(self.texts).get(number, f"{number}?")
        return str(number * self.unit)

    @property
    def place(self) -> str:
        """Bit range, high to low."""
        return f"{self.low + self.width - 1}:{self.low}" if self.width > 1 else str(self.low)


_FLAG = ((0, "no"), (1, "yes"))
_MAJOR = ((0, "K-major"), (1, "MN-major"))


def _texts(types: dict[int, str]) -> tuple[tuple[int, str], ...]:
    return tuple(types.items())


@lru_cache
def fields_of(kind: str) -> tuple[Field, ...]:
    """Return the fields of a kind, lowest first; together they own each of the 32 bits once."""
    d, ab = TYPES[kind]
    scaled, four = kind.startswith("mx"), kind in ("mxf4", "mxf4nvf4")
    middle = [
        Field(6, 1, "reserved", ""),
        Field(7, 3, "type of A", "a", _texts(ab)),
        Field(10, 2 if four else 3, "type of B", "b", _texts(ab)),
        *([Field(12, 1, "reserved", "")] if four else []),
        Field(13, 1, "negate A", "negate_a", _FLAG),
        Field(14, 1, "negate B", "negate_b", _FLAG),
        Field(15, 1, "major of A", "a_mn_major", _MAJOR),
        Field(16, 1, "major of B", "b_mn_major", _MAJOR),
        Field(17, 6, "N", "n", unit=8),
    ]
    if scaled:
        return (
            Field(0, 2, "reserved", ""),
            Field(2, 1, "sparse", "sparse", _FLAG),
            Field(3, 1, "reserved", ""),
            Field(4, 2, "scale factor id of B", "factor_b"),
            *middle,
            Field(23, 1, "type of scale factors", "factor", tuple(enumerate(_FACTORS))),
            Field(24, 3, "reserved", ""),
            Field(27, 2, "M", "m", unit=128),
            Field(29, 2, "scale factor id of A", "factor_a"),
            Field(31, 1, "K is 96", "k96", _FLAG) if four else Field(31, 1, "reserved", ""),
        )
    return (
        Field(0, 2, "sparsity selector", "selector"),
        Field(2, 1, "sparse", "sparse", _FLAG),
        Field(3, 1, "saturate", "saturate", _FLAG) if kind == "i8" else Field(3, 1, "reserved", ""),
        Field(4, 2, "type of D", "d", _texts(d)),
        *middle,
        Field(23, 1, "reserved", ""),
        Field(24, 5, "M", "m", unit=16),
        Field(29, 1, "reserved", ""),
        Field(30, 2, "largest shift of B in .ws", "shift", tuple((i, str(s)) for i, s in enumerate(SHIFTS))),
    )


def _number(f: Field, value: object) -> int:
    """Return the bits of a value in its field; raise `ValueError` in words."""
    if f.attribute == "shift":
        number = int(value)  # type: ignore[call-overload]
    elif f.texts and isinstance(value, str):
        by_text = {text: number for number, text in f.texts}
        if value not in by_text:
            raise ValueError(f"{f.name} is {' or '.join(by_text)}, not {value!r}")
        number = by_text[value]
    else:
        value = int(value)  # type: ignore[call-overload]
        if value % f.unit or value < 0:
            raise ValueError(f"{f.name} is a multiple of {f.unit}, not {value}")
        number = value // f.unit
    if not 0 <= number < 1 << f.width:
        raise ValueError(f"{f.name} is at most {((1 << f.width) - 1) * f.unit}, not {value}")
    return number


def encode(d: InstructionDescriptor) -> int:
    """Return the 32 bits of a descriptor; raise `ValueError` for what the kind has no bits for."""
    mine = [f for f in fields_of(d.kind) if f.attribute]
    known = {f.attribute for f in mine} | {"kind", *(["d"] if d.kind.startswith("mx") else [])}
    for f in fields(d):
        if f.name not in known and getattr(d, f.name) != f.default:
            raise ValueError(f".kind::{d.kind} has no {f.name}")
    return sum(_number(f, getattr(d, f.attribute)) << f.low for f in mine)


@lru_cache(maxsize=1024)
def decode(bits: int, kind: str) -> InstructionDescriptor:
    """Return the fields of a 32-bit descriptor; raise `ValueError` for reserved bits and numbers without meaning."""
    if kind not in TYPES:
        raise ValueError(f"kind is one of {', '.join(KINDS)}, not {kind!r}")
    values: dict[str, object] = {"kind": kind, "d": "f32"}
    for f in fields_of(kind):
        number = f.number(bits)
        if not f.attribute:
            if number:
                raise ValueError(f"bits {f.place} of an instruction descriptor of .kind::{kind} must be 0, not {number}")
        elif f.attribute == "shift":
            values["shift"] = number
        elif f.texts and f.texts not in (_FLAG, _MAJOR):
            known = dict(f.texts)
            if number not in known:
                names = ", ".join(f"{n} ({t})" for n, t in f.texts)
                raise ValueError(f"{f.name} {number} has no meaning for .kind::{kind}; it is {names}")
            values[f.attribute] = known[number]
        else:
            values[f.attribute] = bool(number) if f.texts else number * f.unit
    return InstructionDescriptor(**values)  # type: ignore[arg-type]


def shape_problem(d: InstructionDescriptor, cta_group: int, ws: bool) -> str:
    """Say why M or N is no shape of the kind (9.7.18.2.1); empty: both are."""
    step = 8 * cta_group * (2 if d.kind == "i8" else 1)
    if ws:
        rows, columns = (32, 64, 128), ((64, 128) if d.sparse else (64, 128, 256))
    else:
        scaled = d.kind.startswith("mx")
        rows = ((256,) if scaled and d.sparse else (128, 256)) if cta_group == 2 else (128,) if scaled else (64, 128)
        columns = (*range(step, 257, step), *((8, 24) if step == 16 and cta_group == 1 else ()))
    if d.m not in rows:
        return f"M is {_listed(rows)}, not {d.m}"
    if d.n not in columns:
        return f"N is {_listed(columns)}, not {d.n}" if ws else f"N is a multiple of {step} up to 256, not {d.n}"
    return ""


def _listed(numbers: tuple[int, ...]) -> str:
    *most, last = map(str, numbers)
    return f"{', '.join(most)} or {last}" if most else last
