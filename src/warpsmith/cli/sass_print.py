"""How `warpsmith sass` prints code: the disassembler's format, ours, JSON; colours on a terminal."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING

from warpsmith.assembly.sass.listing import COLUMNS, labels_of, line_of, raw_line
from warpsmith.cli.gpu_code import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warpsmith.cli.sass_input import Piece
    from warpsmith.cubin import Function
    from warpsmith.sass import Instruction, Operand, Program, Registers

__all__ = ["colours_wanted", "heading", "instruction_json", "ours", "painted", "raw"]

_PARTS = re.compile(
    r"(?P<comment>//.*|/\*.*?\*/)"
    r"|(?P<control>B[0-5-]{6}:R[0-7-]:W[0-7-]:[Y-]:S\d\d(?:/[01]{3})?)"
    r"|(?P<label>`\([^)]*\)|^\.L_\d+:)"
    r"|(?P<register>(?<![\w.])U?(?:R(?:Z|\d+)|P(?:T|\d))(?![\w]))"
    r"|(?P<number>(?<![\w.])-?0x[0-9a-f]+|(?<![\w.])-?\d+\.\d+(?:e[+-]\d+)?)"
    r"|(?P<directive>^\.(?:arch|function|registers|params|shared|barriers|stack|max_threads|needs|word)\b)"
)
_BANK = re.compile(r"c\[0x([0-9a-f]+)\]")
_COLOURS = {"comment": "90", "control": "35", "label": "33", "register": "36", "number": "32", "directive": "1"}


def colours_wanted(choice: str) -> bool:
    """Say whether to print colours: `always`, `never`, or `auto` for a terminal where NO_COLOR is not set."""
    return choice == "always" or (choice == "auto" and sys.stdout.isatty() and not os.environ.get("NO_COLOR"))


def painted(line: str) -> str:
    """Return a line with colours."""
    return _PARTS.sub(lambda m: f"\x1b[{_COLOURS[m.lastgroup or 'comment']}m{m[0]}\x1b[0m", line)


def heading(piece: Piece) -> str:
    """Return the line above a function, as the disassembler writes it above a section."""
    return f"//--------------------- {piece.section:<16} --------------------------"


def raw(program: Program) -> Iterator[str]:
    """Yield what `nvdisasm --binary … -ndf -raw` prints for the code."""
    return (raw_line(i) for i in program)


def ours(piece: Piece, program: Program, *, roles: bool) -> Iterator[str]:
    """Yield our listing of a function with its directives; `roles` adds what each instruction reads and writes."""
    yield f"// {printable(piece.path)}, byte {piece.offset:#x}"
    yield f".arch {piece.arch}"
    if piece.name:
        yield f".function {piece.name}"
    if piece.function is not None:
        yield from _directives(piece, piece.function, program)
    yield COLUMNS
    labels = labels_of(program)
    end = program.base + len(program.code)
    for i in program:
        if i.address in labels:
            yield f"{labels[i.address]}:"
        line = line_of(i, labels)
        yield f"{line:<88} // {registers_text(i.registers)}" if roles and i.known else line
    if end in labels:
        yield f"{labels[end]}:"


def _directives(piece: Piece, f: Function, program: Program) -> Iterator[str]:
    if f.registers:
        yield f".registers {f.registers}"
    if f.params:
        yield f".params {' '.join(str(p.size) if p.size <= 8 and not p.offset % p.size else f'{p.size}:8' for p in f.params)}"
    for name, number in (("shared", f.shared), ("barriers", f.barriers), ("stack", f.stack)):
        if number:
            yield f".{name} {number}"
    for need in _needs(piece, f, program):
        yield f".needs {need}"


def _needs(piece: Piece, f: Function, program: Program) -> Iterator[str]:
    """Yield what the code refers to and a listing does not hold."""
    if not f.is_entry:
        yield "a caller: it is a device function"
    banks = {int(m[1], 16) for text in program.texts() if text for m in _BANK.finditer(text)}
    for bank in sorted(banks - {0}):
        yield f"constant bank {bank}"
    tables = piece.cubin.relocations if piece.cubin else {}
    for name, table in tables.items():
        if name.endswith(f".text.{piece.name}") and len(table.relocations):
            yield f"{len(table.relocations)} relocations"


def registers_text(registers: Registers) -> str:
    """Return `R4-R7 P0 <- R2 R3 UR4`: what is written, then what is read; `?` where not all of it is known."""
    text = f"{_names(registers.writes)} <- {_names(registers.reads)}".strip()
    return text if registers.complete else f"{text} ?"


def _names(registers: frozenset[tuple[str, int]]) -> str:
    parts: list[str] = []
    for group in ("R", "UR", "P", "UP"):
        numbers = sorted(n for g, n in registers if g == group)
        while numbers:
            last = numbers[0]
            while last + 1 in numbers:
                last += 1
            parts.append(f"{group}{numbers[0]}" if last == numbers[0] else f"{group}{numbers[0]}-{group}{last}")
            numbers = [n for n in numbers if n > last]
    return " ".join(parts)


def instruction_json(i: Instruction) -> dict[str, object]:
    """Return an instruction as plain values; words are hexadecimal texts, because JSON numbers have 53 bits."""
    control = i.control
    registers = i.registers
    return {
        "address": i.address,
        "raw": f"{i.raw:#034x}",
        "text": i.text,
        "known": i.known,
        "mnemonic": i.mnemonic,
        "class": i.kind,
        "control": {
            "stall": control.stall, "yield": control.yield_, "write": control.write, "read": control.read,
            "wait": list(control.wait), "reuse": control.reuse,
        },
        "unprinted": f"{i.unprinted:#x}",
        "operands": [_operand_json(o) for o in i.operands],
        "reads": sorted(f"{g}{n}" for g, n in registers.reads),
        "writes": sorted(f"{g}{n}" for g, n in registers.writes),
        "complete": registers.complete,
    }  # fmt: skip


def _operand_json(o: Operand) -> dict[str, object]:
    return {"text": o.text, "role": o.role, "group": o.group, "number": o.number, "width": o.width, "position": o.position}
