"""Which content a section of each type holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.base.errors import CubinError
from warpsmith.cubin.attributes import COMPAT, INFO
from warpsmith.cubin.callgraph import WordTable
from warpsmith.cubin.elf import SectionType
from warpsmith.cubin.info import InfoTable
from warpsmith.cubin.notes import NoteTable
from warpsmith.cubin.relocations import RelocationTable
from warpsmith.cubin.section import Raw
from warpsmith.cubin.strings import StringTable
from warpsmith.cubin.symbols import SymbolTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warpsmith.cubin.section import Content, Section

__all__ = ["decode_contents"]

T = SectionType
_INFO = {T.CUDA_INFO: INFO, T.MERC_INFO: INFO, T.CUDA_COMPAT: COMPAT}
_WITH_ADDENDS = {T.RELA: True, T.MERC_RELA: True, T.REL: False}
_WORDS = {T.CUDA_CALLGRAPH: 2, T.MERC_CALLGRAPH: 2, T.CUDA_PROTOTYPE: 2, T.CUDA_RELOCINFO: 2}


def decode_contents(chosen: Sequence[Section], sections: Sequence[Section]) -> None:
    """Replace the raw bytes of the chosen sections by what they mean; string tables first, then what refers to them.

    Sections that share their bytes share what they mean.
    """
    done: dict[int, Content] = {}
    kept: list[Raw] = []  # so that no `id` is used twice
    for strings in (True, False):
        for section in chosen:
            raw = section.content
            if not isinstance(raw, Raw) or (section.type == T.STRTAB) is not strings:
                continue
            key = id(raw)
            if key not in done:
                done[key] = _decode(section, raw.data, sections)
                kept.append(raw)
            section.content = done[key]


def _decode(section: Section, data: bytes, sections: Sequence[Section]) -> Content:
    kind, name = section.type, section.name
    if kind == T.STRTAB:
        return StringTable(data, name)
    if kind in _INFO:
        return InfoTable.decode(data, name, _INFO[kind])
    if kind in _WITH_ADDENDS:
        return RelocationTable.decode(data, name, with_addends=_WITH_ADDENDS[kind])
    if kind in (T.SYMTAB, T.MERC_SYMTAB):
        return SymbolTable.decode(data, _strings_of(section, sections), name)
    if kind in _WORDS and not len(data) % (4 * _WORDS[kind]):
        return WordTable.decode(data, _WORDS[kind])
    if kind == T.NOTE:
        return NoteTable.decode(data, name)
    return Raw(data)


def _strings_of(section: Section, sections: Sequence[Section]) -> StringTable:
    target = sections[section.link] if 0 < section.link < len(sections) else None
    if target is None or not isinstance(target.content, StringTable):
        raise CubinError(
            f"the symbol table takes its names from section {section.link}, which is no string table", section=section.name
        )
    return target.content
