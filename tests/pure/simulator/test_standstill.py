"""Launches that do not end: a fault of the scheduler is told by name, an interrupted one says where its threads were."""

# ruff: noqa: E501 (programs and messages stand in one line each)

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from warpsmith.base.errors import InternalError
from warpsmith.cli.main import main
from warpsmith.simulator import Watch, simulate
from warpsmith.simulator.debugger import Debugger
from warpsmith.simulator.engine import Engine
from warpsmith.simulator.phase_wait import PhaseWait
from warpsmith.simulator.standstill import ENOUGH

HEAD = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p)
{
 .reg .b32 %r<8>; .reg .b64 %rd<4>; .reg .pred %p<4>;
 ld.param.u64 %rd1, [p];
 mov.u32 %r1, %tid.x;
 mov.u32 %r2, 0;
"""
PARTED = (
    HEAD
    + """ setp.lt.u32 %p1, %r1, 7;
 @%p1 bra LOW;
 shfl.sync.idx.b32 %r3, %r1, 0, 31, -1;
 ret;
LOW:
 shfl.sync.idx.b32 %r4, %r1, 1, 31, -1;
 ret;
}"""
)
WAITING = (
    HEAD
    + """ .shared .b64 full;
 setp.ne.u32 %p1, %r1, 0;
 @!%p1 mbarrier.init.shared.b64 [full], 1;
 bar.warp.sync -1;
W:
 mbarrier.try_wait.parity.shared.b64 %p2, [full], 0;
 @!%p2 bra W;
 ret;
}"""
)
COUNTING = (
    HEAD
    + """L:
 ld.volatile.global.u32 %r3, [%rd1];
 add.u32 %r2, %r2, 1;
 setp.eq.u32 %p1, %r3, 0;
 @%p1 bra L;
 ret;
}"""
)
APART = (
    HEAD
    + """ setp.ge.u32 %p1, %r1, 64;
 @%p1 bra LATE;
 setp.lt.u32 %p2, %r1, 0;
 @%p2 bra LATE;
 mov.u32 %r4, 0;
 bar.sync 0;
 ret;
