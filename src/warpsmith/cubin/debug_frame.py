"""Move the code offsets of `.debug_frame` (DWARF 2 call frame information) when the code of one function was rewritten.

An entry's place in the code stands in a relocation of the section: symbol, and addend (in the table, or at the place itself).
The entry holds the length of the code it describes, and advances of the location, counted in units of the common entry's code
alignment factor. Both are rewritten at their old width, so that nothing behind them moves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from warpsmith.base.errors import CubinError
from warpsmith.cubin.binary import Cursor

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from warpsmith.cubin.moves import Moves, Place

__all__ = ["Frame", "frames", "move_frames"]

_LONG, _CIE = 0xFFFFFFFF, (0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF)
# operands of call frame instructions: u unsigned LEB128, s signed, b block, a address, digits bytes of location advance
_OPERANDS = {
    0x00: "", 0x01: "a", 0x02: "1", 0x03: "2", 0x04: "4", 0x05: "uu", 0x06: "u", 0x07: "u", 0x08: "u", 0x09: "uu", 0x0A: "",
    0x0B: "", 0x0C: "uu", 0x0D: "u", 0x0E: "u", 0x0F: "b", 0x10: "ub", 0x11: "us", 0x12: "us", 0x13: "s", 0x14: "uu",
    0x15: "us", 0x16: "ub",
}  # fmt: skip


@final
@dataclass(frozen=True, slots=True)
class Frame:
    """One entry that describes code; numbers are byte offsets in the section."""

    start: int
    location: int
    """Where its place in the code stands: the offset of its relocation."""
    length_at: int
    body: int
    end: int
    width: int
    """Bytes of an address: 8, or 4."""
    factor: int
    """Bytes of code in one unit of a location advance."""


def frames(data: bytes, section: str = ".debug_frame") -> Iterator[Frame]:
    """Return the entries that describe code, in order."""
    cursor = Cursor(data, section)
    factors: dict[int, int] = {}
    while cursor.offset < len(data):
        start = cursor.offset
        length, wide = cursor.number(4, "a frame entry"), False
        if length == _LONG:
            length, wide = cursor.number(8, "a frame entry"), True
        end = cursor.offset + length
        if end > len(data) or not length:
            raise cursor.error(f"a frame entry of {length} bytes ends behind the section's end at {len(data):#x}, or is empty")
        owner = cursor.number(8 if wide else 4, "a frame entry")
        if owner == _CIE[wide]:
            factors[start] = _factor(cursor)
        else:
            if owner not in factors:
                raise CubinError(
                    f"a frame entry names a common entry at {owner:#x}, where there is none", offset=start, section=section
                )
            at = cursor.offset
            yield Frame(start, at, at + 8, at + 16, end, 8, factors[owner])
        cursor.offset = end


def _factor(cursor: Cursor) -> int:
    version = cursor.number(1, "a common frame entry")
    if version not in (1, 3) or cursor.text("a common frame entry"):
        raise cursor.error("only common frame entries of version 1 or 3 without augmentation are read")
    return cursor.uleb("a code alignment factor") or 1


def move_frames(data: bytes, places: Mapping[int, Place], moves: Moves, section: str) -> tuple[bytes, dict[int, int]]:
    """Return the section for moved code; no place in it moves.

    `places` maps the place of a frame's relocation to what it refers to.
    """
    out = bytearray(data)
    for frame in frames(data, section):
        if (place := places.get(frame.location)) is None:
            continue
        base = place.old
        out[frame.location : frame.length_at] = place.patched(data[frame.location : frame.length_at], 0, moves)
        what = f"the frame at {frame.start:#x} of {section}"
        length = int.from_bytes(data[frame.length_at : frame.body], "little")
        start = moves.kept(base, what)
        out[frame.length_at : frame.body] = (moves.end(base + length, what) - start).to_bytes(8, "little")
        _move_advances(out, data, frame, (base, base + length), moves, section)
    return bytes(out), {}


def _move_advances(out: bytearray, data: bytes, frame: Frame, old: tuple[int, int], moves: Moves, section: str) -> None:
    cursor = Cursor(data, section, frame.body, frame.end)
    what = f"the frame at {frame.start:#x} of {section}"
    place, moved = old[0], moves.kept(old[0], what)
    while cursor.offset < frame.end:
        at = cursor.offset
        op = cursor.number(1, "a call frame instruction")
        if op >= 0x40:
            if op < 0x80:
                raise CubinError(
                    f"{what} advances by a short instruction; moving it is not modelled", offset=at, section=section
                )
            if op < 0xC0:
                cursor.uleb("a call frame instruction")
            continue
        operands = _OPERANDS.get(op)
        if operands is None or operands == "a":
            raise CubinError(f"{what} has call frame instruction {op:#x}, which is not modelled", offset=at, section=section)
        if operands.isdigit():
            size = int(operands)
            place += cursor.number(size, "a location advance") * frame.factor
            new = moves.new_size if place >= moves.old_size else moves.kept(place, what)
            units, rest = divmod(new - moved, frame.factor)
            if rest or not 0 <= units < 1 << 8 * size:
                raise CubinError(f"{what} cannot advance by {new - moved:#x} bytes in {size} bytes", offset=at, section=section)
            out[at + 1 : at + 1 + size] = units.to_bytes(size, "little")
            moved = new
            continue
        for kind in operands:
            if kind == "b":
                cursor.take(cursor.uleb("a block"), "a block")
            else:
                cursor.uleb("an operand") if kind == "u" else cursor.sleb("an operand")
