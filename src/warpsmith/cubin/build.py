"""Build a cubin from nothing: the sections, symbols and attributes that ptxas 13.5 writes for code without debug information.

Which of them the driver needs is measured in docs/rooms/cubin.md; all are written. Differences from ptxas: sections of further
functions stand behind those of the first in the table, and the notes name this package as the tool.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from warpsmith.base.arch import parse_arch
from warpsmith.base.errors import CubinError
from warpsmith.cubin.arch_flags import flags_for
from warpsmith.cubin.attributes import COMPAT, attribute_id
from warpsmith.cubin.binary import align_up
from warpsmith.cubin.callgraph import WordTable
from warpsmith.cubin.elf import EM_CUDA, ET_EXEC, HEADER_SIZE, PROGRAM_SIZE, SECTION_SIZE, FileHeader, SectionType
from warpsmith.cubin.info import BYTE, HALF, NONE, SIZED, Attribute, InfoTable
from warpsmith.cubin.layout import FILE_HEADER, PROGRAM_TABLE, SECTION_TABLE, Piece
from warpsmith.cubin.notes import CUINFO, TKINFO, Note, NoteTable
from warpsmith.cubin.parameters import lay_out_parameters, parameter_attributes
from warpsmith.cubin.relocations import Relocation, RelocationTable
from warpsmith.cubin.section import Raw, Reserved, Section, Sections
from warpsmith.cubin.segment import Segment
from warpsmith.cubin.strings import StringTable
from warpsmith.cubin.symbols import STO_ENTRY, STT_FUNC, STT_SECTION, Symbol, SymbolTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warpsmith.base.arch import Arch
    from warpsmith.cubin.section import Content

__all__ = ["FunctionSpec", "Target", "add_sections", "base_sections", "header_for", "segments_for", "target_for"]

T = SectionType
_ALLOC, _WRITE, _EXEC, _INFO_LINK = 2, 1, 4, 0x40
_GLOBAL, _WEAK = 1, 2
R_CUDA_64 = 2
TOOLKIT = 135
"""The toolkit whose output is modelled, as `.note.nv.cuinfo` and CUDA_API_VERSION count: 13.5."""
_NOP = struct.pack("<QQ", 0x7918, 0x000FC00000000000)
_EXIT = 0x94D
_CODE_ALIGNMENT = 128
# the common entry of .debug_frame, as every ptxas writes it: version 3, code factor 4, data factor -4, stack pointer as CFA
_COMMON_FRAME = bytes.fromhex(
    "ffffffff24000000 00000000ffffffff ffffffff0300047cffffffff0f0c8180 80280008ff818028 0881808028000000"
)
_MARKS = [(0, 0xFFFFFFFF), (0, 0xFFFFFFFE), (0, 0xFFFFFFFD), (0, 0xFFFFFFFC)]


@final
@dataclass(frozen=True, slots=True)
class Target:
    """What differs between architectures in the cubins of ptxas 13.5."""

    arch: Arch
    parameter_base: int
    """Offset of the first parameter in constant bank 0."""
    workaround: int | None
    """Value of SW_WAR."""

    @property
    def modern(self) -> bool:
        """Whether it is sm_90 or later: relocations with addends, `.nv.compat`, registers in `.nv.info` alone."""
        return self.arch.number >= 90


def target_for(name: str) -> Target:
    """Return how cubins for an architecture are built; raise `CubinError` below sm_75, whose ptxas is another."""
    arch = parse_arch(name)
    n = arch.number
    if n < 75:
        raise CubinError(f"cubins for {name} can be read and edited, not built from nothing; build for sm_75 or later")
    base = 0x160 if n < 90 else 0x210 if n < 100 else 0x380
    if n in (101, 110):
        raise CubinError(f"cubins for {name} are not built from nothing: ptxas reserves shared memory for a workaround there")
    workaround = {75: 1, 87: 2}.get(n) if n < 90 else 0 if n >= 120 else 8
    return Target(arch, base, workaround)


@final
@dataclass(frozen=True, slots=True)
class FunctionSpec:
    """A kernel to add."""

    name: str
    code: bytes
    params: tuple[int | tuple[int, int], ...]
    registers: int
    shared: int
    barriers: int
    stack: int
    exits: tuple[int, ...] | None
    max_threads: tuple[int, int, int] | None


def misfit_of(spec: FunctionSpec, arch: str) -> str:
    """Return which resource of a kernel is beyond what the architecture has, '' where all fit.

    Static shared memory as ptxas 13.0 and 13.5 allow it, tried to the byte: 48 KiB, but for architecture-specific targets
    (`a`) what a CTA can have. Local memory: 512 KiB a thread (CUDA C++ Programming Guide, technical specifications).
    """
    parsed = parse_arch(arch)
    most = 48 << 10
    if parsed.suffix == "a" and parsed.number >= 90:
        most = (99 if parsed.number >= 120 else 227) << 10
    for count, least, limit, what in (
        (spec.registers, 1, 255, "registers"),
        (spec.barriers, 0, 16, "barriers"),
        (spec.shared, 0, most, "bytes of static shared memory"),
        (spec.stack, 0, 512 << 10, "bytes of stack for each thread"),
    ):
        if not least <= count <= limit:
            return f"{count:,} {what} on {arch}: {least} to {limit:,}"
    return ""


def header_for(target: Target) -> FileHeader:
    """Return the file header."""
    ident = b"\x7fELF\2\1\1\x41\x08" + bytes(7)
    return FileHeader(
        ident, ET_EXEC, EM_CUDA, 1, 0, 0, 0, flags_for(target.arch.number), HEADER_SIZE, PROGRAM_SIZE, 0, SECTION_SIZE, 0, 1
    )


def base_sections(target: Target) -> tuple[Sections, list[Piece]]:
    """Return the sections of a cubin without functions, and the parts of the file."""
    names = StringTable(b"\0", ".shstrtab")
    strings = StringTable(b"\0", ".strtab")
    sections = Sections([Section("", 0, T.NULL, 0, 0, 0, 0, 0, 0, Reserved(0))])
    pieces = [Piece(FILE_HEADER), Piece(SECTION_TABLE), Piece(PROGRAM_TABLE)]
    add = _Adder(sections, pieces, names)
    add(".shstrtab", T.STRTAB, names, alignment=1)
    add(".strtab", T.STRTAB, strings, alignment=1)
    add(".symtab", T.SYMTAB, SymbolTable([Symbol("", 0, 0, 0, 0, 0, 0)], strings, ".symtab"), link=2, alignment=8, entry=24)
    add(".debug_frame", T.PROGBITS, Raw(b""), alignment=1)  # cuobjdump calls a cubin invalid where this is not section 4
    add(".note.nv.tkinfo", T.NOTE, NoteTable([_tool_note(target)]), flags=0x2000000)
    add(".note.nv.cuinfo", T.NOTE, NoteTable([_cuda_note(target)]), flags=0x1000000, link=5)
    add(".nv.info", T.CUDA_INFO, InfoTable([]), link=3)
    if target.modern:
        compat = add(".nv.compat", T.CUDA_COMPAT, _compat(target))
        note = sections[".note.nv.cuinfo"]
        note.flags, note.info = note.flags | _INFO_LINK, sections.index(compat)
    add(".nv.callgraph", T.CUDA_CALLGRAPH, WordTable(list(_MARKS), 2), link=3, entry=8)
    if not target.modern:
        add(".nv.rel.action", T.CUDA_RELOCINFO, WordTable([(0x73, 0), (0x25110000, 0x36050000)], 2), alignment=8, entry=8)
    add(_frame_relocations(target), T.RELA if target.modern else T.REL, RelocationTable([], with_addends=target.modern),
        flags=_INFO_LINK, link=3, info=4, alignment=8, entry=24 if target.modern else 16)  # fmt: skip
    for section in (".note.nv.tkinfo", ".note.nv.cuinfo", ".debug_frame", ".nv.callgraph"):
        _section_symbol(sections, section)
    if target.modern:
        reserved = add(
            ".nv.shared.reserved.0",
            T.NOBITS,
            Reserved(0 if target.arch.number < 100 else 0x40),
            flags=_ALLOC | _WRITE,
            alignment=1,
        )
        _symbol(sections, ".nv.reservedSmem.offset0", _WEAK << 4 | 1, 0, 0, reserved.size, 4)
        _symbol(sections, "__nv_reservedSMEM_offset_0_alias", _WEAK << 4, 0xA0, sections.index(reserved), reserved.size, 0)
    return sections, pieces


def _frame_relocations(target: Target) -> str:
    return ".rela.debug_frame" if target.modern else ".rel.debug_frame"


@final
class _Adder:
    """Appends sections to the table, and to the file behind the last one of their kind."""

    _ORDER = (
        (T.STRTAB,), (T.SYMTAB,), (T.NOTE, T.CUDA_INFO, T.CUDA_COMPAT, T.CUDA_CALLGRAPH, T.CUDA_RELOCINFO), (T.REL, T.RELA),
    )  # fmt: skip

    def __init__(self, sections: Sections, pieces: list[Piece], names: StringTable) -> None:
        self.sections, self.pieces, self.names = sections, pieces, names

    def __call__(
        self,
        name: str,
        kind: int,
        content: Content,
        *,
        flags: int = 0,
        link: int = 0,
        info: int = 0,
        alignment: int = 4,
        entry: int = 0,
    ) -> Section:
        section = Section(name, self.names.add(name), kind, flags, 0, link, info, alignment, entry, content)
        self.sections.items.append(section)
        rank = self._rank(section)
        at = next((i for i, p in enumerate(self.pieces) if self._rank(p.part) > rank), len(self.pieces))
        self.pieces.insert(at, Piece(section))
        return section

    def _rank(self, part: Section | str) -> int:
        if isinstance(part, str):
            return -1 if part == FILE_HEADER else 100
        for rank, kinds in enumerate(self._ORDER):
            if part.type in kinds:
                return rank
        if part.flags & _EXEC:
            return 11
        if part.flags & _ALLOC:
            return 12 if not part.in_file else 13
        return 10


def _tool_note(target: Target) -> Note:
    texts = ["", "warpsmith", "warpsmith", "", f"-arch {target.arch} "]
    places, body = [], b""
    for text in texts:
        places.append(len(body))
        body += text.encode() + b"\0"
    body += bytes(align_up(len(body), 4) - len(body))
    return Note(b"NVIDIA Corp\0", TKINFO, struct.pack("<6I", 2, 0, *places[1:]) + body)


def _cuda_note(target: Target) -> Note:
    return Note(b"NVIDIA Corp\0", CUINFO, struct.pack("<HHI", 2, target.arch.number, TOOLKIT)[:8])


def _compat(target: Target) -> InfoTable:
    n, exact = target.arch.number, target.arch.suffix == "a"

    def attribute(form: int, name: str, payload: bytes) -> Attribute:
        return Attribute(form, attribute_id(COMPAT, name), payload, COMPAT)

    out = [
        attribute(BYTE, "CUDA_ACCELERATOR_TARGET", bytes((exact, 0))),
        attribute(BYTE, "CUDA_INTERNAL_TARGET", b"\0\0"),
        attribute(BYTE, "ISA_CLASS", b"\1\0"),
    ]
    if n == 100 and exact:
        out.append(attribute(BYTE, "INST_TCGEN05_MMA", b"\5\0"))
    out.append(attribute(HALF, "0x0d", b"\1\1"))
    if n in (100, 120):
        out.append(attribute(HALF, "0x07", b"\1\1"))
    out.append(attribute(BYTE, "INST_TENSORMAP_V1", b"\0\0"))
    out.append(attribute(SIZED, "CAN_FASTPATH_FINALIZE", bytes(8)))  # no capsule to finalise from
    out.append(attribute(HALF, "FINALIZER_VERSION", b"\x40\x04"))
    return InfoTable(out)


def _symbol(sections: Sections, name: str, info: int, other: int, section: int, value: int, size: int) -> int:
    table = sections[".symtab"].holds(SymbolTable)
    table.symbols.append(Symbol(name, table.strings.add(name), info, other, section, value, size))
    sections[".symtab"].info = len(table)
    return len(table) - 1


def _section_symbol(sections: Sections, name: str) -> int:
    return _symbol(sections, name, STT_SECTION, 0, sections.index(sections[name]), 0, 0)


def add_sections(sections: Sections, pieces: list[Piece], target: Target, spec: FunctionSpec) -> None:
    """Add the sections, symbols, attributes and frame of one kernel."""
    add = _Adder(sections, pieces, sections[".shstrtab"].holds(StringTable))
    parameters = lay_out_parameters(spec.params, target.parameter_base)
    size = max((p.offset + p.size for p in parameters), default=0)
    code = spec.code + _NOP * ((align_up(len(spec.code), _CODE_ALIGNMENT) - len(spec.code)) // len(_NOP))
    text = add(f".text.{spec.name}", T.PROGBITS, Raw(code), flags=_ALLOC | _EXEC, link=3, alignment=_CODE_ALIGNMENT)
    number = sections.index(text)
    _section_symbol(sections, text.name)
    if target.modern:
        add(
            f".rela.text.{spec.name}",
            T.RELA,
            RelocationTable([], with_addends=True),
            flags=_INFO_LINK,
            link=3,
            info=number,
            alignment=8,
            entry=24,
        )
    if spec.shared or target.modern:
        reserved = 0x400 if target.modern else 0
        add(
            f".nv.shared.{spec.name}",
            T.NOBITS,
            Reserved(spec.shared + reserved),
            flags=_ALLOC | _WRITE | _INFO_LINK,
            info=number,
            alignment=16,
        )
        _section_symbol(sections, f".nv.shared.{spec.name}")
    bank = add(
        f".nv.constant0.{spec.name}",
        T.PROGBITS,
        Raw(bytes(target.parameter_base + size)),
        flags=_ALLOC | _INFO_LINK,
        info=number,
    )
    bank_symbol = _section_symbol(sections, bank.name)
    symbol = _symbol(sections, spec.name, _GLOBAL << 4 | STT_FUNC, STO_ENTRY, number, 0, len(code))
    text.info = symbol if target.modern else symbol | spec.registers << 24
    module = sections[".nv.info"].holds(InfoTable)
    module.attributes += [
        Attribute.sized("REGCOUNT", symbol, spec.registers),
        Attribute.sized("FRAME_SIZE", symbol, spec.stack),
        Attribute.sized("MIN_STACK_SIZE", symbol, spec.stack),
    ]
    info = InfoTable(_kernel_attributes(target, spec, parameter_attributes(parameters), (bank_symbol, size)))
    add(f".nv.info.{spec.name}", T.CUDA_INFO, info, flags=_INFO_LINK, link=3, info=number)
    _add_frame(sections, target, symbol, len(code))


def _kernel_attributes(
    target: Target, spec: FunctionSpec, parameters: Sequence[Attribute], bank: tuple[int, int]
) -> list[Attribute]:
    cbank = [
        Attribute.half("CBANK_PARAM_SIZE", bank[1]),
        Attribute.sized("PARAM_CBANK", bank[0], bank[1] << 16 | target.parameter_base),
    ]
    war = [Attribute.sized("SW_WAR", target.workaround)] if target.workaround is not None else []
    out = [Attribute.sized("LANGUAGE", 3)]
    if not target.modern:
        out += war
    out.append(Attribute.sized("CUDA_API_VERSION", TOOLKIT))
    if target.arch.number in (80, 86, 87, 88):
        out.append(Attribute(NONE, 0x35, b"\0\0"))
    out += list(parameters) if target.modern else [cbank[1], cbank[0], *parameters]
    if target.modern:
        out.append(Attribute.half("SPARSE_MMA_MASK", 0))
    out.append(Attribute.half("MAXREG_COUNT", 255))
    if spec.barriers:
        out.append(Attribute.byte("NUM_BARRIERS", spec.barriers))
    out.append(Attribute.half("MERCURY_ISA_VERSION", 0x101 if target.modern else 0))
    if target.arch.number >= 100:
        out.append(Attribute.byte("VRC_CTA_INIT_COUNT", 0))
    out.append(Attribute.sized("EXIT_INSTR_OFFSETS", *(_exits(spec.code) if spec.exits is None else spec.exits)))
    if spec.max_threads:
        out.append(Attribute.sized("MAX_THREADS", *spec.max_threads))
    if target.modern:
        out += [*cbank, *war, Attribute.half("NVSAL_SW_WAR", 1), Attribute.byte("PREEXIT_USED", 0)]
    return out


def _exits(code: bytes) -> list[int]:
    """Return the offsets of EXIT instructions (opcode bits 11:0 = 0x94d on sm_70 and later)."""
    return [at for at in range(0, len(code), 16) if int.from_bytes(code[at : at + 2], "little") & 0xFFF == _EXIT]


def _add_frame(sections: Sections, target: Target, symbol: int, size: int) -> None:
    frame = sections[".debug_frame"]
    start = len(frame.data)
    entry = struct.pack("<IQQQQ", 0xFFFFFFFF, 0x24, start, 0, size) + bytes(12)
    frame.content = Raw(frame.data + _COMMON_FRAME + entry)
    at = start + len(_COMMON_FRAME) + 20
    table = sections[_frame_relocations(target)].holds(RelocationTable)
    table.relocations.append(Relocation(at, R_CUDA_64, symbol, 0 if target.modern else None))


def segments_for(pieces: Sequence[Piece]) -> list[Segment]:
    """Return the program headers: the headers themselves, code, memory without bytes in the file, constants."""

    def of(flags: int, *, in_file: bool) -> list[Piece]:
        alloc = [p for p in pieces if isinstance(p.part, Section) and p.part.flags & _ALLOC and p.part.in_file is in_file]
        return [p for p in alloc if isinstance(p.part, Section) and bool(p.part.flags & _EXEC) is bool(flags & 1)]

    table = next(p for p in pieces if p.part == PROGRAM_TABLE)
    out = [Segment(kind, 4, 0, 0, 8, table, 0, table, 0, (), 0) for kind in (6, 1)]
    for flags, in_file in ((5, True), (6, False), (4, True)):
        if parts := of(flags, in_file=in_file):
            memory = tuple(p.part for p in parts if isinstance(p.part, Section)) if not in_file else ()
            out.append(Segment(1, flags, 0, 0, 8, parts[0], 0, parts[-1] if in_file else None, 0, memory, 0))
    return out
