"""`Row`: one grammar line of the manual; `Match`: a row and the words one mnemonic chose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, final

from warpsmith.base.ptx_types import TYPES, PtxType

if TYPE_CHECKING:
    from warpsmith.assembly.ptx.isa.operand import OperandSlot, OperandSpec, Value
    from warpsmith.base.arch import Arch, Requirement

__all__ = ["Element", "Match", "Need", "Row", "fit"]


@final
@dataclass(frozen=True, slots=True)
class Need:
    """An availability: `what` (as written, e.g. `.relu`) needs PTX `ptx` and an architecture that `arch` allows."""

    what: str
    ptx: tuple[int, int] | None = None
    arch: Requirement | None = None


@final
@dataclass(frozen=True, slots=True)
class Element:
    """One dotted word of a pattern: a literal, an optional flag, or a choice."""

    kind: Literal["literal", "flag", "choice"]
    name: str
    """The word of a literal or flag; the name of a choice."""
    words: Mapping[str, tuple[Need, ...]]
    """Accepted words with what each needs beyond the row."""
    optional: bool
    fixed: bool = False
    """Part of the instruction's name: stands where the row has it even where the order of modifiers is free."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """A declared grammar line."""

    id: str
    """Opcode and index among the opcode's rows: `fma#2`."""
    opcode: str
    pattern: str
    """As the table has it, without the marks of fixed words."""
    operands_text: str
    elements: tuple[Element, ...]
    operands: tuple[OperandSpec, ...]
    ptx: tuple[int, int]
    arch: Requirement
    section: str
    rules: tuple[str, ...] = ()
    refused: str = ""
    """Why the simulator refuses it by name; empty when it does not."""
    removed: Need | None = None
    """From which PTX version on, and for which architectures, it is gone."""
    late: Need | None = None
    """Architectures that got it only with a later PTX version, and that version."""
    place: str = ""
    """`file:line` of the table."""
    words: frozenset[str] = field(default=frozenset(), repr=False)
    """Every word the pattern may use."""
    required: frozenset[str] = field(default=frozenset(), repr=False)
    """Literals the pattern must use."""
    literal_type: PtxType | None = None
    """The last literal that names a type: the type of operands that state none when there is no choice `type`."""

    def first(self, arch: Arch) -> tuple[int, int]:
        """Return the PTX version that brought the row to an architecture."""
        late = self.late
        return late.ptx if late is not None and late.ptx and late.arch and late.arch.allows(arch) else self.ptx

    def gone(self, ptx: tuple[int, int], arch: Arch) -> bool:
        """Say whether a module of that PTX version for that architecture has lost this row again."""
        r = self.removed
        return r is not None and (r.ptx is None or ptx >= r.ptx) and (r.arch is None or r.arch.allows(arch))

    def __str__(self) -> str:
        return f"{self.pattern} {self.operands_text}"


@final
class Match:
    """A row together with the words of one mnemonic: `m["rnd"]`, `m["ftz"]`, `m.operands`, `m.needs`."""

    __slots__ = ("_operands", "_places", "mnemonic", "ordered", "row", "values")

    def __init__(self, row: Row, mnemonic: str, values: dict[str, Value], ordered: bool, places: tuple[str, ...]) -> None:
        self.row = row
        self.mnemonic = mnemonic
        self._places = places
        self.values: Mapping[str, Value] = MappingProxyType(values)
        """Choice or flag -> word, True/False, None."""
        self.ordered = ordered
        """Whether the modifiers stand in the manual's order; ptxas accepts any order."""
        self._operands: tuple[OperandSlot, ...] | None = None

    def __getitem__(self, name: str) -> Value:
        return self.values[name]

    @property
    def canonical(self) -> Match:
        """The same with its modifiers in the manual's order."""
        if self.ordered:
            return self
        return Match(self.row, ".".join((self.row.opcode, *self._places)), dict(self.values), True, self._places)

    def get(self, name: str, default: Value = None) -> Value:
        """Return the word chosen for `name`; `default` when the row has no such choice or flag."""
        return self.values.get(name, default)

    @property
    def operands(self) -> tuple[OperandSlot, ...]:
        """Operand places with types and counts resolved; those whose condition does not hold are left out."""
        if self._operands is None:
            chosen = self.values.get("type")
            default = TYPES[chosen] if isinstance(chosen, str) else self.row.literal_type
            slots = (spec.resolve(self.values, default) for spec in self.row.operands)
            self._operands = tuple(s for s in slots if s is not None)
        return self._operands

    @property
    def needs(self) -> tuple[Need, ...]:
        """What the row and each chosen word need: PTX version and architecture."""
        out = [Need(self.row.opcode, self.row.ptx, self.row.arch)]
        for e in self.row.elements:
            value = self.values.get(e.name)
            if value is True:
                out += e.words[e.name]
            elif isinstance(value, str):
                out += e.words[value]
        return tuple(out)

    def __repr__(self) -> str:
        return f"<Match {self.row.id} {self.mnemonic}>"


def fit(row: Row, mnemonic: str, words: list[str], ordered: bool) -> Match | None:
    """Fit the words after the opcode to a row, in the row's order or in any; None when they do not fit."""
    elements = row.elements
    if len(words) > len(elements) or not row.words.issuperset(words) or not row.required.issubset(words):
        return None
    places: list[str | None] = [None] * len(elements)
    if ordered:
        fits = _in_order(elements, words, 0, 0, places)
    else:
        used = _name(elements, words, places)
        fits = used >= 0 and _any_order(elements, words, used, places)
    if not fits:
        return None
    values: dict[str, Value] = {}
    for element, word in zip(elements, places, strict=True):
        if element.kind == "flag":
            values[element.name] = word is not None
        elif element.kind == "choice":
            values[element.name] = word
    return Match(row, mnemonic, values, ordered, tuple(word for word in places if word is not None))


def _in_order(elements: tuple[Element, ...], words: list[str], at: int, used: int, places: list[str | None]) -> bool:
    if at == len(elements):
        return used == len(words)
    element = elements[at]
    if used < len(words) and words[used] in element.words:
        places[at] = words[used]
        if _in_order(elements, words, at + 1, used + 1, places):
            return True
        places[at] = None
    return element.optional and _in_order(elements, words, at + 1, used, places)


def _name(elements: tuple[Element, ...], words: list[str], places: list[str | None]) -> int:
    """Place the fixed words of the row; return how many there are, -1 when one is missing."""
    used = 0
    for at, element in enumerate(elements):
        if not element.fixed:
            break
        if used < len(words) and words[used] in element.words:
            places[at] = words[used]
            used += 1
        elif not element.optional:
            return -1
    return used


def _any_order(elements: tuple[Element, ...], words: list[str], used: int, places: list[str | None], after: int = -1) -> bool:
    """Place the words from `used` on where they fit; types keep the row's order, the next one stands behind `after`."""
    if used == len(words):
        return all(p is not None or e.optional for e, p in zip(elements, places, strict=True))
    word = words[used]
    is_type = word in TYPES
    for at, element in enumerate(elements):
        if places[at] is None and not element.fixed and word in element.words and (not is_type or at > after):
            places[at] = word
            if _any_order(elements, words, used + 1, places, at if is_type else after):
                return True
            places[at] = None
    return False
