"""Register operands of a form: where their numbers stand, and words in which they are all different."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.assembly.sass.control import NO_CONTROL
from warpsmith.assembly.sass.roles import Rule, Slot
from warpsmith.assembly.sass.row import gather, scatter
from warpsmith.assembly.sass.token_bits import field_bits
from warpsmith.assembly.sass.tokens import tokenize

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from warpsmith.assembly.sass.row import Bits, Row, Selector

__all__ = ["default_word", "find_slots", "free_selectors", "in_text_order", "place", "put", "shuffle", "variants"]

_NONE = Rule((), {0: "-"})
_UNIFORM = 58
"""Uniform registers that life ranges have room for, some left at the end."""
_NARROW = 8
"""Bits of a number that may decide like a modifier."""
_NEXT = 16
"""Distance of a branch target that is the next instruction."""


def default_word(row: Row) -> int:
    """Return a legal word of the form, its target, if any, the next instruction."""
    word = int(row.notes["default"], 0) & ~row.mask | row.value | NO_CONTROL
    for f in row.fields:
        if f.kind == "r" and (bits := field_bits(f, hex(_NEXT), "", 0)) is not None:
            word = put(word, f.bits, bits)
    return word


def put(word: int, bits: Bits, value: int) -> int:
    """Return the word with other bits in some runs."""
    return word ^ scatter(gather(word, bits) ^ value, bits)


def find_slots(row: Row, draw: Random) -> list[Slot]:
    """Return the register operands of a form, in no order, with no rules yet.

    Registers are fields, but some have been learned as modifiers, whose texts name `P0`, `P1`, … or `UR0`, `UR1`, …
    """
    slots = [Slot(f.kind, f.bits, False, _NONE) for f in row.fields if f.kind in ("R", "UR", "P", "UP")]
    taken = {f.bits for f in row.fields}
    plain = [s for s in row.selectors if not s.predicates and s.bits not in taken and sum(w for _, w in s.bits) in (3, 4, 6, 8)]
    for selector in plain:
        for word in (default_word(row), *(shuffle(row, default_word(row), draw) for _ in range(60))):
            slot = _as_slot(row, selector, word)
            if slot:
                slots.append(slot)
                break
    return slots


def _as_slot(row: Row, selector: Selector, word: int) -> Slot | None:
    """Return the slot that a selector is, if the text of this word shows its value as a predicate's number."""
    wide = sum(w for _, w in selector.bits) > 4
    high = 0 if wide else gather(word, selector.bits) & 8
    texts: list[list[str]] = []
    for value in (4, 8, 16) if wide else (1, 2, 4):
        text = row.text(put(word, selector.bits, value | high))
        if text is None:
            return None
        texts.append(tokenize(text))
    if len({len(t) for t in texts}) != 1:
        return None
    for names in zip(*texts, strict=True):
        for group in ("R", "UR") if wide else ():
            if names == tuple(f"{group}{v}" for v in (4, 8, 16)):
                return Slot(group, selector.bits, False, _NONE)
        for group in () if wide else ("P", "UP"):
            for inverted in (False, True):
                if names == tuple(f"{group}{v ^ 7 * inverted}" for v in (1, 2, 4)):
                    return Slot(group, _low(selector.bits), inverted, _NONE)
    return None


def _low(bits: Bits) -> Bits:
    """Return the three least significant bits of the runs."""
    out: list[tuple[int, int]] = []
    left = 3
    for low, width in bits:
        if left:
            out.append((low, min(width, left)))
            left -= out[-1][1]
    return tuple(out)


def free_selectors(row: Row, slots: Sequence[Slot]) -> list[Bits]:
    """Return the bits of modifiers: selectors that are no operand's number, bits beside such a number, narrow numbers."""
    owned = 0
    for slot in slots:
        owned |= scatter(-1 & 0xFF, slot.bits)
    out: list[Bits] = []
    for s in row.selectors:
        bits = tuple((low + i, 1) for low, width in s.bits for i in range(width) if low < 105 and not owned >> low + i & 1)
        if not s.predicates and bits:
            out.append(_joined(bits))
    # a mask of channels is printed as a number
    out += [f.bits for f in row.fields if f.kind == "u" and f.width <= _NARROW]
    return list(dict.fromkeys(out))


def _joined(bits: Bits) -> Bits:
    out: list[tuple[int, int]] = []
    for low, width in bits:
        if out and sum(out[-1]) == low:
            out[-1] = (out[-1][0], out[-1][1] + width)
        else:
            out.append((low, width))
    return tuple(out)


def place(word: int, slots: Sequence[Slot], *, backwards: bool) -> int:
    """Give every operand a register of its own, ascending or descending in the order of the slots."""
    for group in ("R", "UR", "P", "UP"):
        mine = [s for s in slots if s.group == group]
        for index, slot in enumerate(reversed(mine) if backwards else mine):
            first, step = _spacing(group, len(mine), backwards=backwards)
            number = first + index * step
            width = sum(w for _, w in slot.bits)
            word = put(word, slot.bits, (number ^ ((1 << width) - 1) if slot.inverted else number) & ((1 << width) - 1))
    return word


def _spacing(group: str, count: int, *, backwards: bool) -> tuple[int, int]:
    """Return first number and distance of the registers put into a form: wide operands should not meet their neighbours, at
    least not the same ones in both placements."""
    if group == "R":
        return 8, 36 if backwards else 32
    if group == "UR":
        return 4, 8 if backwards else min(12, _UNIFORM // count & ~1)
    return 0, 1


def shuffle(row: Row, word: int, draw: Random) -> int:
    """Return the word with other modifiers, and other numbers in its plain fields."""
    for s in row.selectors:
        if not s.predicates and draw.random() < 0.5:
            bits = tuple(run for run in s.bits if run[0] < 105)
            word = put(word, bits, draw.getrandbits(sum(w for _, w in bits)))
    for f in row.fields:
        if f.kind in ("u", "s") and draw.random() < 0.3:
            word = put(word, f.bits, draw.getrandbits(f.width))
    return word


def variants(row: Row, slots: Sequence[Slot], draw: Random, *, mixed: int = 64) -> list[int]:
    """Return words of the form: every modifier with each of its values, and `mixed` words with modifiers at random."""
    base = default_word(row)
    words = [base]
    for bits in free_selectors(row, slots):
        width = sum(w for _, w in bits)
        number = any(f.bits == bits for f in row.fields)  # those are completed when an outcome turns out to depend on them
        values = (
            range(1 << width)
            if width <= (4 if number else 8)
            else [draw.getrandbits(width) for _ in range(8 if number else 64)]
        )
        words += [put(base, bits, v) for v in values]
    words += [shuffle(row, base, draw) for _ in range(mixed)]
    return [w for w in dict.fromkeys(words) if row.covers(w) and row.template(w) is not None]


def in_text_order(row: Row, slots: Sequence[Slot], words: Sequence[int]) -> list[Slot]:
    """Sort the slots as the text names them, judged by words in which all registers differ."""
    order: list[Slot] = []
    for word in words:
        seen = _named(row, slots, word)
        for i, slot in enumerate(seen):
            if slot not in order:
                before = next((order.index(s) + 1 for s in reversed(seen[:i]) if s in order), 0)
                order.insert(before, slot)
    return order + [s for s in slots if s not in order]


def _named(row: Row, slots: Sequence[Slot], word: int) -> list[Slot]:
    by_name = {f"{s.group}{s.number(word)}": s for s in slots}
    return [by_name[t] for t in dict.fromkeys(tokenize(row.text(word) or "")) if t in by_name]
