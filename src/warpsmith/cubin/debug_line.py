"""Line tables (`.debug_line`, DWARF 2 and 3, 6.2): read them, and move them when the code of one function was rewritten.

`.nv_debug_line_sass` has the same form; its lines are those of the PTX.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from warpsmith.base.errors import CubinError
from warpsmith.cubin.binary import Cursor

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from warpsmith.cubin.moves import Moves, Place

__all__ = ["LineRow", "Step", "Unit", "line_rows", "move_lines", "steps", "units"]

_COPY, _ADVANCE_PC, _ADVANCE_LINE, _SET_FILE, _CONST_ADD_PC, _FIXED_ADVANCE_PC = 1, 2, 3, 4, 8, 9
_END_SEQUENCE, _SET_ADDRESS = 1, 2


@final
@dataclass(frozen=True, slots=True)
class Unit:
    """The header of one line program: offsets in the section, the coding of special instructions, and the files."""

    start: int
    length_size: int
    program: int
    end: int
    min_instruction: int
    line_base: int
    line_range: int
    opcode_base: int
    operands: tuple[int, ...]
    files: tuple[str, ...]
    """Paths; a file's number is its place here plus one."""


@final
@dataclass(slots=True)
class LineRow:
    """One row of the table: from `offset` on, the code of the function relocated at `place` comes from `file`:`line`."""

    place: int
    offset: int
    file: str
    line: int


@final
@dataclass(frozen=True, slots=True)
class Step:
    """One instruction of a line program, as bytes and as what it does."""

    at: int
    raw: bytes
    advance: int
    """Bytes of code it advances by, before a row is made."""
    line: int
    """Lines it advances by."""
    makes_row: bool
    ends: bool = False
    file: int | None = None
    place: int | None = None
    """Where the operand of `set address` stands."""
    special: int | None = None
    """The special instruction that advances the line alike and the code not at all."""


def units(data: bytes, section: str) -> Iterator[Unit]:
    """Return the headers of all line programs of a section."""
    cursor = Cursor(data, section)
    while cursor.offset < len(data):
        start = cursor.offset
        length, length_size = cursor.number(4, "a line table"), 4
        if length == 0xFFFFFFFF:
            length, length_size = cursor.number(8, "a line table"), 8
        end = cursor.offset + length
        if end > len(data) or not length:
            raise cursor.error(f"a line table of {length} bytes ends behind the section's end at {len(data):#x}, or is empty")
        cursor.end = end
        yield _unit(cursor, start, length_size, end)
        cursor.offset, cursor.end = end, len(data)


def _unit(cursor: Cursor, start: int, length_size: int, end: int) -> Unit:
    version = cursor.number(2, "a line table")
    if version not in (2, 3):
        raise cursor.error(f"a line table of DWARF version {version}; read are 2 and 3")
    header = cursor.number(length_size, "a line table")
    program = cursor.offset + header
    minimum, _, base, span, opcode_base = (cursor.number(1, "a line table", signed=i == 2) for i in range(5))
    if not span or not opcode_base or program > end:
        raise cursor.error("a line table's header contradicts itself")
    operands = tuple(cursor.number(1, "a line table") for _ in range(opcode_base - 1))
    folders, files = [""], list[str]()
    while folder := cursor.text("a folder's name"):
        folders.append(folder)
    while name := cursor.text("a file's name"):
        folder, _, _ = (cursor.uleb("a file") for _ in range(3))
        prefix = folders[folder] if folder < len(folders) else ""
        files.append(f"{prefix}/{name}" if prefix and not name.startswith("/") else name)
    return Unit(start, length_size, program, end, minimum, base, span, opcode_base, operands, tuple(files))


