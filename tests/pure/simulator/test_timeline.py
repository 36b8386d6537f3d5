"""The timeline: who waited where and how long, roles, and the trace file."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from warpsmith.base.errors import InputError
from warpsmith.kernels.attention import hopper
from warpsmith.simulator import SimulationResult, recorder, simulate
from warpsmith.simulator.timeline import roles_of

TEXT = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{
 .reg .b32 %r<9>; .reg .b64 %rd<4>; .reg .pred %p<3>;
 ld.param.u64 %rd0, [out]; mov.u32 %r0, %tid.x; mov.u32 %r2, 0; setp.lt.u32 %p0, %r0, 32;
 @%p0 bra L;
 bar.sync 0;
 ret;
L: add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 10; @%p1 bra L;
 mul.wide.u32 %rd1, %r0, 4; add.u64 %rd2, %rd0, %rd1; st.global.u32 [%rd2], %r2;
 add.u32 %r3, %r2, 1; add.u32 %r4, %r2, 1; add.u32 %r5, %r2, 1; add.u32 %r6, %r2, 1; add.u32 %r7, %r2, 1;
 bar.sync 0;
 ret;
}
"""


def launch(**options: Any) -> SimulationResult:
    return simulate(TEXT, grid=3, block=96, args=[np.zeros(64, np.uint32)], check=False, **options)


def test_waits_by_site_and_role() -> None:
    """Two warps of each CTA wait while the first one counts to ten: 30 instructions, and what follows."""
    result = launch()
    rows = result.timeline.waits_by_site()
    assert [(str(r.place), r.instruction, r.role, r.times) for r in rows] == [("<string>:9", "bar.sync", "warps 1-2", 6)]
    assert rows[0].total >= 6 * 30
    assert rows[0].total % 6 == 0
    assert result.timeline.roles == ("warp 0", "warps 1-2", "warps 1-2")
    assert result.counters.waits == {"bar": 6}


def test_the_elected_warp_belongs_to_its_warpgroup() -> None:
    """Blocks: a common start, the producer's, the consumers', and one that an elected warp of them runs."""
    ran = [0b111111, 0b000001, 0b111110, 0b000010]
    assert roles_of(ran, [3, 20, 40, 5], 6) == ("warp 0", *["warps 1-5"] * 5)
    assert roles_of([0b11], [3], 2) == ("all warps", "all warps")
    assert roles_of([0b1111, 0b0101, 0b1010], [1, 9, 9], 4) == ("warps 0,2", "warps 1,3", "warps 0,2", "warps 1,3")


def test_a_trace_file_has_waits_operations_and_names(tmp_path: Path) -> None:
    kernel = hopper.build(hopper.Config(heads=1, sequence=256, keys=64))
    q, k, v = np.random.default_rng(0).standard_normal((3, 1, 256, 64)).astype(np.float16)
    result = kernel.simulate(q, k, v)
    result.timeline.save(tmp_path / "t.json", ctas=1)
    assert [p.name for p in tmp_path.iterdir()] == ["t.json"]
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert {e["pid"] for e in events} == {0}
    names = {e["args"]["name"] for e in events if e["ph"] == "M"}
    assert {"CTA 0", "warp 4 (warps 0-7)", "warp 8 (warp 8)"} <= names
    waits = [e for e in events if e["ph"] == "X"]
    assert {w["name"].split(".")[0] for w in waits} >= {"mbarrier", "wgmma"}
    assert all(w["dur"] >= 0 and w["args"]["line"].rpartition(":")[0].endswith(".py") for w in waits)
    begun = {e["id"]: e["ts"] for e in events if e["ph"] == "b"}
    ended = {e["id"]: e["ts"] for e in events if e["ph"] == "e"}
    assert begun.keys() == ended.keys()
    assert all(begun[i] <= ended[i] for i in begun)
    assert {e["name"] for e in events if e["ph"] == "b"} >= {"cp.async.bulk.tensor", "wgmma.mma_async"}
    result.timeline.save(tmp_path / "all.json", ctas=None)
    assert {e["pid"] for e in json.loads((tmp_path / "all.json").read_text())["traceEvents"]} == {0, 1}


def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    timeline, pipe = launch().timeline, tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        timeline.save(pipe)
        text = os.read(reader, 1 << 16)
    finally:
        os.close(reader)
    assert pipe.is_fifo()
    assert json.loads(text)["displayTimeUnit"] == "ns"
    with pytest.raises(IsADirectoryError):
        timeline.save(tmp_path)


def test_a_deadlock_shows_who_waits() -> None:
    text = TEXT.replace("%r7, %r2, 1;", "%r7, %r2, 1; bar.sync 1, 64;")
    result = simulate(text, grid=1, block=96, args=[np.zeros(64, np.uint32)])
    assert not result.completed
    assert {(r.instruction, r.role) for r in result.timeline.waits_by_site()} == {
        ("bar.sync", "warp 0"), ("bar.sync", "warps 1-2"),
    }  # fmt: skip


def test_parts_are_joined() -> None:
    one = launch().timeline
    with ThreadPoolExecutor(2) as pool:
        parts = launch(jobs=3, executor=pool).timeline
    assert [r[:4] for r in parts.waits_by_site()] == [r[:4] for r in one.waits_by_site()]
    assert parts.roles == one.roles


def test_so_many_waits_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "LIMIT", 0)
    timeline = launch().timeline
    assert (timeline.waits, timeline.left_out) == ([], 1)


def test_roles_can_be_named() -> None:
    timeline = launch().timeline
    assert timeline.named({"first": (0, 32), "last": (95, 96)}).roles == ("first", "warps 1-2", "last")
    assert timeline.named({"a": (0, 16), "b": (16, 64), "beyond": (96, 128)}).roles == ("a, b", "b", "warps 1-2")
    with pytest.raises(InputError) as caught:
        timeline.named({"none": (64, 64)})
    assert str(caught.value) == "roles: 'none' is threads 64 to 64, which is no range; give (first, last + 1)"
