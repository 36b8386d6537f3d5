"""ptxas and the checker agree on where an instruction exists: acceptances and refusals, over targets old and new.

Each row gives its first and its last mnemonic, and each target judges all of them.
"""

from __future__ import annotations

import re
from functools import cache

import pytest

from warpsmith.assembly.ptx.check import Symbol, check_instruction, register
from warpsmith.assembly.ptx.check.symbols import variable
from warpsmith.assembly.ptx.isa import rows
from warpsmith.assembly.ptx.isa.generate import Sample, samples
from warpsmith.assembly.ptx.isa.judge import verdicts
from warpsmith.assembly.ptx.isa.shapes import POOLS

TARGETS = (
    *(
        "sm_75 6.3",
        "sm_75 6.4",
        "sm_80 7.0",
        "sm_80 7.4",
        "sm_89 8.0",
        "sm_89 8.1",
        "sm_89 9.5",
        "sm_90 7.8",
        "sm_90 8.0",
        "sm_90a 8.6",
        "sm_90a 9.5",
        "sm_100 9.5",
    ),
    *(
        "sm_100a 8.6",
        "sm_100f 8.8",
        "sm_100f 9.5",
        "sm_103a 8.8",
        "sm_107f 9.4",
        "sm_110f 9.2",
        "sm_120 9.5",
        "sm_120a 8.7",
        "sm_121f 9.3",
    ),
)
VARIABLES = {
    "gvar": variable("variable", "b8", "global", 1, 64),
    "formal": variable("parameter", "b8", "param::entry", 1, 128),
    "local": variable("variable", "b8", "param::func", 1, 64),
}


@cache
def chosen() -> tuple[Sample, ...]:
    """First and last sample of every row but those of branches, short vectors only."""
    out: list[Sample] = []
    for row in rows():
        if row.opcode not in ("call", "bra", "brx"):
            # more registers than the kernel has: ptxas refuses that for the kernel's sake
            found = [s for s in samples(row) if len(s.text) < 400 and not re.match(r"setmaxnreg.*[1-9]\d\d;", s.text)]
            out += found[:1] + found[-1:]
    return tuple({s.text: s for s in out}.values())


def lookup(name: str) -> Symbol | None:
    """The registers of the generated kernels, their global variable and their parameter."""
    if name in VARIABLES:
        return VARIABLES[name]
    prefix = name.rstrip("0123456789")
    return next((register(t) for t, p in POOLS.items() if p == prefix), None)


@pytest.mark.parametrize("target", TARGETS)
def test_verdicts(target: str) -> None:
    arch, _, version = target.partition(" ")
    major, _, minor = version.partition(".")
    texts = [s.text for s in chosen()]
    pairs = {t for t in texts if "cta_group::2" in t}  # a kernel is for single CTAs or for pairs
    said: dict[str, str] = {}
    for part in ([t for t in texts if t not in pairs], sorted(pairs)):
        said |= zip(part, verdicts(part, version=version, target=arch), strict=True)
    wrong: list[str] = []
    for s in chosen():
        problems = check_instruction(s.instruction, lookup, (int(major), int(minor)), arch)
        if bool(problems) != bool(said[s.text]):
            ours = problems[0].message if problems else "the checker takes it"
            wrong.append(f"{s.match.row.place}: {s.text}: {ours}; {said[s.text] or 'ptxas takes it'}")
    assert not wrong, "\n".join(wrong)
