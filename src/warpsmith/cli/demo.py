"""`warpsmith demo`: a Hopper attention kernel on the CPU, and a broken barrier named at its line."""

from __future__ import annotations

import linecache
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from warpsmith import demo
from warpsmith.cli.counters import counters_json, counters_table
from warpsmith.cli.output import finding_json, json_option, near, print_json, shown
from warpsmith.cli.progress import progress_bar

if TYPE_CHECKING:
    from warpsmith.demo import Broken, Run

__all__ = ["command"]

INTRODUCTION = f"""\
Flash attention for Hopper on this CPU, {demo.SEQUENCE} rows of {demo.DIM}, fp16: one warpgroup loads tiles by TMA,
two multiply them with wgmma, and mbarriers keep them in step.
"""
NEXT = """\
What to type next:
  warpsmith simulate FILE.py:KERNEL -a ARGS   your own kernel; `warpsmith simulate --help` lists the arguments
  warpsmith compile FILE.ptx                  machine code, registers and spills, at your source lines
  warpsmith doctor                            what is here to compile with, and how to get it
The kernel is warpsmith/kernels/attention/hopper.py and its neighbours; the guide is docs/guide/ of the repository."""
INTERRUPTED = 130
TOLERANCE = 4e-3
"""Largest difference from float64 attention that fp16 attention on standard normal inputs may have."""


@click.command()
@json_option
def command(*, as_json: bool) -> int:
    """Run a warp-specialised Hopper attention kernel on the CPU, then break one barrier of it."""
    console = Console(stderr=as_json, highlight=False, markup=False, soft_wrap=True)
    console.print(INTRODUCTION)
    with progress_bar("the kernel") as progress:
        right = demo.run(progress=progress)
    if not as_json:
        _show(console, right)
    if not right.result.completed and not right.result.findings:
        console.print("interrupted")
        return INTERRUPTED
    with progress_bar("the kernel without one arrival") as progress:
        broken = demo.run_broken(progress=progress)
    if as_json:
        print_json(_as_json(right, broken))
    else:
        _show_broken(console, broken)
        console.print(NEXT + where_the_command_is())
    good = right.error <= TOLERANCE and not right.result.findings and bool(broken.result.findings)
    return 0 if good else 1


def where_the_command_is() -> str:
    """Say how to call `warpsmith` where the shell does not find it, as after `make demo`."""
    program = Path(sys.argv[0])
    if shutil.which("warpsmith") or program.name != "warpsmith":
        return ""
    here = Path.cwd()
    return f"\n`warpsmith` is {program.relative_to(here) if program.is_relative_to(here) else program} here."


def _show(console: Console, right: Run) -> None:
    console.print(f"largest error against float64 attention: {right.error:.1e} (log-sum-exp {right.lse_error:.1e})")
    console.print(f"findings: {len(right.result.findings) or 'none'}; {right.seconds:.1f} s")
    for finding in right.result.findings:
        console.print(str(shown(finding)))
    console.print(counters_table(right.result.counters))


def _show_broken(console: Console, broken: Broken) -> None:
    place = broken.removed.place
    console.print("The same kernel without one arrival, by which a consumer gives a tile back:")
    if place:
        console.print(f"  {near(place)}: {linecache.getline(place.file, place.line).strip()}")
    console.print("and what is found:")
    for finding in broken.result.findings:
        console.print(str(shown(finding)))
    console.print()


def _as_json(right: Run, broken: Broken) -> dict[str, object]:
    return {
        "sequence": demo.SEQUENCE,
        "dim": demo.DIM,
        "error": right.error,
        "lse_error": right.lse_error,
        "seconds": right.seconds,
        "findings": [finding_json(f) for f in right.result.findings],
        "counters": counters_json(right.result.counters),
        "broken": {
            "removed": str(broken.removed.place),
            "findings": [finding_json(f) for f in broken.result.findings],
            "seconds": broken.seconds,
        },
    }
