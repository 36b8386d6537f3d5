"""The scalar and packed types of PTX (PTX ISA 5.2) as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

__all__ = ["TYPES", "PtxType", "from_name"]

Kind = Literal["bits", "unsigned", "signed", "float", "packed", "pred"]


@final
@dataclass(frozen=True, slots=True)
class PtxType:
    """A PTX type: `name` without the dot, width in `bits`, and its kind."""

    name: str
    bits: int
    kind: Kind = "bits"
    lanes: int = 1
    """Number of packed elements; 1 for scalars."""
    register: str = ""
    """The type a register holding it is declared with, when it is not the type itself."""

    @property
    def ptx(self) -> str:
        """The type with its dot, as PTX writes it."""
        return f".{self.name}"

    @property
    def reg(self) -> str:
        """Name of the register type that holds a value of this type (fp8x2 lives in b16, bf16x2 in b32, …)."""
        return self.register or self.name

    def __str__(self) -> str:
        return self.name


def _table() -> dict[str, PtxType]:
    rows: list[PtxType] = [PtxType(f"b{n}", n) for n in (8, 16, 32, 64, 128)]
    rows += [PtxType(f"u{n}", n, "unsigned") for n in (8, 16, 32, 64)]
    rows += [PtxType(f"s{n}", n, "signed") for n in (8, 16, 32, 64)]
    rows += [
        PtxType("f16", 16, "float"),
        PtxType("bf16", 16, "float", register="b16"),
        PtxType("tf32", 32, "float", register="b32"),
        PtxType("f32", 32, "float"),
        PtxType("f64", 64, "float"),
        PtxType("f16x2", 32, "packed", 2),
        PtxType("bf16x2", 32, "packed", 2, "b32"),
        PtxType("u16x2", 32, "packed", 2, "b32"),
        PtxType("s16x2", 32, "packed", 2, "b32"),
        PtxType("u8x4", 32, "packed", 4, "b32"),
        PtxType("s8x4", 32, "packed", 4, "b32"),
        PtxType("f32x2", 64, "packed", 2, "b64"),
        PtxType("e4m3", 8, "float", register="b8"),
        PtxType("e5m2", 8, "float", register="b8"),
        PtxType("e2m3", 8, "float", register="b8"),
        PtxType("e3m2", 8, "float", register="b8"),
        PtxType("e2m1", 4, "float", register="b8"),
        PtxType("ue8m0", 8, "float", register="b8"),
        PtxType("ue4m3", 8, "float", register="b8"),
        PtxType("s4", 4, "signed", register="b32"),
        PtxType("u4", 4, "unsigned", register="b32"),
        PtxType("b1", 1, "bits", register="b32"),
        PtxType("e4m3x2", 16, "packed", 2, "b16"),
        PtxType("e5m2x2", 16, "packed", 2, "b16"),
        PtxType("e2m3x2", 16, "packed", 2, "b16"),
        PtxType("e3m2x2", 16, "packed", 2, "b16"),
        PtxType("e2m1x2", 8, "packed", 2, "b8"),
        PtxType("ue8m0x2", 16, "packed", 2, "b16"),
        PtxType("ue5m3x2", 16, "packed", 2, "b16"),
        PtxType("s2f6x2", 16, "packed", 2, "b16"),
        PtxType("e4m3x4", 32, "packed", 4, "b32"),
        PtxType("e5m2x4", 32, "packed", 4, "b32"),
        PtxType("e2m3x4", 32, "packed", 4, "b32"),
        PtxType("e3m2x4", 32, "packed", 4, "b32"),
        PtxType("e2m1x4", 16, "packed", 4, "b16"),
        PtxType("e2m1p4x4", 32, "packed", 4, "b32"),
        PtxType("ue8m0x4", 32, "packed", 4, "b32"),
        PtxType("b4x16", 64, "packed", 16, "b64"),
        PtxType("b4x16_p64", 64, "packed", 16, "b64"),
        PtxType("b6x16_p32", 96, "packed", 16, "b64"),
        PtxType("b6p2x16", 128, "packed", 16, "b64"),
        PtxType("pred", 1, "pred"),
    ]
    return {t.name: t for t in rows}


TYPES = _table()


def from_name(name: str) -> PtxType:
    """Return the type called `name` (with or without the dot); raise `KeyError` naming the known ones."""
    try:
        return TYPES[name.lstrip(".")]
    except KeyError:
        raise KeyError(f"no PTX type {name!r}; known: {', '.join(TYPES)}") from None
