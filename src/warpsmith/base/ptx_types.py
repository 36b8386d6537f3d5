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


_TABLE = """
# names                                                      kind      lanes  register    bits
b8 b16 b32 b64 b128                                          bits      1      -           -
u8 u16 u32 u64                                               unsigned  1      -           -
s8 s16 s32 s64                                               signed    1      -           -
f16                                                          float     1      -           16
bf16                                                         float     1      b16         16
tf32                                                         float     1      b32         32
f32                                                          float     1      -           32
f64                                                          float     1      -           64
f16x2                                                        packed    2      -           32
bf16x2 u16x2 s16x2                                           packed    2      b32         32
u8x4 s8x4                                                    packed    4      b32         32
f32x2                                                        packed    2      b64         64
e4m3 e5m2 e2m3 e3m2                                          float     1      b8          8
e2m1                                                         float     1      b8          4
ue8m0 ue4m3                                                  float     1      b8          8
s4                                                           signed    1      b32         4
u4                                                           unsigned  1      b32         4
b1                                                           bits      1      b32         1
e4m3x2 e5m2x2 e2m3x2 e3m2x2                                  packed    2      b16         16
e2m1x2                                                       packed    2      b8          8
ue8m0x2 ue5m3x2 s2f6x2                                       packed    2      b16         16
e4m3x4 e5m2x4 e2m3x4 e3m2x4                                  packed    4      b32         32
e2m1x4                                                       packed    4      b16         16
e2m1p4x4 ue8m0x4                                             packed    4      b32         32
b4x16 b4x16_p64                                              packed    16     b64         64
b6x16_p32                                                    packed    16     b64         96
b6p2x16                                                      packed    16     b64         128
pred                                                         pred      1      -           1
"""
"""A row for the types that share kind, packed elements, type of registers (-: their own) and width (-: by the name)."""


def _table() -> dict[str, PtxType]:
    out: dict[str, PtxType] = {}
    for line in _TABLE.strip().splitlines()[1:]:
        *names, kind, lanes, register, bits = line.split()
        for name in names:
            width = int(name[1:] if bits == "-" else bits)
            out[name] = PtxType(name, width, kind, int(lanes), "" if register == "-" else register)  # type: ignore[arg-type]
    return out


TYPES = _table()


def from_name(name: str) -> PtxType:
    """Return the type called `name` (with or without the dot); raise `KeyError` naming the known ones."""
    try:
        return TYPES[name.lstrip(".")]
    except KeyError:
        raise KeyError(f"no PTX type {name!r}; known: {', '.join(TYPES)}") from None
