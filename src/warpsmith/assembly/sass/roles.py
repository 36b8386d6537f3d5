"""Which registers a form reads and writes: rows of text, found by asking the disassembler for life ranges.

A file `roles/<architecture>.tsv` has a row a form: class and key as in the instruction table, the *slots* in the order of the
text, and the registers that no operand names. A slot is `group:bits=rule`, `~` behind the bits where the number stands
inverted; a rule is an outcome, or `[bits:outcome=values;outcome=values]` where other bits of the word decide (values are
numbers and ranges). An outcome is `r2` (two registers are read), `w1`, `r4w4`, or `-` (neither); `?` is a rule that nothing is
known of. What no rule knows is unknown, never assumed. `inherit OTHER` takes the rows of another architecture for forms that
the file does not state.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, final

from warpsmith.assembly.sass.row import gather
from warpsmith.assembly.sass.table_text import bits_text, key_text, parse_bits
from warpsmith.base.errors import DeclarationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from warpsmith.assembly.sass.row import Bits, Row

__all__ = [
    "ROLES_FOLDER",
    "FormRoles",
    "Outcome",
    "Rule",
    "Slot",
    "form_text",
    "load_roles",
    "outcome_of",
    "parse_form",
    "roles_of",
]

ROLES_FOLDER = Path(__file__).with_name("roles")
COLUMNS = ("class", "key", "slots", "implicit")
_OUTCOME = re.compile(r"(?:r(\d+))?(?:w(\d+))?")
_SLOT = re.compile(r"(R|UR|P|UP):([\d+,]+)(~?)=(.+)")
_IMPLICIT = re.compile(r"(R|UR|P|UP)(\d+)(r\d+(?:w\d+)?|w\d+)")


@final
@dataclass(frozen=True, slots=True, order=True)
class Outcome:
    """What an instruction does with the registers from a number on: how many it reads, how many it writes."""

    reads: int = 0
    writes: int = 0

    def __str__(self) -> str:
        return (f"r{self.reads}" if self.reads else "") + (f"w{self.writes}" if self.writes else "") or "-"


@final
@dataclass(frozen=True, slots=True)
class Rule:
    """Text chosen by the value of some bits; without bits it is one text for all words."""

    bits: Bits
    table: Mapping[int, str]

    def of(self, word: int) -> str | None:
        """Return the outcome's text for a word, None where it is unknown."""
        return self.table.get(gather(word, self.bits))

    def __str__(self) -> str:
        if not self.bits:
            return self.table.get(0, "?")
        values: dict[str, list[int]] = {}
        for key, text in sorted(self.table.items()):
            values.setdefault(text, []).append(key)
        return f"[{bits_text(self.bits)}:" + ";".join(f"{t}={_ranges(v)}" for t, v in values.items()) + "]"


@final
@dataclass(frozen=True, slots=True)
class Slot:
    """A register operand: where its number stands, and what the instruction does with it."""

    group: str
    """`R`, `UR`, `P` or `UP`."""
    bits: Bits
    inverted: bool
    rule: Rule

    def number(self, word: int) -> int:
        """Return the register's number; all ones is `RZ`, `PT`."""
        number = gather(word, self.bits)
        return number ^ ((1 << sum(w for _, w in self.bits)) - 1) if self.inverted else number

    def zero(self, number: int) -> bool:
        """Say whether the number is that of `RZ`, `URZ`, `PT` or `UPT`, which are never written and always known."""
        return number == (1 << sum(w for _, w in self.bits)) - 1

    def outcome(self, word: int) -> Outcome | None:
        """Return what happens to the register and those behind it; None where it is unknown."""
        return outcome_of(self.rule.of(word))

    def __str__(self) -> str:
        return f"{self.group}:{bits_text(self.bits)}{'~' if self.inverted else ''}={self.rule}"


@final
@dataclass(frozen=True, slots=True)
class FormRoles:
    """The registers of a form."""

    slots: tuple[Slot, ...]
    """In the order in which the text names them."""
    implicit: Rule
    """Registers that no operand names: `R0w1+P0r7`, or `-`."""

    def unnamed(self, word: int) -> tuple[tuple[str, int, Outcome], ...] | None:
        """Return (group, first number, outcome) for registers that no operand names; None where that is unknown."""
        text = self.implicit.of(word)
        return None if text is None else _unnamed(text)


