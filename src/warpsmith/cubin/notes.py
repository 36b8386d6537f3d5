"""ELF notes: `.note.nv.tkinfo` (which tools made the cubin, with their command lines) and `.note.nv.cuinfo`."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from warpsmith.cubin.binary import Cursor, align_up

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["CUINFO", "TKINFO", "Note", "NoteTable", "Tool"]

CUINFO, TKINFO = 1000, 2000
"""Types of the notes of `.note.nv.cuinfo` and `.note.nv.tkinfo`."""
_TOOL = struct.Struct("<6I")


@final
@dataclass(frozen=True, slots=True)
class Tool:
    """What a tool says about itself in `.note.nv.tkinfo`."""

    name: str
    version: str
    build: str
    arguments: str
    """Its command line without the tool's name, e.g. `-arch sm_90a`."""


@final
@dataclass(slots=True, eq=False)
class Note:
    """One note: owner, type and description."""

    owner: bytes
    type: int
    description: bytes

    def encode(self) -> bytes:
        """Return the note's bytes, padded to words."""
        head = struct.pack("<III", len(self.owner), len(self.description), self.type)
        return head + _padded(self.owner) + _padded(self.description)

    def tool(self) -> Tool | None:
        """Read a note of type TKINFO; None for another or for one of a version that is not known."""
        data = self.description
        if self.type != TKINFO or len(data) < _TOOL.size or data[0] != 2:
            return None
        places = _TOOL.unpack_from(data)[2:]
        texts = [data[_TOOL.size :][at:].split(b"\0")[0].decode("utf-8", "replace") for at in places]
        return Tool(*texts)


def _padded(data: bytes) -> bytes:
    return data + bytes(align_up(len(data), 4) - len(data))


@final
class NoteTable:
    """The notes of a section, in order; `tail` is what follows the last."""

    __slots__ = ("notes", "tail")

    def __init__(self, notes: list[Note], tail: bytes = b"") -> None:
        self.notes, self.tail = notes, tail

    @classmethod
    def decode(cls, data: bytes, section: str) -> NoteTable:
        """Read the notes of a section."""
        cursor = Cursor(data, section)
        notes: list[Note] = []
        while len(data) - cursor.offset >= 12:
            start = cursor.offset
            owner_size, size, kind = (cursor.number(4, "a note") for _ in range(3))
            owner = cursor.take(owner_size, "a note's owner")
            cursor.offset = min(align_up(cursor.offset, 4), len(data))
            description = cursor.take(size, "a note's description")
            end = align_up(cursor.offset, 4)
            note = Note(owner, kind, description)
            if end > len(data) or note.encode() != data[start:end]:
                return cls(notes, data[start:])
            notes.append(note)
            cursor.offset = end
        return cls(notes, data[cursor.offset :])

    def encode(self) -> bytes:
        """Return the section's bytes."""
        return b"".join(n.encode() for n in self.notes) + self.tail

    def __len__(self) -> int:
        return len(self.notes)

    def __iter__(self) -> Iterator[Note]:
        return iter(self.notes)
