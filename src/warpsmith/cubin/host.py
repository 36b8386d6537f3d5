"""Where fat binaries and bare cubins stand in a host file: ELF objects and libraries by section, anything else by scanning."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from warpsmith.cubin.binary import align_up, forget
from warpsmith.cubin.elf import EM_CUDA, NOBITS_TYPES
from warpsmith.cubin.fatbin import MAGIC, container_size, is_container

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warpsmith.cubin.binary import Buffer

__all__ = ["Region", "containers", "elf_size", "is_cubin", "is_elf", "looks_like_ptx", "regions"]

_SECTION = struct.Struct("<IIQQQQIIQQ")
_NOBITS, _EXECUTABLE = 8, 4
_WINDOW = 1 << 20
_KEPT = 1 << 26
"""Bytes of a file that stay mapped while it is scanned."""
_NEEDLE = struct.pack("<IH", MAGIC, 1)
_PTX = re.compile(rb"(?>\s+|//[^\n]*\n|/\*.*?\*/)*+\.version\s+\d+\.\d+", re.DOTALL)
"""Atomic and possessive: comments in any number are read once, whatever follows them."""


@final
@dataclass(frozen=True, slots=True)
class Region:
    """A stretch of a host file to look through."""

    name: str | None
    """The section's name, or None for a file without sections."""
    start: int
    end: int


def is_elf(data: Buffer, offset: int = 0) -> bool:
    """Whether an ELF-64 little-endian file begins at `offset`."""
    return data[offset : offset + 6] == b"\x7fELF\2\1"


def is_cubin(data: Buffer, offset: int = 0) -> bool:
    """Whether an ELF file for NVIDIA GPUs begins at `offset`."""
    return is_elf(data, offset) and data[offset + 18 : offset + 20] == struct.pack("<H", EM_CUDA)


def looks_like_ptx(data: Buffer) -> bool:
    """Whether the text begins with `.version`, after comments."""
    head = bytes(data[:65536])
    return _PTX.match(head) is not None


def regions(data: Buffer) -> list[Region]:
    """Return what to look through: of an ELF file every section with bytes that is not host code, else the whole file.

    Host code is left out because programs compare with the container's magic.
    """
    found = _sections(data) if is_elf(data) else None
    return [Region(None, 0, len(data))] if found is None else found


def _sections(data: Buffer) -> list[Region] | None:
    """Return the sections, or None where there is no usable section table (a stripped file is scanned whole)."""
    if len(data) < 64:
        return None
    (table,) = struct.unpack_from("<Q", data, 40)
    entry, count, names = struct.unpack_from("<HHH", data, 58)
    if entry != _SECTION.size or not count or names >= count or table + count * entry > len(data):
        return None
    rows = list(_SECTION.iter_unpack(data[table : table + count * entry]))
    strings = bytes(data[rows[names][4] : rows[names][4] + rows[names][5]])
    out: list[Region] = []
    for name, kind, flags, _, offset, size, *_ in rows:
        if kind in (0, _NOBITS) or not size or flags & _EXECUTABLE or offset + size > len(data):
            continue
        text = strings[name : strings.find(b"\0", name)].decode("utf-8", "replace")
        out.append(Region(text, offset, offset + size))
    return out


def elf_size(data: bytes) -> int | None:
    """Return where an ELF file ends by its own account, or None where that cannot be told."""
    if not is_elf(data) or len(data) < 64:
        return None
    programs, table = struct.unpack_from("<QQ", data, 32)
    program_size, program_count, entry, count = struct.unpack_from("<HHHH", data, 54)
    if entry != _SECTION.size or table + entry * count > len(data):
        return None
    rows = _SECTION.iter_unpack(data[table : table + entry * count])
    ends = [offset + size for _, kind, _, _, offset, size, *_ in rows if kind not in NOBITS_TYPES]
    return max([*ends, table + entry * count, programs + program_size * program_count])


def containers(data: Buffer, region: Region) -> Iterator[tuple[int, int]]:
    """Return offset and size of the containers in a region: from one to the next by their sizes, over gaps by looking for the
    magic."""
    at = begun = region.start
    while at < region.end:
        if at - begun > _KEPT:
            forget(data)
            begun = at
        if is_container(data, at, region.end):
            size = container_size(data, at)
            yield at, size
            at = align_up(at + size, 8)
            continue
        at = _next_magic(data, at, region.end)


def _next_magic(data: Buffer, start: int, end: int) -> int:
    """Return the next place at or after `start` where a whole container begins, or `end`; reads a window at a time."""
    begun = start
    while start < end:
        if start - begun > _KEPT:
            forget(data)
            begun = start
        window = bytes(data[start : min(start + _WINDOW, end)])
        found = window.find(_NEEDLE)
        while found >= 0:
            if is_container(data, start + found, end):
                return start + found
            found = window.find(_NEEDLE, found + 1)
        start += len(window) if start + len(window) >= end else len(window) - len(_NEEDLE) + 1
    return end
