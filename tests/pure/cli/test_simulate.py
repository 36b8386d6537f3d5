"""`warpsmith simulate`: what it prints, and what it says of launches that cannot be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from command_line import Run
from warpsmith.simulator.engine import Engine

PTX = """\
.version 8.0
.target sm_90a
.address_size 64
.file 1 "add.py"
.visible .entry add(.param .u64 x, .param .u64 y, .param .u32 n)
{
    .reg .b64 %rd<6>;
    .reg .b32 %r<4>;
    .reg .f32 %f<3>;
    .loc 1 7 0
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 4;
    add.u64 %rd4, %rd1, %rd3;
    add.u64 %rd5, %rd2, %rd3;
    .loc 1 8 0
    ld.global.f32 %f1, [%rd4];
    .loc 1 9 0
    add.rn.f32 %f1, %f1, %f1;
    st.global.f32 [%rd5], %f1;
    ret;
}
"""
HELLO = """\
.version 8.0
.target sm_90a
.address_size 64
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.global .align 1 .b8 text[11] = {116, 104, 114, 101, 97, 100, 32, 37, 100, 10, 0};
.visible .entry hello()
{
    .local .align 8 .b8 box[8];
    .reg .b64 %rd<4>;
    .reg .b32 %r<3>;
    mov.u32 %r1, %tid.x;
    st.local.u32 [box], %r1;
    mov.u64 %rd1, box;
    cvta.local.u64 %rd1, %rd1;
    mov.u64 %rd2, text;
    cvta.global.u64 %rd2, %rd2;
    { .param .b64 f; .param .b64 a; .param .b32 r;
    st.param.b64 [f], %rd2;
    st.param.b64 [a], %rd1;
    call.uni (r), vprintf, (f, a);
    ld.param.b32 %r2, [r]; }
    ret;
}
"""
KERNEL = """\
from warpsmith import Tile, kernel, ptx, reg
from warpsmith.types import f32


@kernel(in_specs=(Tile(32, f32),), out_specs=(Tile(32, f32),), grid=(1, 1, 1), block=(32, 1, 1))
def double(x, y):
    source, target = ptx.global_ptrs(x, y)
    thread = ptx.special.tid.x()
    value = reg.scalar(f32)
    ptx.inst.ld.global_.f32(value, ptx.addr(source + thread * 4))
    ptx.inst.add.rn.f32(value, value, value)
    ptx.inst.st.global_.f32(ptx.addr(target + thread * 4), value)
