"""`warpsmith check`: read PTX, or trace a kernel, and list what is wrong with it; nothing is run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from warpsmith.assembly.ptx import parse, parse_file
from warpsmith.assembly.ptx.check import check
from warpsmith.assembly.ptx.tree import Instruction, Scope
from warpsmith.base.errors import CompilationError, InputError, PtxError
from warpsmith.cli.load import is_python, load_kernel, parse_parameters
from warpsmith.cli.output import finding_json, json_option, print_json, shown
from warpsmith.toolchain import compile_ptx

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warpsmith.assembly.ptx import Module
    from warpsmith.assembly.ptx.tree import Statement
    from warpsmith.base.errors import Problem
    from warpsmith.base.findings import Finding

__all__ = ["command"]


@click.command()
@click.argument("target", metavar="FILE.ptx|FILE.py:KERNEL")
@click.option("-p", "--parameter", "parameters", multiple=True, help="NAME=VALUE, a keyword parameter of a Python kernel.")
@click.option("--ptxas", "ask_ptxas", is_flag=True, help="Ask ptxas too, and list its notes: spills, setmaxnreg ignored, ...")
@json_option
def command(*, target: str, parameters: tuple[str, ...], ask_ptxas: bool, as_json: bool) -> int:
    """Check PTX, or a kernel written in Python, without running it.

    Syntax, names, operands and their types, and whether the architecture and PTX version have each instruction. The
    exit status is 1 if something is wrong.
    """
    problems, module = _read(target, parameters)
    findings = _ask(str(module), target) if ask_ptxas and module and not problems else ()
    count = _instructions([s for f in module.functions() for s in f.body or []]) if module else 0
    if as_json:
        print_json(
            {
                "instructions": count,
                "problems": [_problem_json(p) for p in problems],
                "findings": [finding_json(f) for f in findings],
            }
        )
    else:
        for line in (*problems, *map(shown, findings)):
            print(line)
        print(f"{target}: {_plural(count, 'instruction')}, {_plural(len(problems), 'problem')}")
    return 1 if problems or any(f.severity == "error" for f in findings) else 0


def _read(target: str, parameters: Sequence[str]) -> tuple[Sequence[Problem], Module | None]:
    """Return what is wrong with the target, and its tree if it has one."""
    try:
        if is_python(target):
            module = parse(load_kernel(target).ptx(**parse_parameters(parameters)), target)
        elif parameters:
            raise InputError(f"{target}: PTX has no parameters to set; -p is for kernels written in Python")
        else:
            module = parse_file(target)
    except PtxError as error:
        return error.problems, None
    return check(module), module


def _ask(text: str, name: str) -> Sequence[Finding]:
    try:
        return compile_ptx(text, name=name).findings
    except CompilationError as error:
        return error.findings


def _instructions(body: Sequence[Statement]) -> int:
    return sum(_instructions(s.body) if isinstance(s, Scope) else isinstance(s, Instruction) for s in body)


def _plural(count: int, noun: str) -> str:
    return f"{f'{count:,}' if count else 'no'} {noun}{'' if count == 1 else 's'}"


def _problem_json(problem: Problem) -> dict[str, object]:
    where = None
    if problem.span:
        line, column = problem.span.source.position(problem.span.start)
        where = {"file": problem.span.source.name, "line": line, "column": column}
    return {"message": problem.message, "where": where, "hint": problem.hint}
