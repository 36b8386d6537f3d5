"""A cubin, taken apart and written back."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, final

from warpsmith.base.errors import CubinError
from warpsmith.cubin.arch_flags import arch_of
from warpsmith.cubin.build import FunctionSpec, add_sections, base_sections, header_for, misfit_of, segments_for, target_for
from warpsmith.cubin.callgraph import MARKS, WordTable
from warpsmith.cubin.contents import decode_contents
from warpsmith.cubin.elf import (
    NOBITS_TYPES,
    SectionHeader,
    SectionType,
    read_file_header,
    read_program_headers,
    read_section_headers,
)  # fmt: skip
from warpsmith.cubin.function import Function
from warpsmith.cubin.info import InfoTable
from warpsmith.cubin.layout import FILE_HEADER, PROGRAM_TABLE, SECTION_TABLE, place, read_pieces
from warpsmith.cubin.notes import NoteTable
from warpsmith.cubin.relocations import RelocationTable
from warpsmith.cubin.remove import remove_sections
from warpsmith.cubin.section import Raw, Reserved, Section, Sections, is_capsule
from warpsmith.cubin.segment import Extents, read_segments
from warpsmith.cubin.strings import StringTable
from warpsmith.cubin.symbols import SymbolTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warpsmith.cubin.binary import Buffer
    from warpsmith.cubin.elf import FileHeader
    from warpsmith.cubin.layout import Piece
    from warpsmith.cubin.notes import Tool
    from warpsmith.cubin.segment import Segment

__all__ = ["Cubin", "read_cubin"]

_TEXT = ".text."


@final
class Cubin:
    """An ELF cubin as a model: nothing of the file it came from is kept but what the model names.

    `.header` `.sections` `.pieces` (file order) `.segments` (program headers) `.tail` (bytes behind the last part).
    """

    __slots__ = ("built", "header", "pieces", "sections", "segments", "tail")

    def __init__(
        self, header: FileHeader, sections: Sections, pieces: list[Piece], segments: list[Segment], tail: bytes
    ) -> None:
        self.header, self.sections, self.pieces, self.segments, self.tail = header, sections, pieces, segments, tail
        self.built = False

    @classmethod
    def new(cls, arch: str) -> Cubin:
        """Return a cubin for `arch` without functions; `add_function` adds kernels."""
        target = target_for(arch)
        sections, pieces = base_sections(target)
        out = cls(header_for(target), sections, pieces, segments_for(pieces), b"")
        out.built = True
        return out

    def add_function(
        self,
        name: str,
        code: bytes,
        *,
        params: Sequence[int | tuple[int, int]] = (),
        registers: int,
        shared: int = 0,
        barriers: int = 0,
        stack: int = 0,
        exits: Sequence[int] | None = None,
        max_threads: tuple[int, int, int] | None = None,
    ) -> Function:
        """Add a kernel to a cubin that `Cubin.new` began.

        `code` is machine code, 16 bytes an instruction; it is padded to 128 bytes with NOPs. `params`: bytes of each parameter,
        or (bytes, alignment); a size alone is aligned to itself, at most to 8. `shared`: bytes of static shared memory.
        `exits`: byte offsets of EXIT instructions, found in the code by default. `max_threads`: the most threads of a CTA in x,
        y, z. Raises `CubinError` for a resource beyond the architecture's, as ptxas knows them (shared
        memory: 48 KiB, of `a` targets 227 or 99).
        """
        if f".text.{name}" in self.sections:
            raise CubinError(f"there is a function {name!r} already")
        if not code or len(code) % 16:
            raise CubinError(f"the code of {name!r} has {len(code)} bytes, not a multiple of 16")
        if not self.built:
            raise CubinError("functions are added to cubins that Cubin.new began")
        spec = FunctionSpec(
            name,
            bytes(code),
            tuple(params),
            registers,
            shared,
            barriers,
            stack,
            None if exits is None else tuple(exits),
            max_threads,
        )
        if misfit := misfit_of(spec, self.arch):
            raise CubinError(f"{name!r}: {misfit}")
        add_sections(self.sections, self.pieces, target_for(self.arch), spec)
        self.segments = segments_for(self.pieces)
        return self.functions[name]

    @property
    def arch(self) -> str:
        """The architecture, such as `sm_90a`."""
        return arch_of(self.header, self.sections)

    @property
    def symbols(self) -> SymbolTable:
        """The symbol table; that of a capsule is another section."""
        for section in self.sections.of_type(SectionType.SYMTAB):
            return section.holds(SymbolTable)
        raise CubinError("there is no symbol table")

    @property
    def functions(self) -> dict[str, Function]:
        """The functions by name: kernels and device functions that have a section of their own."""
        texts = (s for s in self.sections if s.name.startswith(_TEXT) and s.type == SectionType.PROGBITS)
        return {s.name[len(_TEXT) :]: Function(self, s, s.name[len(_TEXT) :]) for s in texts}

    @property
    def kernels(self) -> list[str]:
        """Names of the functions that can be launched."""
        entries = {s.name for s in self.symbols if s.is_entry}
        return [name for name in self.functions if name in entries]

    @property
    def info(self) -> InfoTable:
        """The attributes of `.nv.info`, which concern functions by symbol number."""
        section = self.sections.find(".nv.info")
        return section.holds(InfoTable) if section else InfoTable([])

    @property
    def compat(self) -> InfoTable:
        """The attributes of `.nv.compat` (sm_90 and later): what the driver may do with the cubin."""
        section = self.sections.find(".nv.compat")
        return section.holds(InfoTable) if section else InfoTable([])

    @property
    def tools(self) -> list[Tool]:
        """What the tools that made the cubin say about themselves, with their command lines."""
        notes = (n for s in self.sections if isinstance(s.content, NoteTable) for n in s.content)
        return [tool for note in notes if (tool := note.tool())]

    @property
    def callgraph(self) -> list[tuple[str, str]]:
        """Pairs of caller and callee by name; a callee may be one of `callgraph.MARKS`."""
        section = self.sections.find(".nv.callgraph")
        rows = section.holds(WordTable).rows if section and isinstance(section.content, WordTable) else []
        return [(self.symbols[a].name, MARKS.get(b) or self.symbols[b].name) for a, b in rows]

    @property
    def relocations(self) -> dict[str, RelocationTable]:
        """Relocation tables by the name of their section, such as `.rela.text.k`."""
        return {s.name: s.content for s in self.sections if isinstance(s.content, RelocationTable)}

    def remove_sections(self, *names: str) -> None:
        """Remove sections and the relocation tables for them; raises `CubinError` where something else refers to them."""
        chosen = [self.sections[name] for name in names]
        numbers = {self.sections.index(s) for s in chosen}
        tables = [s for s in self.sections.of_type(SectionType.REL, SectionType.RELA) if s.info in numbers]
        remove_sections(self, [*chosen, *tables])

    def drop_capsules(self) -> None:
        """Remove the second form of the code that sm_100 and later carry (`.nv.capmerc.*`, `.nv.merc.*`)."""
        remove_sections(self, [s for s in self.sections if is_capsule(s)])

    def write(self) -> bytes:
        """Return the file. What was read and not changed is written byte for byte."""
        counts = (len(self.segments), len(self.sections))
        out, offsets, tables = place(self.pieces, *counts)
        extents = Extents(self.pieces, offsets, tables, counts)
        header = replace(
            self.header,
            program_count=counts[0],
            section_count=counts[1],
            program_offset=tables.get(PROGRAM_TABLE, self.header.program_offset),
            section_offset=tables[SECTION_TABLE],
        )
        data = bytearray(out)
        rows = (_section_header(s, offsets.get(id(s), s.null_offset)).encode() for s in self.sections)
        for at, part in (
            (tables[FILE_HEADER], header.encode()),
            (header.section_offset, b"".join(rows)),
            (header.program_offset, b"".join(s.header(extents).encode() for s in self.segments)),
        ):
            if part:
                data[at : at + len(part)] = part
        return bytes(data) + self.tail


def read_cubin(data: Buffer) -> Cubin:
    """Take a cubin apart; raise `CubinError` where it is none, or contradicts itself."""
    header = read_file_header(data)
    raw = read_section_headers(data, header)
    names = raw[header.string_index]
    strings = StringTable(bytes(data[names.offset : names.offset + names.size]), "the table of section names")
    sections = [_section(data, row, strings, index) for index, row in enumerate(raw)]
    pieces, tail = read_pieces(data, header, raw, sections)
    decode_contents(sections[1:], sections)
    programs = read_program_headers(data, header)
    tables = {FILE_HEADER: 0, SECTION_TABLE: header.section_offset, PROGRAM_TABLE: header.program_offset}
    offsets = {id(s): row.offset for s, row in zip(sections, raw, strict=True)}
    extents = Extents(pieces, offsets, tables, (len(programs), len(sections)))
    return Cubin(header, Sections(sections), pieces, read_segments(programs, extents), tail)


def _section(data: Buffer, row: SectionHeader, strings: StringTable, index: int) -> Section:
    if index == 0 or row.type in NOBITS_TYPES:
        content = Reserved(row.size)
    else:
        content = Raw(bytes(data[row.offset : row.offset + row.size]))
    return Section(
        strings.at(row.name, f"the name of section {index}"), row.name, row.type, row.flags, row.address, row.link, row.info,
        row.alignment, row.entry_size, content, row.offset if index == 0 else 0,
    )  # fmt: skip


def _section_header(s: Section, offset: int) -> SectionHeader:
    return SectionHeader(s.name_offset, s.type, s.flags, s.address, offset, s.size, s.link, s.info, s.alignment, s.entry_size)
