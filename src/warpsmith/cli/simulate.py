"""`warpsmith simulate`: run a kernel on the CPU, and say what is wrong with it."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from rich.console import Console

from warpsmith.assembly.ptx import parse_file
from warpsmith.base.errors import InputError
from warpsmith.cli.array_files import chosen_array, parse_output, save_all, save_array, summary
from warpsmith.cli.counters import counters_json, counters_table, lines_table, waits_json, waits_table
from warpsmith.cli.launch_shape import entry_name, extents, launch_shape, raw_launch, takes_raw
from warpsmith.cli.load import is_python, load_kernel, parse_parameters
from warpsmith.cli.output import finding_json, json_option, near, print_json, shown
from warpsmith.cli.progress import progress_bar
from warpsmith.cli.values import parse_values
from warpsmith.cli.watching import parse_watch
from warpsmith.hardware.against_gpu import simulate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warpsmith.cli.array_files import Named
    from warpsmith.cli.values import Value
    from warpsmith.simulator import SimulationResult
    from warpsmith.simulator.watch import Seen

__all__ = ["command"]

INTERRUPTED = 130
_WIDE = 160
"""Columns of a table that goes to a file."""
SCHEDULES = ("fair", "random", "adversarial")
ARGUMENTS = """Arguments: a.npy or a.npy:bf16, an array; f32[128x64] or f32[128x64]=normal, an array that is made;
out:f32[128x64], one with a name; &out+16 or &0+16, a pointer into an array before it; 128, 1.5f or 3:s16, a number;
{a.npy,3:s32}, a structure; @file, its bytes; map:ARRAY:box=64x64:swizzle=128B, a tensor map.

