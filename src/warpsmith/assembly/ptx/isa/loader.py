"""Load the instruction tables: the only place that knows their columns (docs/design/ptx-declarations.md).

A file is split into lines and indexed by opcode; the rows of an opcode are parsed, and prove themselves, when first asked for.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, final

from warpsmith.assembly.ptx.isa.counts import COMPUTED_TYPES, COUNTS
from warpsmith.assembly.ptx.isa.operand import BadColumnError, OperandSpec, parse_operands
from warpsmith.assembly.ptx.isa.row import Element, Match, Need, Row, fit
from warpsmith.assembly.ptx.isa.rules import RULES
from warpsmith.base.arch import parse_requirement
from warpsmith.base.errors import DeclarationError, InputError
from warpsmith.base.ptx_types import TYPES

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Table", "match", "opcodes", "rows"]

_NOT_TABLES = ("headings.txt",)
_COLUMNS = ("pattern", "operands", "ptx", "arch", "section")
_LET = re.compile(r"let\s+([A-Z][A-Z0-9_]*)\s*=\s*(.*)$")
_OPCODE = re.compile(r"[a-z][a-z0-9_]*")
_AVAILABILITY = r"@(?P<need>(?:\d+\.\d+)?(?:/sm_\d+[af+]?(?:,sm_\d+[af+]?)*)?)"
_ELEMENT = re.compile(
    r"\.(?P<word>[A-Za-z0-9_]+(?:::[A-Za-z0-9_]+(?::[0-9]+)?)*)(?:\{(?P<set>[^{}]*)\})?"
    + f"(?:{_AVAILABILITY})?"
    + r"(?P<optional>\?)?(?P<fixed>!)?"
)
_ALTERNATIVE = re.compile(r"(?P<word>\$?[A-Za-z0-9_]+(?:::[A-Za-z0-9_]+(?::[0-9]+)?)*)" + f"(?:{_AVAILABILITY})?$")
_Columns = list[tuple[str, int, int]]
"""(text, line from 1, column from 1) of each column of a row."""
_Words = dict[str, tuple[Need, ...]]


@final
class Table:
    """Instruction tables given as texts by file name."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        self._lines: dict[str, list[tuple[str, _Columns]]] = {}
        self._sets: dict[tuple[str, str], tuple[str, int, int]] = {}
        self._expanded: dict[tuple[str, str], _Words] = {}
        self._rows: dict[str, tuple[Row, ...]] = {}
        self._matches: dict[str, tuple[Match, ...]] = {}
        for name in sorted(sources):
            self._index(name, sources[name])

    @property
    def opcodes(self) -> tuple[str, ...]:
        """Every opcode that has a row."""
        return tuple(self._lines)

    def rows(self, opcode: str | None = None) -> tuple[Row, ...]:
        """Return the rows of `opcode`, or all rows in table order; an unknown opcode has none."""
        if opcode is None:
            return tuple(row for name in self._lines for row in self.rows(name))
        found = self._rows.get(opcode)
        if found is None:
            lines = self._lines.get(opcode, [])
            found = tuple(self._row(file, columns, opcode, n) for n, (file, columns) in enumerate(lines))
            _refuse_duplicates(found)
            self._rows[opcode] = found
        return found

    def match(self, mnemonic: str) -> tuple[Match, ...]:
        """Return a match for every row that the dotted `mnemonic` fits, () for none. Cached.

        Modifiers in the manual's order win; otherwise any order is accepted, as ptxas does, but for types and the words that
        belong to the instruction's name (`!`).
        """
        found = self._matches.get(mnemonic)
        if found is None:
            opcode, *words = mnemonic.split(".")
            candidates = self.rows(opcode)
            found = tuple(m for row in candidates if (m := fit(row, mnemonic, words, True)))
            found = found or tuple(m for row in candidates if (m := fit(row, mnemonic, words, False)))
            self._matches[mnemonic] = found
        return found

    # --- lines ------------------------------------------------------------------------------------------------------

    def _index(self, file: str, text: str) -> None:
        last: _Columns | str = ""
        for number, line in enumerate(text.split("\n"), 1):
            if not line.strip() or line.startswith("#"):
                continue
            if m := _LET.match(line):
                self._define(file, m, number)
                last = m[1]
            elif line[0] != " ":
                last = _split_columns(line, number)
                opcode = _OPCODE.match(line)
                if not opcode:
                    raise _error(file, number, 1, "a row begins with an opcode")
                self._lines.setdefault(opcode[0], []).append((file, last))
            elif not last:
                raise _error(file, number, 1, "nothing to continue")
            elif isinstance(last, str):
                had, at, column = self._sets[file, last]
                self._sets[file, last] = (f"{had} {line.strip()}", at, column)
            else:
                last += _split_columns(line, number)

    def _define(self, file: str, m: re.Match[str], number: int) -> None:
        shared = "sets.txt"
        if (file, m[1]) in self._sets or (shared, m[1]) in self._sets:
            raise _error(file, number, m.start(1) + 1, f"set {m[1]} is already defined")
        self._sets[file, m[1]] = (m[2], number, m.start(2) + 1)

    # --- rows -------------------------------------------------------------------------------------------------------

    def _row(self, file: str, columns: _Columns, opcode: str, index: int) -> Row:
        if len(columns) < len(_COLUMNS):
            text, line, column = columns[-1]
            missing = _COLUMNS[len(columns)]
            raise _error(file, line, column + len(text), f"the row ends before its column {missing!r}")
        cells = dict(zip(_COLUMNS, columns, strict=False))
        at = cells["pattern"]
        try:
            elements = self._pattern(file, at[0], len(opcode))
            at = cells["operands"]
            specs = parse_operands(at[0])
            _prove_operands(specs, elements)
            at = cells["ptx"]
            version = _version(at[0])
            at = cells["arch"]
            arch = _requirement(at[0], 0)
            at = cells["section"]
            if not re.fullmatch(r"9\.7(\.\d+)+", at[0]):
                raise BadColumnError(0, f"not a section of the instruction chapter: {at[0]!r}")
            keys: dict[str, str] = {}
            for at in columns[len(_COLUMNS) :]:
                keys.update(_key(at[0], keys))
        except BadColumnError as bad:
            raise _error(file, at[1], at[2] + bad.offset, bad.message) from None
        literals = [e.name for e in elements if e.kind == "literal"]
        types = [TYPES[w] for w in literals if w in TYPES]
        return Row(
            f"{opcode}#{index}",
            opcode,
            cells["pattern"][0].replace("!", ""),
            cells["operands"][0],
            elements,
            specs,
            version,
            arch,
            cells["section"][0],
            tuple(keys["rule"].split(",")) if "rule" in keys else (),
            keys.get("refused", "").replace("_", " "),
            _dated("removed", keys),
            _dated("late", keys),
            f"{file}:{cells['pattern'][1]}",
            frozenset(w for e in elements for w in e.words),
            frozenset(literals),
            types[-1] if types else None,
        )

    def _pattern(self, file: str, text: str, at: int) -> tuple[Element, ...]:
        elements: list[Element] = []
        names: set[str] = set()
        while at < len(text):
            m = _ELEMENT.match(text, at)
            if not m:
                raise BadColumnError(at, f"not a pattern: {text[at:]!r}")
            word, alternatives = m["word"], m["set"]
            needs = _needs(word, m["need"], at)
            if alternatives is not None:
                words = self._alternatives(file, alternatives, m.start("set"), ())
                words = {w: (*n, *(Need(f".{w}", x.ptx, x.arch) for x in needs)) for w, n in words.items()}
                element = Element("choice", word, words, bool(m["optional"]), bool(m["fixed"]))
            else:
                kind = "flag" if m["optional"] else "literal"
                element = Element(kind, word, {word: needs}, bool(m["optional"]), bool(m["fixed"]))
                if needs and not m["optional"]:
                    raise BadColumnError(at, f"the availability of the literal .{word} belongs in the columns ptx and arch")
            if element.fixed and not all(e.fixed for e in elements):
                raise BadColumnError(at, f"only the first words may be fixed with '!', not .{word}")
            if element.kind != "literal":
                if word in names:
                    raise BadColumnError(at, f"two flags or choices are called {word!r}")
                names.add(word)
            elements.append(element)
            at = m.end()
        return tuple(elements)

    def _alternatives(self, file: str, text: str, offset: int, within: tuple[str, ...]) -> _Words:
        out: _Words = {}
        for part in text.split("|"):
            stripped = part.strip()
            m = _ALTERNATIVE.match(stripped)
            if not m:
                raise BadColumnError(offset, f"not an alternative: {stripped!r}")
            needs = _needs(m["word"], m["need"], offset)
            found = self._expand(file, m["word"][1:], offset, within) if m["word"].startswith("$") else {m["word"]: ()}
            for word, own in found.items():
                if word in out:
                    raise BadColumnError(offset, f"alternative {word!r} twice")
                out[word] = (*own, *(Need(f".{word}", n.ptx, n.arch) for n in needs))
            offset += len(part) + 1
        return out

    def _expand(self, file: str, name: str, offset: int, within: tuple[str, ...]) -> _Words:
        key = next((k for k in ((file, name), ("sets.txt", name)) if k in self._sets), None)
        if key is None:
            raise BadColumnError(offset, f"unknown set {name!r}")
        if name in within:
            raise BadColumnError(offset, f"set {name!r} contains itself")
        if key not in self._expanded:
            text, line, column = self._sets[key]
            try:
                self._expanded[key] = self._alternatives(key[0], text, 0, (*within, name))
            except BadColumnError as bad:
                raise _error(key[0], line, column + bad.offset, bad.message) from None
        return self._expanded[key]


