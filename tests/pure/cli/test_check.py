from __future__ import annotations

import json
from pathlib import Path

from command_line import Run

GOOD = """\
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k()
{
    .reg .b32 %r<3>;
    mov.u32 %r1, 1;
    {
        add.u32 %r2, %r1, 1;
    }
    ret;
}
"""


def test_a_good_module(run: Run, tmp_path: Path) -> None:
    (tmp_path / "k.ptx").write_text(GOOD)
    outcome = run("check", "k.ptx")
    assert (outcome.status, outcome.out, outcome.err) == (
        0,
        "k.ptx: 3 instructions, no problems; not run: give it --block and --args\n",
        "",
    )
    assert json.loads(run("check", "k.ptx", "--json").out) == {"instructions": 3, "problems": [], "findings": []}


def test_problems_are_listed(run: Run, tmp_path: Path) -> None:
    (tmp_path / "k.ptx").write_text(GOOD.replace("add.u32 %r2, %r1, 1", "add.u32 %r2, %r9, 1"))
    outcome = run("check", "k.ptx")
    assert outcome.status == 1
    assert outcome.out == (
        "k.ptx:9:22: error: `%r9` is not declared\n"
        "          add.u32 %r2, %r9, 1;\n"
        "                       ^^^\n"
        "  hint: %r<3> is declared: %r0 … %r2\n"
        "k.ptx: 3 instructions, 1 problem\n"
    )
    (problem,) = json.loads(run("check", "k.ptx", "--json").out)["problems"]
    assert problem == {
        "message": "`%r9` is not declared",
        "where": {"file": "k.ptx", "line": 9, "column": 22},
        "hint": "%r<3> is declared: %r0 … %r2",
    }


def test_what_is_no_ptx_is_a_problem_too(run: Run, tmp_path: Path) -> None:
    (tmp_path / "k.ptx").write_text("hello")
    outcome = run("check", "k.ptx")
    assert outcome.status == 1
    assert outcome.out.endswith("k.ptx: no instructions, 1 problem\n")


def test_a_file_that_is_not_there(run: Run) -> None:
    outcome = run("check", "k.ptx")
    assert (outcome.status, outcome.err) == (2, "warpsmith: error: k.ptx: cannot be read: No such file or directory\n")
