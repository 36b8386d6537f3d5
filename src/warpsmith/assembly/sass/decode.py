"""Words to text and fields, by a table; work on words that look alike is done once."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, final

from warpsmith.assembly.sass.floats import FLOAT_KINDS
from warpsmith.assembly.sass.row import Row, Selector, SelectorMemory, gather, scatter

if TYPE_CHECKING:
    from collections.abc import Callable

    from warpsmith.assembly.sass.row import Field, Template
    from warpsmith.assembly.sass.table import Table

__all__ = ["Decoder", "Form", "Shape"]

_YIELD = 1 << 109
_REUSE = 7 << 122
_LOW = (1 << 105) - 1

_TEXTS = 250_000
"""Texts of so many words are remembered; then all are forgotten."""


@final
class Form:
    """A form with its selectors chosen: text with holes, ready to be filled."""

    __slots__ = ("holes", "pattern", "relative", "row", "template")

    def __init__(self, row: Row, template: Template) -> None:
        self.row = row
        self.template = template
        self.pattern = "".join("%s" if isinstance(t, int) else t.replace("%", "%%") for t in template)
        fields = [row.fields[t] for t in template if isinstance(t, int)]
        self.holes = tuple([_show(f) for f in fields])
        self.relative = any(f.kind == "r" for f in fields)

    def text(self, word: int, address: int) -> str:
        """Return the text of a word of this form."""
        return self.pattern % tuple([show(word, address) for show in self.holes])


@cache
def _show(f: Field) -> Callable[[int, int], str]:
    """Return what prints a field: a table for narrow fields, else the field itself."""
    if f.kind == "r":
        return f.text
    if f.width <= 8 and len(f.bits) == 1:
        low, width = f.bits[0]
        mask = (1 << width) - 1
        names = [f.text(v << low, 0) for v in range(1 << width)]
        return lambda word, _: names[word >> low & mask]
    if f.kind == "u" and len(f.bits) == 1 and not f.shift and not f.offset:
        low, width = f.bits[0]
        mask = (1 << width) - 1
        return lambda word, _: f"{word >> low & mask:#x}"
    if f.kind == "s" and len(f.bits) == 1 and not f.offset:
        return _signed(f)
    if f.kind in FLOAT_KINDS:
        memory: dict[int, str] = {}

        def floating(word: int, _: int) -> str:
            bits = gather(word, f.bits)
            text = memory.get(bits)
            if text is None:
                text = memory[bits] = f.text(word, 0)
            return text

        return floating
    return f.text


def _signed(f: Field) -> Callable[[int, int], str]:
    low, width = f.bits[0]
    shift = f.shift
    mask, sign = (1 << width) - 1, 1 << (width - 1)

    def signed(word: int, _: int) -> str:
        return f"{(((word >> low & mask) ^ sign) - sign) << shift:#x}"

    return signed


@final
class Shape:
    """What the forms of one opcode look at: `.mask`, plain bits, and `.flags`, predicates on fields.

    Words of the opcode that agree in both have the same form. `.flags` are (mask, memory) with `memory[word & mask]` the value
    of a selector. Words that agree in `.mask` and in those of the flags that are `.choosing` have the same row.
    """

    __slots__ = ("choosing", "flags", "forms", "known", "mask", "rows")

    def __init__(self, rows: tuple[Row, ...], forms: dict[tuple[int, Template], Form]) -> None:
        self.rows = rows
        self.forms = forms
        self.mask = 0
        flags: dict[Selector, bool] = {}
        for row in rows:
            self.mask |= row.mask
            for index, s in enumerate(row.selectors):
                if s.predicates:
                    flags[s] = flags.get(s, False) or not _complete(row, index)
                else:
                    self.mask |= scatter(-1, s.bits)
            for mask, value in row.nots:
                flags[_predicate(mask, value)] = True
        self.flags = tuple((m.mask, m) for m in map(SelectorMemory, flags) if m.mask & ~self.mask)
        self.choosing = tuple((mask, m) for mask, m in self.flags if flags[m.selector])
        self.known: dict[object, Form | None] = {}

    def form(self, word: int) -> Form | None:
        """Return the form of a word."""
        key: object = word & self.mask
        if self.flags:
            key = (key, *[memory[word & mask] for mask, memory in self.flags])
        try:
            return self.known[key]
        except KeyError:
            found = self.known[key] = self._find(word)
            return found

    def _find(self, word: int) -> Form | None:
        for row in self.rows:
            if row.covers(word):
                template = row.template(word)
                if template is not None:
                    return _form(row, template, self.forms)
        return None


def _form(row: Row, template: Template, forms: dict[tuple[int, Template], Form]) -> Form:
    key = (id(row), template)
    found = forms.get(key)
    if found is None:
        found = forms[key] = Form(row, template)
    return found


def _complete(row: Row, index: int) -> bool:
    """Say whether all values of a selector have a text wherever one of them has."""
    values = range(len(row.selectors[index].predicates) + 1)
    for piece in row.pieces:
        for at in (i for i, number in enumerate(piece.selectors) if number == index):
            if any((*key[:at], value, *key[at + 1 :]) not in piece.table for key in piece.table for value in values):
                return False
    return True


def _predicate(mask: int, value: int) -> Selector:
    bits = tuple((i, 1) for i in range(128) if mask >> i & 1)
    return Selector(bits, (("eq", (gather(value, bits),)),))


@final
class Decoder:
    """Decodes words of one table; remembers forms and texts it has met. Words of one form get one `Form` object."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._shapes: dict[int, Shape] = {}
        self._forms: dict[tuple[int, Template], Form] = {}
        self.kept: object = None
        """What `vector.py` keeps with the decoder."""
        self._texts: dict[int, str | None] = {}

    def form(self, word: int) -> Form | None:
        """Return the form of a word, None where the table knows none."""
        if not word & _YIELD:
            word &= ~_REUSE  # the reuse bits mean something else, which is not printed
        shape = self._shapes.get(word & 0xFFF)
        if shape is None:
            shape = self.shape(word & 0xFFF)
        return shape.form(word)

    def shape(self, opcode: int) -> Shape:
        """Return what the forms of an opcode (bits 0–11) look at."""
        shape = self._shapes.get(opcode)
        if shape is None:
            shape = self._shapes[opcode] = Shape(self.table.by_opcode.get(opcode, ()), self._forms)
        return shape

    def form_of(self, row: Row, template: Template) -> Form:
        """Return the form with these texts of a row of the table: the object that `form` returns for its words."""
        return _form(row, template, self._forms)

    def text(self, word: int, address: int = 0) -> str | None:
        """Return the disassembler's text of a word at an address, None where the table knows no form."""
        key = word & (_LOW | _REUSE) if word & _YIELD else word & _LOW
        text = self._texts.get(key, "")
        if text == "":
            form = self.form(word)
            if form is None:
                self._texts[key] = None
                return None
            text = form.text(word, address)
            if not form.relative:
                if len(self._texts) > _TEXTS:
                    self._texts.clear()
                self._texts[key] = text
        return text
