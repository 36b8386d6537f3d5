"""Races between the lanes of one warp: every lane that has read a byte counts, not only the last."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lane_race_oracle as oracle
from warpsmith.simulator import simulate
from warpsmith.simulator.check import lane_reads, read_groups

HEAD = """.version 8.0 .target sm_90 .address_size 64
.visible .entry k(.param .u64 out) { .reg .b32 %r<20>; .reg .b64 %rd<3>; .reg .b16 %h<3>; .reg .pred %p<9>;
.shared .align 16 .b8 s[512]; mov.u32 %r1, %tid.x; mov.u32 %r2, s; shl.b32 %r3, %r1, 2; add.u32 %r3, %r3, %r2;
setp.lt.u32 %p1, %r1, 4; setp.eq.u32 %p2, %r1, 4; setp.eq.u32 %p3, %r1, 0;
st.shared.b32 [%r3], %r1; st.shared.b32 [%r3+256], %r1; bar.sync 0;
"""
FIRST = HEAD.count("\n") + 1
"""Line of the first step."""

NEIGHBOUR = "@%p1 ld.shared.b32 %r5, [%r3+16];"  # lanes 0 to 3 read words 4 to 7
OWN = "and.b32 %r6, %r5, 0; add.u32 %r7, %r3, %r6; ld.shared.b32 %r8, [%r7];"  # after the neighbour's, by its value
WRITE = "st.shared.b32 [%r3], 77;"
HALF = "mov.u16 %h1, 99; st.shared.b16 [%r3+2], %h1;"
FAMILY = {
    "own word read last": ([NEIGHBOUR, OWN, WRITE], 2),
    "own word read first": (["ld.shared.b32 %r5, [%r3];", OWN.replace("[%r7]", "[%r7+16]"), WRITE], 2),
    "one of many readers writes": (["ld.shared.b32 %r5, [%r2+16];", "@%p2 st.shared.b32 [%r2+16], 77;"], 1),
    "a reader of a part": (["@%p1 ld.shared.b8 %r5, [%r3+18];", OWN, WRITE], 2),
    "a writer of a part": ([NEIGHBOUR, OWN, HALF], 2),
    "a reader of more": (["@%p3 ld.shared.v4.b32 {%r9, %r10, %r11, %r5}, [%r3+16];", OWN, WRITE], 2),
    "an atomic writer": ([NEIGHBOUR, OWN, "atom.shared.add.u32 %r9, [%r3], 5;"], 2),
    "one of many atomic writers unknown": (
        ["red.shared.add.u32 [%r2+16], 1;", "@!%p1 bar.warp.sync 0xfffffff0;", "@%p2 ld.shared.b32 %r5, [%r2+16];"], 2,
    ),
    "a weak read, then a strong one": (
        [NEIGHBOUR, "@%p1 ld.volatile.shared.b32 %r9, [%r3+16];", "@!%p1 atom.shared.add.u32 %r9, [%r3], 5;"], 2,
    ),
    "a writer read by others later": (["@%p2 st.shared.b32 [%r3], 77;", "ld.shared.b32 %r5, [%r2+16];"], 1),
    "a writer that then reads itself": (["@%p2 st.shared.b32 [%r3], 77;", OWN, "@%p1 ld.shared.b32 %r9, [%r3+16];"], 2),
}  # fmt: skip


def run(steps: list[str], **options: Any) -> Any:
    return simulate(HEAD + "\n".join(steps) + "\nret; }", grid=1, block=32, args=[np.zeros(4, np.uint32)], **options)


@pytest.mark.parametrize("schedule", ["fair", "random", "adversarial"])
@pytest.mark.parametrize("name", FAMILY)
def test_a_race_within_a_warp_is_named_and_bar_warp_sync_mends_it(name: str, schedule: str) -> None:
    steps, at = FAMILY[name]
    findings = run(steps, schedule=schedule).findings
    assert [(f.kind, f.where and f.where.line) for f in findings] == [("shared-race", FIRST + at)]
    mended = [*steps[:at], "bar.warp.sync 0xffffffff;", *steps[at:]]
    assert run(mended, schedule=schedule).findings == []


def test_both_lanes_are_named() -> None:
    (finding,) = run(FAMILY["one of many readers writes"][0]).findings
    assert finding.message == (
        "`st.shared.b32` writes shared address 0x410, which cta (0,0,0) warp 0 lane 0 has read; nothing orders the two"
    )
    assert finding.threads == "cta (0,0,0) warp 0 lanes 4"


def test_strong_accesses_of_lanes_do_not_race() -> None:
    steps = ["ld.volatile.shared.b32 %r5, [%r2+16];", "@%p2 st.volatile.shared.b32 [%r2+16], 77;"]
    assert run(steps).findings == []


@pytest.mark.parametrize("first", range(0, 160, 20))
def test_random_programs_race_where_the_oracle_says(first: int) -> None:
    racing = 0
    for seed in range(first, first + 20):
        steps = oracle.program(seed)
        pairs = oracle.races(steps)
        result = simulate(oracle.text_of(steps), grid=1, block=oracle.THREADS, args=[oracle.arguments(steps)])
        assert bool(result.findings) == bool(pairs), seed
        for finding in result.findings:
            line = finding.where.line - oracle.LINES_BEFORE - 1 if finding.where else -1
            assert (finding.kind, line in {step for pair in pairs for step in pair}) == ("shared-race", True), seed
        racing += bool(pairs)
    assert 0 < racing < 20


def test_short_memory_for_lanes_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lane_reads, "fits", lambda size: False)
    result = run(FAMILY["one of many readers writes"][0])
    assert result.fidelity.notes["reads of shared memory"] == (
        "approximate",
        "of some bytes the last lane of each warp is kept",
    )


def test_addresses_that_never_repeat_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[int] = []
    find = read_groups.GroupedLoads.find

    def watched(self: Any, *arguments: Any) -> Any:
        found = find(self, *arguments)
        kept.append(len(self._met))
        return found

    monkeypatch.setattr(read_groups.GroupedLoads, "find", watched)
    loop = (
        "mov.u32 %r4, 0; LOOP: add.u32 %r7, %r3, %r4;\nld.shared.b32 %r5, [%r7];\n"
        "add.u32 %r4, %r4, 4; setp.lt.u32 %p4, %r4, 128; @%p4 bra LOOP;"
    )
    assert run([loop]).findings == []
    assert (len(kept), max(kept)) == (32, 13)
