"""Computed vector counts and types of the instruction tables.

A count function is given the words of a mnemonic (name -> value) and returns the number of elements, or None for a plain
operand. A type function is given the words that the row names as arguments (`wide(type)`), or the whole mapping when it names
none (`f()`), and returns the name of a PTX type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.base.ptx_types import TYPES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["COMPUTED_TYPES", "COUNTS", "computed_type", "count"]

COUNTS: dict[str, Callable[[Mapping[str, str | bool | None]], int | None]] = {}
COMPUTED_TYPES: dict[str, Callable[..., str]] = {}


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
