"""`warpsmith check` of kernels it can run: many schedules, JSON, SARIF, suppressions, explanations."""

from __future__ import annotations

import json
from pathlib import Path

from command_line import Run

RACE = """\
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{
    .reg .b32 %r<9>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    st.global.b32 [%rd1], %r1;
    ret;
}
"""
RUN = ("check", "k.ptx", "--block", "64", "-a", "u32[1]", "--schedules", "2", "--jobs", "1")
REVERSE = """\
from warpsmith import Tile, kernel, ptx, reg, smem
from warpsmith.types import f32

N = 64


@kernel(in_specs=(Tile(N, f32),), out_specs=(Tile(N, f32),), grid=(1, 1, 1), block=(N, 1, 1))
def reverse(x, y, *, wait=True):
    source, target = ptx.global_ptrs(x, y)
    tile = smem.alloc(f32, (N,))
    thread = ptx.special.tid.x()
    value = reg.scalar(f32)
    ptx.inst.ld.global_.f32(value, ptx.addr(source + thread * 4))
    tile[thread] = value
    ptx.inst.st.global_.f32(ptx.addr(target + thread * 4), tile[N - 1 - thread])
"""


def test_a_race_is_reported_with_its_schedule(run: Run, tmp_path: Path) -> None:
    (tmp_path / "k.ptx").write_text(RACE)
    outcome = run(*RUN)
    assert outcome.status == 1
    lines = outcome.out.splitlines()
    assert lines[0].startswith("3 of 3 schedules fail; the smallest is ")
    assert lines[1] == (
        "k.ptx:10: error[global-race]: `st.global.b32`: several threads store different values to global address "
        "0x700000000100 at once, and nothing orders them"
    )
    assert lines[-1] == "k.ptx: 4 instructions, 3 schedules, 1 finding"


def test_as_json(run: Run, tmp_path: Path) -> None:
    (tmp_path / "k.ptx").write_text(RACE)
    found = json.loads(run(*RUN, "--json").out)["exploration"]
    assert [s["schedule"] for s in found["schedules"]] == ["fair", "adversarial seed 0", "random seed 0"]
    assert [s["errors"] for s in found["schedules"]] == [1, 1, 1]
    assert [f["kind"] for f in found["findings"]] == ["global-race"]
    assert found["suppressed"] == []


def test_as_sarif(run: Run, tmp_path: Path) -> None:
    (tmp_path / "k.ptx").write_text(RACE)
    assert run(*RUN, "--sarif", "k.sarif").status == 1
    (log,) = json.loads((tmp_path / "k.sarif").read_text())["runs"]
    assert [r["id"] for r in log["tool"]["driver"]["rules"]] == ["global-race"]
    (result,) = log["results"]
    assert (result["ruleId"], result["level"]) == ("global-race", "error")
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "k.ptx"
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 10


def test_a_finding_is_passed_over_with_a_reason(run: Run, tmp_path: Path) -> None:
    (tmp_path / "k.ptx").write_text(RACE)
    outcome = run(*RUN, "--suppress", "global-race@k.ptx:10=any of them will do", "--sarif", "k.sarif")
    assert outcome.status == 0
    assert outcome.out == (
        "passed over: global-race at k.ptx:10: any of them will do\n"
        "k.ptx: 4 instructions, no problems, 3 schedules, no findings\n"
    )
    (result,) = json.loads((tmp_path / "k.sarif").read_text())["runs"][0]["results"]
    assert result["suppressions"] == [{"kind": "external", "justification": "any of them will do"}]


def test_a_reason_must_be_given(run: Run, tmp_path: Path) -> None:
    (tmp_path / "k.ptx").write_text(RACE)
    outcome = run(*RUN, "--suppress", "global-race")
    assert (outcome.status, outcome.err) == (
        2,
        "warpsmith: error: --suppress global-race: write KIND=REASON or KIND@FILE:LINE=REASON\n",
    )


def test_explain(run: Run) -> None:
    outcome = run("check", "--explain", "shared-race")
    assert (outcome.status, outcome.out) == (
        0,
        "shared-race (error)\n"
        "  Two threads touch a byte of shared memory, one of them writes it, and nothing orders the two accesses.\n"
        "  Put a barrier that both threads pass between the accesses: bar.sync, bar.warp.sync within a warp, or an mbarrier.\n",
    )


def test_explain_what_is_no_kind(run: Run) -> None:
    outcome = run("check", "--explain", "hunger")
    assert outcome.status == 2
    assert outcome.err.startswith("warpsmith: error: --explain hunger: no kind of finding is called so; known: deadlock, ")


def test_a_kernel_of_fixed_shapes_is_run(run: Run, tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text(REVERSE)
    outcome = run("check", "k.py:reverse", "--schedules", "1", "--jobs", "1")
    assert outcome.status == 1
    assert "k.py:15: error[shared-race]: " in outcome.out
    assert run("check", "k.py:reverse", "--static").status == 0


ROWS = """\
from warpsmith import Tile, kernel, ptx, reg
from warpsmith.types import f32


@kernel(in_specs=(Tile("M", 32, f32),), out_specs=(Tile(32, f32),), grid=(1, 1, 1), block=(32, 1, 1))
def total(x, y):
    source, target = ptx.global_ptrs(x, y)
    lane, value, sum_ = ptx.special.tid.x(), reg.scalar(f32), reg.scalar(f32, init=0.0)
    for row in range(x.shape[0] // 2 * 2):
        ptx.inst.ld.global_.f32(value, ptx.addr(source + lane * 4, row * 128))
        ptx.inst.add.rn.f32(sum_, sum_, value)
    ptx.inst.st.global_.f32(ptx.addr(target + lane * 4), sum_)
"""


def test_a_named_dimension_gets_its_value_of_an_argument_or_a_parameter(run: Run, tmp_path: Path) -> None:
    (tmp_path / "rows.py").write_text(ROWS)
    few = ("--schedules", "1", "--jobs", "1")
    by_argument = run("check", "rows.py:total", "-a", "f32[5x32]=normal", *few)
    by_parameter = run("check", "rows.py:total", "-p", "M=5", *few)
    said = "rows.py:total: 30 instructions, no problems, 2 schedules, no findings\n"
    assert (by_argument.out, by_parameter.out) == (said, said)
    neither = run("check", "rows.py:total")
    assert (neither.status, neither.out) == (2, "")
    assert neither.err == (
        "warpsmith: error: rows.py:9:22: error: the dimension 'M' has no value in this trace\n"
        "      for row in range(x.shape[0] // 2 * 2):\n"
        "                       ^^^^^^^^^^^^^^^\n"
        "  hint: give it one: k.ptx(M=…), or -p M=… on the command line\n"
    )


def test_a_kernel_that_needs_arguments_is_said_not_to_have_run(run: Run, tmp_path: Path) -> None:
    (tmp_path / "any.py").write_text(ROWS.replace("x.shape[0] // 2 * 2", "4"))
    assert run("check", "any.py:total").out == "any.py:total: 30 instructions, no problems; not run: give it --args\n"
    assert run("check", "any.py:total", "--static").out == "any.py:total: 30 instructions, no problems\n"