Example: warpsmith simulate k.ptx --kernel axpy --grid 4 --block 128 --args x.npy,y:f32[512],2.5f,512 --out results"""


@click.command(epilog=ARGUMENTS)
@click.argument("target", metavar="FILE.ptx|FILE.py:KERNEL")
@click.option("--kernel", help="The entry to run, where the file has several.")
@click.option("--grid", help="CTAs, e.g. 8 or 8,2,1.  [default: 1; a Python kernel's own]")
@click.option("--block", help="Threads of a CTA, e.g. 256.  [default: .reqntid of the entry]")
@click.option("--cluster", help="CTAs of a cluster.  [default: .reqnctapercluster of the entry]")
@click.option("-a", "--args", "arguments", multiple=True, help="Arguments in order, separated by commas; may be repeated.")
@click.option(
    "--dynamic-shared", "--shared", "shared", type=click.IntRange(min=0), default=0, help="Bytes of dynamic shared memory."
)
@click.option("--schedule", type=click.Choice(SCHEDULES), default="fair", show_default=True, help="Order of things.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the schedule and of =normal arrays.")
@click.option("--numerics", type=click.Choice(["exact", "fast"]), default="exact", show_default=True, help="Of tensor cores.")
@click.option("--check/--no-check", default=True, show_default=True, help="Look for races, hangs and protocol errors.")
@click.option("--device", help="The GPU to be, e.g. H200.  [default: by the architecture]")
@click.option("-j", "--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Processes for the grid's CTAs.")
@click.option("--against-gpu", is_flag=True, help="Run on the GPU too, and compare every bit.")
@click.option("--max-steps", type=click.IntRange(min=1), help="Stop after so many steps.")
@click.option("--lines", is_flag=True, help="Count by source line: bank conflicts, sectors, waits.")
@click.option("--trace", metavar="FILE.json", help="Write who waited on what as a trace for Perfetto.")
@click.option("-w", "--watch", multiple=True, metavar="CTA:THREAD:LINE=SHOW", help="Show registers or memory at a line.")
@click.option("-p", "--parameter", "parameters", multiple=True, help="NAME=VALUE, a keyword parameter of a Python kernel.")
@click.option(
    "-o", "--output", "outputs", multiple=True, metavar="N=FILE.npy", help="Write array N (from 0, or its name) afterwards."
)
@click.option(
    "--out", "folder", metavar="DIR", help="Write every array afterwards, as NAME.npy or N.npy, and what was printed."
)
@json_option
def command(
    *,
    target: str,
    arguments: tuple[str, ...],
    parameters: tuple[str, ...],
    outputs: tuple[str, ...],
    folder: str | None,
    watch: tuple[str, ...],
    trace: str | None,
    as_json: bool,
    seed: int,
    **options: Any,
) -> int:
    """Run a kernel on the CPU.

    Shows what the kernel printed, what is wrong with it, each fault at its source line, then its arrays and what it
    counted. The exit status is 1 if there is a finding of severity error.
    """
    values = parse_values(arguments, seed=seed)
    wanted = [parse_output(text) for text in outputs]
    options = {name: value for name, value in options.items() if value is not None} | {"seed": seed}
    options["watch"] = [parse_watch(text) for text in watch]
    with progress_bar(target) as options["progress"]:
        if is_python(target):
            result, arrays = _run_python(target, values, parse_parameters(parameters), options)
        else:
            result, arrays = _run_ptx(target, values, parameters, options)
    chosen = [(path, chosen_array(word, arrays, path)) for word, path in wanted]
    for path, array in chosen:
        save_array(path, array)
    if folder is not None:
        save_all(Path(folder), arrays, result.printed)
    if trace is not None:
        _save_trace(Path(trace), result)
    (_print_json if as_json else _print)(result, arrays)
    compared = result.comparison
    if any(f.severity == "error" for f in result.findings) or (compared is not None and compared.failed):
        return 1
    return 0 if result.completed else INTERRUPTED


def _run_ptx(
    target: str, values: Sequence[Value], parameters: Sequence[str], options: dict[str, Any]
) -> tuple[SimulationResult, list[Named]]:
    if parameters:
        raise InputError(f"{target}: PTX has no parameters to set; -p is for kernels written in Python")
    module = parse_file(target)
    entry = entry_name(module, options.pop("kernel", None), target)
    grid = options.pop("grid", "1")
    shape = launch_shape(module, entry, grid, options.pop("block", None), options.pop("cluster", None), target)
    arguments = [v.argument for v in values]
    result = simulate(module, kernel=entry, args=arguments, dynamic_shared=options.pop("shared"), **shape, **options)
    return result, [pair for v in values for pair in v.arrays]


def _run_python(
    target: str, values: Sequence[Value], parameters: dict[str, object], options: dict[str, Any]
) -> tuple[SimulationResult, list[Named]]:
    """Run a Python kernel; it knows its own block, cluster and shared memory, unless its parameters are raw ones."""
    kernel = load_kernel(target)
    arrays = [pair for v in values for pair in v.arrays]
    if values and takes_raw(kernel):
        how = raw_launch(kernel, options, parameters, target)
        others = {n: v for n, v in options.items() if n not in ("kernel", "grid", "block", "cluster", "shared")}
        return simulate(how.pop("source"), args=[v.argument for v in values], **how, **others), arrays
    fixed = [f"--{name}" for name in ("kernel", "block", "cluster", "shared") if options.pop(name, None)]
    if fixed:
        raise InputError(f"{target}: a kernel written in Python states {' and '.join(fixed)} itself")
    if grid := options.pop("grid", None):
        options["grid"] = extents(grid, "grid")
    result = kernel.simulate(*(v.argument for v in values), **options, **parameters)
    given = {id(array) for _, array in arrays}
    return result, arrays + [(f"output {i}", a) for i, a in enumerate(result.outputs) if id(a) not in given]


def _save_trace(path: Path, result: SimulationResult) -> None:
    try:
        result.timeline.save(path)
    except OSError as error:
        raise InputError(f"--trace {path}: {error.strerror}") from None
    if not (result.timeline.waits or result.timeline.operations):
        print(f"warpsmith: {path} holds no events: no warp waited, and nothing ran asynchronously", file=sys.stderr)


def _print(result: SimulationResult, arrays: list[Named]) -> None:
    print(result.printed, end="" if not result.printed or result.printed.endswith("\n") else "\n")
    for finding in result.findings:
        print(shown(finding))
    for seen in result.watched:
        print(replace(seen, place=near(seen.place)))
    if not result.completed:
        why = "was interrupted" if result.interrupted else "did not complete"
        print(f"the launch {why}; what follows is as far as it came")
    for index, (name, array) in enumerate(arrays):
        print(f"array {index} {summary(name, array)}")
    Console().print(counters_table(result.counters))
    if result.counters.lines:
        console = Console(width=None if Console().is_terminal else _WIDE)
        console.print(lines_table(result.counters))
        if result.timeline.waits:
            console.print(waits_table(result.timeline))
    if result.processes != "one process":
        print(f"ran as {result.processes}")
    print(f"fidelity: {result.fidelity}")
    if result.comparison is not None:
        print(result.comparison)


def _seen_json(seen: Seen) -> dict[str, object]:
    values = {name: np.asarray(value).tolist() for name, value in seen.values.items()}
    return {
        "where": str(seen.place), "instruction": seen.instruction, "cta": list(seen.cta), "thread": seen.thread,
        "values": values,
    }  # fmt: skip


def _print_json(result: SimulationResult, arrays: list[Named]) -> None:
    print_json(
        {
            "completed": result.completed,
            "printed": result.printed,
            "findings": [finding_json(f) for f in result.findings],
            "watched": [_seen_json(s) for s in result.watched],
            "arrays": [{"name": n, "dtype": str(a.dtype), "shape": list(a.shape)} for n, a in arrays],
            "processes": result.processes,
            "comparison": None if result.comparison is None else result.comparison.as_json(),
            "waits": waits_json(result.timeline),
            "counters": counters_json(result.counters),
            "fidelity": {subject: list(note) for subject, note in result.fidelity.notes.items()},
        }
    )
