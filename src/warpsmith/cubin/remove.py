"""Take sections out of a cubin and renumber what refers to the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.base.errors import CubinError
from warpsmith.cubin.elf import SectionType
from warpsmith.cubin.info import InfoTable
from warpsmith.cubin.layout import Piece
from warpsmith.cubin.relocations import RelocationTable
from warpsmith.cubin.section import Section
from warpsmith.cubin.symbols import STT_SECTION, SymbolTable

if TYPE_CHECKING:
    from collections.abc import Collection

    from warpsmith.cubin.model import Cubin
    from warpsmith.cubin.symbols import Symbol

__all__ = ["remove_sections"]

_INFO_LINK = 0x40
_RESERVED = 0xFF00


def remove_sections(cubin: Cubin, gone: Collection[Section]) -> None:
    """Remove `gone`.

    Raise `CubinError`, with the cubin unchanged, where a section or symbol that stays refers to one of them.
    """
    ids = {id(s) for s in gone}
    kept = [s for s in cubin.sections if id(s) not in ids]
    numbers = {old: kept.index(s) for old, s in enumerate(cubin.sections) if id(s) not in ids}
    names = {i: s.name for i, s in enumerate(cubin.sections)}

    def renumber(old: int, what: str) -> int:
        if old == 0 or old >= _RESERVED:
            return old
        if old not in numbers:
            raise CubinError(f"{what} refers to section {names.get(old, old)!r}, which cannot be removed")
        return numbers[old]

    links = [renumber(s.link, f"section {s.name!r}") for s in kept]
    infos = [renumber(s.info, f"section {s.name!r}") if _info_is_section(s) else s.info for s in kept]
    tables = [s.content for s in kept if isinstance(s.content, SymbolTable)]
    idle = {id(y) for t in tables for y in _idle_section_symbols(cubin, t, kept)}
    places = [
        [0 if id(y) in idle and y.section not in numbers else renumber(y.section, f"symbol {y.name!r}") for y in t]
        for t in tables
    ]
    string_index = renumber(cubin.header.string_index, "the file header")
    for s, link, info in zip(kept, links, infos, strict=True):
        s.link, s.info = link, info
    for table, row in zip(tables, places, strict=True):
        for symbol, place in zip(table, row, strict=True):
            if symbol.section and not place:  # as ptxas leaves symbols that it had no use for
                symbol.name, symbol.name_offset, symbol.info, symbol.other = "", 0, 0, 0
            symbol.section = place
    cubin.header.string_index = string_index
    cubin.sections.items = kept
    _remove_pieces(cubin, ids)


def _idle_section_symbols(cubin: Cubin, table: SymbolTable, kept: Collection[Section]) -> list[Symbol]:
    """Return the symbols that stand for a section and that nothing among `kept` refers to."""
    used = {r.symbol for s in kept if isinstance(s.content, RelocationTable) for r in s.content}
    used |= {w for s in kept if isinstance(s.content, InfoTable) for a in s.content.all("PARAM_CBANK") for w in a.words()[:1]}
    return [y for i, y in enumerate(table) if y.type == STT_SECTION and i not in used]


def _info_is_section(section: Section) -> bool:
    return bool(section.flags & _INFO_LINK) or section.type in (SectionType.REL, SectionType.RELA)


def _remove_pieces(cubin: Cubin, gone: set[int]) -> None:
    old = cubin.pieces
    new: list[Piece] = []
    heirs: dict[int, Section] = {}
    for piece in old:
        if id(piece.part) in gone:
            continue
        if piece.same_as is not None and id(piece.same_as) in gone:
            heir = heirs.setdefault(id(piece.same_as), piece.part) if isinstance(piece.part, Section) else None
            piece.same_as = None if heir is piece.part else heir
        if piece.gap is not None and piece.aligned:
            piece.gap = None
        new.append(piece)
    for segment in cubin.segments:
        if segment.first is not None and id(segment.first.part) in gone:
            at = old.index(segment.first)
            segment.first = next((p for p in old[at:] if id(p.part) not in gone), new[-1])
        if segment.last is not None and id(segment.last.part) in gone:
            at = old.index(segment.last)
            segment.last = next((p for p in reversed(old[:at]) if id(p.part) not in gone), new[0])
        segment.memory = tuple(s for s in segment.memory if id(s) not in gone)
    cubin.pieces = new