LATE:
 add.u32 %r2, %r2, 1;
 bra LATE;
}"""
)


def forgetful(self, cohort, start):
    """`Engine.hold` as it would be if it gave every held cohort another turn at once."""
    if start == cohort.start:
        self.standstill.note()
    cohort.start = start
    self.ready.append(cohort)


def run(text, block=32, **options):
    return simulate(text, grid=1, block=block, args=[np.zeros(64, np.uint32)], **options)


def told(text, **options):
    with pytest.raises(InternalError) as caught:
        run(text, **options)
    return re.sub(r"[\d,]+ in all", "N in all", str(caught.value)).splitlines()


TURNS = (
    f"simulator: {ENOUGH:,} turns of the scheduler have executed no instruction and completed no operation, after N in all; "
    "what waits wakes itself, and the launch would never end"
)


@pytest.mark.parametrize("schedule", ["fair", "random", "adversarial"])
def test_held_parts_of_a_warp_that_wake_each_other(monkeypatch, schedule):
    assert run(PARTED, schedule=schedule).findings[0].kind == "divergent-collective"
    monkeypatch.setattr(Engine, "hold", forgetful)
    first, *rest = told(PARTED, schedule=schedule)
    assert first == TURNS
    assert sorted(rest) == [
        "  <string>:12: cta (0,0,0) warp 0 lanes 7-31 at `shfl.sync.idx.b32`",
        "  <string>:15: cta (0,0,0) warp 0 lanes 0-6 at `shfl.sync.idx.b32`",
    ]


def test_a_condition_that_says_yes_to_an_instruction_that_says_no(monkeypatch):
    monkeypatch.setattr(PhaseWait, "ready", lambda self: True)
    assert told(WAITING) == [
        TURNS,
        "  <string>:15: cta (0,0,0) warp 0 lanes 0-31 at `mbarrier.try_wait.parity.shared.b64`, in round 2 of the loop of lines 15 to 16",
    ]


def test_the_command_line_calls_it_a_fault_of_ours(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(PhaseWait, "ready", lambda self: True)
    monkeypatch.chdir(tmp_path)
    Path("k.ptx").write_text(WAITING)
    assert main(["simulate", "k.ptx", "--block", "32", "--args", "u32[64]"]) == 70
    first, *rest = capsys.readouterr().err.splitlines()
    assert re.sub(r"[\d,]+ in all", "N in all", first) == f"warpsmith: internal error: {TURNS}"
    assert rest == [
        "  k.ptx:15: cta (0,0,0) warp 0 lanes 0-31 at `mbarrier.try_wait.parity.shared.b64`, in round 2 of the loop of lines 15 to 16",
        "  this is a fault of warpsmith: please report it with the command, its input and the output of `warpsmith doctor`",
    ]


# --- Ctrl-C -----------------------------------------------------------------------------------------------------------


def interrupt(stop):
    """Press Ctrl-C before the addition of the 100th round."""
    if stop.register("%r2") == 99:
        raise KeyboardInterrupt


def test_an_interrupted_launch_says_where_its_threads_were():
    result = run(COUNTING, block=64, watch=[Watch(on=(0, 0, 12), do=interrupt)])
    assert (result.completed, result.interrupted) == (False, True)
    assert [str(f) for f in result.findings] == [
        "<string>:11: note[livelock]: the launch was interrupted after 101 blocks; its threads were here\n"
        "  threads: cta (0,0,0) warps 0-1 lanes 0-31\n"
        "  <string>:11: cta (0,0,0) warps 0-1 lanes 0-31 at `ld.volatile.global.u32`, in round 100 of the loop of lines 11 to 14\n"
        "  repair: look at the loops named above, if it should have ended by now; max_steps ends a launch that does not end by itself\n"
        "  schedule: fair"
    ]


def test_an_interruption_names_who_waits_and_who_has_met_nobody():
    result = run(APART, block=96, watch=[Watch(on=(0, 64, 18), do=interrupt)])
    assert [(r.message, r.where.line) for r in result.findings[0].related] == [
        ("cta (0,0,0) warp 2 lanes 0-31 at `add.u32`, in round 100 of the loop of lines 18 to 19", 18),
        (
            "cta (0,0,0) warps 0-1 lanes 0-31 at `bar.sync` waits for barrier 0 of cta (0,0,0): 2 of 3 warps arrived; not arrived: warp 2",
            15,
        ),
    ]


def test_the_debugger_ends_a_launch_without_a_word():
    with Debugger(COUNTING, grid=1, block=32, args=[np.zeros(64, np.uint32)]) as debugger:
        debugger.step()
    assert (debugger.result.completed, debugger.result.interrupted, debugger.result.findings) == (False, False, [])


def test_the_command_line_says_where_it_was_interrupted(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    Path("k.ptx").write_text(COUNTING)
    monkeypatch.setattr(Engine, "turn", interrupted_turn(Engine.turn))
    assert main(["simulate", "k.ptx", "--block", "32", "--args", "u32[64]"]) == 130
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "k.ptx:11: note[livelock]: the launch was interrupted after 40 blocks; its threads were here"
    assert lines[5] == "the launch was interrupted; what follows is as far as it came"


def interrupted_turn(turn):
    def one(engine):
        if engine.steps == 40:
            raise KeyboardInterrupt
        turn(engine)

    return one


@pytest.mark.parametrize("steps", [500, 501])
def test_max_steps_names_the_loop(steps):
    (found,) = run(COUNTING, max_steps=steps).findings
    assert str(found) == (
        f"<string>:11: error[livelock]: the launch was ended after max_steps={steps} blocks\n"
        "  threads: cta (0,0,0) warp 0 lanes 0-31\n"
        f"  <string>:11: cta (0,0,0) warp 0 lanes 0-31 at `ld.volatile.global.u32`, in round {steps} of the loop of lines 11 to 14\n"
        "  repair: look at the loops named above; raise max_steps if the kernel only needs longer\n"
        "  schedule: fair"
    )