def _split_columns(line: str, number: int) -> _Columns:
    return [(m[0], number, m.start() + 1) for m in re.finditer(r"\S+(?: \S+)*", line)]


def _error(file: str, line: int, column: int, message: str) -> DeclarationError:
    return DeclarationError(f"{file}:{line}:{column}: {message}")


def _version(text: str) -> tuple[int, int]:
    m = re.fullmatch(r"(\d+)\.(\d+)", text)
    if not m:
        raise BadColumnError(0, f"not a PTX version: {text!r}")
    return int(m[1]), int(m[2])


def _requirement(text: str, offset: int):
    try:
        return parse_requirement(text)
    except InputError as e:
        raise BadColumnError(offset, str(e)) from None


def _needs(word: str, text: str | None, offset: int) -> tuple[Need, ...]:
    if text is None:
        return ()
    version, _, arch = text.partition("/")
    if not version and not arch:
        raise BadColumnError(offset, f"'@' of {word!r} states no availability; write e.g. @7.0/sm_80+")
    return (Need(f".{word}", _version(version) if version else None, _requirement(arch, offset) if arch else None),)


def _dated(key: str, keys: Mapping[str, str]) -> Need | None:
    """Read a key that is a PTX version and architectures: `removed=6.4/sm_70+`, `late=8.1/sm_89`."""
    return _needs(key, keys[key], 0)[0] if key in keys else None


