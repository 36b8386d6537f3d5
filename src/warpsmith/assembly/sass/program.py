"""Decoded machine code: a program of 16-byte instructions, each looked at only when asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, final, overload

from warpsmith.assembly.sass.control import CONTROL_MASK, Control
from warpsmith.assembly.sass.decode import Decoder
from warpsmith.assembly.sass.encode import Encoder
from warpsmith.assembly.sass.listing import listing_lines
from warpsmith.assembly.sass.mnemonics import mnemonic
from warpsmith.assembly.sass.operands import Registers, model_of
from warpsmith.assembly.sass.row import gather
from warpsmith.assembly.sass.table import FOLDER, load_table
from warpsmith.assembly.sass.unknown import explain
from warpsmith.base.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from warpsmith.assembly.sass.decode import Form
    from warpsmith.assembly.sass.operands import Operand
    from warpsmith.assembly.sass.row import Bits, Field
    from warpsmith.assembly.sass.table import Table

__all__ = ["FieldValue", "Instruction", "Program", "decode", "tools_of"]

_REUSE = 7 << 122
_HIGH = 7 << 125
_TOOLS = 4
"""Architectures whose decoder and encoder are kept, for they remember what they have read: up to some 200 MB each."""


def tools_of(arch: str, folder: Path) -> tuple[Decoder, Encoder]:
    """Return the decoder and encoder of an architecture, made once for the latest few."""
    return _tools(arch, folder if folder.is_absolute() else folder.absolute())


@lru_cache(maxsize=_TOOLS)
def _tools(arch: str, folder: Path) -> tuple[Decoder, Encoder]:
    decoder = Decoder(load_table(arch, folder))
    return decoder, Encoder(decoder.table, decoder)


@final
@dataclass(frozen=True, slots=True)
class FieldValue:
    """A named part of an instruction word."""

    bits: Bits
    """Runs (lowest bit, width), least significant first."""
    value: int
    """The bits as they stand."""
    text: str
    """What the disassembler prints for it; '' for parts that choose among texts."""


@final
class Instruction:
    """One 16-byte instruction at an address."""

    __slots__ = ("_decoder", "_encoder", "address", "raw")

    def __init__(self, raw: int, address: int, decoder: Decoder, encoder: Encoder) -> None:
        self.raw = raw
        """The 128-bit word."""
        self.address = address
        """Byte offset from the start of the code."""
        self._decoder = decoder
        self._encoder = encoder

    @property
    def known(self) -> bool:
        """Whether the table has a form for the word."""
        return self._form is not None

    @property
    def text(self) -> str:
        """The disassembler's exact text; for a word the table does not know, `.word` with both halves and which bits are
        unknown."""
        found = self._decoder.text(self.raw, self.address)
        if found is not None:
            return found
        low, high = self.raw & (1 << 64) - 1, self.raw >> 64
        return f".word {low:#018x}, {high:#018x} // unknown: {explain(self._decoder.table, self.raw)}"

    @property
    def control(self) -> Control:
        """The scheduling bits."""
        return Control.of(self.raw)

    @property
    def form(self) -> str:
        """The name of the instruction class, as the disassembler calls it; '' for an unknown word."""
        form = self._form
        return form.row.name if form else ""

    @property
    def fields(self) -> dict[str, FieldValue]:
        """All parts of the word by name; empty for an unknown word.

        `opcode` and the control bits are there too; `ignored` are bits that the disassembler does not look at.
        """
        form = self._form
        return _fields(form, self.raw, self.address) if form else {}

    @property
    def table(self) -> Table:
        """The table by which the word was looked up."""
        return self._decoder.table

    @property
    def layout(self) -> Form | None:
        """The form with its selectors chosen, None for an unknown word: what printers and analyses take a word apart by."""
        return self._form

    @property
    def mnemonic(self) -> str:
        """The mnemonic without modifiers, `IMAD`; '' for an unknown word."""
        form = self._form
        return form.row.notes.get("mnemonic", "").partition("/")[0] if form else ""

    @property
    def kind(self) -> str:
        """The instruction class, one of `mnemonics.CLASSES` such as `integer` or `memory.shared`; `unknown` where it is not
        known."""
        found = mnemonic(self.mnemonic)
        return found.kind if found else "unknown"

    @property
    def description(self) -> str:
        """One line on what the instruction does; '' for an unknown word."""
        found = mnemonic(self.mnemonic)
        return found.description if found else ""

    @property
    def operands(self) -> tuple[Operand, ...]:
        """What the text names, in its order, with roles; then the registers that are used without being named.

        Empty for an unknown word. Where it is not known what becomes of a register, its role is `unknown`.
        """
        form = self._form
        return model_of(self._decoder.table).operands(form, self.raw, self.address) if form else ()

    @property
    def registers(self) -> Registers:
        """The registers that are read and written; `.complete` is False where the tables do not know all of it."""
        form = self._form
        if form is None:
            return Registers(frozenset(), frozenset(), False)
        return model_of(self._decoder.table).registers(form, self.raw)

    @property
    def unprinted(self) -> int:
        """Bits, control bits aside, in which the word differs from the encoding of its text (`encode(text)` exclusive-or
        the word)."""
        if not self.known:
            return 0
        return (self._encoder.word(self.text, address=self.address) ^ self.raw) & ~CONTROL_MASK

    @property
    def _form(self) -> Form | None:
        return self._decoder.form(self.raw)

    def __bytes__(self) -> bytes:
        return self.raw.to_bytes(16, "little")

    def __repr__(self) -> str:
        return f"<{self.address:#06x} {self.control} {self.text}>"


_NAMES = {(16, 8): "Rd", (24, 8): "Ra", (32, 8): "Rb", (64, 8): "Rc", (12, 3): "guard", (32, 32): "imm"}


def _name(f: Field) -> str:
    name = _NAMES.get(f.bits[0]) if len(f.bits) == 1 else None
    if name and name[0] == "R":
        return f"U{name}" if f.kind == "UR" else name if f.kind == "R" else f"{f.kind}{f.bits[0][0]}"
    return name or ("target" if f.kind == "r" else f"{f.kind}{f.bits[0][0]}")


def _fields(form: Form, word: int, address: int) -> dict[str, FieldValue]:
    row = form.row
    shown = {t for t in form.template if isinstance(t, int)}
    out = {"opcode": FieldValue(((0, 12),), word & 0xFFF, row.name)}
    for index, f in enumerate(row.fields):
        out[_name(f)] = FieldValue(f.bits, gather(word, f.bits), f.text(word, address) if index in shown else "")
    for s in row.selectors:
        bits = tuple(run for run in s.bits if run[0] < 105)  # the reuse bits stand under their own name
        if bits and not s.predicates:
            out[f"sel{bits[0][0]}"] = FieldValue(bits, gather(word, bits), "")
    key = row.mask & ~0xFFF
    out["key"] = FieldValue(_runs(key), gather(word, _runs(key)), "")
    spare = (row.ignored | _HIGH) & ~_REUSE
    out["ignored"] = FieldValue(_runs(spare), gather(word, _runs(spare)), "")
    for name, low, width in (
        ("stall", 105, 4), ("yield", 109, 1), ("write", 110, 3), ("read", 113, 3), ("wait", 116, 6), ("reuse", 122, 3)
    ):  # fmt: skip
        out[name] = FieldValue(((low, width),), word >> low & ((1 << width) - 1), "")
    return out


@cache
def _runs(mask: int) -> Bits:
    out: list[tuple[int, int]] = []
    for bit in range(128):
        if mask >> bit & 1:
            if out and out[-1][0] + out[-1][1] == bit:
                out[-1] = (out[-1][0], out[-1][1] + 1)
            else:
                out.append((bit, 1))
    return tuple(out)


@final
class Program(Sequence[Instruction]):
    """The instructions of a piece of code, in order."""

    def __init__(self, code: bytes, arch: str, base: int, folder: Path) -> None:
        self.code = code
        self.arch = arch
        self.base = base
        self._decoder, self._encoder = tools_of(arch, folder)

    def __len__(self) -> int:
        return len(self.code) // 16

    @overload
    def __getitem__(self, index: int) -> Instruction: ...
    @overload
    def __getitem__(self, index: slice) -> list[Instruction]: ...
    def __getitem__(self, index: int | slice) -> Instruction | list[Instruction]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        at = range(len(self))[index] * 16
        raw = int.from_bytes(self.code[at : at + 16], "little")
        return Instruction(raw, self.base + at, self._decoder, self._encoder)

    def texts(self) -> list[str | None]:
        """Return the texts of all instructions, None for unknown words; the quick way to a listing."""
        text, code, base = self._decoder.text, self.code, self.base
        read = int.from_bytes
        return [text(read(code[at : at + 16], "little"), base + at) for at in range(0, len(code), 16)]

    def listing(self) -> str:
        """Return a listing that `assemble` reads back to the same bytes: labels, control bits, text, unprinted bits."""
        return "\n".join(listing_lines(self)) + "\n"


def decode(code: bytes, arch: str, *, base: int = 0, tables: Path = FOLDER) -> Program:
    """Decode machine code of an architecture, e.g. the bytes of a `.text` section; `base` is the address of its first byte.

    Raises `InputError` if the length is not a multiple of 16, `CapabilityError` if there is no table for the architecture.
    `tables` may name a folder of the user's own.
    """
    if len(code) % 16:
        raise InputError(
            f"{len(code)} bytes are not whole instructions of 16; the last {len(code) % 16} start at {len(code) // 16 * 16:#x}"
        )
    return Program(bytes(code), arch, base, tables)
