"""`warpsmith compile`: PTX, or a kernel written in Python, to a cubin, PTX or a listing."""

from __future__ import annotations

import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from warpsmith.assembly.ptx import parse, text_of_file
from warpsmith.assembly.ptx.miscompiled import miscompiled_here
from warpsmith.base.errors import InputError
from warpsmith.cli.load import is_python, load_kernel, parse_parameters, stem_of
from warpsmith.cli.output import finding_json, json_option, print_json, shown, write_whole
from warpsmith.cli.suppress import passed_over, suppress_option, suppressions
from warpsmith.findings import Suppressions
from warpsmith.toolchain import Compilation, compile_ptx, disassemble

if TYPE_CHECKING:
    from warpsmith.base.findings import Finding
    from warpsmith.toolchain import Resources

__all__ = ["command"]

SUFFIXES = {"cubin": ".cubin", "ptx": ".ptx", "sass": ".sass"}


@click.command()
@click.argument("target", metavar="FILE.ptx|FILE.py:KERNEL")
@click.option("-o", "--output", help="File to write; - is the standard output.  [default: NAME.cubin]")
@click.option("--emit", type=click.Choice(list(SUFFIXES)), default="cubin", show_default=True, help="What to write.")
@click.option("--arch", help="Architecture to compile for, e.g. sm_90a; by default that of `.target`.")
@click.option("-p", "--parameter", "parameters", multiple=True, help="NAME=VALUE, a keyword parameter of a Python kernel.")
@click.option("-X", "--ptxas", "options", multiple=True, help="A further argument of ptxas, e.g. -X --fmad=false.")
@suppress_option
@json_option
def command(
    *,
    target: str,
    output: str | None,
    emit: str,
    arch: str | None,
    parameters: tuple[str, ...],
    options: tuple[str, ...],
    suppress: tuple[str, ...],
    as_json: bool,
) -> int:
    """Compile PTX, or a kernel written in Python, with ptxas.

    Prints what each function takes, what ptxas had to say, and what it makes wrong code of, at your source lines. The
    exit status is 1 if it makes wrong code.
    """
    reasons = Suppressions(suppressions(suppress))
    if as_json and output == "-":
        raise InputError("--json and --output - both want the standard output; name a file")
    text = ptx_of(target, parse_parameters(parameters))
    compilation: Compilation | None = None
    over: list[tuple[Finding, str]] = []
    if emit != "ptx":
        compilation = compile_ptx(text, arch, options, name=target)
        kept, over = reasons.sort((*compilation.findings, *miscompiled_here(parse(text, target), options)))
        compilation = replace(compilation, findings=tuple(kept))
    status = int(any(f.severity == "error" for f in compilation.findings)) if compilation else 0
    data = text.encode() if compilation is None else compilation.cubin
    if compilation and emit == "sass":
        data = disassemble(compilation.cubin).encode()
    if output == "-":
        sys.stdout.buffer.write(data)
        for finding in compilation.findings if compilation and status else ():
            print(shown(finding), file=sys.stderr)
        return status
    path = Path(output or stem_of(target) + SUFFIXES[emit])
    write_whole(path, data)
    if as_json:
        print_json({"output": str(path), "bytes": len(data), **_as_json(compilation)})
    else:
        print(f"{path}: {len(data):,} bytes{f', {compilation.arch}' if compilation else ''}")
        _print(compilation)
        for line in passed_over(over):
            print(line)
    return status


def ptx_of(target: str, parameters: dict[str, object]) -> str:
    """Return the PTX text of a target; the text of a file is read by our own reader first, so that bad PTX is told well."""
    if is_python(target):
        return load_kernel(target).ptx(**parameters)
    if parameters:
        raise InputError(f"{target}: PTX has no parameters to set; -p is for kernels written in Python")
    text = text_of_file(target)
    parse(text, target)
    return text


def _as_json(compilation: Compilation | None) -> dict[str, object]:
    if compilation is None:
        return {}
    return {
        "arch": compilation.arch,
        "cached": compilation.cached,
        "resources": {name: asdict(r) for name, r in compilation.resources.items()},
        "findings": [finding_json(f) for f in compilation.findings],
    }


def _print(compilation: Compilation | None) -> None:
    if compilation is None:
        return
    for resources in compilation.resources.values():
        print(f"  {resources.name}: {_describe(resources)}")
    for finding in compilation.findings:
        print(shown(finding))


def _describe(r: Resources) -> str:
    parts = [
        f"{r.registers} registers" if r.registers is not None else "a device function",
        f"{r.barriers} barrier{'' if r.barriers == 1 else 's'}",
    ]
    parts += [f"{size:,} bytes {what}" for what, size in (("shared", r.shared), ("stack", r.stack), ("local", r.local)) if size]
    parts += [f"{size:,} bytes constant bank {bank}" for bank, size in r.constant.items()]
    if r.spill_stores or r.spill_loads:
        parts.append(f"spills {r.spill_stores:,} bytes out, {r.spill_loads:,} in")
    return ", ".join(parts)
