"""The ELF frame of a cubin: file header, section headers, program headers, as records (ELF-64, little-endian).

Two styles exist. Up to CUDA 12: OSABI 0x33, ABI 7, `e_version` the toolkit. From CUDA 13: OSABI 0x41, ABI 8. They differ in
where `e_flags` holds the architecture, see `arch_flags.py`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from warpsmith.base.errors import CubinError
from warpsmith.cubin.binary import unpack

if TYPE_CHECKING:
    from warpsmith.cubin.binary import Buffer

__all__ = [
    "EM_CUDA", "ET_EXEC", "ET_REL", "HEADER_SIZE", "MAX_SECTIONS", "NOBITS_TYPES", "PROGRAM_SIZE", "SECTION_SIZE", "FileHeader",
    "ProgramHeader", "SectionHeader", "SectionType", "read_file_header", "read_program_headers", "read_section_headers",
]  # fmt: skip

EM_CUDA = 190
ET_REL, ET_EXEC = 1, 2
MAX_SECTIONS = 0xFF00
"""Section indices from here on are reserved (SHN_LORESERVE); no cubin with more has been seen."""

_LARGEST_ALIGNMENT = 1 << 20
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_PROGRAM = struct.Struct("<IIQQQQQQ")
HEADER_SIZE, SECTION_SIZE, PROGRAM_SIZE = _HEADER.size, _SECTION.size, _PROGRAM.size

_MACHINES = {
    3: "Intel 80386",
    20: "PowerPC",
    21: "PowerPC64",
    40: "ARM",
    62: "x86-64",
    183: "AArch64",
    243: "RISC-V",
    224: "AMD GPU",
}


@final
class SectionType:
    """The `sh_type` values that mean something here; those from 0x70000000 on are NVIDIA's."""

    NULL, PROGBITS, SYMTAB, STRTAB, RELA, NOTE, NOBITS, REL = 0, 1, 2, 3, 4, 7, 8, 9
    CUDA_INFO, CUDA_CALLGRAPH, CUDA_PROTOTYPE = 0x70000000, 0x70000001, 0x70000002
    CUDA_GLOBAL, CUDA_LOCAL, CUDA_SHARED = 0x70000007, 0x70000009, 0x7000000A
    CUDA_RELOCINFO = 0x7000000B
    CUDA_SHARED_RESERVED = 0x70000015
    CAPMERC = 0x70000016
    MERC_RELA, MERC_INFO, MERC_SYMTAB, MERC_CALLGRAPH = 0x70000082, 0x70000083, 0x70000085, 0x7000008A
    CUDA_COMPAT = 0x70000086


NOBITS_TYPES = frozenset(
    (
        SectionType.NOBITS,
        SectionType.CUDA_GLOBAL,
        SectionType.CUDA_LOCAL,
        SectionType.CUDA_SHARED,
        SectionType.CUDA_SHARED_RESERVED,
    )
)
"""Types whose sections have a size and no bytes in the file."""


@final
@dataclass(slots=True)
class FileHeader:
    """The file header. Offsets, counts and the string table's index are the writer's and are kept here only while reading."""

    ident: bytes
    """16 bytes: magic, class, data, version, OSABI, ABI version, padding."""
    type: int
    machine: int
    version: int
    entry: int
    program_offset: int
    section_offset: int
    flags: int
    header_size: int
    program_entry_size: int
    program_count: int
    section_entry_size: int
    section_count: int
    string_index: int

    @property
    def osabi(self) -> int:
        """0x33 up to CUDA 12, 0x41 from CUDA 13."""
        return self.ident[7]

    @property
    def abi_version(self) -> int:
        """7 beside OSABI 0x33, 8 beside 0x41."""
        return self.ident[8]

    def encode(self) -> bytes:
        """Return the 64 bytes."""
        return _HEADER.pack(
            self.ident, self.type, self.machine, self.version, self.entry, self.program_offset, self.section_offset, self.flags,
            self.header_size, self.program_entry_size, self.program_count, self.section_entry_size, self.section_count,
            self.string_index,
        )  # fmt: skip


@final
@dataclass(slots=True)
class SectionHeader:
    """One section header, fields in file order."""

    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int

    def encode(self) -> bytes:
        """Return the 64 bytes."""
        return _SECTION.pack(
            self.name,
            self.type,
            self.flags,
            self.address,
            self.offset,
            self.size,
            self.link,
            self.info,
            self.alignment,
            self.entry_size,
        )