@cache
def outcome_of(text: str | None) -> Outcome | None:
    """Read the text of an outcome; None for None."""
    if text is None:
        return None
    m = _OUTCOME.fullmatch("" if text == "-" else text)
    if not m:
        raise DeclarationError(f"bad outcome {text!r}; write r2, w1, r4w4 or -")
    return Outcome(int(m[1] or 0), int(m[2] or 0))


@cache
def _unnamed(text: str) -> tuple[tuple[str, int, Outcome], ...]:
    out: list[tuple[str, int, Outcome]] = []
    for part in text.split("+") if text != "-" else ():
        m = _IMPLICIT.fullmatch(part)
        if not m:
            raise DeclarationError(f"bad implicit registers {part!r}; write R0w1 or P0r7")
        out.append((m[1], int(m[2]), outcome_of(m[3]) or Outcome()))
    return tuple(out)


def _ranges(values: list[int]) -> str:
    parts: list[str] = []
    start = last = values[0]
    for value in (*values[1:], -1):
        if value == last + 1:
            last = value
            continue
        parts.append(f"{start}-{last}" if last > start else str(start))
        start = last = value
    return ",".join(parts)


def _parse_rule(text: str) -> Rule:
    if text == "?":
        return Rule((), {})
    if not text.startswith("["):
        return Rule((), {0: text})
    where, _, entries = text[1:-1].partition(":")
    table: dict[int, str] = {}
    for entry in entries.split(";"):
        outcome, _, values = entry.partition("=")
        for part in values.split(","):
            first, _, last = part.partition("-")
            for value in range(int(first), int(last or first) + 1):
                if table.setdefault(value, outcome) != outcome:
                    raise DeclarationError(f"value {value} stands twice in {text!r}")
    return Rule(parse_bits(where), table)


def parse_form(line: str) -> tuple[tuple[str, str], FormRoles]:
    """Read a row; return the form's class and key, and its registers. Raises `DeclarationError` for what breaks the legend."""
    columns = line.split("\t")
    if len(columns) != len(COLUMNS):
        raise DeclarationError(f"{len(columns)} columns instead of {len(COLUMNS)} ({', '.join(COLUMNS)})")
    slots: list[Slot] = []
    for part in columns[2].split() if columns[2] != "-" else ():
        m = _SLOT.fullmatch(part)
        if not m:
            raise DeclarationError(f"bad slot {part!r}; write group:low+width=outcome, e.g. R:16+8=w1")
        slots.append(Slot(m[1], parse_bits(m[2]), bool(m[3]), _parse_rule(m[4])))
    roles = FormRoles(tuple(slots), _parse_rule(columns[3]))
    for slot in slots:
        for text in slot.rule.table.values():
            outcome_of(text)
    for text in roles.implicit.table.values():
        _unnamed(text)
    return (columns[0], columns[1]), roles


def form_text(name: str, key: str, roles: FormRoles) -> str:
    """Return the row of a form; the inverse of `parse_form`."""
    return "\t".join((name, key, " ".join(map(str, roles.slots)) or "-", str(roles.implicit)))


@cache
def load_roles(name: str, folder: Path = ROLES_FOLDER) -> dict[tuple[str, str], FormRoles]:
    """Return (class, key) -> registers for a table's name, e.g. `sm_90a`; empty where the folder has no such file."""
    path = folder / f"{name}.tsv"
    if not path.exists():
        return {}
    out: dict[tuple[str, str], FormRoles] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            if line.startswith("inherit "):
                out = {**load_roles(line.split()[1], folder), **out}
            elif line and not line.startswith("#"):
                key, roles = parse_form(line)
                out[key] = roles
        except (DeclarationError, ValueError) as error:
            raise DeclarationError(f"{path.name}:{number}: {error}") from error
    return out


def roles_of(row: Row, table: str, folder: Path = ROLES_FOLDER) -> FormRoles | None:
    """Return the registers of a form of a table; None where they are unknown."""
    return load_roles(table, folder).get((row.name, key_text(row)))
