"""A declared row as a reader of messages wants to see it: `fma.{rn,rz,rm,rp}{.ftz}{.sat}.f32 d, a, b, c`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warpsmith.assembly.ptx.isa import OperandSlot, Row

__all__ = ["operands_form", "row_form"]

_SHOWN = 8


def row_form(row: Row) -> str:
    """Return the mnemonics of a row: choices in braces, optional words with their dot inside the braces."""
    out = row.opcode
    for element in row.elements:
        words = list(element.words)
        if element.kind != "choice":
            text = f".{element.name}"
        elif len(words) == 1:
            text = f".{words[0]}"
        else:
            shown = ",".join(words[:_SHOWN]) + (",…" if len(words) > _SHOWN else "")
            text = f".{{{shown}}}"
        out += f"{{{text}}}" if element.optional else text
    return out


def operands_form(slots: Sequence[OperandSlot]) -> str:
    """Return the operands in order: `d, [a], {c, …}`; those that may be left out in brackets of their own."""
    out = ""
    for k, slot in enumerate(slots):
        text = f", {_slot(slot)}" if k else _slot(slot)
        out += f" [{text}]" if slot.optional else text
    return out


def _slot(slot: OperandSlot) -> str:
    if slot.kind == "address":
        return f"[{', '.join([slot.name, *(_slot(s) for s in slot.inner)])}]"
    if slot.pair is not None:
        return f"{slot.name}|{slot.pair.name}"
    if slot.count is not None:
        return f"{{{slot.name} × {slot.count}}}"
    return slot.name
