"""`warpsmith probe`: derive SASS tables from the disassembler, look at one word, compare tables."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from warpsmith.assembly.sass.control import NO_CONTROL
from warpsmith.assembly.sass.probe.compare import compare_tables
from warpsmith.assembly.sass.probe.explore import Exploration, explore
from warpsmith.assembly.sass.probe.extend import extend
from warpsmith.assembly.sass.probe.oracle import Oracle
from warpsmith.assembly.sass.probe.publish import publish
from warpsmith.assembly.sass.probe.publish_refused import publish_refused
from warpsmith.assembly.sass.probe.publish_roles import publish_roles
from warpsmith.assembly.sass.probe.scan import scan
from warpsmith.assembly.sass.table import FOLDER, load_table, parse_table
from warpsmith.base.errors import InputError
from warpsmith.base.whole_file import read_whole
from warpsmith.cli.output import json_option, print_json
from warpsmith.toolchain.find import tool_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warpsmith.assembly.sass.table import Table
    from warpsmith.toolchain.find import Tool

__all__ = ["command"]

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
_FOLDER = click.Path(path_type=Path, file_okay=False)


@click.command("probe")
@click.argument("seeds", nargs=-1, type=_FILE)
@click.option("--arch", required=True, help="Architecture, e.g. sm_90a.")
@click.option("--word", help="Look at one 128-bit word (hexadecimal) instead of deriving a table.")
@click.option("--out", type=_FOLDER, default=Path("tables"), show_default=True, help="Folder for the table.")
@click.option("--resume", is_flag=True, help="Go on with an interrupted run.")
@click.option("--inherit", help="Leave out the rows that are the same in this table of the folder.")
@click.option("--seeds-only", is_flag=True, help="Learn the classes of the seeds alone, not those that flipped bits lead to.")
@click.option(
    "--scan",
    "per_opcode",
    type=click.IntRange(0, 10_000),
    default=0,
    help="Try this many words of each opcode besides the seeds.",
)
@click.option(
    "--extend",
    "extending",
    is_flag=True,
    help="Leave the table in --out as it is and add forms for words that it does not know.",
)
@click.option(
    "--since", type=_FOLDER, help="Folder with the table of an earlier nvdisasm: learn what no longer holds, list what differs."
)
@click.option("--nvdisasm", "program", type=_FILE, help="Ask this nvdisasm, not the one that `doctor` names.")
@click.option(
    "--diff", "other", type=_FOLDER, help="Compare the architecture's table in this folder with the one in --out, and stop."
)
@click.option(
    "--derive",
    type=click.Choice(["table", "registers", "refused"]),
    default="table",
    show_default=True,
    help="What to derive; of the package's own table, which registers its forms read and write, or which modifiers do not go"
    " together.",
)
@json_option
def command(
    seeds: tuple[Path, ...],
    derive: str,
    arch: str,
    word: str | None,
    out: Path,
    resume: bool,
    inherit: str | None,
    seeds_only: bool,
    per_opcode: int,
    extending: bool,
    since: Path | None,
    program: Path | None,
    other: Path | None,
    as_json: bool,
) -> int:
    """Derive the table of an architecture from what nvdisasm prints.

    SEEDS are files of 16-byte instruction words, such as the `.text` of kernels; without any, the words that the
    package's own table, or that of --since, was learned from are used.
    """
    tool = None if program is None else tool_at("nvdisasm", program)
    if word is not None:
        return _look(Oracle(arch, tool), word, as_json)
    if other is not None:
        return _compare(load_table(arch, other), load_table(arch, out), None, as_json)
    if extending:
        return _extend(arch, [w for path in seeds for w in _read(path)], per_opcode, out, tool, resume=resume, as_json=as_json)
    if derive != "table":
        return _derive(derive, arch, out, inherit, resume=resume, as_json=as_json)
    if since is not None and inherit is not None:
        raise InputError("--since and --inherit name two tables to start from; write one of them")
    old = None if since is None else load_table(arch, since)
    known = old or load_table(arch, FOLDER)
    words = [w for path in seeds for w in _read(path)] or _known(known)
    words += _scanned(Oracle(arch, tool), known, per_opcode)
    out.mkdir(parents=True, exist_ok=True)
    with _progress() as bar:
        task = bar.add_task("seeds", total=None)
        tell = lambda what, done, total: bar.update(task, description=what, completed=done, total=total)  # noqa: E731
        log = publish(
            arch, words, out, out / f"{arch}.probe.jsonl", resume=resume, inherit=inherit, since=old.rows if old else (),
            tool=tool, wander=not seeds_only, tell=tell,
        )  # fmt: skip
    table = parse_table(arch, out)
    if old is not None:
        for line in log:
            print(line, file=sys.stderr)
        return _compare(old, table, Oracle(arch, tool), as_json)
    if as_json:
        print_json({"arch": arch, "table": str(out / f"{table.arch}.tsv"), "rows": len(table.rows), "unexplained": log})
    else:
        for line in log:
            print(line)
        print(f"{out / table.arch}.tsv: {len(table.rows)} forms, {len(log)} remarks")
    return 0


def _progress() -> Progress:
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total} forms"),
        TimeElapsedColumn(),
    )
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def _extend(arch: str, words: list[int], per_opcode: int, out: Path, tool: Tool | None, *, resume: bool, as_json: bool) -> int:
    """Add the forms of words that a table does not know."""
    with _progress() as bar:
        task = bar.add_task("scan", total=None)
        tell = lambda what, done, total: bar.update(task, description=what, completed=done, total=total)  # noqa: E731
        kin = [parse_table(path.stem, out) for path in sorted(out.glob("sm_*.tsv"))]
        words += _scanned(Oracle(arch, tool), load_table(arch, out), per_opcode, kin)
        found = extend(arch, words, out, out / f"{arch}.probe.jsonl", resume=resume, tool=tool, tell=tell)
    if as_json:
        print_json({"arch": arch, "gained": found.gained, "kept": found.kept, "unexplained": found.log})
    else:
        for line in found.log:
            print(line)
        for name, count in found.gained.items():
            print(f"{name}: {count} form{'s' if count > 1 else ''}")
        for name, lines in found.kept.items():
            print(f"{name}: {len(lines)} line{'s' if len(lines) > 1 else ''} written, so that it stays as it was")
        print(f"{arch}: {sum(found.gained.values())} forms gained, {len(found.log)} remarks")
    return 0


def _scanned(oracle: Oracle, table: Table, per_opcode: int, kin: Sequence[Table] = ()) -> list[int]:
    return [w for words in scan(oracle, table, per_opcode, kin=kin).values() for w in words] if per_opcode else []


def _derive(what: str, arch: str, out: Path, inherit: str | None, *, resume: bool, as_json: bool) -> int:
    """Write the file of registers, or of refused combinations, of the forms of the package's table."""
    name = load_table(arch, FOLDER).arch
    out.mkdir(parents=True, exist_ok=True)
    with _progress() as bar:
        task = bar.add_task(what, total=None)
        tell = lambda done, total: bar.update(task, completed=done, total=total)  # noqa: E731
        if what == "registers":
            log = publish_roles(arch, out, tables=FOLDER, inherit=inherit, resume=resume, tell=tell)
            said: dict[str, object] = {"unexplained": log}
        else:
            found = publish_refused(arch, out, tables=FOLDER, tell=tell)
            log = list(found.worst)
            said = {"forms": found.forms, "tried": found.tried, "wrong": found.wrong, "worst": log}
    if as_json:
        print_json({"arch": arch, "file": str(out / f"{name}.tsv"), **said})
    else:
        for line in log:
            print(line)
        print(f"{out / name}.tsv: {len(log)} remarks")
    return 0