@final
@dataclass(slots=True)
class ProgramHeader:
    """One program header, fields in file order."""

    type: int
    flags: int
    offset: int
    virtual_address: int
    physical_address: int
    file_size: int
    memory_size: int
    alignment: int

    def encode(self) -> bytes:
        """Return the 56 bytes."""
        return _PROGRAM.pack(
            self.type,
            self.flags,
            self.offset,
            self.virtual_address,
            self.physical_address,
            self.file_size,
            self.memory_size,
            self.alignment,
        )


def read_file_header(data: Buffer) -> FileHeader:
    """Read the file header; raise `CubinError` unless it is that of a 64-bit little-endian ELF for NVIDIA GPUs."""
    if bytes(data[:4]) != b"\x7fELF":
        raise CubinError(f"not an ELF file: it begins with {bytes(data[:4]).hex(' ') or 'nothing'}, not 7f 45 4c 46", offset=0)
    header = FileHeader(*unpack(_HEADER, data, 0, "the ELF header"))
    if header.ident[4:7] != b"\2\1\1":
        raise CubinError(
            "not a 64-bit little-endian ELF of version 1; NVIDIA's 32-bit cubins (before CUDA 9) are not read", offset=4
        )
    if header.machine != EM_CUDA:
        name = _MACHINES.get(header.machine, "another machine")
        raise CubinError(
            f"an ELF file for machine {header.machine} ({name}), not for NVIDIA GPUs ({EM_CUDA}); "
            "ws.cubin.find() looks for cubins inside libraries and objects",
            offset=18,
        )
    if (header.osabi, header.abi_version) not in ((0x33, 7), (0x41, 8)):
        raise CubinError(
            f"OSABI {header.osabi:#x} with ABI version {header.abi_version} is not known; "
            "known are 0x33 with 7 and 0x41 with 8",
            offset=7,
        )
    for size, expected, what, at in (
        (header.header_size, HEADER_SIZE, "the file header", 52),
        (header.program_entry_size, PROGRAM_SIZE, "a program header", 54),
        (header.section_entry_size, SECTION_SIZE, "a section header", 58),
    ):
        if size != expected and (size or what != "a program header" or header.program_count):
            raise CubinError(f"{what} is said to have {size} bytes, not {expected}", offset=at)
    return header


def read_section_headers(data: Buffer, header: FileHeader) -> list[SectionHeader]:
    """Read the section headers; every section's bytes lie in the file."""
    if header.section_count >= MAX_SECTIONS:
        raise CubinError(f"{header.section_count} sections; at most {MAX_SECTIONS - 1} are read", offset=60)
    size = header.section_count * SECTION_SIZE
    if header.section_offset + size > len(data):
        raise CubinError(
            f"{header.section_count} section headers at {header.section_offset:#x} end behind the file's end at {len(data):#x}",
            offset=40,
        )
    table = bytes(data[header.section_offset : header.section_offset + size])
    sections = [SectionHeader(*fields) for fields in _SECTION.iter_unpack(table)]
    if not sections or sections[0].type != SectionType.NULL:
        raise CubinError("there is no section table that begins with the null section", offset=header.section_offset)
    if not 0 < header.string_index < len(sections) or sections[header.string_index].type != SectionType.STRTAB:
        raise CubinError(
            f"section {header.string_index} is named as the table of section names and is no string table", offset=62
        )
    for index, s in enumerate(sections):
        at = header.section_offset + index * SECTION_SIZE
        if s.offset > len(data) or (s.type not in NOBITS_TYPES and s.offset + s.size > len(data)):
            raise CubinError(
                f"section {index} at {s.offset:#x} with {s.size:#x} bytes ends behind the file's end at {len(data):#x}",
                offset=at,
            )
        if s.alignment & (s.alignment - 1) or s.alignment > _LARGEST_ALIGNMENT:
            raise CubinError(f"section {index} has alignment {s.alignment:#x}, not a power of two up to 1 MiB", offset=at + 48)
    return sections


def read_program_headers(data: Buffer, header: FileHeader) -> list[ProgramHeader]:
    """Read the program headers."""
    size = header.program_count * PROGRAM_SIZE
    if header.program_offset + size > len(data):
        raise CubinError(
            f"{header.program_count} program headers at {header.program_offset:#x} end behind the file's end at {len(data):#x}",
            offset=32,
        )
    table = bytes(data[header.program_offset : header.program_offset + size])
    return [ProgramHeader(*fields) for fields in _PROGRAM.iter_unpack(table)]
