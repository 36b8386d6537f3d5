"""Program headers, tied to the parts of the file they cover so that they can be written after a part has changed its length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from warpsmith.cubin.elf import HEADER_SIZE, PROGRAM_SIZE, SECTION_SIZE, ProgramHeader
from warpsmith.cubin.layout import FILE_HEADER, PROGRAM_TABLE, SECTION_TABLE, Piece
from warpsmith.cubin.section import Section

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Extents", "Segment", "read_segments"]


@final
class Extents:
    """Start and end in the file of every piece, by its place in the list."""

    def __init__(
        self, pieces: Sequence[Piece], offsets: dict[int, int], tables: dict[str, int], counts: tuple[int, int]
    ) -> None:
        sizes = {FILE_HEADER: HEADER_SIZE, PROGRAM_TABLE: counts[0] * PROGRAM_SIZE, SECTION_TABLE: counts[1] * SECTION_SIZE}
        self.pieces = pieces
        self.starts: list[int] = []
        self.ends: list[int] = []
        for piece in pieces:
            part = piece.part
            start = tables[part] if isinstance(part, str) else offsets[id(part)]
            size = sizes[part] if isinstance(part, str) else (len(part.data) if part.in_file else 0)
            self.starts.append(start)
            self.ends.append(start + size)

    def memory_only(self, low: int, high: int) -> list[Section]:
        """Return the sections without bytes in the file that stand between two offsets, both included."""
        parts = zip(self.pieces, self.starts, strict=True)
        return [
            p.part
            for p, at in parts
            if isinstance(p.part, Section) and not p.part.in_file and low <= at <= high and p.part.flags & 2
        ]


@final
@dataclass(slots=True)
class Segment:
    """One program header: from `first` plus `lead` bytes to the end of `last` plus `tail` bytes.

    `first` None: at offset `lead`.
    """

    type: int
    flags: int
    virtual_address: int
    physical_address: int
    alignment: int
    first: Piece | None
    lead: int
    last: Piece | None
    """None: nothing in the file."""
    tail: int
    memory: tuple[Section, ...]
    """Sections without bytes in the file that it makes room for."""
    more: int
    """Bytes in memory beyond those of the file and of `memory`."""

    def header(self, extents: Extents) -> ProgramHeader:
        """Return the program header for parts that lie at `extents`."""
        places = {id(p): (a, b) for p, a, b in zip(extents.pieces, extents.starts, extents.ends, strict=True)}
        offset = self.lead + (places[id(self.first)][0] if self.first else 0)
        size = places[id(self.last)][1] + self.tail - offset if self.last else self.tail
        memory = size + sum(s.size for s in self.memory) + self.more
        return ProgramHeader(
            self.type, self.flags, offset, self.virtual_address, self.physical_address, size, memory, self.alignment
        )


def read_segments(headers: Sequence[ProgramHeader], extents: Extents) -> list[Segment]:
    """Tie program headers to the pieces they begin and end with."""
    return [_tie(h, extents) for h in headers]


def _tie(h: ProgramHeader, extents: Extents) -> Segment:
    end = h.offset + h.file_size
    numbers = range(len(extents.pieces))
    starts = [i for i in numbers if extents.starts[i] <= h.offset]
    exact = [i for i in starts if extents.starts[i] == h.offset]
    exact = [i for i in exact if bool(h.file_size) is (extents.ends[i] > extents.starts[i])] or exact
    first = exact[0] if exact else (max(starts, key=lambda i: extents.starts[i]) if starts else None)
    last = None
    if h.file_size:
        last = next((i for i in numbers if extents.ends[i] == end and extents.starts[i] < end), None)
        if last is None:
            last = max((i for i in numbers if extents.starts[i] < end), key=lambda i: extents.starts[i], default=None)
    memory = tuple(extents.memory_only(h.offset, end)) if h.memory_size > h.file_size else ()
    return Segment(
        h.type, h.flags, h.virtual_address, h.physical_address, h.alignment,
        extents.pieces[first] if first is not None else None,
        h.offset - (extents.starts[first] if first is not None else 0),
        extents.pieces[last] if last is not None else None,
        end - extents.ends[last] if last is not None else h.file_size,
        memory,
        h.memory_size - h.file_size - sum(s.size for s in memory),
    )  # fmt: skip