def _read(path: Path) -> list[int]:
    data = read_whole(path)
    if data[:4] == b"\x7fELF":
        raise InputError(f"{path}: an ELF file, not bare words of 16 bytes; seeds are code alone, such as a section .text")
    if not data:
        raise InputError(f"{path}: no words; leave the file out to begin with those of the package's own table")
    if len(data) % 16:
        raise InputError(f"{path}: {len(data)} bytes are not whole words of 16")
    return [int.from_bytes(data[at : at + 16], "little") for at in range(0, len(data), 16)]


def _known(table: Table) -> list[int]:
    return [int(r.notes[k], 0) | NO_CONTROL for r in table.rows for k in ("seed", "default")]


def _compare(old: Table, new: Table, oracle: Oracle | None, as_json: bool) -> int:
    found = compare_tables(old, new, oracle)
    if as_json:
        print_json(
            [
                {
                    "kind": d.kind,
                    "class": d.name,
                    "word": f"{d.word:#x}",
                    "before": d.before,
                    "after": d.after,
                    "words": d.words,
                }
                for d in found
            ]
        )
    else:
        for d in found:
            print(d)
        print(f"{len(found)} differences")
    return 0


def _look(oracle: Oracle, word: str, as_json: bool) -> int:
    try:
        value = int(word, 16)
    except ValueError as error:
        raise InputError(f"--word {word!r} is no hexadecimal number") from error
    if value >> 128:
        raise InputError(f"--word {word!r} has more than 128 bits")
    found = explore(oracle, value)
    if as_json:
        print_json(_plain(found))
        return 0
    print(f"{value:#034x}  {found.text}\nclass {found.name}, {found.probes} probes")
    print("\n" if found.word == value else f"looked at as {found.word:#034x}, which waits for nothing\n\n", end="")
    for f in found.findings:
        print(f"{_ranges(f.bits):>16}  {f.role:9} {f.meaning}")
        for w, text in f.witnesses:
            print(f"{'':16}  {'':9} {w:#034x}  {text}")
    return 0


def _plain(found: Exploration) -> dict[str, object]:
    findings = [
        {"bits": list(f.bits), "role": f.role, "meaning": f.meaning, "witnesses": [[f"{w:#034x}", t] for w, t in f.witnesses]}
        for f in found.findings
    ]
    return {
        "word": f"{found.word:#034x}",
        "text": found.text,
        "class": found.name,
        "probes": found.probes,
        "findings": findings,
    }


def _ranges(bits: tuple[int, ...]) -> str:
    parts: list[str] = []
    start = last = -2
    for bit in (*sorted(bits), 999):
        if bit == last + 1:
            last = bit
            continue
        if start >= 0:
            parts.append(f"{start}-{last}" if last > start else str(start))
        start = last = bit
    return ",".join(parts)
