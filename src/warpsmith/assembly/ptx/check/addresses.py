"""Addresses in brackets: base, state space, coordinates (PTX ISA 6.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.assembly.ptx.check.vectors import value_fault
from warpsmith.assembly.ptx.tree import AddressOperand, Immediate, Name

if TYPE_CHECKING:
    from warpsmith.assembly.ptx.check.context import Context
    from warpsmith.assembly.ptx.isa import OperandSlot
    from warpsmith.assembly.ptx.tree import Operand

__all__ = ["address_fault"]


def address_fault(operand: Operand, slot: OperandSlot, at: Context) -> str:
    """Return what is wrong with `operand` as an address in the place `slot`, '' if nothing."""
    if isinstance(operand, Name) and operand.index is not None:
        return _base_fault(operand, slot, at)
    if not isinstance(operand, AddressOperand):
        return "`{}` should be an address in brackets"
    fault = _base_fault(operand.base, slot, at)
    if fault:
        return fault
    if (operand.offset or operand.zero) and at.opcode in _TEXTURES:
        return "`{}`: a texture or surface takes no offset"
    given = operand.inner
    optional = sum(s.optional for s in slot.inner)
    if not len(slot.inner) - optional <= len(given) <= len(slot.inner):
        return (
            f"`{{}}` should hold {1 + len(slot.inner)} parts, separated by commas"
            if slot.inner
            else "`{}` takes no coordinates"
        )
    for part, place in zip(given, slot.inner[-len(given) :] if given else (), strict=True):
        fault = value_fault(part, place, at)
        if isinstance(part, Name) and part.member:
            fault = f"an element of a vector register stands in braces: `{{{part.name}.{part.member}}}`"
        if fault:
            return f"in `{{}}`, {fault}" if "{}" not in fault else fault
    return ""


_TEXTURES = frozenset(("tex", "tld4", "txq", "suld", "sust", "sured", "suq"))
"""Opcodes whose address is a texture or surface: its name, or a handle in a register, and nothing added to it."""
_NARROW = {"tmem": "a tensor memory address", "fabric": "a logical endpoint"}
"""Spaces without variables, whose addresses have 32 bits -> what such an address is."""


_LOW_HALF = "cp.async.mbarrier.arrive"
"""Takes the low 32 bits of a generic address: libcu++ hands it shared addresses without saying `.shared`."""


def _base_fault(base: Name | Immediate, slot: OperandSlot, at: Context) -> str:
    if isinstance(base, Immediate):
        return "" if slot.space == "local" else "`{}`: a constant address is allowed in .local only"
    symbol = at.lookup(base.name)
    if symbol is None:
        return f"`{{}}`: `{base.name}` is not declared"
    if symbol.kind == "register":
        have = symbol.type
        assert have is not None
        if have.kind not in ("bits", "unsigned", "signed") or not 32 <= have.bits <= 64:
            return f"`{{}}`: an address is held in an integer register of 32 or 64 bits, `{base.name}` is .{have}"
        if slot.bits and have.kind != "bits":
            return f"`{{}}`: {_NARROW[slot.space or '']} is held in a .b32 register here, `{base.name}` is .{have}"
        if have.bits == 64 and slot.space in _NARROW:
            return f"`{{}}`: {_NARROW[slot.space]} has 32 bits, `{base.name}` is .{have}"
        if have.bits == 32 and slot.space in (None, "global") and not at.mnemonic.startswith(_LOW_HALF):
            return f"`{{}}`: a {slot.space or 'generic'} address has 64 bits, `{base.name}` is .{have}"
        return ""
    if slot.space in _NARROW:
        return f"`{{}}`: {_NARROW[slot.space]} is held in a register, `{base.name}` is a {symbol.kind}"
    if symbol.kind not in ("variable", "parameter", "result"):
        return f"`{{}}`: `{base.name}` is a {symbol.kind} and no variable"
    if symbol.type is None:  # .texref and the like
        return ""
    if at.opcode in _TEXTURES and symbol.kind == "variable":
        return f"`{{}}`: `{base.name}` is no texture, sampler or surface"
    want, space = slot.space, symbol.space
    if want is None and (only := _only_space(slot, at)) and not _same_space(only, space):
        return f"`{{}}`: `{base.name}` is in .{space}, the instruction addresses .{only}"
    if want is None and space.partition("::")[0] in ("const", "param"):
        return f"`{{}}`: `{base.name}` is in .{space}, which a generic address does not reach by name"
    if want is not None and not _same_space(want, space):
        load = "; load the pointer that it holds first" if symbol.kind == "parameter" and want == "global" else ""
        return f"`{{}}`: `{base.name}` is in .{space}, the instruction addresses .{want}{load}"
    if at.opcode == "ld" and symbol.kind == "result":
        return f"`{{}}`: `{base.name}` is a result of the function, it cannot be read"
    if at.opcode == "st" and symbol.kind == "parameter":
        return f"`{{}}`: `{base.name}` is an input parameter, it cannot be written"
    return ""


def _only_space(slot: OperandSlot, at: Context) -> str:
    """Return the space that variables must be in which a generic address of the instruction names, '' for any."""
    if at.opcode == "mbarrier":
        return "shared"
    tensor = bool(slot.inner) and at.opcode in ("cp", "applypriority", "fabric")
    return "global" if tensor or at.opcode == "prefetchu" else ""


def _same_space(want: str, have: str) -> bool:
    """Say whether a variable in space `have` may be addressed as `want` (`param` covers both its kinds)."""
    if want.startswith("param::") and have.startswith("param::"):
        return want == have
    return want.partition("::")[0] == have.partition("::")[0].partition("[")[0]