"""


@pytest.fixture(autouse=True)
def files(tmp_path: Path) -> None:
    (tmp_path / "add.ptx").write_text(PTX)
    (tmp_path / "double_kernel.py").write_text(KERNEL)
    np.save(tmp_path / "x.npy", np.arange(32, dtype=np.float32))


def simulate(run: Run, arguments: str = "x.npy,f32[32],32", *more: str) -> Any:
    return run("simulate", "add.ptx", "--block", "32", "--args", arguments, *more)


def complaint(run: Run, *words: str) -> str:
    outcome = run("simulate", *words)
    assert (outcome.status, outcome.out) == (2, "")
    return outcome.err.removeprefix("warpsmith: error: ").rstrip("\n")


def test_arrays_and_counters_are_printed(run: Run, tmp_path: Path) -> None:
    outcome = simulate(run, "x.npy,f32[32],32", "--output", "1=y.npy")
    assert (outcome.status, outcome.err) == (0, "")
    lines = [line.rstrip() for line in outcome.out.splitlines() if line.strip()]
    assert lines[:3] == [
        "array 0 x.npy: float32[32] from 0 to 31, mean 15.5",
        "array 1 f32[32]: float32[32] from 0 to 62, mean 31",
        "what the launch did",
    ]
    assert [line.split() for line in lines if "bytes" in line] == [
        ["data", "load", "global", "128", "bytes"],
        ["store", "global", "128", "bytes"],
    ]
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), 2 * np.arange(32, dtype=np.float32))


def test_every_array_is_written(run: Run, tmp_path: Path) -> None:
    assert simulate(run, "x.npy,y:f32[32],32", "--out", "a/b", "-o", "y=y.npy").status == 0
    assert sorted(p.name for p in (tmp_path / "a/b").iterdir()) == ["0.npy", "y.npy"]
    np.testing.assert_array_equal(np.load(tmp_path / "a/b/y.npy"), 2 * np.arange(32, dtype=np.float32))
    np.testing.assert_array_equal(np.load(tmp_path / "a/b/y.npy"), np.load(tmp_path / "y.npy"))


def test_a_pointer_into_an_array(run: Run, tmp_path: Path) -> None:
    assert simulate(run, "x.npy,y:f32[64],32").status == 0
    assert run("simulate", "add.ptx", "--block", "16", "-a", "z:f32[32]=ones,&z+16,32", "--out", ".").status == 0
    assert np.load(tmp_path / "z.npy").tolist() == [1] * 16 + [2] * 16


def test_what_the_kernel_printed(run: Run, tmp_path: Path) -> None:
    (tmp_path / "hello.ptx").write_text(HELLO)
    outcome = run("simulate", "hello.ptx", "--block", "2", "--out", "o")
    assert outcome.out.startswith("thread 0\nthread 1\nwhat the launch did")
    assert (tmp_path / "o" / "printed.txt").read_text() == "thread 0\nthread 1\n"
    assert json.loads(run("simulate", "hello.ptx", "--block", "2", "--json").out)["printed"] == "thread 0\nthread 1\n"


def test_json(run: Run) -> None:
    result = json.loads(simulate(run, "x.npy,f32[32],32", "--json", "--schedule", "random", "--seed", "5").out)
    assert (result["completed"], result["findings"]) == (True, [])
    assert result["counters"]["bytes"] == {"load global": 128, "store global": 128}
    assert result["arrays"][1] == {"name": "f32[32]", "dtype": "float32", "shape": [32]}


def test_a_kernel_of_a_python_file(run: Run) -> None:
    outcome = run("simulate", "double_kernel.py:double", "-a", "x.npy")
    assert outcome.status == 0
    assert "array 1 output 0: float32[32] from 0 to 62, mean 31\n" in outcome.out


def test_a_finding_ends_with_one(run: Run) -> None:
    outcome = simulate(run, "x.npy,f32[16],32")
    assert outcome.status == 1
    assert outcome.out.startswith("add.py:9: error[out-of-bounds]: ")
    assert "the launch did not complete; what follows is as far as it came\n" in outcome.out
    assert json.loads(simulate(run, "x.npy,f32[16],32", "--json").out)["findings"][0]["where"]["line"] == 9


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["add.ptx"], "add.ptx: add does not state its block (.reqntid); write --block, e.g. --block 128"),
        (
            ["add.ptx", "--block", "32", "--grid", "0"],
            "--grid 0: one to three numbers of at least 1, e.g. --grid 8 or --grid 8,2,1",
        ),
        (["add.ptx", "--block", "32", "--kernel", "sub"], "add.ptx: no kernel is called 'sub'; kernels there: add"),
        (["add.ptx", "--block", "32"], "kernel `add` takes 3 arguments (x, y, n); 0 were given"),
        (["add.ptx", "--block", "32", "-a", "x.npy,y.npy,1"], "y.npy: cannot be read: No such file or directory"),
        (
            ["add.ptx", "--block", "32", "-a", "x.npy,f32[32],x.npy"],
            "kernel `add`, argument 2 (`n`): an array is a pointer of 8 bytes, and the parameter has 4; pass a number",
        ),
        (
            ["add.ptx", "--block", "2048", "-a", "x.npy,f32[32],32"],
            "block=(2048, 1, 1): 2048 threads; H200 has at most 1024 per CTA and 64 in z",
        ),
        (
            ["add.ptx", "--block", "32", "-a", "x.npy,f32[32],32", "--shared", "300000"],
            "kernel `add` needs 300000 bytes of shared memory (0 static, 300000 dynamic); H200 has 232448 per CTA",
        ),
        (
            ["add.ptx", "--block", "32", "-o", "y.npy"],
            "--output y.npy: write N=FILE.npy, N being the array's number from 0, or its name",
        ),
        (
            ["add.ptx", "--block", "32", "-a", "x.npy,f32[32],32", "-o", "7=y.npy"],
            "--output 7=y.npy: there are 2 arrays, numbered from 0",
        ),
        (
            ["add.ptx", "--block", "32", "-a", "x.npy,z:f32[32],32", "-o", "y=y.npy"],
            "--output y=y.npy: no array is called 'y'; names there: z",
        ),
        (
            ["add.ptx", "--block", "32", "-a", "x.npy,f32[32],32", "--out", "x.npy"],
            "--out x.npy: cannot be made a folder: File exists",
        ),
        (["add.ptx", "-p", "a=1"], "add.ptx: PTX has no parameters to set; -p is for kernels written in Python"),
        (
            ["double_kernel.py:double", "--block", "32", "-a", "x.npy"],
            "double_kernel.py:double: a kernel written in Python states --block itself",
        ),
        (
            ["double_kernel.py:double", "-a", "x.npy,x.npy,x.npy"],
            "double: 3 tensors given, and it takes 1 input (x), or 2 with its outputs (y)",
        ),
        (["double_kernel.py:triple"], "double_kernel.py: no kernel is called 'triple'; kernels there: double"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else "",
)
def test_launches_that_cannot_be(run: Run, words: list[str], said: str) -> None:
    assert complaint(run, *words) == said


def test_a_misaligned_array(run: Run, tmp_path: Path) -> None:
    (tmp_path / "off.ptx").write_text(PTX.replace("add.u64 %rd5, %rd2, %rd3;", "add.u64 %rd5, %rd2, 2;"))
    outcome = run("simulate", "off.ptx", "--block", "32", "-a", "x.npy,f32[32],32")
    assert outcome.status == 1
    assert outcome.out.startswith("add.py:9: error[out-of-bounds]: ")


def test_no_file_is_left_after_a_complaint(run: Run, tmp_path: Path) -> None:
    before = sorted(p.name for p in tmp_path.iterdir())
    complaint(run, "add.ptx", "--block", "32", "-o", "1=y.npy")
    assert sorted(p.name for p in tmp_path.iterdir()) == before


def test_an_interrupted_launch_leaves_a_partial_report(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(Engine, "turn", interrupt)
    outcome = simulate(run)
    assert outcome.status == 130
    note, partial = outcome.out.split("  schedule: fair\n")
    assert note.startswith("add.py:7: note[livelock]: the launch was interrupted after 0 blocks; its threads were here\n")
    assert partial.startswith("the launch was interrupted; what follows is as far as it came\narray 0 x.npy: ")


def test_lines_are_counted_on_demand(run: Run) -> None:
    done = simulate(run, "x.npy,f32[32],32", "--lines")
    table = [line.split() for line in done.out.splitlines() if line.strip().startswith("add.py")]
    assert table == [["add.py:7", "6"], ["add.py:8", "1", "1", "4", "100", "%"], ["add.py:9", "3", "1", "4", "100", "%"]]
    found = json.loads(simulate(run, "x.npy,f32[32],32", "--lines", "--json").out)["counters"]["lines"]
    assert [(line["where"], line["instructions"], line["sectors"]) for line in found] == [
        ("add.py:7", 6, 0), ("add.py:8", 1, 4), ("add.py:9", 3, 4),
    ]  # fmt: skip


WAITS = """\
.version 8.0
.target sm_90
.address_size 64
.visible .entry k()
{
    .reg .b32 %r<3>; .reg .pred %p<3>;
    mov.u32 %r0, %tid.x; setp.lt.u32 %p0, %r0, 32;
    @%p0 bra L;
    bar.sync 0;
    ret;
L:  add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 10; @%p1 bra L;
    bar.sync 0;
    ret;
}
"""


def test_waits_are_shown_and_traced(run: Run, tmp_path: Path) -> None:
    (tmp_path / "waits.ptx").write_text(WAITS)
    done = run("simulate", "waits.ptx", "--block", "64", "--no-check", "--lines", "--trace", "t.json")
    assert [line.split()[:5] for line in done.out.splitlines() if "bar.sync" in line] == [
        ["waits.ptx:9", "bar.sync", "warp", "1", "1"],
    ]  # fmt: skip
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert [e["name"] for e in events if e["ph"] == "X"] == ["bar.sync"]
    found = json.loads(run("simulate", "waits.ptx", "--block", "64", "--no-check", "--json").out)["waits"]
    assert [(w["place"], w["instruction"], w["role"], w["times"]) for w in found] == [("waits.ptx:9", "bar.sync", "warp 1", 1)]
    why = complaint(run, "waits.ptx", "--block", "64", "--trace", "no/such/t.json")
    assert why == "--trace no/such/t.json: No such file or directory"


def test_a_trace_without_events_is_said_to_be_one(run: Run, tmp_path: Path) -> None:
    done = simulate(run, "x.npy,f32[32],32", "--trace", "t.json")
    assert done.status == 0
    assert done.err == "warpsmith: t.json holds no events: no warp waited, and nothing ran asynchronously\n"
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"] == []


def test_watch_points_show_a_thread_at_a_line(run: Run) -> None:
    done = simulate(run, "x.npy,f32[32],32", "--watch", "0:5:add.py:9=%f1,global[%rd4]:f32x2")
    assert "add.py:9: cta (0,0,0) thread 5 before `add.rn.f32`: %f1 = 5.0, global[%rd4]:f32x2 = [5.0, 6.0]\n" in done.out
    done = simulate(run, "x.npy,f32[32],32", "-w", "*:1:8=%r1", "--json")
    assert json.loads(done.out)["watched"] == [
        {"where": "add.py:8", "instruction": "ld.global.f32", "cta": [0, 0, 0], "thread": 1, "values": {"%r1": 1}}
    ]
    for text, why in (("5", ""), ("0:x:8", "`x` is no number; ")):
        words = ("add.ptx", "--block", "32", "-a", "x.npy,f32[32],32", "--watch", text)
        assert complaint(run, *words) == (
            f"--watch {text}: {why}write CTA:THREAD:LINE or CTA:THREAD:FILE:LINE, * for every one, and after = what "
            "to show, e.g. 0:37:25=%r1,value"
        )


def test_lines_and_watch_points_name_files_from_here(run: Run, tmp_path: Path) -> None:
    """Parts of one line, which `.loc` tells apart, are told apart; the file is named as findings name it."""
    text = PTX.replace('"add.py"', f'"{tmp_path / "add.py"}"').replace(".loc 1 9 0", ".loc 1 8 5")
    (tmp_path / "add.ptx").write_text(text)
    outcome = run("simulate", "add.ptx", "--block", "32", "-a", "f32[32],f32[32],3", "--lines", "--watch", "0:3:7")
    assert outcome.out.startswith("add.py:7: cta (0,0,0) thread 3 before `ld.param.u64`: ")
    rows = [words[:2] for line in outcome.out.splitlines() if (words := line.split()) and words[0].startswith("add.py:")]
    assert [r for r in rows if len(r) == 2 and r[1].isdigit()] == [["add.py:7", "6"], ["add.py:8:0", "1"], ["add.py:8:5", "3"]]
