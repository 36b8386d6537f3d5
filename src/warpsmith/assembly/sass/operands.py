"""Operands of a decoded instruction: what is read, what is written, how many registers, and in which group."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from warpsmith.assembly.sass.mnemonics import mnemonic
from warpsmith.assembly.sass.roles import ROLES_FOLDER, load_roles, outcome_of
from warpsmith.assembly.sass.table_text import key_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from warpsmith.assembly.sass.columns import Columns
    from warpsmith.assembly.sass.decode import Form
    from warpsmith.assembly.sass.roles import FormRoles, Outcome, Slot
    from warpsmith.assembly.sass.row import Bits, Field, Row
    from warpsmith.assembly.sass.table import Table

__all__ = ["Operand", "OperandColumn", "RegisterModel", "Registers", "model_of"]

_LEAF = re.compile(
    r"(?P<c>c\[[^\]]*\] ?\[[^\]]*\])"
    r"|(?P<label>`\([^)]*\))"
    r"|(?P<reg>(?:U?R(?:Z|\d+)|U?P(?:T|\d))(?![A-Za-z0-9_]))(?:\.\w+)*"
    r"|(?P<B>B\d+)(?![\w])|(?P<SB>SB\d)(?![\w])|(?P<GSB>gsb\d)(?![\w])|(?P<PR>U?PR)(?![\w])"
    r"|(?P<SR>SR_?\w+(?:\.\w+)*)"
    r"|(?P<imm>[+-]?(?:INF|QNAN|SNAN)|-?0x[0-9a-f]+(?!\w)|-?\d+(?:\.\d*)?(?:e[+-]\d+)?(?!\w))"
    r"|(?P<word>[A-Za-z_.][\w.]*)"
)
_SIGN = re.compile(r"[-~!|]+$")
_ROLES = {"r": "read", "w": "write", "rw": "read write"}
_UNKNOWN = "unknown"


@final
@dataclass(frozen=True, slots=True)
class Operand:
    """One thing that an instruction names: a register with those behind it, a constant, a number, a target; or registers
    that it uses without naming them."""

    text: str
    """As the text has it, with sign and modifiers: `-R4.reuse`, `R2.64`, `c[0x0][0x210]`; '' for what is not named."""
    role: str
    """`read`, `write`, `read write`, `none` (named, and neither read nor written), or `unknown`."""
    group: str
    """`R`, `UR`, `P`, `UP` (registers), `B` (convergence barriers), `SB` and `GSB` (scoreboards), `SR` (special registers), `c`
    (constant banks), `imm`, `label`, `word` (a modifier that stands among the operands)."""
    number: int | None
    """The register's number; None for `RZ`, `PT` and what is no register."""
    width: int | None
    """Registers from `number` on that are used; None where that is unknown or means nothing."""
    position: int
    """Which of the operands between commas it belongs to; -1 for the guard and for registers that are not named."""
    bits: Bits
    """Where the number stands in the word, runs (lowest bit, width); empty for what is not a field of its own."""


@final
@dataclass(frozen=True, slots=True)
class Registers:
    """Registers that an instruction uses, as (group, number); `RZ` and `PT` are not among them."""

    reads: frozenset[tuple[str, int]]
    writes: frozenset[tuple[str, int]]
    complete: bool
    """False where the tables do not know all of it."""


@final
@dataclass(frozen=True, slots=True)
class OperandColumn:
    """A register operand of all instructions of a group."""

    group: str
    """`R`, `UR`, `P` or `UP`."""
    bits: Bits
    """Where its number stands, runs (lowest bit, width)."""
    numbers: Sequence[int]
    """The register of each instruction; all ones for `RZ`, `PT`."""
    outcomes: Sequence[Outcome | None]
    """How many registers from there on each instruction reads and writes; None where that is unknown."""


