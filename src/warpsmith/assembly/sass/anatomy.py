"""What each bit range of a word is: opcode, operands, modifiers with what else they could say, scheduling, ignored bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from warpsmith.assembly.sass.row import gather
from warpsmith.assembly.sass.unknown import explain

if TYPE_CHECKING:
    from warpsmith.assembly.sass.program import Instruction
    from warpsmith.assembly.sass.row import Bits, Row, Selector

__all__ = ["Part", "anatomy"]

_MANY = 8
"""Other texts of a modifier that are listed."""


@final
@dataclass(frozen=True, slots=True)
class Part:
    """A bit range of a word."""

    bits: Bits
    """Runs (lowest bit, width), the least significant first."""
    value: int
    kind: str
    """`opcode`, `key` (bits that choose the form), `operand`, `modifier`, `control`, `ignored`, `unknown`."""
    meaning: str


def anatomy(i: Instruction) -> list[Part]:
    """Return the parts of an instruction's word by their lowest bit; of an unknown word, the opcode, what is unknown, and the
    control bits."""
    form = i.layout
    word = i.raw
    if form is None:
        why = explain(i.table, word)
        parts = [
            Part(((0, 12),), word & 0xFFF, "opcode", "bits 0-11, by which forms are looked up"),
            Part(((12, 93),), word >> 12 & ((1 << 93) - 1), "unknown", f"no form of {i.table.arch} covers the word: {why}"),
        ]
        return parts + _control(i)
    row = form.row
    parts = [Part(((0, 12),), word & 0xFFF, "opcode", f"{i.mnemonic}: {i.description}")]
    key = row.mask & ~0xFFF
    parts += [
        Part((run,), gather(word, (run,)), "key", f"chooses the form {row.name} among those of the opcode")
        for run in _runs(key)
    ]
    parts += _fields(i, row)
    parts += [_modifier(row, s, word) for s in row.selectors if _is_modifier(row, s)]
    parts += [Part((run,), gather(word, (run,)), "ignored", "not looked at by the disassembler") for run in _runs(row.ignored)]
    return sorted(parts + _control(i), key=lambda p: (p.bits[0][0], p.bits))


def _fields(i: Instruction, row: Row) -> list[Part]:
    out: list[Part] = []
    named = {o.bits: o for o in i.operands if o.bits}
    for f in row.fields:
        operand = named.get(f.bits)
        text = f.text(i.raw, i.address)
        if operand is None:
            meaning = f"{text}, which the text does not show"
        elif operand.group in ("R", "UR", "P", "UP"):
            meaning = f"{operand.text}: {operand.role}" + (_several(operand.group, operand.number, operand.width))
        else:
            meaning = f"{operand.text}: {_KINDS.get(f.kind, 'a number')}"
        out.append(Part(f.bits, gather(i.raw, f.bits), "operand", meaning))
    return out


_KINDS = {
    "u": "a number without sign", "s": "a number in two's complement", "r": "a distance from the next instruction's address",
    "f32": "a 32-bit float", "f64": "the upper half of a double", "f16": "a 16-bit float", "bf16": "a bfloat16",
}  # fmt: skip


def _several(group: str, number: int | None, width: int | None) -> str:
    if number is None or width is None or width < 2:
        return ""
    return f" {group}{number} to {group}{number + width - 1}"


def _is_modifier(row: Row, s: Selector) -> bool:
    """Say whether a selector has bits of its own, reuse bits aside, which stand under control."""
    return not s.predicates and any(low < 105 for low, _ in s.bits)


def _modifier(row: Row, s: Selector, word: int) -> Part:
    value = s.of(word)
    texts = {v: _texts(row, s, word, v) for v in range(1 << min(sum(w for _, w in s.bits), 8))}
    now = texts.get(value) or _texts(row, s, word, value)
    others: dict[str, list[int]] = {}
    for v, text in texts.items():
        if text is not None and text != now:
            others.setdefault(text, []).append(v)
    shown = [f"{v[0]} {_quoted(t)}" for t, v in list(others.items())[:_MANY]]
    more = f", and {len(others) - _MANY} more" if len(others) > _MANY else ""
    tail = f" (others: {', '.join(shown)}{more})" if shown else ""
    return Part(s.bits, value, "modifier", f"{_quoted(now or '')}{tail}")


def _texts(row: Row, s: Selector, word: int, value: int) -> str | None:
    """Return what the pieces that depend on a selector print with another value of it; None where one has no text."""
    index = row.selectors.index(s)
    out = ""
    for piece in row.pieces:
        if index in piece.selectors:
            key = tuple(value if i == index else row.selectors[i].of(word) for i in piece.selectors)
            template = piece.table.get(key)
            if template is None:
                return None
            out += "".join(t if isinstance(t, str) else row.fields[t].text(word, 0) for t in template)
    return out


def _quoted(text: str) -> str:
    return f"`{text.strip()}`" if text.strip() else "nothing printed"


def _control(i: Instruction) -> list[Part]:
    c = i.control
    word = i.raw
    scoreboard = lambda n, what: f"scoreboard {n} is released {what}" if n is not None else "no scoreboard"  # noqa: E731
    steady = word >> 109 & 1
    rows = (
        (105, 4, f"stall: {c.stall} cycles until the next instruction of the warp"),
        (109, 1, "the warp keeps its turn" if steady else "yield: another warp may go first"),
        (110, 3, f"write: {scoreboard(c.write, 'when the result is there')}"),
        (113, 3, f"read: {scoreboard(c.read, 'when the sources have been read')}"),
        (116, 6, f"wait: {'for scoreboards ' + ', '.join(map(str, c.wait)) if c.wait else 'for none'}"),
        (122, 3, _reuse(c.reuse, steady)),
    )
    out = [Part(((low, width),), word >> low & ((1 << width) - 1), "control", meaning) for low, width, meaning in rows]
    return [*out, Part(((125, 3),), word >> 125, "ignored", "not looked at by the disassembler")]


def _reuse(reuse: int, steady: int) -> str:
    if not reuse:
        return "reuse: no operand is kept for the next instruction"
    slots = ", ".join(name for k, name in enumerate("ABC") if reuse >> k & 1)
    return (
        f"reuse: operand slots {slots} are kept for the next instruction" if steady else f"{reuse}, not printed without bit 109"
    )


def _runs(mask: int) -> list[tuple[int, int]]:
    out: list[tuple[int, int]] = []
    for bit in range(128):
        if mask >> bit & 1:
            if out and sum(out[-1]) == bit:
                out[-1] = (out[-1][0], out[-1][1] + 1)
            else:
                out.append((bit, 1))
    return out