def _key(text: str, had: Mapping[str, str]) -> dict[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not value or name not in ("rule", "refused", "removed", "late"):
        raise BadColumnError(0, f"not a key: {text!r}; write rule=name, refused=reason, removed=6.4/sm_70+ or late=8.1/sm_89")
    if name in had:
        raise BadColumnError(0, f"key {name!r} twice")
    if name in ("removed", "late"):
        found = _dated(name, {name: value})
        if name == "late" and found and not (found.ptx and found.arch):
            raise BadColumnError(0, f"late names a PTX version and architectures, not {value!r}; write late=8.1/sm_89")
    if name == "rule":
        for one in value.split(","):
            if one not in RULES:
                raise BadColumnError(0, f"unknown rule {one!r}")
    return {name: value}


# --- proof ----------------------------------------------------------------------------------------------------------


def _prove_operands(specs: tuple[OperandSpec, ...], elements: tuple[Element, ...]) -> None:
    choices = {e.name: e for e in elements if e.kind != "literal"}
    names: set[str] = set()
    for spec in specs:
        for slot in (spec, *spec.inner, *((spec.pair,) if spec.pair else ())):
            if slot.slot.name in names:
                raise BadColumnError(slot.offset, f"two operands are called {slot.slot.name!r}")
            names.add(slot.slot.name)
        for offset, what, name in spec.references():
            problem = _PROOFS[what](name, choices)
            if problem:
                raise BadColumnError(offset, problem)
        if spec.condition and (among := spec.condition[2]) and not set(among) <= set(choices[spec.condition[0]].words):
            raise BadColumnError(spec.offset, f"the condition of {spec.slot.name!r} names a word that the choice lacks")


def _prove_condition(name: str, choices: Mapping[str, Element]) -> str:
    return "" if name in choices else f"unknown flag or choice {name!r} in a condition"


def _prove_space(name: str, choices: Mapping[str, Element]) -> str:
    known = ("generic", "global", "shared", "shared::cta", "shared::cluster", "local", "const", "param", "tmem", "fabric")
    return "" if name in choices or name in known else f"unknown space or choice {name!r}"


def _prove_type(name: str, choices: Mapping[str, Element]) -> str:
    function, paren, arguments = name.partition("(")
    if paren:
        if function not in COMPUTED_TYPES:
            return f"unknown type function {function!r}"
        if arguments == ")":
            return ""
        unknown = [a for a in arguments[:-1].split(",") if a not in choices and a not in TYPES]
        return f"unknown choice {unknown[0]!r} in {name!r}" if unknown else ""
    if name in choices:
        bad = [w for w in choices[name].words if w not in TYPES]
        return f"choice {name!r} is used as a type, but {bad[0]!r} is none" if bad else ""
    return "" if name in TYPES else f"unknown type or choice {name!r}"


def _prove_count(name: str, choices: Mapping[str, Element]) -> str:
    if name.isdigit():
        return ""
    if name.startswith("("):
        return "" if name[1:-1] in COUNTS else f"unknown count function {name[1:-1]!r}"
    return "" if name in choices else f"unknown choice {name!r} as a count"


_PROOFS = {"condition": _prove_condition, "space": _prove_space, "type": _prove_type, "count": _prove_count}


def _refuse_duplicates(found: tuple[Row, ...]) -> None:
    seen: dict[tuple[str, str], Row] = {}
    for row in found:
        first = seen.setdefault((row.pattern, row.operands_text), row)
        if first is not row:
            raise DeclarationError(f"{row.place}:1: the same row as {first.place}")


# --- the package's own tables ---------------------------------------------------------------------------------------


@cache
def _table() -> Table:
    here = Path(__file__).parent
    return Table({p.name: p.read_text("utf-8") for p in here.glob("*.txt") if p.name not in _NOT_TABLES})


def rows(opcode: str | None = None) -> tuple[Row, ...]:
    """Return the declared rows of `opcode`, or of the whole instruction set."""
    return _table().rows(opcode)


def opcodes() -> tuple[str, ...]:
    """Return every declared opcode."""
    return _table().opcodes


def match(mnemonic: str) -> tuple[Match, ...]:
    """Return a match for every declared row that `mnemonic` fits, () for none: `match("fma.rn.ftz.f32")`. Cached."""
    return _table().match(mnemonic)
