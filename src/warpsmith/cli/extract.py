"""`warpsmith extract`: write the cubins and PTX texts in files to files of their own."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from warpsmith.base.errors import InputError, WarpsmithError
from warpsmith.cli.find import arch_option
from warpsmith.cli.gpu_code import Faults, entries, printable
from warpsmith.cli.output import json_option, print_json, write_whole

if TYPE_CHECKING:
    from warpsmith.cubin import Found

__all__ = ["command"]

_LONGEST = 200
"""Bytes of a name that are kept, from its end; with the rest it stays below the 255 that file systems have room for."""
_SUFFIX = {"elf": ".cubin", "ptx": ".ptx"}


@click.command()
@click.argument("paths", metavar="PATH…", nargs=-1, required=True)
@arch_option
@click.option("--kernel", "kernels", multiple=True, help="Only cubins with a kernel whose name holds this text.")
@click.option("--kind", type=click.Choice(list(_SUFFIX)), help="Only cubins, or only PTX.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, file_okay=False), default=Path(), help="Folder to write to.  [default: .]"
)
@json_option
def command(
    *, paths: tuple[str, ...], archs: tuple[str, ...], kernels: tuple[str, ...], kind: str | None, output: Path, as_json: bool
) -> int:
    """Write the cubins and PTX texts in files to DIR/NAME.OFFSET.ARCH.cubin or .ptx.

    Each appears whole or not at all. NAME is the name of the innermost file. What cannot be read is told of and passed over;
    the exit status is then 2.
    """
    faults = Faults()
    written: list[dict[str, object]] = []
    taken: set[str] = set()
    for path in paths:
        for item in entries(path, archs, faults):
            try:
                if item.kind not in _SUFFIX or (kind and item.kind != kind) or not _has(item, kernels):
                    continue
                data = item.read()
            except WarpsmithError as error:
                faults.note(error)
                continue
            output.mkdir(parents=True, exist_ok=True)
            target = output / _name(item, taken)
            write_whole(target, data)
            written.append(
                {
                    "output": str(target),
                    "bytes": len(data),
                    "arch": item.arch,
                    "kind": item.kind,
                    "from": item.path,
                    "offset": item.offset,
                }
            )
            if not as_json:
                print(f"{printable(str(target))}: {len(data):,} bytes")
    if not written and not faults.count:
        raise InputError(f"nothing to extract from {', '.join(paths)}: {_why(archs, kernels, kind)}")
    if as_json and written:
        print_json(written)
    return faults.status(len(written))


def _has(item: Found, kernels: tuple[str, ...]) -> bool:
    if not kernels:
        return True
    return item.kind == "elf" and any(part in name for name in item.cubin().kernels for part in kernels)


def _name(item: Found, taken: set[str]) -> str:
    """Return a file name that no other item of this run has: members of two folders of an archive may be called alike.

    What a file system or a terminal may not take becomes `_`; names are cut to what every file system has room for.
    """
    last = re.split(r"[!/\\]", item.path)[-1]
    safe = "".join(c if c.isprintable() and c not in '<>:"|?*' else "_" for c in last)
    stem = safe.encode()[-_LONGEST:].decode(errors="ignore") or "data"
    base = f"{stem}.{item.offset:x}.{item.arch or 'ptx'}"
    names = (f"{base}{'' if n == 1 else f'.{n}'}{_SUFFIX[item.kind]}" for n in itertools.count(1))
    name = next(n for n in names if n not in taken)
    taken.add(name)
    return name


def _why(archs: tuple[str, ...], kernels: tuple[str, ...], kind: str | None) -> str:
    asked = [f"architecture {', '.join(archs)}"] if archs else []
    asked += [f"a kernel named {' or '.join(kernels)}"] if kernels else []
    asked += [f"kind {kind}"] if kind else []
    return f"no entry with {' and '.join(asked)}; `warpsmith find` lists what there is" if asked else "no GPU code found"
