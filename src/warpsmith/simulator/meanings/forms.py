"""A mnemonic as its words, for builders of meanings: independent of how a row names its choices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from warpsmith.base.ptx_types import TYPES

if TYPE_CHECKING:
    from warpsmith.assembly.ptx.isa import Match

__all__ = ["ROUNDINGS", "Form", "form_of"]

ROUNDINGS = ("rn", "rz", "rm", "rp", "rna", "rs", "rni", "rzi", "rmi", "rpi")


@final
@dataclass(frozen=True, slots=True)
class Form:
    """The words of a mnemonic in order: `cvt.rn.relu.bf16x2.f32` has opcode cvt and words rn, relu, bf16x2, f32."""

    opcode: str
    words: tuple[str, ...]
    types: tuple[str, ...]
    """Those words that are PTX types, in order."""
    rounding: str | None
    """The first rounding word, or None."""

    def __contains__(self, word: str) -> bool:
        return word in self.words

    @property
    def type(self) -> str:
        """The last type word: the one an instruction with one type is about."""
        return self.types[-1]

    @property
    def ftz(self) -> bool:
        """Whether subnormal f32 inputs and results become zero."""
        return "ftz" in self.words

    @classmethod
    def parse(cls, mnemonic: str) -> Form:
        """Split `mnemonic` at its dots."""
        opcode, *words = mnemonic.split(".")
        types = tuple(w for w in words if w in TYPES)
        rounding = next((w for w in words if w in ROUNDINGS), None)
        return cls(opcode, tuple(words), types, rounding)


def form_of(match: Match) -> Form:
    """Return the words of a match."""
    return Form.parse(match.mnemonic)