@final
class RegisterModel:
    """What the forms of one table do with registers."""

    def __init__(self, table: Table, folder: Path = ROLES_FOLDER) -> None:
        self.table = table
        self._known = load_roles(table.arch, folder)
        self._by_row: dict[int, FormRoles | None] = {}

    def roles(self, row: Row) -> FormRoles | None:
        """Return the registers of a form, None where none are known."""
        key = id(row)
        if key not in self._by_row:
            self._by_row[key] = self._known.get((row.name, key_text(row)))
        return self._by_row[key]

    def registers(self, form: Form, word: int) -> Registers:
        """Return the registers that a word of the form reads and writes.

        A guarded instruction may do nothing: its writes are those it makes where the guard holds.
        """
        roles = self.roles(form.row)
        if roles is None:
            return Registers(frozenset(), frozenset(), False)
        reads: set[tuple[str, int]] = set()
        writes: set[tuple[str, int]] = set()
        complete = True
        for group, number, outcome in _uses(roles, word):
            if outcome is None:
                complete = False
            else:
                reads.update((group, number + i) for i in range(outcome.reads))
                writes.update((group, number + i) for i in range(outcome.writes))
        what = mnemonic(_name(form))
        for name, role in what.names.items() if what else ():
            if name in ("PR", "UPR"):
                every = {(name[:-1], i) for i in range(7)}
                reads |= every if "r" in role else set()
                writes |= every if "w" in role else set()
        return Registers(frozenset(reads), frozenset(writes), complete)

    def columns(self, group: Columns) -> list[OperandColumn]:
        """Return the register operands of a group of instructions that share a row, in the order of the text.

        Empty for words that the table does not know, and for a row of which no registers are known.
        """
        roles = self.roles(group.row) if group.row is not None else None
        out: list[OperandColumn] = []
        for slot in roles.slots if roles else ():
            ones = (1 << sum(w for _, w in slot.bits)) - 1
            numbers = [int(n) ^ ones for n in group.column(slot.bits)] if slot.inverted else group.column(slot.bits)
            rule = slot.rule
            if rule.bits:
                outcomes = [outcome_of(rule.table.get(int(v))) for v in group.column(rule.bits)]
            else:
                outcomes = [outcome_of(rule.table.get(0))] * len(group.indexes)
            out.append(OperandColumn(slot.group, slot.bits, numbers, outcomes))
        return out

    def operands(self, form: Form, word: int, address: int) -> tuple[Operand, ...]:
        """Return the operands of a word of the form, in the order of its text; registers that are not named come last."""
        roles = self.roles(form.row)
        text, spans = _spans(form, word, address)
        slots = list(roles.slots) if roles else []
        out = [_operand(found, slots, spans, form, word) for found in _leaves(text)]
        unnamed = roles.unnamed(word) if roles else None
        if unnamed is None:
            out.append(Operand("", _UNKNOWN, "R", None, None, -1, ()))
        for group, number, outcome in unnamed or ():
            out.append(Operand("", _role(outcome), group, number, _width(outcome), -1, ()))
        return tuple(out)


def _uses(roles: FormRoles, word: int) -> Iterator[tuple[str, int, Outcome | None]]:
    for slot in roles.slots:
        number = slot.number(word)
        if not slot.zero(number):
            yield slot.group, number, slot.outcome(word)
    unnamed = roles.unnamed(word)
    if unnamed is None:
        yield "R", 0, None
    else:
        yield from unnamed


def _name(form: Form) -> str:
    return form.row.notes.get("mnemonic", "").partition("/")[0]


def _spans(form: Form, word: int, address: int) -> tuple[str, dict[int, Field]]:
    """Return the text, and the fields by the position at which they start."""
    text = ""
    spans: dict[int, Field] = {}
    for part in form.template:
        if isinstance(part, int):
            f = form.row.fields[part]
            spans[len(text)] = f
            text += f.text(word, address)
        else:
            text += part
    return text, spans


@final
@dataclass(frozen=True, slots=True)
class _Leaf:
    group: str
    text: str
    token: str
    start: int
    position: int


def _leaves(text: str) -> Iterator[_Leaf]:
    """Yield what a text names: the guard, then the parts of its operands."""
    at = 0
    if text.startswith("@"):
        at = text.index(" ") + 1
        token = text[1 : at - 1].lstrip("!")
        yield _Leaf("reg", text[1 : at - 1], token, at - 1 - len(token), -1)
    at = text.find(" ", at)
    if at < 0:
        return
    position = depth = 0
    while at < len(text):
        c = text[at]
        m = _LEAF.match(text, at)
        if m and m.lastgroup:
            sign = _SIGN.search(text[:at])
            whole = (sign[0] if sign and m.lastgroup != "word" else "") + m[0]
            end = m.end()
            if whole.count("|") == 1 and text[end : end + 1] == "|":
                whole += "|"
            yield _Leaf(m.lastgroup, whole, m[m.lastgroup], at, position)
            at = end
            continue
        depth += (c in "[{") - (c in "]}")
        position += c == "," and not depth
        at += 1


