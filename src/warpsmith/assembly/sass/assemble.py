"""Assemble: one text, or a listing with labels, control codes and unprinted bits."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from warpsmith.assembly.sass.control import CONTROL_MASK, Control, parse_control
from warpsmith.assembly.sass.lex import mnemonic_of, normal
from warpsmith.assembly.sass.program import tools_of
from warpsmith.assembly.sass.table import FOLDER
from warpsmith.base.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from warpsmith.assembly.sass.encode import Encoder

__all__ = ["Assembled", "assemble", "assemble_lines", "encode"]

_CONTROL = re.compile(r"(B[^\s:/]*:R[^\s:/]*:W[^\s:/]*:[^\s:/]*:S[^\s:/]*)(?:/([01]{3}))?\s+")
_NO_CONTROL = re.compile(r"B[-\w]*:R\S*")
"""What is meant as a control code, and may be none."""
_LABEL = re.compile(r"([.A-Za-z_$][\w.$]*)\s*:(?!:)\s*")
_TARGET = re.compile(r"`\(([^)]+)\)")
_WORD = re.compile(r"\.word\s+(0x[0-9a-fA-F]+)\s*,\s*(0x[0-9a-fA-F]+)$")
_ORIGIN = re.compile(r"/\*\s*([0-9a-f]{3,}0)\s*\*/")
"""A multiple of 16, so that `/* added */` is none."""
_UNPRINTED = re.compile(r"/\*\s*unprinted\b(.*?)\*/")
_HEXADECIMAL = re.compile(r"\s*0x[0-9a-fA-F]+\s*")
_LONGEST = 16_384
"""Characters of an instruction; the longest of a library has 120."""
_BEGINS = frozenset("@ACDEFGHIJKLMNOPQRSTUVWXYZ")
"""Most instructions begin so; B may begin a control code."""
_SHOWN = 200
"""Characters of a line that an error shows."""


def encode(
    text: str, arch: str, control: Control | None = None, *, unprinted: int = 0, address: int = 0, tables: Path = FOLDER
) -> bytes:
    """Return the 16 bytes of an instruction's text.

    `control` are the scheduling bits; without them the instruction stalls one cycle, waits for nothing and sets nothing.
    `unprinted` is exclusive-ored in at the end, as `Instruction.unprinted` gives it. `address` is where the instruction will
    stand: branch targets are distances. Raises `InputError`, naming the nearest known forms, for a text that the table does
    not know.
    """
    encoder = tools_of(arch, tables)[1]
    _require_instruction(text)
    word = encoder.word(text, control=None if control is None else control.bits(), address=address)
    return _with_unprinted(word, unprinted, address, encoder).to_bytes(16, "little")


def _require_instruction(text: str) -> None:
    """Raise `InputError` for what cannot be an instruction, whatever the table knows."""
    if len(text) > _LONGEST:
        raise InputError(f"{text[:40]!r}…: {len(text):,} characters; an instruction has at most {_LONGEST:,}")
    if text[:1] in _BEGINS:
        return
    if m := _NO_CONTROL.match(text):
        raise InputError(
            f"{m[0]!r} stands without an instruction, or is no control code; write B012345:R0:W0:Y:S00 TEXT with '-' for"
            " scoreboards that are not waited for or set, and for no yield"
        )
    if text.startswith(".word"):
        raise InputError(f"{text!r}: a raw word is .word LOW, HIGH: two hexadecimal numbers, without control bits")
    if text.startswith("."):
        raise InputError(f"{text.split(maxsplit=1)[0]!r} is no directive of code; there is .word LOW, HIGH")
    if text.strip() and not mnemonic_of(normal(text)):
        raise InputError(f"{text[:40]!r}: no instruction begins like this; write [@P0] MNEMONIC operands")


def _with_unprinted(word: int, unprinted: int, address: int, encoder: Encoder) -> int:
    """Put bits into a word that no text shows; raise `InputError` for bits that the text or the control bits do show."""
    if not unprinted:
        return word
    if not 0 < unprinted < 1 << 128:
        raise InputError("the unprinted bits are wider than a word of 128 bits" if unprinted > 0 else "unprinted is negative")
    text = encoder.decoder.text
    if unprinted & CONTROL_MASK or text(word ^ unprinted, address) != text(word, address):
        other = text(word ^ unprinted, address) or "no instruction"
        changed = "the control bits" if unprinted & CONTROL_MASK else f"{text(word, address)!r} to {other!r}"
        raise InputError(f"unprinted {unprinted:#x} changes {changed}; it holds bits alone that nothing is printed of")
    return word ^ unprinted


@final
@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    source: str
    text: str
    control: Control | None
    unprinted: int
    address: int
    origin: int | None


@final
@dataclass(frozen=True, slots=True)
class Assembled:
    """The code of a listing, and where its instructions stood before."""

    code: bytes
    origins: tuple[int | None, ...]
    """For each instruction the address that its line gives as a comment, `/*0010*/`; None for a line without one."""
    unscheduled: tuple[int, ...]
    """Lines, by number, whose instructions state no control bits."""


def assemble(listing: str, arch: str, *, base: int = 0, name: str = "<listing>", tables: Path = FOLDER) -> bytes:
    """Return the code of a listing: one instruction a line, at `base` and up.

    A line is `label: B------:R-:W-:-:S01 TEXT ; /*unprinted 0x…*/`, all but the text optional. `/*…*/` and `//` are
    comments, an address such as `/*0010*/` is one too; `.word LOW, HIGH` puts a raw word. A branch target is a label or an
    address. Raises `InputError` with the line for text that the table does not know, a label that is missing or stands twice.
    """
    return assemble_lines(listing, arch, base=base, name=name, tables=tables).code


def assemble_lines(
    listing: str, arch: str, *, base: int = 0, name: str = "<listing>", first: int = 1, tables: Path = FOLDER
) -> Assembled:
    """Do what `assemble` does, and say where each instruction stood before; `first` numbers the listing's first line."""
    lines, labels = _lines(listing, base, name, first)
    encoder = tools_of(arch, tables)[1]
    out = bytearray()
    for line in lines:
        if (m := _WORD.match(line.text)) and line.control is None:
            word = int(m[1], 16) | int(m[2], 16) << 64
            if int(m[1], 16) >> 64 or int(m[2], 16) >> 64:
                raise _at(name, line, "a half of the word is wider than 64 bits")
            if line.unprinted:
                raise _at(name, line, "a raw word has all its bits; unprinted bits go with a text")
        else:
            try:
                _require_instruction(line.text)
                bits = None if line.control is None else line.control.bits()
                word = encoder.word(line.text, control=bits, address=line.address, labels=labels)
                word = _with_unprinted(word, line.unprinted, line.address, encoder)
            except InputError as error:
                missing = next((t for t in _TARGET.findall(line.text) if t not in labels), None)
                raise _at(name, line, f"there is no label {missing!r}" if missing else str(error)) from error
        out += word.to_bytes(16, "little")
    unscheduled = tuple(line.number for line in lines if line.control is None and not _WORD.match(line.text))
    return Assembled(bytes(out), tuple(line.origin for line in lines), unscheduled)


