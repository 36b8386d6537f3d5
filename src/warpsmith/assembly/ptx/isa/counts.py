"""Computed vector counts and types of the instruction tables.

A count function is given the words of a mnemonic (name -> value) and returns the number of elements, or None for a plain
operand. A type function is given the words that the row names as arguments (`wide(type)`), or the whole mapping when it names
none (`f()`), and returns the name of a PTX type.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from warpsmith.base.ptx_types import TYPES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["COMPUTED_TYPES", "COUNTS", "SELECTORS", "computed_type", "count"]

COUNTS: dict[str, Callable[[Mapping[str, str | bool | None]], int | None]] = {}
COMPUTED_TYPES: dict[str, Callable[..., str]] = {}

_TWO = [f"h{x}{y}" for x in range(4) for y in range(4)]
_FOUR = ["b" + "".join(str(x) for x in digits) for digits in product(range(8), repeat=4)]
_FOUR.remove("b1024")  # ptxas reads the type .b1024 there
SELECTORS: dict[str, tuple[str, ...]] = {
    "scalar": ("b0", "b1", "b2", "b3", "h0", "h1"),
    "simd2": tuple(_TWO),
    "simd4": tuple(_FOUR),
    "mask2": ("h0", "h1", "h10"),
    "mask4": tuple("b" + "".join(str(i) for i in range(3, -1, -1) if bits >> i & 1) for bits in range(1, 16)),
}
"""Selectors of the video instructions (PTX ISA 9.7.20): h10 takes half 1 of b and half 0 of a: digits count both sources."""


def count(function: Callable[[Mapping[str, str | bool | None]], int | None]) -> Callable[..., int | None]:
    """Register a count function under its name."""
    COUNTS[function.__name__] = function
    return function


def computed_type(function: Callable[..., str]) -> Callable[..., str]:
    """Register a type function under its name."""
    COMPUTED_TYPES[function.__name__] = function
    return function


@computed_type
def wide(type: str) -> str:
    """Twice the width, same kind: u16 -> u32."""
    t = TYPES[type]
    return f"{type[0]}{t.bits * 2}"


@computed_type
def reg(type: str) -> str:
    """The register type that holds a value of `type`: bf16x2 -> b32."""
    return TYPES[type].reg


@computed_type
def bits(type: str) -> str:
    """The untyped register of the same width: f32 -> b32."""
    return f"b{TYPES[type].bits}"


@computed_type
def dot(atype: str, btype: str) -> str:
    """Result and accumulator of dp4a and dp2a: unsigned only when both factors are."""
    return "u32" if atype == btype == "u32" else "s32"


@computed_type
def layer(geometry: str, ctype: str) -> str:
    """The first texture coordinate: of an array the index of the layer, which is an integer whatever the others are."""
    return "u32" if geometry.startswith("a") else ctype


_COORDINATES = {"1d": 1, "2d": 2, "3d": 4, "a1d": 2, "a2d": 4, "cube": 4, "acube": 4, "2dms": 4, "a2dms": 4}


@count
def coordinates(m: Mapping[str, str | bool | None]) -> int:
    """Elements of a texture or surface coordinate vector; three are padded to four."""
    return _COORDINATES[str(m["geometry"])]


@count
def offsets(m: Mapping[str, str | bool | None]) -> int:
    """Elements of a texel offset: one for each dimension, three padded to four."""
    return {"1d": 1, "a1d": 1, "3d": 4}.get(str(m["geometry"]), 2)


@count
def gradients(m: Mapping[str, str | bool | None]) -> int:
    """Elements of a texture gradient: one for each dimension, three padded to four."""
    return {"1d": 1, "a1d": 1, "2d": 2, "a2d": 2}.get(str(m["geometry"]), 4)
