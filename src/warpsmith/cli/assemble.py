"""`warpsmith assemble`: a listing to code, into a cubin, or to a cubin of its own."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, final

import click

from warpsmith.assembly.sass.assemble import Assembled, assemble_lines
from warpsmith.assembly.sass.source import Source, parse_source
from warpsmith.base.errors import CapabilityError, InputError
from warpsmith.base.whole_file import read_stream, read_whole
from warpsmith.cli.output import json_option, print_json, write_whole
from warpsmith.cubin import CapsuleWarning, Cubin
from warpsmith.cubin import open as open_cubin
from warpsmith.sass import decode

if TYPE_CHECKING:
    from warpsmith.cubin import Function

__all__ = ["command"]

_COMPUTED = ("RET", "BRX", "BRXU", "JMX", "JMXU")
"""Instructions that go to addresses which the code computes, so that moving code under them is refused."""


@final
class _Job:
    """What is assembled: the listing, its name in messages, and the code of each of its functions."""

    def __init__(self, name: str, source: Source, arch: str) -> None:
        self.name, self.arch = name, arch
        self.functions = {f.name: f for f in source.functions}
        self.code = {
            f.name: assemble_lines(f.text, arch, name=name, first=f.line) for f in source.functions
        }  # everything is assembled before anything is written


_LARGEST = 1 << 28
"""Bytes of a listing; one of a million instructions has 80 MB."""


@click.command()
@click.argument("listing", metavar="LISTING|-", default="-")
@click.option("--arch", help="Architecture; by default that of the listing's .arch, or of the cubin of --into.")
@click.option("--into", type=click.Path(path_type=Path, dir_okay=False), help="Cubin whose functions the listing replaces.")
@click.option("--function", help="The one function to assemble, by its whole name.")
@click.option(
    "-o", "--output", help="File to write: NAME.cubin, or bare code; - is the standard output.  [default: that, in a pipe]"
)
@click.option("--capsule", type=click.Choice(["drop", "keep"]), default="drop", show_default=True,
              help="With --into: the second form of the code that sm_100 and later carry.")  # fmt: skip
@json_option
def command(
    *, listing: str, arch: str | None, into: Path | None, function: str | None, output: str | None, capsule: str, as_json: bool
) -> None:
    """Assemble a listing such as `warpsmith sass --ours` prints, with labels.

    With --into, the functions of that name in a cubin get the code, and what refers to places in it moves; instructions are
    followed by the addresses that stand before them as comments. To NAME.cubin without --into, a cubin is built from nothing,
    for which the listing states .registers and .params. Else the bare code of one function is written.

    Nothing is scheduled: an instruction without control bits (B------:R-:W-:-:S01) stalls one cycle, waits for nothing and
    sets no scoreboard. State them where an instruction needs the result of another.
    """
    if output is None and (sys.stdout.isatty() or as_json):
        raise InputError("name a file to write with -o: the code is bytes")
    name, text = _read(listing)
    source = _chosen(parse_source(text, name), function, name)
    base = open_cubin(into) if into else None
    target = arch or source.arch or (base.arch if base else None)
    if target is None:
        raise InputError(f"{name}: for which architecture? write .arch sm_90a above it, or give --arch")
    if base is not None and _family(base.arch) != _family(target):
        raise InputError(f"{into}: the cubin is for {base.arch}, the listing for {target}")
    if output == "-" and as_json:
        raise InputError("--json and --output - both want the standard output; name a file")
    job = _Job(name, source, target)
    if base is not None:
        data = _into(job, base, str(into), capsule)
    elif output and output.endswith(".cubin"):
        data = _built(job)
    else:
        data = _bare(job)
    _note_unscheduled(job)
    if output in (None, "-"):
        sys.stdout.buffer.write(data)
        return
    write_whole(Path(output), data)
    if as_json:
        rows = [{"name": n, "bytes": len(a.code), "instructions": len(a.origins)} for n, a in job.code.items()]
        print_json({"output": output, "arch": target, "bytes": len(data), "functions": rows})
    else:
        print(f"{output}: {len(data):,} bytes, {', '.join(n or 'bare code' for n in job.code)} for {target}")


def _note_unscheduled(job: _Job) -> None:
    """Say that instructions have the weakest control bits where the listing states some for others."""
    lines = [number for done in job.code.values() for number in done.unscheduled]
    if lines and len(lines) < sum(len(done.origins) for done in job.code.values()):
        what = "1 instruction states" if len(lines) == 1 else f"{len(lines)} instructions state"
        print(
            f"warpsmith: note: {job.name}:{lines[0]}: {what} no control bits, beside others that do: B------:R-:W-:-:S01, "
            "which waits for nothing",
            file=sys.stderr,
        )


def _read(listing: str) -> tuple[str, str]:
    name = "<stdin>" if listing == "-" else listing
    data = read_stream(sys.stdin.buffer, name, _LARGEST) if listing == "-" else read_whole(listing, _LARGEST)
    try:
        return name, data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{name}: no text (byte {error.start:#x}); a listing is UTF-8") from None


def _chosen(source: Source, function: str | None, name: str) -> Source:
    if not source.functions:
        raise InputError(f"{name}: the listing has no instructions")
    if function is None:
        return source
    found = tuple(f for f in source.functions if f.name == function)
    if not found:
        raise InputError(f"{name}: there is no .function {function}; there are {', '.join(f.name for f in source.functions)}")
    return Source(source.arch, found)


def _family(arch: str) -> str:
    return arch.rstrip("af")


def _bare(job: _Job) -> bytes:
    if len(job.code) > 1:
        raise InputError(
            f"{job.name}: {len(job.code)} functions ({', '.join(list(job.code)[:4])}…); choose one with --function, or write a"
            " cubin: --into X.cubin, or -o NAME.cubin"
        )
    return next(iter(job.code.values())).code


def _into(job: _Job, cubin: Cubin, path: str, capsule: str) -> bytes:
    there = cubin.functions
    for name, done in job.code.items():
        target = there.get(name) if name or len(there) != 1 else next(iter(there.values()))
        if target is None:
            raise InputError(
                f"{job.name}: {path} has no function {name or '(the listing names none)'}; it has {', '.join(there)}"
            )
        if done.code == target.code:
            continue
        moved = _moved(job.name, target, done, cubin.arch)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", CapsuleWarning)
            target.replace(done.code, moved, capsule=capsule)
        for w in caught:
            print(f"warpsmith: warning: {w.message}", file=sys.stderr)
    return cubin.write()


def _moved(listing: str, target: Function, done: Assembled, arch: str) -> dict[int, int | None] | None:
    """Return where each old instruction stands now, by the addresses of the listing's lines; None where all stay."""
    old = target.code
    stated = [(origin, 16 * k) for k, origin in enumerate(done.origins) if origin is not None]
    if not stated:
        if len(done.code) != len(old):
            raise InputError(
                f"{listing}: {target.name} had {len(old)} bytes and gets {len(done.code)}, and no line says with `/*0010*/`"
                " where its instruction stood; begin with `warpsmith sass --ours`"
            )
        return None
    places: dict[int, int | None] = dict.fromkeys(range(0, len(old), 16))
    for origin, now in stated:
        if places.get(origin, 0) is not None:
            what = "stands twice" if origin in places else f"lies outside the old code of {len(old)} bytes"
            raise InputError(f"{listing}: {target.name}: the address /*{origin:04x}*/ {what}")
        places[origin] = now
    if len(old) == len(done.code) and all(now == origin for origin, now in places.items()):
        return None
    for i in decode(old, arch):
        if i.mnemonic in _COMPUTED and (i.mnemonic == "RET" or places[i.address] != i.address):
            raise CapabilityError(
                f"{target.name}: {i.text} at {i.address:#x} goes to an address that the code computes, and moving code under it"
                " is not modelled; keep every instruction at its place"
            )
    return places


def _built(job: _Job) -> bytes:
    cubin = Cubin.new(job.arch)
    for name, done in job.code.items():
        f = job.functions[name]
        if not name:
            raise InputError(f"{job.name}: a cubin built from nothing wants a .function NAME above the code")
        if f.needs:
            raise CapabilityError(
                f"{job.name}: {name} needs {', '.join(f.needs)}, which a listing does not hold; replace its code in its cubin"
                " with --into"
            )
        if "registers" not in f.numbers:
            raise InputError(f"{job.name}: {name}: a cubin built from nothing wants .registers N, and .params of what it takes")
        cubin.add_function(name, done.code, params=f.params, max_threads=f.max_threads, registers=f.numbers["registers"],
            shared=f.numbers.get("shared", 0), barriers=f.numbers.get("barriers", 0), stack=f.numbers.get("stack", 0),
        )  # fmt: skip
    return cubin.write()
