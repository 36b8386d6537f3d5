"""Give a function other code: everything in the cubin that holds an offset or a size of that code is moved, or the edit is
refused.

What moves: symbols of the code section (value, size), attributes of `.nv.info.<function>` (`attributes.txt` says which hold
offsets), relocations at places of the code and relocations elsewhere that point into it, jump tables in
`.nv.constant2.<function>`, `.debug_frame`, `.debug_line`. The edit is made on a list of changes that are applied when all of
them are known, so that a refused edit leaves the cubin as it was.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from warpsmith.base.errors import CubinError
from warpsmith.cubin.debug_frame import move_frames
from warpsmith.cubin.debug_line import move_lines
from warpsmith.cubin.elf import SectionType
from warpsmith.cubin.info import Attribute, InfoTable
from warpsmith.cubin.move_info import branch_records, move_attributes
from warpsmith.cubin.moves import Place
from warpsmith.cubin.relocations import RelocationTable
from warpsmith.cubin.section import Raw, is_capsule
from warpsmith.cubin.symbols import STT_FUNC, STT_SECTION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from warpsmith.cubin.model import Cubin
    from warpsmith.cubin.moves import Moves
    from warpsmith.cubin.relocations import Relocation
    from warpsmith.cubin.section import Section
    from warpsmith.cubin.symbols import Symbol

__all__ = ["replace_code"]


def replace_code(cubin: Cubin, text: Section, code: bytes, moves: Moves) -> None:
    """Put `code` into the section `text` and move what refers to it."""
    number = cubin.sections.index(text)
    table = cubin.symbols
    changes: list[Callable[[], None]] = []
    inside = {i: s for i, s in enumerate(table) if s.section == number}
    _refuse_unknown_sections(cubin, moves)
    changes += _move_symbols(inside, moves)
    changes += _move_info(cubin, text, moves)
    changes += _move_jump_tables(cubin, text, moves)
    bases = {i: s.value for i, s in inside.items()}
    for section, target in _relocated(cubin):
        changes += _move_relocations(section, target, text, bases, inside, moves)
    changes += _move_debug(cubin, bases, moves)
    changes.append(_setter(text.holds(Raw), data=code))
    for change in changes:
        change()


_BY_OFFSET = (".debug_info", ".debug_loc", ".debug_ranges", ".debug_aranges", ".nv_debug_info_reg")


def _refuse_unknown_sections(cubin: Cubin, moves: Moves) -> None:
    names = [s.name for s in cubin.sections if s.name.startswith(_BY_OFFSET)]
    if moves.moved is not None and names:
        raise CubinError(
            f"{', '.join(names)}: these describe code by its offsets, and moving them is not modelled; compile without "
            "-g, or remove "
            f"them first: cubin.remove_sections({', '.join(map(repr, names))})"
        )


def _move_symbols(inside: dict[int, Symbol], moves: Moves) -> Iterator[Callable[[], None]]:
    for symbol in inside.values():
        if symbol.type == STT_SECTION:
            continue
        what = f"symbol {symbol.name!r}"
        value = moves.kept(symbol.value, what) if symbol.value < moves.old_size else moves.new_size
        size = moves.end(symbol.value + symbol.size, what) - value if symbol.size else 0
        yield _setter(symbol, value=value, size=size)


def _setter(target: object, **fields: object) -> Callable[[], None]:
    def change() -> None:
        for name, value in fields.items():
            setattr(target, name, value)

    return change


def _move_info(cubin: Cubin, text: Section, moves: Moves) -> Iterator[Callable[[], None]]:
    name = ".nv.info." + moves.function
    section = cubin.sections.find(name)
    if section is None:
        return
    old = section.holds(InfoTable)
    new = InfoTable([Attribute(a.form, a.id, a.payload, a.kind) for a in old], old.tail)
    move_attributes(new, moves, name)
    yield _setter(section, content=new)


def _move_jump_tables(cubin: Cubin, text: Section, moves: Moves) -> Iterator[Callable[[], None]]:
    """Rewrite the tables of indirect branches: the words of `.nv.constant2.<function>` that are the targets, in order."""
    info = cubin.sections.find(".nv.info." + moves.function)
    branches = info.holds(InfoTable).get("INDIRECT_BRANCH_TARGETS") if info else None
    if branches is None or moves.moved is None:
        return
    what = f"the jump table of {moves.function!r}"
    bank = cubin.sections.find(".nv.constant2." + moves.function)
    if bank is None:
        raise CubinError(
            f"{what} is not in a constant bank of its own (.nv.constant2.{moves.function}); moving its targets is refused"
        )
    words = struct.unpack_from(f"<{len(bank.data) // 4}I", bank.data)
    new = list(words)
    records = branch_records(branches.payload, "INDIRECT_BRANCH_TARGETS")
    for place in _table_words(words, records, moves.function, bank.name):
        new[place] = moves.kept(words[place], what)
    rest = bank.data[4 * len(words) :]
    yield _setter(bank.holds(Raw), data=struct.pack(f"<{len(new)}I", *new) + rest)


def _table_words(words: tuple[int, ...], records: list[tuple[int, int, tuple[int, ...]]], function: str, bank: str) -> set[int]:
    """Return which words of the bank are targets: where a branch's targets stand in order, the longest tables first.

    A table may stand inside a longer one that was found. Besides that it stands as often as branches have it, or once.
    """
    branches: dict[tuple[int, ...], list[int]] = {}
    for branch, _, targets in records:
        branches.setdefault(targets, []).append(branch)
    found: set[int] = set()
    for targets, users in sorted(branches.items(), key=lambda item: -len(item[0])):
        size = len(targets)
        places = [range(i, i + size) for i in range(len(words) - size + 1) if words[i : i + size] == targets]
        free = [p for p in places if not found.issuperset(p)]
        if size == 1 and not free:  # a branch with one target needs no table (SYNC and the like of sm_50 to sm_62)
            continue
        if size == 1:
            raise CubinError(
                f"{targets[0]:#x}, the one target of the indirect branch at {users[0]:#x} of {function!r}, stands in {bank}; "
                "whether that is a table or a constant cannot be told",
                section=bank,
            )
        if not places or len(free) > len(users):
            raise CubinError(
                f"the targets of the indirect branch at {users[0]:#x} of {function!r} stand {len(places)} times in "
                f"{bank}, not once",
                section=bank,
            )
        found.update(*free)
    return found


def _relocated(cubin: Cubin) -> Iterator[tuple[Section, Section | None]]:
    for section in cubin.sections:
        if section.type in (SectionType.REL, SectionType.RELA) and not is_capsule(section):
            yield section, (cubin.sections[section.info] if 0 < section.info < len(cubin.sections) else None)


def _move_relocations(
    section: Section, target: Section | None, text: Section, bases: dict[int, int], inside: dict[int, Symbol], moves: Moves
) -> Iterator[Callable[[], None]]:
    """Move the places of relocations of the code itself, and the addends of those that point into it."""
    table = section.holds(RelocationTable)
    gone: list[Relocation] = []
    for r in table:
        fields: dict[str, int] = {}
        what = f"{r.name} at {r.offset:#x} of {section.name}"
        if target is text:
            at = moves.at(r.offset - r.offset % moves.width, what)
            if at is None:
                gone.append(r)
                continue
            fields["offset"] = at + r.offset % moves.width
        if r.symbol in bases and r.addend is not None:
            symbol = inside[r.symbol]
            old = bases[r.symbol] + r.addend
            start = moves.kept(bases[r.symbol], what) if symbol.type != STT_SECTION else bases[r.symbol]
            if r.addend:
                fields["addend"] = moves.end(old, what) - start
        elif r.symbol in bases and moves.moved is not None and inside[r.symbol].type != STT_FUNC:
            raise CubinError(
                f"{what} points into the code of {moves.function!r} without an addend of its own; moving it is not modelled"
            )
        if fields:
            yield _setter(r, **fields)
    if gone:
        yield _setter(table, relocations=[r for r in table if r not in gone])


def _move_debug(cubin: Cubin, bases: dict[int, int], moves: Moves) -> Iterator[Callable[[], None]]:
    if moves.moved is None:
        return
    for name, move in ((".debug_frame", move_frames), (".debug_line", move_lines), (".nv_debug_line_sass", move_lines)):
        section = cubin.sections.find(name)
        if section is None:
            continue
        places: dict[int, Place] = {}
        rows: list[Relocation] = []
        for relocations, target in _relocated(cubin):
            rows += relocations.holds(RelocationTable) if target is section else []
        for r in rows:
            if r.symbol in bases:
                implicit = r.addend is None
                inner = int.from_bytes(section.data[r.offset : r.offset + 8], "little") if r.addend is None else r.addend
                places[r.offset] = Place(bases[r.symbol] + inner, bases[r.symbol], implicit)
        data, new_places = move(section.data, places, moves, name)
        yield _setter(section.holds(Raw), data=data)
        for r in rows:
            if r.offset in new_places:
                yield _setter(r, offset=new_places[r.offset])
