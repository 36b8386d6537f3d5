"""`warpsmith find`: list the cubins and PTX texts in files."""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import TYPE_CHECKING

import click

from warpsmith.base.arch import parse_arch
from warpsmith.cubin import find

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from warpsmith.cubin import Found

__all__ = ["arch_option", "chosen", "command", "kernels_of", "printable"]

arch_option = click.option(
    "--arch", "archs", multiple=True, help="Only this architecture, e.g. sm_90a; may be given several times."
)


@click.command()
@click.argument("paths", metavar="PATH…", nargs=-1, required=True)
@arch_option
@click.option("--kernels", is_flag=True, help="List the kernels of each cubin, which takes it apart.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document a line.")
def command(*, paths: tuple[str, ...], archs: tuple[str, ...], kernels: bool, as_json: bool) -> None:
    """List the cubins and PTX texts in cubins, fat binaries, objects, libraries, .a archives, wheels and other zips.

    Columns: offset in the innermost file, architecture, kind, size, size in the file, how it is compressed.
    """
    totals: Counter[tuple[str, str]] = Counter()
    for path in paths:
        last = None
        for item in chosen(find(path), archs):
            names = kernels_of(item) if kernels and item.kind == "elf" else None
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
    if not as_json:
        print(_summary(totals))


def chosen(items: Iterable[Found], archs: tuple[str, ...]) -> Iterator[Found]:
    """Return the items of these architectures; of all, where none is named. A PTX file stands for its `.target`."""
    for arch in archs:
        parse_arch(arch)
    return (item for item in items if not archs or item.arch in archs)


def printable(text: str) -> str:
    """Return a name with what a terminal would obey written as an escape: names come from files that anyone may have made."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def kernels_of(item: Found) -> list[str]:
    """Return the names of a cubin's kernels."""
    return item.cubin().kernels


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
