"""Read PTX text into a tree. Start here: `parse` and `parse_file`."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, final

from warpsmith.assembly.ptx.lexer import END, Lexer, Refused
from warpsmith.assembly.ptx.module import Module
from warpsmith.assembly.ptx.parse_directives import (
    file_table,
    parse_directive,
    parse_file_directive,
    parse_pragma,
    parse_section,
)
from warpsmith.assembly.ptx.parse_dwarf import parse_dwarf
from warpsmith.assembly.ptx.parse_functions import parse_function
from warpsmith.assembly.ptx.parse_statements import BodyReader, TooMany
from warpsmith.assembly.ptx.parse_variables import LINKAGES, SPACES, parse_variable
from warpsmith.assembly.ptx.tree import Dwarf
from warpsmith.base.collector import collector_paused
from warpsmith.base.errors import InputError, Problem, PtxError
from warpsmith.base.source import Source, Span

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

__all__ = ["LIMIT", "parse", "parse_file", "text_of_file"]

LIMIT = 64 << 20
"""Text longer than this many characters is refused unless the caller raises `limit`."""

_STARTS_VARIABLE = SPACES | LINKAGES | {".align", ".attribute"}


def parse(text: str, name: str = "<string>", *, limit: int = LIMIT) -> Module:
    """Read PTX text; `name` is what messages call it.

    Raises `PtxError` with every problem found (at most 50), `InputError` for text longer than `limit` characters.
    """
    if len(text) > limit:
        raise InputError(f"{name}: {len(text):,} characters of PTX, over the limit of {limit:,}; pass limit= to read it anyway")
    with collector_paused():
        return ModuleReader(Source(text.rstrip("\0"), name)).read()


def parse_file(path: str | os.PathLike[str], *, limit: int = LIMIT) -> Module:
    """Read a PTX file. Raises `InputError` when it cannot be read or is not text, `PtxError` when it is not PTX."""
    return parse(text_of_file(path, limit=limit), str(path), limit=limit)


def text_of_file(path: str | os.PathLike[str], *, limit: int = LIMIT) -> str:
    """Return the text of a PTX file, which is read once: a pipe gives nothing a second time.

    Raises `InputError` when it cannot be read or is not text.
    """
    name = str(path)
    if "\0" in name:
        raise InputError(f"{name[:80]!r}: the name of a file has no zero characters")
    try:
        with Path(path).open("rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror or error}") from None
    if len(data) > limit:
        raise InputError(f"{name}: more than {limit:,} bytes, over the limit for PTX; pass limit= to read it anyway")
    if data[:4] == b"\x7fELF":
        raise InputError(
            f"{name}: an ELF file (cubin or object), not PTX text; `warpsmith extract --kind ptx` writes what PTX it holds"
        )
    if data[:4] == b"\x50\xed\x55\xba":
        raise InputError(f"{name}: a fatbin, not PTX text; `warpsmith extract --kind ptx` writes what PTX it holds")
    if b"\0" in data.rstrip(b"\0"):
        raise InputError(f"{name}: a binary file (it has zero bytes), not PTX text")
    return data.decode("utf-8", "surrogateescape").replace("\r\n", "\n")


@final
class ModuleReader:
    """Reads the items of a module; after a problem it goes on with the next item."""

    def __init__(self, source: Source, *, plain: bool = True) -> None:
        self.source = source
        self.problems: list[Problem] = []
        self.lx = Lexer(source)
        self.bodies = BodyReader(self.lx, file_table(source.text), self.problems, plain=plain)
        self.module = Module((0, 0), [], name=source.name)

    def read(self) -> Module:
        with suppress(TooMany):
            self._items()
        if self.problems:
            raise PtxError(self.problems)
        return self.module

    def _items(self) -> None:
        lx = self.lx
        if not self._guarded(self._header):
            return
        while lx.kind != END:
            before = lx.start
            if not self._guarded(self._item):
                if lx.start == before:
                    lx.advance()
                self._resynchronise()

    def _guarded(self, read: Callable[[], None]) -> bool:
        try:
            read()
        except Refused as refused:
            self.bodies.complain(refused.problem)
            return False
        return True

    def _resynchronise(self) -> None:
        """Go on after the next `;` or balanced braces, or at a word that begins an item."""
        lx = self.lx
        depth = 0
        while lx.kind != END and (depth or lx.value not in _ITEM_WORDS):
            value = lx.advance()
            depth += (value == "{") - (value == "}")
            if depth <= 0 and value in (";", "}"):
                while lx.kind == "punct" and lx.value in (";", "}"):
                    lx.advance()
                return

    def _header(self) -> None:
        """Read `.version` and `.target` (11.1), and `.address_size` if it follows."""
        lx = self.lx
        if lx.kind == END:
            raise lx.refuse("the text is empty: no PTX in it")
        if lx.value != ".version":
            raise lx.refuse(
                f"PTX begins with `.version`, not {lx.shown()}", hint="write e.g. `.version 8.0` and `.target sm_90a` first"
            )
        start = lx.start
        self.module.version = self._version()
        if lx.value != ".target":
            raise lx.refuse(f"expected `.target` after `.version`, found {lx.shown()}", hint="write e.g. `.target sm_90a`")
        self._target()
        if lx.take(".address_size"):
            self.module.address_size = lx.integer("32 or 64")
        self.module.span = lx.span(start)

    def _version(self) -> tuple[int, int]:
        lx = self.lx
        lx.advance()
        m = re.fullmatch(r"(\d{1,4})\.(\d{1,4})", lx.value, re.ASCII)
        if not m:
            raise lx.refuse(f"expected a version number, found {lx.shown()}", hint="write e.g. `.version 8.0`")
        lx.advance()
        return int(m[1]), int(m[2])

    def _target(self) -> None:
        lx = self.lx
        lx.advance()
        words = self.module.target
        words.append(lx.word("an architecture such as sm_90a"))
        while lx.take(","):
            words.append(lx.word("a target option"))

    def _item(self) -> None:
        lx, items = self.lx, self.module.items
        start, word = lx.start, lx.value
        if word == "@@":
            items.append(parse_dwarf(lx, opened=any(isinstance(i, Dwarf) for i in reversed(items))))
            return
        if lx.kind != "dot":
            raise lx.refuse(f"expected a function, a variable or a directive, found {lx.shown()}")
        if word in (".version", ".target", ".address_size"):
            raise lx.refuse(f"`{word}` stands once, at the head of the module")
        if word == ".file":
            items.append(parse_file_directive(lx))
        elif word == ".section":
            items.append(parse_section(lx))
        elif word == ".pragma":
            items.append(parse_pragma(lx))
        elif word in (".entry", ".func"):
            items.append(parse_function(lx, self.bodies, "", start))
        elif word in _STARTS_VARIABLE:
            self._linked(start)
        elif word == ".alias":
            self._alias()
        else:
            raise lx.refuse(f"`{word}` is not a directive of a module")

    def _linked(self, start: int) -> None:
        """Read what begins with a linkage word: a function or a variable."""
        lx = self.lx
        linkage = lx.advance()[1:] if lx.value in LINKAGES else ""
        if lx.value in (".entry", ".func"):
            self.module.items.append(parse_function(lx, self.bodies, linkage, start))
            return
        variable = parse_variable(lx, linkage)
        lx.expect(";", f"after the declaration of `{variable.name}`")
        variable.span = Span(self.source, start, lx.last)
        self.module.items.append(variable)

    def _alias(self) -> None:
        lx = self.lx
        directive = parse_directive(lx)
        if len(directive.arguments) != 2:
            raise lx.refuse("`.alias` names two functions", hint="write `.alias new, old;`")
        lx.expect(";", "after `.alias`")
        self.module.items.append(directive)


_ITEM_WORDS = _STARTS_VARIABLE | {".entry", ".func", ".file", ".section", ".alias", "@@"}
