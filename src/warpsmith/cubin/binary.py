"""Bounded reading of little-endian records: what lies outside the bytes at hand is a `CubinError` with its place."""

from __future__ import annotations

import mmap
import struct
from typing import Any, TypeAlias, final

from warpsmith.base.errors import CubinError

__all__ = ["Buffer", "Cursor", "align_up", "forget", "text_at", "unpack", "unpack_all"]

Buffer: TypeAlias = bytes | bytearray | memoryview | mmap.mmap
"""What is read: all of these slice to bytes without a copy of the whole."""


def forget(data: Buffer) -> None:
    """Give the pages of a mapped file back; they are read again when they are looked at."""
    if isinstance(data, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        data.madvise(mmap.MADV_DONTNEED)


def align_up(value: int, alignment: int) -> int:
    """Return the first multiple of `alignment` (0 and 1: any number) at or after `value`."""
    return value if alignment < 2 else -(-value // alignment) * alignment


def unpack(layout: struct.Struct, data: Buffer, offset: int, what: str, section: str | None = None) -> tuple[Any, ...]:
    """Return the fields of the record at `offset`; raise `CubinError` where it does not fit."""
    if offset < 0 or offset + layout.size > len(data):
        raise CubinError(
            f"{what} needs {layout.size} bytes and the data ends at byte {len(data):#x}", offset=offset, section=section
        )
    return layout.unpack_from(data, offset)


def unpack_all(layout: struct.Struct, data: bytes, what: str, section: str | None) -> list[tuple[Any, ...]]:
    """Return the fields of all records in `data`, which must be a whole number of them."""
    if len(data) % layout.size:
        raise CubinError(f"{what} has {len(data)} bytes, not a multiple of {layout.size}", offset=len(data), section=section)
    return list(layout.iter_unpack(data))


def text_at(data: bytes, offset: int, what: str, section: str | None) -> str:
    """Return the zero-terminated string at `offset`; bytes that are not UTF-8 are kept as surrogates."""
    end = data.find(b"\0", offset) if 0 <= offset < len(data) else -1
    if end < 0:
        raise CubinError(
            f"{what} at {offset:#x} does not lie in the string table of {len(data):#x} bytes", offset=offset, section=section
        )
    return data[offset:end].decode("utf-8", "surrogateescape")


@final
class Cursor:
    """Reads records one after the other from `data`, never past `end`."""

    __slots__ = ("data", "end", "offset", "section")

    def __init__(self, data: bytes, section: str | None, offset: int = 0, end: int | None = None) -> None:
        self.data, self.section, self.offset = data, section, offset
        self.end = len(data) if end is None else end

    def take(self, count: int, what: str) -> bytes:
        """Return the next `count` bytes."""
        if count < 0 or self.offset + count > self.end:
            raise self.error(f"{what} needs {count} bytes and {self.end - self.offset} are left")
        out = self.data[self.offset : self.offset + count]
        self.offset += count
        return out

    def number(self, size: int, what: str, *, signed: bool = False) -> int:
        """Return the next little-endian number of `size` bytes."""
        return int.from_bytes(self.take(size, what), "little", signed=signed)

    def uleb(self, what: str) -> int:
        """Return the next unsigned LEB128 number (DWARF 2, 7.6), of ten bytes at most."""
        value = 0
        for shift in range(0, 70, 7):
            byte = self.number(1, what)
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise self.error(f"{what} is a LEB128 number longer than ten bytes")

    def sleb(self, what: str) -> int:
        """Return the next signed LEB128 number."""
        start = self.offset
        value = self.uleb(what)
        bits = 7 * (self.offset - start)
        return value - (1 << bits) if value >> (bits - 1) & 1 else value

    def text(self, what: str) -> str:
        """Return the next zero-terminated string."""
        end = self.data.find(b"\0", self.offset, self.end)
        if end < 0:
            raise self.error(f"{what} has no terminating zero")
        out = self.data[self.offset : end].decode("utf-8", "surrogateescape")
        self.offset = end + 1
        return out

    def error(self, message: str) -> CubinError:
        """Return the error for what stands at the cursor."""
        return CubinError(message, offset=self.offset, section=self.section)
