"""What the verdict on an operand depends on besides the operand and its place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from warpsmith.assembly.ptx.check.register_types import WIDENING
from warpsmith.assembly.ptx.tree import Name
from warpsmith.base.ptx_types import TYPES, PtxType

if TYPE_CHECKING:
    from warpsmith.assembly.ptx.check.symbols import Lookup
    from warpsmith.assembly.ptx.isa import Match
    from warpsmith.assembly.ptx.tree import Operand

__all__ = ["Context", "context", "is_sink"]

_LITERAL = frozenset(("mma", "wmma", "wgmma", "dp4a", "dp2a", "getctarank", "mapa", "cp", "redux"))
"""Opcodes whose integer operands take no .f16x2 register although the mnemonic names their type."""


@final
@dataclass(frozen=True, slots=True)
class Context:
    """What the verdict on an operand depends on besides the operand and its place."""

    opcode: str
    lookup: Lookup
    own_type: PtxType | None = None
    """The type the mnemonic ends with."""
    widening: bool = False
    """Registers may be wider than the type (9.4)."""
    integral: bool = True
    """All operands are integers or bits: then `cvt` reads special registers."""
    mnemonic: str = ""

    def names(self, want: PtxType) -> bool:
        """Say whether the mnemonic names the type: fixed integer operands (counts, barriers) take no .f16x2 register."""
        named = want.ptx in self.mnemonic or ".wide" in self.mnemonic or want.bits != 32
        return named and self.opcode not in _LITERAL


def context(match: Match, lookup: Lookup) -> Context:
    """Return the context of operands of `match`."""
    opcode = match.row.opcode
    name = match.get("type")
    own = TYPES[name] if isinstance(name, str) else match.row.literal_type
    widening = opcode in WIDENING and not match.mnemonic.startswith(("st.async", "st.bulk"))
    if opcode == "cvt":  # ptxas: conversions of types that are kept in untyped registers (bf16, e4m3x2) are exact
        widening = all(s.type is None or not s.type.register for s in match.operands)
    integral = all(s.type is None or s.type.kind in ("bits", "unsigned", "signed") for s in match.operands)
    return Context(opcode, lookup, own, widening, integral, match.mnemonic)


def is_sink(operand: Operand) -> bool:
    """Say whether the operand is `_`, which takes a result that nobody wants."""
    return isinstance(operand, Name) and operand.name == "_"