def _operand(leaf: _Leaf, slots: list[Slot], spans: dict[int, Field], form: Form, word: int) -> Operand:
    found = spans.get(leaf.start)
    if leaf.group == "reg":
        return _register(leaf, slots, found.bits if found else None, word)
    if leaf.group in ("B", "SB", "GSB", "PR"):
        return _named(leaf, form)
    group = "label" if found and found.kind == "r" else leaf.group
    return Operand(
        leaf.text, "none" if group == "word" else "read", group, None, None, leaf.position, found.bits if found else ()
    )


def _register(leaf: _Leaf, slots: list[Slot], bits: Bits | None, word: int) -> Operand:
    m = re.match(r"(U?[RP])(\d*)", leaf.token)
    group, number = (m[1], int(m[2]) if m[2] else None) if m else ("R", None)
    slot = _slot(slots, leaf.position < 0, (group, number), bits, word)
    if slot is None and number is not None and (inner := _within(slots, group, number, word)):
        return Operand(leaf.text, _role(inner.outcome(word)), group, number, 1, leaf.position, inner.bits)
    if slot is None:
        return Operand(leaf.text, _UNKNOWN, group, number, None, leaf.position, bits or ())
    outcome = slot.outcome(word)
    width = None if outcome is None else _width(outcome)
    return Operand(leaf.text, _role(outcome), group, number, width, leaf.position, slot.bits)


_GUARD = 12
"""The lowest bit of the guard's number, in every form."""


def _slot(slots: list[Slot], guard: bool, register: tuple[str, int | None], bits: Bits | None, word: int) -> Slot | None:
    """Find the slot of a register in the text; slots stand in its order: predicates before the one found are done with."""
    group, number = register
    for i, slot in enumerate(slots):
        if slot.group != group or (slot.bits[0][0] == _GUARD) != guard:
            continue
        mine = slot.number(word)
        if slot.bits == bits if bits else slot.zero(mine) if number is None else mine == number:
            if not bits and group in ("P", "UP"):
                slots[:] = [s for s in slots[:i] if s.group != group] + slots[i + 1 :]
            return slot
    return None


def _within(slots: list[Slot], group: str, number: int, word: int) -> Slot | None:
    """Find the operand of which a register is a later part: a form may name the parts, `tmem[UR4], idesc[UR5]`."""
    for slot in slots:
        outcome = slot.outcome(word)
        first = slot.number(word)
        if slot.group == group and outcome is not None and not slot.zero(first) and 0 < number - first < _width(outcome):
            return slot
    return None


def _named(leaf: _Leaf, form: Form) -> Operand:
    """Return a name that life ranges do not show; the mnemonic says what becomes of it."""
    key = leaf.token if leaf.group == "PR" else leaf.group
    what = mnemonic(_name(form))
    sign = what.names.get(key) if what else None
    if sign == "wr":
        sign = "w" if leaf.position == 0 else "r"
    role = _ROLES.get(sign or "", _UNKNOWN)
    if leaf.group == "PR":
        return Operand(leaf.text, role, leaf.token[:-1], 0, 7, leaf.position, ())
    digits = re.sub(r"\D", "", leaf.token)
    return Operand(leaf.text, role, leaf.group, int(digits) if digits else None, 1, leaf.position, ())


def _role(outcome: Outcome | None) -> str:
    if outcome is None:
        return _UNKNOWN
    return _ROLES.get(("r" if outcome.reads else "") + ("w" if outcome.writes else ""), "none")


def _width(outcome: Outcome) -> int:
    return max(outcome.reads, outcome.writes)


_models: dict[int, tuple[Table, RegisterModel]] = {}


def model_of(table: Table) -> RegisterModel:
    """Return the register model of a table, made once."""
    found = _models.get(id(table))
    if found is None:
        found = _models[id(table)] = (table, RegisterModel(table))  # the table is kept, so that its id stays its own
    return found[1]
