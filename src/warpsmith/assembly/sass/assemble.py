"""Assemble: one text, or a listing with labels, control codes and unprinted bits."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from warpsmith.assembly.sass.control import Control, parse_control
from warpsmith.assembly.sass.program import tools_of
from warpsmith.assembly.sass.table import FOLDER
from warpsmith.base.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["Assembled", "assemble", "assemble_lines", "encode"]

_CONTROL = re.compile(r"(B[^\s:/]*:R[^\s:/]*:W[^\s:/]*:[^\s:/]*:S[^\s:/]*)(?:/([01]{3}))?\s+")
_LABEL = re.compile(r"([.A-Za-z_$][\w.$]*)\s*:(?!:)\s*")
_TARGET = re.compile(r"`\(([^)]+)\)")
_WORD = re.compile(r"\.word\s+(0x[0-9a-f]+)\s*,\s*(0x[0-9a-f]+)$")
_ORIGIN = re.compile(r"/\*\s*([0-9a-f]{4,})\s*\*/")
_UNPRINTED = re.compile(r"/\*\s*unprinted\s+(0x[0-9a-f]+)\s*\*/")


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
    word = encoder.word(text, control=None if control is None else control.bits(), address=address)
    return (word ^ unprinted).to_bytes(16, "little")


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
        if m := _WORD.match(line.text):
            word = int(m[1], 16) | int(m[2], 16) << 64
            if int(m[1], 16) >> 64 or int(m[2], 16) >> 64:
                raise _at(name, line, "a half of the word is wider than 64 bits")
        else:
            try:
                bits = None if line.control is None else line.control.bits()
                word = encoder.word(line.text, control=bits, address=line.address, labels=labels)
            except InputError as error:
                missing = next((t for t in _TARGET.findall(line.text) if t not in labels), None)
                raise _at(name, line, f"there is no label {missing!r}" if missing else str(error)) from error
        if line.unprinted >> 128:
            raise _at(name, line, "the unprinted bits are wider than a word of 128 bits")
        out += (word ^ line.unprinted).to_bytes(16, "little")
    unscheduled = tuple(line.number for line in lines if line.control is None and not _WORD.match(line.text))
    return Assembled(bytes(out), tuple(line.origin for line in lines), unscheduled)


def _at(name: str, line: _Line, message: str) -> InputError:
    return InputError(f"{name}:{line.number}: {message}\n    {line.source.strip()}")


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
                raise InputError(f"{name}:{number}: the label {m[1]!r} stands twice\n    {source.strip()}")
            labels[m[1]] = address
            text = text[m.end() :]
        control = None
        if m := _CONTROL.match(text):
            try:
                control = parse_control(m[1], int(m[2], 2) if m[2] else 0)
            except InputError as error:
                raise InputError(f"{name}:{number}: {error}\n    {source.strip()}") from error
            text = text[m.end() :]
        text = text.removesuffix(";").strip()
        if text:
            origin = _ORIGIN.search(source)
            spared = int(spare[1], 16) if spare else 0
            out.append(_Line(number, source, text, control, spared, address, int(origin[1], 16) if origin else None))
    return out, labels
