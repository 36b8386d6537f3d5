"""`warpsmith sass`: machine code as text, searched, or a single word explained."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from warpsmith.assembly.sass.anatomy import anatomy
from warpsmith.base.arch import parse_arch
from warpsmith.base.errors import CubinError, InputError
from warpsmith.cli.find import arch_option
from warpsmith.cli.gpu_code import Faults, printable
from warpsmith.cli.sass_input import pieces, raw_piece
from warpsmith.cli.sass_print import colours_wanted, heading, instruction_json, ours, painted, raw
from warpsmith.cli.sass_search import parse_query
from warpsmith.sass import decode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from warpsmith.assembly.sass.anatomy import Part
    from warpsmith.cli.sass_input import Piece
    from warpsmith.cli.sass_search import Query
    from warpsmith.sass import Instruction, Program

__all__ = ["command"]


@click.command()
@click.argument("paths", metavar="[PATH…]", nargs=-1)
@arch_option
@click.option("--function", "functions", multiple=True, help="Only functions whose name holds this text; several times.")
@click.option("--ours", "as_listing", is_flag=True, help="Our listing: control bits, labels; `warpsmith assemble` reads it.")
@click.option("--roles", is_flag=True, help="With --ours: which registers each instruction writes and reads.")
@click.option("--search", metavar="REGEX", help="Only instructions whose text has this pattern, one a line with its place.")
@click.option("--bits", multiple=True, metavar="MASK=VALUE", help="Only words with these bits; also LOW+WIDTH=VALUE.")
@click.option("--word", metavar="0x…", help="Explain every bit of one 128-bit word; with one --arch.")
@click.option("--raw", "is_raw", is_flag=True, help="The files are bare instructions of the architecture --arch.")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True, help="Colours.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document a line: a function, or a match of a search.")
def command(
    *,
    paths: tuple[str, ...],
    archs: tuple[str, ...],
    functions: tuple[str, ...],
    as_listing: bool,
    roles: bool,
    search: str | None,
    bits: tuple[str, ...],
    word: str | None,
    is_raw: bool,
    color: str,
    as_json: bool,
) -> int:
    """List the machine code in cubins, fat binaries, objects, libraries, archives and wheels.

    Each function is listed as `nvdisasm -ndf -raw` lists its code, below a line that names its section. What cannot be read is
    told of and passed over; the exit status is then 2.
    """
    for arch in archs:
        parse_arch(arch)
    paint = painted if colours_wanted(color) and not as_json else str
    if word is not None:
        _explain(word, archs, paths, as_json=as_json)
        return 0
    if not paths:
        raise InputError("nothing to list: name a file, or a word with --word 0x… --arch sm_90a")
    if roles and not as_listing:
        raise InputError("--roles goes with --ours: the disassembler's format has no room for it")
    query = parse_query(search, bits)
    looked = matched = 0
    faults = Faults()
    for path in paths:
        for piece in (raw_piece(path, archs),) if is_raw else pieces(path, archs, functions, faults):
            if fault := _odd_length(piece):
                faults.note(fault)
                continue
            looked += len(piece.code) // 16
            if query is not None:
                matched += _print_matches(piece, query, paint, as_json=as_json)
                continue
            program = decode(piece.code, piece.arch)
            warning = _unknown(piece, program)
            _print(_lines(piece, program, as_listing=as_listing, roles=roles, as_json=as_json), paint)
            if warning:
                print(f"warpsmith: warning: {warning}", file=sys.stderr)
    if query is not None and not as_json and (looked or not faults.count):
        print(f"{matched:,} of {looked:,} instructions match")
    return faults.status(looked)


def _print(lines: Iterable[str], paint: Callable[[str], str]) -> None:
    for line in lines:
        sys.stdout.write(f"{paint(line)}\n")


def _odd_length(piece: Piece) -> CubinError | None:
    if left := len(piece.code) % 16:
        return CubinError(
            f"{len(piece.code)} bytes of code are not whole instructions of 16; {left} are left over",
            offset=len(piece.code) - left, section=piece.section, file=piece.path,
        )  # fmt: skip
    return None


def _lines(piece: Piece, program: Program, *, as_listing: bool, roles: bool, as_json: bool) -> Iterator[str]:
    if as_json:
        whole = {
            "file": piece.path, "offset": piece.offset, "arch": piece.arch, "function": piece.name,
            "instructions": [instruction_json(i) for i in program],
        }  # fmt: skip
        return iter((json.dumps(whole),))
    if as_listing:
        return ours(piece, program, roles=roles)
    return iter((heading(piece), *raw(program), "")) if piece.name else raw(program)


def _print_matches(piece: Piece, query: Query, paint: Callable[[str], str], *, as_json: bool) -> int:
    count = 0
    place = f"{printable(piece.path)}@{piece.offset:#x} {piece.arch} {printable(piece.name) or 'raw code'}"
    for i in query.matches(piece):
        count += 1
        if as_json:
            head = {"file": piece.path, "offset": piece.offset, "arch": piece.arch, "function": piece.name}
            print(json.dumps({**head, **instruction_json(i)}))
        else:
            line = f"/*{i.address:04x}*/ {i.control!s:<26} {i.text}"
            print(f"{place}: {paint(line)}")
    return count


def _unknown(piece: Piece, program: Program) -> str:
    """Return a sentence on words that are unknown, '' where there are none; refuse raw code that is mostly so."""
    unknown = [i for i in program if not i.known]
    if not unknown:
        return ""
    message = (
        f"{piece.path}: {len(unknown):,} of {len(program):,} words have no form in the table of {piece.arch}, the first"
        f" {unknown[0].text.partition('// ')[2]} (byte {unknown[0].address:#x} of {piece.section!r})"
    )
    if piece.function is None and 2 * len(unknown) > len(program):
        raise InputError(f"{message}; is it code of another architecture?")
    return message


def _explain(text: str, archs: tuple[str, ...], paths: tuple[str, ...], *, as_json: bool) -> None:
    if paths or len(archs) != 1:
        raise InputError("--word explains one word: give it alone, with one --arch, e.g. --word 0x7918 --arch sm_90a")
    try:
        word = int(text, 16)
    except ValueError:
        raise InputError(f"--word {text}: no hexadecimal number") from None
    if not 0 <= word < 1 << 128:
        raise InputError(f"--word {text}: a word has 128 bits")
    (i,) = decode(word.to_bytes(16, "little"), archs[0])
    parts = anatomy(i)
    if as_json:
        rows = [{"bits": list(p.bits), "value": f"{p.value:#x}", "kind": p.kind, "meaning": p.meaning} for p in parts]
        print(json.dumps({**instruction_json(i), "form": i.form, "description": i.description, "parts": rows}, indent=2))
        return
    print("\n".join(_explanation(i, parts)))


def _explanation(i: Instruction, parts: list[Part]) -> Iterator[str]:
    yield f"{i.raw:#034x}"
    yield f"{i.text}"
    if i.known:
        yield f"form {i.form}, class {i.kind}: {i.description}"
    yield ""
    for p in parts:
        yield f"{_range(p):>14}  {p.value:#12x}  {p.kind:8}  {p.meaning}"
    if i.known:
        yield ""
        for o in i.operands:
            yield f"{o.text or '(not named)':>14}  {o.group:5}  {o.role}{_width(o.group, o.number, o.width)}"
        if i.unprinted:
            yield f"{'unprinted':>14}  {i.unprinted:#x}: bits in which the word differs from what `encode` makes of its text"


def _width(group: str, number: int | None, width: int | None) -> str:
    return f", {group}{number} to {group}{number + width - 1}" if number is not None and width and width > 1 else ""


def _range(p: Part) -> str:
    return ",".join(f"{low}-{low + width - 1}" if width > 1 else str(low) for low, width in reversed(p.bits))
