"""One form of one instruction: which words it covers and how their bits become text."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, final

from warpsmith.assembly.sass.floats import FLOAT_KINDS, format_float

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "Bits",
    "Field",
    "Piece",
    "Row",
    "Selector",
    "SelectorMemory",
    "Template",
    "gather",
    "runs_of",
    "scatter",
    "width_of",
]

Bits = tuple[tuple[int, int], ...]
"""Runs (lowest bit, width), least significant run first."""
_MANY = 100_000
Template = tuple[str | int, ...]
"""Tokens; a number stands for the text of that field."""


def gather(word: int, bits: Bits) -> int:
    """Read the runs of a word as one number."""
    value = shift = 0
    for low, width in bits:
        value |= (word >> low & ((1 << width) - 1)) << shift
        shift += width
    return value


def scatter(value: int, bits: Bits) -> int:
    """Put a number into the runs; the inverse of `gather`."""
    word = 0
    for low, width in bits:
        word |= (value & ((1 << width) - 1)) << low
        value >>= width
    return word


@cache
def runs_of(mask: int) -> Bits:
    """Return the runs of ones of a mask."""
    out: list[tuple[int, int]] = []
    for bit in range(mask.bit_length()):
        if mask >> bit & 1:
            if out and out[-1][0] + out[-1][1] == bit:
                out[-1] = (out[-1][0], out[-1][1] + 1)
            else:
                out.append((bit, 1))
    return tuple(out)


def width_of(bits: Bits) -> int:
    """Return the number of bits in the runs."""
    return sum(width for _, width in bits)


@final
@dataclass(frozen=True, slots=True)
class Field:
    """A number in a word that its text shows.

    Kinds: `R`, `UR`, `P`, `UP` (a register; all ones is `RZ`, `PT`), `u` and `s` (hexadecimal, unsigned or two's complement),
    `r` (`s`, relative to the instruction's address) and the kinds of `floats.py`.
    """

    bits: Bits
    kind: str
    shift: int = 0
    """The number is the value of the bits times two to this power, … """
    offset: int = 0
    """… plus this."""

    @property
    def width(self) -> int:
        """Number of bits."""
        return width_of(self.bits)

    def number(self, word: int) -> int:
        """Return the number that the text shows: signed and scaled."""
        value = gather(word, self.bits)
        if self.kind in "sr" and value >> (self.width - 1):
            value -= 1 << self.width
        return (value << self.shift) + self.offset

    def text(self, word: int, address: int) -> str:
        """Return the text of the field in `word` at `address`."""
        kind = self.kind
        if kind in FLOAT_KINDS:
            return format_float(kind, gather(word, self.bits))
        number = self.number(word)
        if kind == "r":
            number += address
        if kind in "usr":
            return f"{number:#x}"
        if number == (1 << self.width) - 1:
            return kind + ("Z" if kind.endswith("R") else "T")
        return f"{kind}{number}"


@final
@dataclass(frozen=True, slots=True)
class Selector:
    """What chooses among texts: the value of some bits, or the first predicate that holds of a field (0 for none)."""

    bits: Bits
    predicates: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """`("eq", (v,))`: the bits are v; `("pow2", (x, …))`: a power of two and none of x; in order."""

    def of(self, word: int) -> int:
        """Return the selector's value in `word`."""
        value = gather(word, self.bits)
        if not self.predicates:
            return value
        for index, (name, args) in enumerate(self.predicates):
            if name == "eq":
                if value == args[0]:
                    return index + 1
            elif value and not value & (value - 1) and value not in args:
                return index + 1
        return 0


@final
class SelectorMemory(dict[int, int]):
    """Value of a selector by the bits it looks at (`word & mask`), worked out when first asked for."""

    __slots__ = ("mask", "selector")

    def __init__(self, selector: Selector) -> None:
        super().__init__()
        self.selector = selector
        self.mask = scatter(-1, selector.bits)

    def __missing__(self, masked: int) -> int:
        if len(self) >= _MANY:
            self.clear()
        value = self[masked] = self.selector.of(masked)
        return value


@final
@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of text that depends on selectors; without selectors it is literal."""

    selectors: tuple[int, ...]
    table: dict[tuple[int, ...], Template]


@final
@dataclass(frozen=True, slots=True)
class Row:
    """One form: `mask`/`value` say which words it covers, `nots` which of those it does not."""

    name: str
    mask: int
    value: int
    nots: tuple[tuple[int, int], ...]
    fields: tuple[Field, ...]
    selectors: tuple[Selector, ...]
    pieces: tuple[Piece, ...]
    ignored: int
    """Bits that change nothing in the text."""
    notes: dict[str, str] = field(default_factory=dict[str, str])
    """Provenance and control rules, as `key=value` of the table."""
    refused: tuple[tuple[int, int], ...] = field(default=(), compare=False)
    """Modifiers that do not go together, (mask, value); kept apart from the row's own text, see `refused.py`."""

    def covers(self, word: int) -> bool:
        """Say whether the form is this word's, as far as the key tells."""
        if word & self.mask != self.value or any(word & m == v for m, v in self.nots):
            return False
        return not (self.refused and any(word & m == v for m, v in self.refused))

    def template(self, word: int) -> Template | None:
        """Return the tokens and holes of a word's text; None for a value that the tables lack."""
        picked = [s.of(word) for s in self.selectors]
        out: list[str | int] = []
        for piece in self.pieces:
            part = piece.table.get(tuple([picked[i] for i in piece.selectors]))
            if part is None:
                return None
            out += part
        return tuple(out)

    def text(self, word: int, address: int = 0) -> str | None:
        """Return the text of a word that the form covers; None for a value that the tables lack."""
        template = self.template(word)
        if template is None:
            return None
        show: Callable[[int], str] = lambda i: self.fields[i].text(word, address)  # noqa: E731
        return "".join([t if isinstance(t, str) else show(t) for t in template])
