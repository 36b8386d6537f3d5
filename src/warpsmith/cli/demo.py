"""`warpsmith demo`: a Hopper attention kernel on the CPU, and a broken barrier named at its line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from rich.console import Console

from warpsmith import demo
from warpsmith.cli.counters import counters_json, counters_table
from warpsmith.cli.output import finding_json, json_option, print_json

if TYPE_CHECKING:
    from warpsmith.demo import Broken, Run

__all__ = ["command"]

NEXT = """\
What to type next:
  warpsmith doctor                          what is here to compile with, and how to get it
  warpsmith simulate kernel.py:NAME -a …    your own kernel; `warpsmith simulate --help` says how to write arguments
  warpsmith compile kernel.ptx              machine code, registers and spills, at your source lines
The kernel just shown: src/warpsmith/kernels/attention/hopper.py. The guide: docs/guide/kernels.md.
"""
TOLERANCE = 4e-3
"""Largest difference from float64 attention that fp16 attention on standard normal inputs may have."""


@click.command()
@json_option
def command(*, as_json: bool) -> int:
    """Run a warp-specialised Hopper attention kernel on the CPU, then break it."""
    console = Console(stderr=as_json)
    console.print(f"Flash attention for Hopper, {demo.SEQUENCE} rows of {demo.DIM}: TMA, mbarriers, wgmma, three warpgroups.")
    right = demo.run()
    if not as_json:
        _show(console, right)
    broken = demo.run_broken()
    good = right.error <= TOLERANCE and not right.result.findings and bool(broken.result.findings)
    if as_json:
        print_json(_as_json(right, broken))
    else:
        _show_broken(console, broken)
        console.print(NEXT, markup=False, highlight=False)
    return 0 if good else 1


def _show(console: Console, right: Run) -> None:
    console.print(f"largest error against float64 attention {right.error:.2e}, of the log-sum-exp {right.lse_error:.2e}")
    console.print(f"findings: {len(right.result.findings)}, {right.seconds:.1f} s")
    console.print(counters_table(right.result.counters))


def _show_broken(console: Console, broken: Broken) -> None:
    console.print(f"Now without one arrival ({broken.removed.place}):", highlight=False)
    for finding in broken.result.findings:
        console.print(str(finding), markup=False, highlight=False, soft_wrap=True)
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
