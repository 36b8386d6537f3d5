"""`warpsmith demo`: the main job, whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import Run
from warpsmith.cli import demo


def test_the_kernel_is_right_and_its_broken_twin_is_named(run: Run) -> None:
    outcome = run("demo", "--json")
    result = json.loads(outcome.out)
    assert outcome.status == 0
    assert result["error"] <= demo.TOLERANCE
    assert result["lse_error"] <= 1e-5
    assert result["findings"] == []
    assert result["counters"]["tensor_flops"] == 4 * 512 * 512 * 64
    assert result["counters"]["classes"]["tensor core"] > 2000
    assert result["counters"]["bytes"]["cp.async.bulk.tensor"] == 2 * 64 * 512 * (2 + 2 * 4)
    (finding,) = result["broken"]["findings"]
    assert finding["kind"] == "deadlock"
    producer, arrival = finding["related"][:2]  # the root of the chain: whoever never gets a tile back
    assert "phase 0 lacks 8 of 8 arrivals" in producer["message"]
    assert finding["where"]["file"].endswith("kernels/attention/hopper_producer.py")
    assert "should arrive: `mbarrier.arrive.shared::cta.b64` arrives on barriers like it" in arrival["message"]
    assert arrival["where"]["file"].endswith("kernels/attention/hopper_consumer.py")
    assert result["broken"]["removed"].partition(":")[0].endswith("kernels/attention/hopper_consumer.py")


def test_what_is_printed_and_a_wrong_result_ends_with_one(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "TOLERANCE", 0.0)
    outcome = run("demo")
    assert outcome.status == 1
    assert outcome.out.startswith(demo.INTRODUCTION)
    assert outcome.out.endswith(f"{demo.NEXT}\n")
    for line in ("findings: none; ", "error[deadlock]: 36 warps wait and nothing in flight can release them\n", "FLOPs"):
        assert line in outcome.out


def test_a_command_that_the_shell_does_not_find_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr("sys.argv", [str(tmp_path / ".venv" / "bin" / "warpsmith")])
    assert demo.where_the_command_is() == "\n`warpsmith` is .venv/bin/warpsmith here."
    monkeypatch.setattr("sys.argv", [".venv/bin/warpsmith"])
    assert demo.where_the_command_is() == "\n`warpsmith` is .venv/bin/warpsmith here."
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "warpsmith").touch(0o755)
    assert demo.where_the_command_is() == ""
