"""`warpsmith transpile`: PTX to Python source of the kernel language."""

from __future__ import annotations

from pathlib import Path

import click

from warpsmith.assembly.ptx import parse_file
from warpsmith.cli.output import json_option, print_json, write_whole
from warpsmith.ptx import to_python

__all__ = ["command"]


@click.command()
@click.argument("target", metavar="FILE.ptx")
@click.option("--sugar", is_flag=True, help="Prefer wrappers and operators to ptx.inst.")
@click.option("--kernel", "--name", "name", help="The kernel to write.  [default: all]")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File to write.  [default: the standard output]")
@json_option
def command(*, target: str, sugar: bool, name: str | None, output: Path | None, as_json: bool) -> None:
    """Write PTX as Python source whose kernels trace to the same machine code."""
    source = to_python(parse_file(target), sugar=sugar, kernel_name=name)
    if output:
        write_whole(output, source.encode())
    if as_json:
        print_json({"output": str(output) if output else None, "source": source})
    elif output:
        print(f"{output}: {len(source.splitlines()):,} lines")
    else:
        print(source, end="")
