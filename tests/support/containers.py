"""Fat binaries, host objects and archives, made by hand."""

from __future__ import annotations

import struct

LZ4, ZSTD = 0x2000, 0x8000


def entry(payload: bytes, *, kind: int = 2, arch: int = 90, flags: int = 0x11, size: int = 0, header: int = 64) -> bytes:
    """Return an entry; `size` is that of the decompressed payload, for a compressed one."""
    packed = bool(flags & 0xF000)
    padded = payload + bytes(-len(payload) % 8)
    head = struct.pack(
        "<HHIQIIHHIIIQQQ", kind, 0x101, header, len(padded), len(payload) if packed else 0, 0, 0, 0, arch, 0, 0, flags, 0, size
    )
    return head + bytes(header - len(head)) + padded


def container(*entries: bytes) -> bytes:
    body = b"".join(entries)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def host_elf(sections: dict[str, bytes], *, executable: tuple[str, ...] = (), machine: int = 62) -> bytes:
    """Return an ELF object of another machine with these sections."""
    names = b"\0" + b"".join(n.encode() + b"\0" for n in [".shstrtab", *sections])
    rows, body = [bytes(64)], b""
    for name, data in {".shstrtab": names, **sections}.items():
        body += bytes(-len(body) % 8)
        flags = 6 if name in executable else 2
        at = names.index(b"\0" + name.encode() + b"\0") + 1
        rows.append(
            struct.pack("<IIQQQQIIQQ", at, 3 if name == ".shstrtab" else 1, flags, 0, 64 + len(body), len(data), 0, 0, 8, 0)
        )
        body += data
    body += bytes(-len(body) % 8)
    head = struct.pack(
        "<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1" + bytes(9), 1, machine, 1, 0, 0, 64 + len(body), 0, 64, 0, 0, 64, len(rows), 1
    )
    return head + body + b"".join(rows)


def ar(members: dict[str, bytes]) -> bytes:
    """Return an `ar` archive with GNU names."""
    table = b"".join(n.encode() + b"/\n" for n in members if len(n) > 15)
    out = b"!<arch>\n"
    if table:
        out += _member("//", table)
    for name, data in members.items():
        out += _member(f"/{table.index(name.encode())}" if len(name) > 15 else name + "/", data)
    return out


def _member(name: str, data: bytes) -> bytes:
    return f"{name:<16}{0:<12}{0:<6}{0:<6}{644:<8}{len(data):<10}`\n".encode() + data + b"\n" * (len(data) % 2)
