"""Sections of a cubin, read without any tool."""

from __future__ import annotations

import struct


def sections(elf: bytes) -> dict[str, bytes]:
    """Names and contents of the sections of a 64-bit ELF file; the contents of those that take no room in it are empty."""
    (at,) = struct.unpack_from("<40xQ", elf)
    size, count, names = struct.unpack_from("<58xHHH", elf)
    headers = [struct.unpack_from("<IIQQQQ", elf, at + size * k) for k in range(count)]
    strings = headers[names][4]
    out: dict[str, bytes] = {}
    for name, kind, _, _, offset, length in headers:
        end = elf.index(b"\0", strings + name)
        out[elf[strings + name : end].decode()] = b"" if kind == 8 else elf[offset : offset + length]
    return out


def code_of(elf: bytes) -> dict[str, bytes]:
    """The `.text.*` sections."""
    return {name: data for name, data in sections(elf).items() if name.startswith(".text.")}
