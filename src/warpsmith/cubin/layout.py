"""Where each part of the file stands: read into a list of pieces, written back from it.

A cubin's parts (file header, sections, the two header tables) follow one another in some order, each at the next multiple of
its alignment. Three producers order them differently and two leave room between some. The model holds the order, and the bytes
between two parts only where the alignment does not explain them, so that an unchanged cubin is written byte for byte and a
changed one moves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from warpsmith.base.errors import CubinError
from warpsmith.cubin.binary import align_up
from warpsmith.cubin.elf import HEADER_SIZE, NOBITS_TYPES, PROGRAM_SIZE, SECTION_SIZE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warpsmith.cubin.binary import Buffer
    from warpsmith.cubin.elf import FileHeader, SectionHeader
    from warpsmith.cubin.section import Section

__all__ = ["FILE_HEADER", "PROGRAM_TABLE", "SECTION_TABLE", "Piece", "place", "read_pieces"]

FILE_HEADER, SECTION_TABLE, PROGRAM_TABLE = "file header", "section headers", "program headers"
_TABLE_ALIGNMENT = 8


@final
@dataclass(slots=True, eq=False)
class Piece:
    """One part of the file: a section, or one of the three headers by name."""

    part: Section | str
    gap: bytes | None = None
    """Bytes before it; None: zeros up to the alignment."""
    aligned: bool = True
    """Whether it stood at a multiple of its alignment, and is to stand at one again."""
    same_as: Section | None = None
    """The section whose bytes in the file these are as well."""

    @property
    def name(self) -> str:
        """The section's name or the header's."""
        return self.part if isinstance(self.part, str) else self.part.name

    def alignment(self) -> int:
        """Return the alignment in the file."""
        return _TABLE_ALIGNMENT if isinstance(self.part, str) else self.part.alignment


@dataclass(slots=True)
class _Extent:
    offset: int
    size: int
    order: int
    part: Section | str
    alignment: int


def read_pieces(
    data: Buffer, header: FileHeader, headers: Sequence[SectionHeader], sections: Sequence[Section]
) -> tuple[list[Piece], bytes]:
    """Return the parts of the file in file order, and the bytes behind the last one.

    Parts may not overlap, but may coincide.
    """
    extents = sorted(_extents(header, headers, sections), key=lambda e: (e.offset, e.size > 0, e.order))
    pieces: list[Piece] = []
    cursor = 0
    last: _Extent | None = None
    for extent in extents:
        if last and extent.size and (extent.offset, extent.size) == (last.offset, last.size):
            pieces.append(_coinciding(extent, last))
            continue
        if extent.offset < cursor:
            raise CubinError(f"{_named(extent)} overlaps {_named(last)}, which ends at {cursor:#x}", offset=extent.offset)
        gap = bytes(data[cursor : extent.offset])
        next_multiple = extent.offset == align_up(cursor, extent.alignment)
        aligned = extent.offset == align_up(extent.offset, extent.alignment)
        pieces.append(Piece(extent.part, None if next_multiple and not any(gap) else gap, aligned))
        cursor = extent.offset + extent.size
        last = extent if extent.size else last
    return pieces, bytes(data[cursor:])


def _extents(header: FileHeader, headers: Sequence[SectionHeader], sections: Sequence[Section]) -> list[_Extent]:
    out = [
        _Extent(0, HEADER_SIZE, -3, FILE_HEADER, _TABLE_ALIGNMENT),
        _Extent(header.section_offset, header.section_count * SECTION_SIZE, -2, SECTION_TABLE, _TABLE_ALIGNMENT),
    ]
    if header.program_count:
        out.append(_Extent(header.program_offset, header.program_count * PROGRAM_SIZE, -1, PROGRAM_TABLE, _TABLE_ALIGNMENT))
    for index, (raw, section) in enumerate(zip(headers[1:], sections[1:], strict=True)):
        size = 0 if raw.type in NOBITS_TYPES else raw.size
        out.append(_Extent(raw.offset, size, index, section, raw.alignment))
    return out


def _named(extent: _Extent | None) -> str:
    if extent is None:
        return "another part"
    if isinstance(extent.part, str):
        return f"the table of {extent.part}" if extent.part != FILE_HEADER else "the file header"
    return f"section {extent.part.name!r}"


def _coinciding(extent: _Extent, last: _Extent) -> Piece:
    if isinstance(extent.part, str) or isinstance(last.part, str):
        raise CubinError(f"{_named(extent)} overlaps {_named(last)}", offset=extent.offset)
    extent.part.content = last.part.content
    return Piece(extent.part, same_as=last.part)


def place(pieces: Sequence[Piece], program_count: int, section_count: int) -> tuple[bytes, dict[int, int], dict[str, int]]:
    """Lay the parts out one behind the other.

    Returns the file with zeros where the three headers go, the offset of each section by `id`, and of each header by name.
    """
    out = bytearray()
    offsets: dict[int, int] = {}
    tables: dict[str, int] = {}
    sizes = {FILE_HEADER: HEADER_SIZE, SECTION_TABLE: section_count * SECTION_SIZE, PROGRAM_TABLE: program_count * PROGRAM_SIZE}
    for piece in pieces:
        if piece.same_as is not None:
            offsets[id(piece.part)] = offsets[id(piece.same_as)]
            continue
        _advance(out, piece)
        if isinstance(piece.part, str):
            tables[piece.part] = len(out)
            out += bytes(sizes[piece.part])
        else:
            offsets[id(piece.part)] = len(out)
            out += piece.part.data
    return bytes(out), offsets, tables


def _advance(out: bytearray, piece: Piece) -> None:
    """Write what stands before a piece: the gap that was there, and zeros where what came before has changed its length."""
    out += piece.gap or b""
    if piece.aligned:
        out += bytes(align_up(len(out), piece.alignment()) - len(out))
