"""`warpsmith check`: read PTX, or trace a kernel, run it under many schedules, and list what is wrong with it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from warpsmith.assembly.ptx import parse, parse_file
from warpsmith.assembly.ptx.check import check
from warpsmith.assembly.ptx.miscompiled import miscompiled_here
from warpsmith.assembly.ptx.walk import each_instruction
from warpsmith.base.errors import CompilationError, InputError, PtxError
from warpsmith.cli.explore import describe, exploration_json, explore_target, kernel_text
from warpsmith.cli.load import is_python, load_kernel
from warpsmith.cli.output import finding_json, json_option, print_json, shown, write_whole
from warpsmith.cli.sarif import sarif
from warpsmith.cli.simulate import ARGUMENTS
from warpsmith.cli.suppress import passed_over, suppress_option, suppressions
from warpsmith.findings import KINDS, Suppressions
from warpsmith.toolchain import compile_ptx

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warpsmith.assembly.ptx import Module
    from warpsmith.base.errors import Problem
    from warpsmith.base.findings import Finding
    from warpsmith.simulator.explore import Exploration

__all__ = ["command"]


@click.command(epilog=ARGUMENTS.replace("warpsmith simulate", "warpsmith check").replace(" --out results", ""))
@click.argument("target", metavar="FILE.ptx|FILE.py:KERNEL", required=False)
@click.option("-p", "--parameter", "parameters", multiple=True, help="NAME=VALUE, a keyword parameter of a Python kernel.")
@click.option("--ptxas", "ask_ptxas", is_flag=True, help="Ask ptxas too, and list its notes: spills, setmaxnreg ignored, ...")
@click.option("-a", "--args", "arguments", multiple=True, help="Arguments to run it with, as of `simulate`.")
@click.option("--kernel", help="The entry to run, where the file has several.")
@click.option("--grid", help="CTAs, e.g. 8 or 8,2,1.  [default: 1]")
@click.option("--block", help="Threads of a CTA, e.g. 256.")
@click.option("--cluster", help="CTAs of a cluster.")
@click.option("--shared", type=click.IntRange(min=0), default=0, help="Bytes of dynamic shared memory.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of =normal arrays.")
@click.option("--numerics", type=click.Choice(["exact", "fast"]), default="exact", show_default=True, help="Of tensor cores.")
@click.option("--device", help="The GPU to be, e.g. H200.")
@click.option("--max-steps", type=click.IntRange(min=1), help="Stop a run after so many steps.")
@click.option("--static", is_flag=True, help="Only read the program; run nothing.")
@click.option("--schedules", type=click.IntRange(min=0), default=20, show_default=True, help="Schedules besides the fair one.")
@click.option("--budget", type=click.FloatRange(min=0), default=60, show_default=True, help="Seconds for all of them.")
@click.option("--jobs", type=click.IntRange(min=1), help="Processes.  [default: one for each CPU]")
@suppress_option
@click.option("--sarif", "sarif_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the findings there, too.")
@click.option("--explain", metavar="KIND", help="Say what a kind of finding is and how to mend it.")
@json_option
def command(
    *,
    target: str | None,
    parameters: tuple[str, ...],
    ask_ptxas: bool,
    arguments: tuple[str, ...],
    static: bool,
    schedules: int,
    budget: float,
    jobs: int | None,
    suppress: tuple[str, ...],
    sarif_file: Path | None,
    explain: str | None,
    as_json: bool,
    **launch: Any,
) -> int:
    """Check PTX, or a kernel written in Python: read it, then run it under many schedules.

    Syntax, names, operands and their types, whether the architecture and PTX version have each instruction, and whether
    ptxas makes other code of it than it says (by the release of ptxas that is installed). A
    kernel whose inputs have fixed shapes, or that is given arguments, is then run on the CPU under fair, adversarial
    and random schedules, and what they show is listed, that of the smallest failing one first. The exit status is 1 if
    something is wrong.
    """
    if explain is not None:
        return _explain(explain)
    if target is None:
        raise click.UsageError("Missing argument 'FILE.ptx|FILE.py:KERNEL'.")
    problems, module = _read(target, arguments, parameters, launch["seed"])
    notes, over = _notes(module if not problems else None, target, ask_ptxas, suppress)
    found: Exploration | None = None
    if module and not problems and not static:
        found = explore_target(
            target, arguments, parameters, launch, count=schedules, budget=budget, jobs=jobs or os.cpu_count() or 1,
            suppress=suppressions(suppress),
        )  # fmt: skip
    findings = (*notes, *(found.distinct() if found else ()))
    if sarif_file is not None:
        write_whole(sarif_file, sarif(findings, (*over, *(found.suppressed if found else ()))))
    count = sum(1 for f in module.functions() for _ in each_instruction(f.body or [])) if module else 0
    if as_json:
        print_json(
            {
                "instructions": count,
                "problems": [_problem_json(p) for p in problems],
                "findings": [finding_json(f) for f in notes],
                **({"suppressed": [{**finding_json(f), "reason": reason} for f, reason in over]} if over else {}),
                **({"exploration": exploration_json(found)} if found else {}),
            }
        )
    else:
        for line in (*problems, *map(shown, notes), *passed_over(over), *(describe(found) if found else ())):
            print(line)
        ran = f", {_plural(len(found.runs), 'schedule')}, {_plural(len(found.distinct()), 'finding')}" if found else ""
        read = "" if found and found.distinct() else f", {_plural(len(problems), 'problem')}"
        wanted = "--args" if is_python(target) else "--block and --args"
        alone = "" if found or static or problems else f"; not run: give it {wanted}"
        print(f"{target}: {_plural(count, 'instruction')}{read}{ran}{alone}")
    return 1 if problems or any(f.severity == "error" for f in findings) else 0


def _explain(name: str) -> int:
    kind = KINDS.get(name)
    if kind is None:
        raise InputError(f"--explain {name}: no kind of finding is called so; known: {', '.join(KINDS)}")
    print(f"{kind.name} ({kind.severity})\n  {kind.wrong}\n  {kind.repair}")
    return 0


def _read(
    target: str, arguments: Sequence[str], parameters: Sequence[str], seed: int
) -> tuple[Sequence[Problem], Module | None]:  # fmt: skip
    """Return what is wrong with the target, and its tree if it has one."""
    try:
        if is_python(target):
            module = parse(kernel_text(load_kernel(target), arguments, parameters, seed), target)
        elif parameters:
            raise InputError(f"{target}: PTX has no parameters to set; -p is for kernels written in Python")
        else:
            module = parse_file(target)
    except PtxError as error:
        return error.problems, None
    return check(module), module


def _notes(
    module: Module | None, target: str, ask_ptxas: bool, suppress: Sequence[str]
) -> tuple[list[Finding], list[tuple[Finding, str]]]:  # fmt: skip
    """Return what can be said without running the module, and what of that is passed over."""
    reasons = Suppressions(suppressions(suppress))
    if module is None:
        return [], []
    return reasons.sort([*(_ask(str(module), target) if ask_ptxas else ()), *miscompiled_here(module)])


def _ask(text: str, name: str) -> Sequence[Finding]:
    try:
        return compile_ptx(text, name=name).findings
    except CompilationError as error:
        return error.findings


def _plural(count: int, noun: str) -> str:
    return f"{f'{count:,}' if count else 'no'} {noun}{'' if count == 1 else 's'}"


def _problem_json(problem: Problem) -> dict[str, object]:
    where = None
    if problem.span:
        line, column = problem.span.source.position(problem.span.start)
        where = {"file": problem.span.source.name, "line": line, "column": column}
    return {"message": problem.message, "where": where, "hint": problem.hint}