def steps(data: bytes, unit: Unit, section: str) -> Iterator[Step]:
    """Return the instructions of a line program, in order."""
    cursor = Cursor(data, section, unit.program, unit.end)
    while cursor.offset < unit.end:
        at = cursor.offset
        op = cursor.number(1, "a line instruction")
        if op >= unit.opcode_base:
            yield _special(unit, at, op)
        elif op == 0:
            size = cursor.uleb("an extended line instruction")
            body = cursor.take(size, "an extended line instruction")
            code = body[0] if body else -1
            place = cursor.offset - size + 1 if code == _SET_ADDRESS else None
            yield Step(at, data[at : cursor.offset], 0, 0, code == _END_SEQUENCE, code == _END_SEQUENCE, place=place)
        else:
            yield _standard(cursor, unit, at, op)


def _special(unit: Unit, at: int, op: int) -> Step:
    advance, line = divmod(op - unit.opcode_base, unit.line_range)
    return Step(
        at, bytes((op,)), advance * unit.min_instruction, unit.line_base + line, makes_row=True, special=unit.opcode_base + line
    )


def _standard(cursor: Cursor, unit: Unit, at: int, op: int) -> Step:
    advance = line = 0
    file = None
    if op == _ADVANCE_PC:
        advance = cursor.uleb("an advance") * unit.min_instruction
    elif op == _ADVANCE_LINE:
        line = cursor.sleb("an advance")
    elif op == _SET_FILE:
        file = cursor.uleb("a file's number")
    elif op == _CONST_ADD_PC:
        advance = (255 - unit.opcode_base) // unit.line_range * unit.min_instruction
    elif op == _FIXED_ADVANCE_PC:
        advance = cursor.number(2, "an advance")
    else:
        for _ in range(unit.operands[op - 1]):
            cursor.uleb("an operand")
    return Step(at, cursor.data[at : cursor.offset], advance, line, op == _COPY, file=file)


def line_rows(data: bytes, section: str) -> list[LineRow]:
    """Return all rows; an offset counts from the address at the row's `place`."""
    out: list[LineRow] = []
    for unit in units(data, section):
        place, offset, line, file = -1, 0, 1, 1
        for step in steps(data, unit, section):
            offset, line, file = offset + step.advance, line + step.line, file if step.file is None else step.file
            if step.place is not None:
                place, offset = step.place, 0
            if step.makes_row and not step.ends:
                out.append(
                    LineRow(place, offset, unit.files[file - 1] if 0 < file <= len(unit.files) else f"file {file}", line)
                )
            if step.ends:
                place, offset, line, file = -1, 0, 1, 1
    return out


def move_lines(data: bytes, places: Mapping[int, Place], moves: Moves, section: str) -> tuple[bytes, dict[int, int]]:
    """Return the section for moved code, and where the relocated places of it stand now.

    `places` maps the operand of each `set address` of the function to where that is in its old code.
    """
    out = bytearray()
    new_places: dict[int, int] = {}
    for unit in units(data, section):
        start = len(out)
        out += data[unit.start : unit.program]
        _move_program(out, data, unit, places, new_places, moves, section)
        head = 4 if unit.length_size == 4 else 12
        at = start + head - unit.length_size
        out[at : start + head] = (len(out) - start - head).to_bytes(unit.length_size, "little")
    return bytes(out), new_places


def _move_program(
    out: bytearray, data: bytes, unit: Unit, places: Mapping[int, Place], new_places: dict[int, int], moves: Moves, section: str
) -> None:
    old: int | None = None  # place in the old code, while inside a sequence of the function
    new = 0
    for step in steps(data, unit, section):
        if step.place is not None:
            new_places[step.place] = len(out) + step.place - step.at
            place = places.get(step.place)
            old = place.old if place else None
            new = moves.after(old) if old is not None else 0
            out += step.raw if place is None else place.patched(step.raw, step.place - step.at, moves)
            continue
        if old is None:
            out += step.raw
            continue
        old += step.advance
        if step.makes_row:
            target = moves.after(old)
            if target < new:
                raise CubinError(
                    f"the lines of {moves.function!r} run backwards at {old:#x} after the move; reordered code is not modelled",
                    section=section,
                )
            if target > new:
                out += bytes((_ADVANCE_PC,)) + _uleb((target - new) // unit.min_instruction)
            new = target
        out += bytes((step.special,)) if step.special is not None else b"" if step.advance else step.raw
        if step.ends:
            old = None


def _uleb(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
