"""`warpsmith audit`: compare the decoder with nvdisasm on every distinct word of libraries, and encode all words back."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from warpsmith.assembly.sass.table import FOLDER
from warpsmith.base.errors import InputError
from warpsmith.base.optional import adapter
from warpsmith.cli.find import arch_option
from warpsmith.cli.gpu_code import printable
from warpsmith.cli.output import json_option, print_json, write_whole
from warpsmith.sass.audit import Report, audit
from warpsmith.sass.audit.html import as_html
from warpsmith.sass.audit.tsv import as_tsv

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from warpsmith.sass.audit import Tally

__all__ = ["command"]

_FOLDER = click.Path(path_type=Path, file_okay=False)
_TABLES = click.Path(path_type=Path, file_okay=False, exists=True)
_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command("audit")
@click.argument("paths", metavar="PATH…", nargs=-1, required=True)
@arch_option
@click.option("--tables", type=_TABLES, default=FOLDER, help="Folder of tables to use instead of the package's.")
@click.option("--work", type=_FOLDER, help="Folder for intermediate results; a run that was cut short goes on from there.")
@click.option("--sample", default=0, help="Draw this many words instead of taking all.")
@click.option("--seed", default=0, help="Which words are drawn.")
@click.option("--jobs", default=1, show_default=True, help="Processes.")
@click.option("--dask", "address", help="Address of a Dask scheduler whose workers see the same files (the extra `dask`).")
@click.option("--html", "page", type=_FILE, help="Write the report to this file, too, as a page of HTML.")
@click.option("--tsv", "counts", type=_FILE, help="Write the counts by architecture and mnemonic to this file, too.")
@click.option("--wrong", type=_FOLDER, help="Write words that are not exact to <arch>.bin there, as seeds for `probe`.")
@click.option("--mnemonics", is_flag=True, help="List all mnemonics, not only those with words that are not exact.")
@json_option
def command(
    *,
    paths: tuple[str, ...],
    archs: tuple[str, ...],
    tables: Path,
    work: Path | None,
    sample: int,
    seed: int,
    jobs: int,
    address: str | None,
    page: Path | None,
    counts: Path | None,
    wrong: Path | None,
    mnemonics: bool,
    as_json: bool,
) -> int:
    """Decode every distinct instruction word in libraries, wheels, archives, cubins and folders of them, compare each text
    with nvdisasm's, and encode it back.

    Exit status 1 if any word is not exact or not given back, or an entry could not be read.
    """
    with _progress() as tell, adapter("dask").connect(address) if address else nullcontext() as client:
        report = audit(
            paths, archs=archs, tables=tables, work=work, sample=sample, seed=seed, jobs=jobs, client=client, wrong=wrong,
            tell=tell,
        )  # fmt: skip
    if page is not None:
        write_whole(page, as_html(report).encode())
    if counts is not None:
        write_whole(counts, as_tsv(report).encode())
    if as_json:
        print_json(report.as_json())
    else:
        print(_text(report, mnemonics=mnemonics))
    if not report.tallies and not report.unread:
        raise InputError(_nothing(report, archs))
    return 0 if report.clean else 1


def _nothing(report: Report, archs: tuple[str, ...]) -> str:
    if report.without_table:
        return f"nothing was compared: there is no table for {', '.join(report.without_table)}"
    wanted = f" for {' or '.join(archs)}" if archs else ""
    return f"nothing was compared: no machine code{wanted} was found; `warpsmith find` lists what there is"


@contextmanager
def _progress() -> Generator[Callable[[str, int, int], None]]:
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}"))
    times = (TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, *times, console=console, transient=True, disable=not console.is_terminal) as bar:
        tasks: dict[str, Any] = {}

        def tell(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total)
            bar.update(tasks[what], completed=done, total=total)

        yield tell


_COLUMNS = ("words", "exact", "differing", "unknown", "rejected", "raw", "encoded", "canonical")


def _text(report: Report, *, mnemonics: bool) -> str:
    lines = [
        f"{report.tool}, decoder {report.code}",
        *(f"{printable(i.path)}  {i.size:,} bytes  SHA-256 {i.sha256}" for i in report.inputs),
    ]
    if report.sample:
        lines.append(f"a sample of {report.sample:,} words, seed {report.seed}")
    lines += ["", _line("", _COLUMNS)]
    for arch, rows in report.tallies.items():
        lines.append(_line(arch, _cells(report.total(arch))) + f"  table {report.tables[arch][:12]}")
        lines += [_line(f"  {name}", _cells(t)) for name, t in rows.items() if mnemonics or not t.clean]
    lines.append(_line("all", _cells(report.total())))
    lines += [f"{arch}: {n:,} words that both sides reject" for arch, n in report.illegal.items()]
    lines += [f"{arch}: {n:,} instructions; there is no table" for arch, n in report.without_table.items()]
    lines += [printable(str(line)) for e in report.examples for line in str(e).splitlines()]
    lines += [f"not read: {printable(u)}" for u in report.unread]
    return "\n".join(lines)


def _line(name: str, cells: tuple[str, ...]) -> str:
    return f"{name:14}" + "".join(f"{c:>12}" for c in cells)


def _cells(t: Tally) -> tuple[str, ...]:
    return tuple(f"{getattr(t, name):,}" for name in _COLUMNS)
