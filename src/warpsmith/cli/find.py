"""`warpsmith find`: list the cubins and PTX texts in files."""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import TYPE_CHECKING

import click

from warpsmith.base.errors import WarpsmithError
from warpsmith.cli.gpu_code import Faults, entries, printable

if TYPE_CHECKING:
    from warpsmith.cubin import Found

__all__ = ["arch_option", "command", "kernels_of"]

arch_option = click.option(
    "--arch", "archs", multiple=True, help="Only this architecture, e.g. sm_90a; may be given several times."
)


@click.command()
@click.argument("paths", metavar="PATH…", nargs=-1, required=True)
@arch_option
@click.option("--kernels", is_flag=True, help="List the kernels of each cubin, which takes it apart.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document a line.")
def command(*, paths: tuple[str, ...], archs: tuple[str, ...], kernels: bool, as_json: bool) -> int:
    """List the cubins and PTX texts in cubins, fat binaries, objects, libraries, .a archives, wheels and other zips.

    Columns: offset in the innermost file, architecture, kind, size, size in the file, how it is compressed.
    What cannot be read is told of and passed over; the exit status is then 2.
    """
    totals: Counter[tuple[str, str]] = Counter()
    faults = Faults()
    for path in paths:
        last = None
        for item in entries(path, archs, faults):
            names = _kernels(item, faults) if kernels and item.kind == "elf" else None
            totals[item.arch or "-", item.kind] += 1
            if as_json:
                json.dump(_as_json(item, names), sys.stdout)
                print()
                continue
            if item.path != last:
                print(printable(item.path))
                last = item.path
            print(_line(item))
            for name in names or ():
                print(f"      {printable(name)}")
    if not as_json and (totals or not faults.count):
        print(_summary(totals))
    return faults.status(totals.total())


def kernels_of(item: Found) -> list[str]:
    """Return the names of a cubin's kernels."""
    return item.cubin().kernels


def _kernels(item: Found, faults: Faults) -> list[str] | None:
    try:
        return kernels_of(item)
    except WarpsmithError as error:
        faults.note(error)
        return None


def _line(item: Found) -> str:
    packed = f"{item.stored:>12,}  {item.compression}" if item.compression != "none" else f"{'':>12}"
    return f"  {item.offset:#12x}  {item.arch or '-':9} {item.kind:5} {item.size:>12,} {packed}".rstrip()


def _as_json(item: Found, kernels: list[str] | None) -> dict[str, object]:
    out: dict[str, object] = {
        "file": item.path, "offset": item.offset, "section": item.section, "arch": item.arch, "kind": item.kind,
        "size": item.size, "stored": item.stored, "compression": item.compression,
    }  # fmt: skip
    return out if kernels is None else {**out, "kernels": kernels}


def _summary(totals: Counter[tuple[str, str]]) -> str:
    if not totals:
        return "no GPU code found"
    return "total: " + ", ".join(f"{count:,} {kind} {arch}" for (arch, kind), count in sorted(totals.items()))