def _at(name: str, line: _Line, message: str) -> InputError:
    return _error(name, line.number, message, line.source)


def _error(name: str, number: int, message: object, source: str) -> InputError:
    shown = source.strip()
    return InputError(f"{name}:{number}: {message}\n    {shown if len(shown) <= _SHOWN else shown[:_SHOWN] + '…'}")


def _lines(listing: str, base: int, name: str, first: int) -> tuple[Sequence[_Line], dict[str, int]]:
    out: list[_Line] = []
    labels: dict[str, int] = {}
    for number, source in enumerate(listing.splitlines(), first):
        spare = _UNPRINTED.search(source)
        text = re.sub(r"/\*.*?\*/|//.*", "", source).strip()
        address = base + 16 * len(out)
        while m := _LABEL.match(text):
            if _CONTROL.match(text):
                break
            if m[1] in labels:
                raise _error(name, number, f"the label {m[1]!r} stands twice", source)
            labels[m[1]] = address
            text = text[m.end() :]
        control = None
        if m := _CONTROL.match(text):
            try:
                control = parse_control(m[1], int(m[2], 2) if m[2] else 0)
            except InputError as error:
                raise _error(name, number, error, source) from error
            text = text[m.end() :]
        text = text.removesuffix(";").strip()
        if text:
            origin = _ORIGIN.search(source)
            if spare and (not _HEXADECIMAL.fullmatch(spare[1]) or _UNPRINTED.search(source, spare.end())):
                raise _error(name, number, "unprinted bits are one hexadecimal number: /*unprinted 0x1f*/", source)
            spared = int(spare[1], 16) if spare else 0
            out.append(_Line(number, source, text, control, spared, address, int(origin[1], 16) if origin else None))
    return out, labels
