"""Fat binaries: containers of cubins and PTX for several architectures.

A container is a header of 16 bytes (magic 0xBA55ED50, version 1, header size, size of what follows) and entries, each with a
header of its own: kind, sizes, architecture, flags. Headers have 64 bytes, and more where the entry carries a name, options,
or, from sm_100 on, numbers about its capsule; what follows the first 64 bytes is skipped by the stated size.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from warpsmith.base.errors import CubinError
from warpsmith.cubin.binary import unpack

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warpsmith.cubin.binary import Buffer

__all__ = ["CONTAINER", "MAGIC", "Entry", "container_size", "is_container", "read_entries"]

MAGIC = 0xBA55ED50
CONTAINER = struct.Struct("<IHHQ")
_ENTRY = struct.Struct("<HHIQIIHHIIIQQQ")
_KINDS = {1: "ptx", 2: "elf"}
_LZ4, _ZSTD, _COMPRESSED = 0x2000, 0x8000, 0xF000
_ACCELERATED, _FAMILY = 0x100000, 0x200000
_VERSION = 1


@final
@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a container. `data` and `stored` say where its bytes stand in what was read."""

    offset: int
    kind: str
    """`elf`, `ptx`, or `kind 8` for one that is not known."""
    arch: str
    compression: str
    """`none`, `lz4`, `zstd`, or `0x1000` for a method that is not known."""
    data: int
    stored: int
    """Bytes in the file."""
    size: int
    """Bytes when decompressed."""
    flags: int


def is_container(data: Buffer, offset: int, end: int) -> bool:
    """Whether a container begins at `offset` and ends at or before `end`; cheap, for scanning."""
    if offset + CONTAINER.size > end:
        return False
    magic, version, header, size = CONTAINER.unpack_from(data, offset)
    return magic == MAGIC and version == _VERSION and header >= CONTAINER.size and offset + header + size <= end


def container_size(data: Buffer, offset: int) -> int:
    """Return the bytes of the container at `offset`, header and all."""
    _, _, header, size = CONTAINER.unpack_from(data, offset)
    return header + size


def read_entries(data: Buffer, offset: int, section: str | None = None) -> Iterator[Entry]:
    """Return the entries of the container at `offset`, in order; raise `CubinError` where they contradict the container."""
    magic, version, header, size = unpack(CONTAINER, data, offset, "a fat binary", section)
    if magic != MAGIC:
        raise CubinError(f"not a fat binary: it begins with {magic:#010x}, not {MAGIC:#x}", offset=offset, section=section)
    if version != _VERSION or header < CONTAINER.size:
        raise CubinError(
            f"a fat binary of version {version} with a header of {header} bytes; read is version 1",
            offset=offset,
            section=section,
        )
    at, end = offset + header, offset + header + size
    if end > len(data):
        raise CubinError(
            f"a fat binary of {size} bytes ends behind the data's end at {len(data):#x}", offset=offset, section=section
        )
    while at < end:
        entry, after = _entry(data, at, end, section)
        yield entry
        at = after


def _entry(data: Buffer, at: int, end: int, section: str | None) -> tuple[Entry, int]:
    if at + _ENTRY.size > end:
        raise CubinError(
            f"an entry's header of 64 bytes ends behind its container's end at {end:#x}", offset=at, section=section
        )
    fields = _ENTRY.unpack_from(data, at)
    kind, _, header, padded, packed, _, _, _, arch, _, _, flags, _, size = fields
    start, after = at + header, at + header + padded
    if header < _ENTRY.size or after > end:
        raise CubinError(
            f"an entry of {header} + {padded} bytes ends behind its container's end at {end:#x}", offset=at, section=section
        )
    method = _method(flags)
    stored = padded if method == "none" else packed
    if stored > padded:
        raise CubinError(f"an entry says {stored} compressed bytes and has {padded}", offset=at, section=section)
    letter = "a" if flags & _ACCELERATED else "f" if flags & _FAMILY else ""
    entry = Entry(
        at,
        _KINDS.get(kind, f"kind {kind}"),
        f"sm_{arch}{letter}",
        method,
        start,
        stored,
        padded if method == "none" else size,
        flags,
    )
    return entry, after


def _method(flags: int) -> str:
    packed = flags & _COMPRESSED
    return {0: "none", _LZ4: "lz4", _ZSTD: "zstd"}.get(packed, f"{packed:#x}")
