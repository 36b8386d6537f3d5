"""ptxas and the checker agree on where an instruction exists: acceptances and refusals, over targets old and new.

Each row gives its first and its last mnemonic; each target gets all of them in one module, and what ptxas complains about is
taken out until the rest assembles.
"""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from warpsmith.assembly.ptx.check import Symbol, check_instruction, register
from warpsmith.assembly.ptx.check.symbols import variable
from warpsmith.assembly.ptx.isa import rows
from warpsmith.assembly.ptx.isa.generate import Sample, module, samples
from warpsmith.assembly.ptx.isa.shapes import POOLS
from warpsmith.toolchain import require_tool

TABLES = (
    *(
        "atomic.txt",
        "barrier.txt",
        "bulk.txt",
        "bulk_tensor.txt",
        "cluster.txt",
        "cp_async.txt",
        "ldmatrix.txt",
        "mbarrier.txt",
    ),
    *("membar.txt", "mma.txt", "mma_sparse.txt", "tcgen05.txt", "tensormap.txt", "warp.txt", "wgmma.txt", "wmma.txt"),
)
TARGETS = (
    *(
        "sm_75 6.3",
        "sm_75 6.4",
        "sm_80 7.0",
        "sm_80 7.4",
        "sm_89 9.5",
        "sm_90 7.8",
        "sm_90 8.0",
        "sm_90a 8.6",
        "sm_90a 9.5",
        "sm_100 9.5",
    ),
    *("sm_100a 8.6", "sm_100f 9.5", "sm_103a 8.8", "sm_107f 9.4", "sm_110f 9.2", "sm_120 9.5", "sm_120a 8.7", "sm_121f 9.3"),
)
VARIABLES = {"gvar": variable("variable", "b8", "global", 1, 64), "formal": variable("parameter", "b8", "param::entry", 1, 128)}
_COMPLAINT = re.compile(r"line (\d+); error\s*: (.*)")


@cache
def chosen() -> tuple[Sample, ...]:
    """First and last sample of every row of the tables, short vectors only."""
    out: list[Sample] = []
    for row in rows():
        if row.place.partition(":")[0] in TABLES:
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


def refusals(texts: list[str], version: str, arch: str, folder: Path) -> dict[str, str]:
    """Text of every instruction that ptxas refuses -> its first complaint."""
    refused: dict[str, str] = {}
    left = texts
    while left:
        text, lines = module(left, version=version, target=arch, per_kernel=200)
        path = folder / "rows.ptx"
        path.write_text(text, "utf-8")
        command = [str(require_tool("ptxas").path), "-arch", arch, "-O1", str(path), "-o", str(folder / "rows.cubin")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        if done.returncode == 0:
            return refused
        new = {left[lines[int(m[1])]]: m[2] for m in _COMPLAINT.finditer(done.stdout + done.stderr) if int(m[1]) in lines}
        assert new, (done.stdout + done.stderr)[-2000:]
        refused |= new
        left = [t for t in left if t not in new]
    return refused


@pytest.mark.parametrize("target", TARGETS)
def test_verdicts(target: str, tmp_path: Path) -> None:
    arch, _, version = target.partition(" ")
    major, _, minor = version.partition(".")
    texts = [s.text for s in chosen()]
    pairs = [t for t in texts if "cta_group::2" in t]  # a kernel is for single CTAs or for pairs
    found = refusals([t for t in texts if t not in pairs], version, arch, tmp_path) | refusals(pairs, version, arch, tmp_path)
    wrong: list[str] = []
    for s in chosen():
        problems = check_instruction(s.instruction, lookup, (int(major), int(minor)), arch)
        if bool(problems) != (s.text in found):
            ours = problems[0].message if problems else "the checker takes it"
            wrong.append(f"{s.match.row.place}: {s.text}: {ours}; {found.get(s.text, 'ptxas takes it')}")
    assert not wrong, "\n".join(wrong)
