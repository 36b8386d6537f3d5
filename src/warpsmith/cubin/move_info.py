"""Move the code offsets that attributes hold. Which attribute holds them how is a column of `attributes.txt`."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from warpsmith.base.errors import CubinError
from warpsmith.cubin.attributes import attribute_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from warpsmith.cubin.info import Attribute, InfoTable
    from warpsmith.cubin.moves import Moves

__all__ = ["branch_records", "move_attributes"]


def move_attributes(table: InfoTable, moves: Moves, section: str) -> None:
    """Rewrite the attributes of `.nv.info.<kernel>`.

    Raise `CubinError` for one that holds offsets in a layout that is not known.
    """
    table_was = list(table)
    gone_groups = _gone_in_groups(table, moves, section)
    for attribute in table_was:
        row = attribute_rows().get((attribute.kind, attribute.id))
        what = f"{attribute.name} of {section}"
        if row is None or row.layout not in _MOVERS:
            if attribute.name == "COOP_GROUP_MASK_REGIDS":
                attribute.payload = _without(attribute.payload, gone_groups)
            continue
        attribute.payload = _MOVERS[row.layout](attribute, moves, what)


def _gone_in_groups(table: InfoTable, moves: Moves, section: str) -> set[int]:
    """Return which entries of COOP_GROUP_INSTR_OFFSETS go; COOP_GROUP_MASK_REGIDS has one entry for each."""
    offsets = table.get("COOP_GROUP_INSTR_OFFSETS")
    words = offsets.words() if offsets else ()
    return {i for i, old in enumerate(words) if moves.at(old, f"COOP_GROUP_INSTR_OFFSETS of {section}") is None}


def _without(payload: bytes, gone: set[int]) -> bytes:
    return b"".join(payload[i : i + 4] for i in range(0, len(payload), 4) if i // 4 not in gone)


def _words(payload: bytes, what: str, width: int) -> list[tuple[int, ...]]:
    if len(payload) % (4 * width):
        raise CubinError(
            f"{what} has {len(payload)} bytes, not a multiple of {4 * width}: its layout is not what it was taken for"
        )
    return list(struct.iter_unpack(f"<{width}I", payload))


def _offset(moves: Moves, old: int, what: str) -> int | None:
    if old % moves.width or old > moves.old_size:
        raise CubinError(
            f"{what} holds {old:#x}, which is no instruction of {moves.old_size} bytes of code: "
            "its layout is not what it was taken for"
        )
    return moves.at(old, what) if old < moves.old_size else moves.new_size


def _records(width: int, place: int, kinds: tuple[int, ...] | None = None) -> Callable[[Attribute, Moves, str], bytes]:
    """Return the mover of records of `width` words whose word number `place` is an offset; records of gone instructions go."""

    def move(attribute: Attribute, moves: Moves, what: str) -> bytes:
        out: list[bytes] = []
        for row in _words(attribute.payload, what, width):
            if kinds is not None and row[0] not in kinds:
                raise CubinError(f"{what} has a record of kind {row[0]}; known is {kinds[0]}")
            if (new := _offset(moves, row[place], what)) is not None:
                out.append(struct.pack(f"<{width}I", *row[:place], new, *row[place + 1 :]))
        return b"".join(out)

    return move


def branch_records(payload: bytes, what: str) -> list[tuple[int, int, tuple[int, ...]]]:
    """Read INDIRECT_BRANCH_TARGETS: (offset of the branch, a word that was always 0, offsets of its targets)."""
    out: list[tuple[int, int, tuple[int, ...]]] = []
    words = [w for (w,) in _words(payload, what, 1)]
    at = 0
    while at < len(words):
        end = at + 3 + (words[at + 2] if at + 2 < len(words) else len(words))
        if end > len(words):
            raise CubinError(f"{what} has a record of {end - at} words and {len(words) - at} are left")
        out.append((words[at], words[at + 1], tuple(words[at + 3 : end])))
        at = end
    return out


def _branches(attribute: Attribute, moves: Moves, what: str) -> bytes:
    out: list[int] = []
    for branch, zero, targets in branch_records(attribute.payload, what):
        if (new := _offset(moves, branch, what)) is None:
            continue
        out += [new, zero, len(targets), *(moves.kept(t, what) for t in targets)]
    return struct.pack(f"<{len(out)}I", *out)


def _refused(attribute: Attribute, moves: Moves, what: str) -> bytes:
    if moves.moved is None:
        return attribute.payload
    raise CubinError(f"{what} holds code offsets in a layout that is not known; code whose instructions move is refused")


_MOVERS: dict[str, Callable[[Attribute, Moves, str], bytes]] = {
    "offsets": _records(1, 0),
    "pairs": _records(2, 0),
    "barriers": _records(4, 0),
    "annotations": _records(2, 1, (1,)),
    "branches": _branches,
    "unknown_offsets": _refused,
}
