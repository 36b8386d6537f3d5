"""Bank conflicts and sectors by source line, against a count bank by bank and byte by byte."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from warpsmith.simulator import simulate
from warpsmith.simulator.counters import Line
from warpsmith.simulator.traffic import sectors_of, wavefronts_of


def wavefronts_by_bank(words: list[int]) -> int:
    banks: dict[int, set[int]] = {}
    for word in words:
        if word >= 0:
            banks.setdefault(word % 32, set()).add(word)
    return max((len(b) for b in banks.values()), default=0)


def test_wavefronts_are_those_of_the_busiest_bank() -> None:
    rng = np.random.default_rng(0)
    words = np.concatenate([
        rng.integers(-1, 2000, (40, 32)), np.arange(32)[None] * np.arange(40)[:, None],
        np.full((1, 32), -1), np.full((1, 32), 7),
    ])  # fmt: skip
    assert wavefronts_of(words).tolist() == [wavefronts_by_bank(w) for w in words.tolist()]
    assert wavefronts_of(np.arange(32)[None] * np.array([[1], [2], [4], [32], [33]])).tolist() == [1, 2, 4, 32, 1]


def test_sectors_are_those_with_a_byte() -> None:
    rng = np.random.default_rng(0)
    index, active = rng.integers(0, 1000, (50, 32)) * 4, rng.random((50, 32)) < 0.6
    want = [len({i // 32 for i, a in zip(row, on, strict=True) if a}) for row, on in zip(index.tolist(), active, strict=True)]
    assert sectors_of(index, active).tolist() == want


TEXT = """.version 8.8
.target sm_100
.address_size 64
.visible .entry k(.param .u64 out)
{{
 .reg .b32 %r<40>; .reg .b64 %rd<20>; .reg .f32 %f<20>; .reg .pred %p<4>; .shared .align 16 .b8 s[16384];
 ld.param.u64 %rd0, [out]; mov.u32 %r0, %tid.x; mov.u32 %r1, s; setp.lt.u32 %p0, %r0, 8;
 mul.wide.u32 %rd1, %r0, {wide}; add.u64 %rd2, %rd0, %rd1; mad.lo.u32 %r2, %r0, {step}, %r1;
{body}
 ret;
}}
"""


def lines(body: str, step: int = 4, wide: int = 4, block: int = 32, grid: int = 1, **options: Any) -> Line:
    """The counts of line 9, the body."""
    text = TEXT.format(body=" " + body, step=step, wide=wide)
    out = np.zeros(16384, np.uint32)
    result = simulate(text, grid=grid, block=block, args=[out], lines=True, check=False, **options)
    assert result.completed
    return next(line for place, line in result.counters.lines.items() if place is not None and place.line == 9)


@pytest.mark.parametrize(
    ("body", "step", "shared"),
    [
        ("ld.shared.u32 %r3, [%r2];", 4, (2, 2, 2)),
        ("ld.shared.u32 %r3, [%r2];", 8, (2, 4, 2)),
        ("ld.shared.u32 %r3, [%r2];", 128, (2, 64, 2)),
        ("ld.shared.u32 %r3, [%r1];", 4, (2, 2, 2)),
        ("ld.shared.u8 %r3, [%r2];", 1, (2, 2, 2)),
        ("st.shared.u64 [%r2], %rd0;", 8, (2, 4, 4)),
        ("st.shared.u64 [%r2], %rd0;", 16, (2, 8, 4)),
        ("st.shared.v4.u32 [%r2], {%r0, %r0, %r0, %r0};", 16, (2, 8, 8)),
        ("st.shared.v4.u32 [%r2], {%r0, %r0, %r0, %r0};", 128, (2, 64, 8)),
        ("@%p0 ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r2];", 16, (1, 1, 1)),
        ("atom.shared.add.u32 %r3, [%r2], 1;", 4, (2, 2, 2)),
        ("ld.shared.u32 %r3, [%r2]; ld.shared.u32 %r4, [%r2+256]; ld.shared.u32 %r5, [%r2+512];", 4, (6, 6, 6)),
    ],
)
def test_shared_memory(body: str, step: int, shared: tuple[int, int, int]) -> None:
    """Two warps; conflicts are what is over the last number."""
    line = lines(body, step, block=64)
    assert (line.shared_requests, line.wavefronts, line.ideal_wavefronts) == shared
    assert (line.global_requests, line.sectors) == (0, 0)


@pytest.mark.parametrize(("step", "wavefronts"), [(16, 4), (128, 32), (144, 4), (32, 8)])
def test_matrices_are_parts_of_eight_rows(step: int, wavefronts: int) -> None:
    line = lines("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r4, %r5, %r6, %r7}, [%r2];", step)
    assert (line.shared_requests, line.wavefronts, line.ideal_wavefronts) == (1, wavefronts, 4)
    line = lines("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r4, %r5, %r6, %r7}, [%r2];", step)
    assert (line.shared_requests, line.wavefronts, line.ideal_wavefronts) == (1, wavefronts, 4)


@pytest.mark.parametrize(
    ("body", "wide", "traffic"),
    [
        ("ld.global.u32 %r3, [%rd2];", 4, (1, 4, 128)),
        ("ld.global.u32 %r3, [%rd2+4];", 4, (1, 5, 128)),
        ("ld.global.u32 %r3, [%rd2];", 128, (1, 32, 128)),
        ("st.global.v4.u32 [%rd2], {%r0, %r0, %r0, %r0};", 16, (1, 16, 512)),
        ("@%p0 st.global.u32 [%rd2], %r0;", 32, (1, 8, 32)),
        ("red.global.add.u32 [%rd2], %r0;", 4, (1, 4, 128)),
        ("ld.global.v8.b32 {%r4, %r5, %r6, %r7, %r8, %r9, %r10, %r11}, [%rd2];", 32, (1, 32, 1024)),
        ("st.global.v8.b32 [%rd2], {%r4, %r5, %r6, %r7, %r8, %r9, %r10, %r11};", 32, (1, 32, 1024)),
        ("cp.async.cg.shared.global [%r2], [%rd2], 16; cp.async.wait_all;", 16, (1, 16, 512)),
    ],
)
def test_global_memory(body: str, wide: int, traffic: tuple[int, int, int]) -> None:
    line = lines(body, 16, wide)
    assert (line.global_requests, line.sectors, line.global_bytes) == traffic


def test_instructions_and_waits_and_parts() -> None:
    line = lines("bar.sync 0; add.u32 %r3, %r0, 1;", block=64, grid=6)
    assert (line.instructions, line.shared_requests) == (24, 0)
    with ThreadPoolExecutor(2) as pool:
        assert lines("ld.shared.u32 %r3, [%r2];", 8, grid=6, jobs=3, executor=pool) == lines(
            "ld.shared.u32 %r3, [%r2];", 8, grid=6
        )


def test_nothing_is_counted_by_line_unless_asked_for() -> None:
    text = TEXT.format(body="", step=4, wide=4)
    assert simulate(text, grid=1, block=32, args=[np.zeros(32, np.uint32)]).counters.lines == {}


def test_the_lines_of_ret_and_exit_are_counted() -> None:
    text = TEXT.format(body="@%p0 ld.global.u32 %r3, [%rd2];\n@%p0 exit;", step=4, wide=4)
    counters = simulate(text, grid=3, block=64, args=[np.zeros(16384, np.uint32)], lines=True).counters
    found = {p.line: n.instructions for p, n in counters.lines.items() if p is not None}
    assert (found[10], found[11]) == (3, 6)
    assert (counters.instructions["exit"], counters.instructions["ret"], counters.instructions["bra"]) == (3, 6, 0)
    assert sum(found.values()) == counters.warp_instructions


def test_counters_are_printed_as_lines() -> None:
    text = TEXT.format(body="ld.global.u32 %r3, [%rd2];", step=4, wide=4)
    counters = simulate(text, grid=1, block=64, args=[np.zeros(16384, np.uint32)]).counters
    assert str(counters).splitlines() == [
        "warp-instructions: 4 ld, 4 mov, 2 setp, 2 mul, 2 add, 2 mad, 2 ret",
        "bytes: 256 load global",
    ]


def test_branches_are_counted_guarded_or_not() -> None:
    body = "@%p0 bra L; bra L; L: mov.u32 %r4, 1;"
    text = TEXT.format(body=body, step=4, wide=4)
    counters = simulate(text, grid=1, block=32, args=[np.zeros(16384, np.uint32)], lines=True).counters
    assert counters.instructions["bra"] == 2
    assert sum(n.instructions for n in counters.lines.values()) == counters.warp_instructions
