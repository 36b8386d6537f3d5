"""The study of attention without a GPU: what it measures, keeps, goes on with and refuses; its table from given times."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from command_line import Run, run
from warpsmith.base.errors import InputError
from warpsmith.study.attention import study
from warpsmith.study.attention.cells import CELLS, Cell, cells
from warpsmith.study.attention.ours import configuration, kernel_of, packed_config
from warpsmith.study.attention.report import load, markdown
from warpsmith.study.attention.study import Options, measure

__all__ = ["run"]


def row(cell: Cell, mine: float, peer: float) -> dict[str, Any]:
    problem = {n: getattr(cell, n) for n in ("dim", "causal", "batch", "heads", "sequence")}
    times = {n: {"micro": t, "low": t, "high": t} for n, t in (("ours", mine), ("FA2", peer))}
    return {
        "cell": cell.name,
        "problem": problem,
        "times": times,
        "errors": {"ours": 1e-3},
        "absent": {},
        "clock": 1980.0,
        "power": 500.0,
    }


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the cells that were measured on a GPU that is not there."""
    names: list[str] = []

    def one(options: Options, cell: Cell, configs: dict[str, Any], *_: Any) -> dict[str, Any]:
        assert list(configs) == ["ours"]
        names.append(cell.name)
        return row(cell, 100.0, 120.0)

    stands = {
        "driver": lambda: SimpleNamespace(name="GPU", version=13000),
        "find_spec": lambda name: True,
        "compile_all": lambda configs: None,
        "Clocks": lambda: SimpleNamespace(close=lambda: None),
        "plot": lambda rows, path: None,
        "_row": one,
    }
    for name, value in stands.items():
        monkeypatch.setattr(study, name, value)
    return names


def test_a_study_goes_on_where_it_stopped(measured: list[str], tmp_path: Path) -> None:
    wanted = [c.name for c in cells() if "D64 causal" in c.name]
    said: list[str] = []
    bar: list[tuple[int, int]] = []
    (tmp_path / "attention.jsonl").write_text(json.dumps(row(cells()[7], 50.0, 60.0)) + "\n")
    table = measure(Options(tmp_path, "D64 causal"), said.append, lambda *x: bar.append(x))
    assert cells()[7].name == wanted[0]
    assert measured == wanted[1:]
    assert bar == [(i, len(wanted)) for i in range(1, len(wanted))]
    assert said[0] == f"2/{len(wanted)} {wanted[1]} [1980 MHz]: ours 100.0, FA2 120.0 µs"
    assert (tmp_path / "attention.md").read_text() == table
    assert "D=64: geometric mean of best peer ÷ ours 1.200 over 7 cells, least 1.200.\n" in table
    measure(Options(tmp_path, "D64 causal"), said.append, lambda *x: None)
    assert measured == wanted[1:]


def test_speed_is_work_over_time() -> None:
    cell = Cell(128, False, 1, 16, 16384)
    text = markdown([row(cell, 3500.0, 3000.0)])
    # 4 · 16 · 16384² · 128 operations in 3.5 ms are 628.3 TFLOP/s, of 4096 · 132 · 1980 MHz = 1070.5
    assert (
        text.splitlines()[2] == "| D128 full B1 H16 S16384 | 3500.0 | 628 | 59 | 1980 | 500 | 1.0e-03 | 3000.0 (733) | 0.857 |"
    )
    assert Cell(128, True, 1, 16, 16384).work * 2 == cell.work


def test_values_of_another_width_count_in_the_work() -> None:
    one = next(c for c in CELLS["dims"]() if c.value_dim)
    assert one.name == "D192/128 full B16 H10 S1024"
    assert one.work == 2 * 16 * 10 * 1024**2 * (192 + 128)
    assert one.bytes == 2 * 16 * 10 * 1024 * 2 * (192 + 128)
    assert configuration(one, "bf16", "").width == 128


def test_what_is_ours_but_no_variant_is_shown_beside_the_peers() -> None:
    some = row(cells()[0], 100.0, 120.0)
    some["times"]["our packed"] = {"micro": 90.0, "low": 90.0, "high": 90.0}
    head, _, line, *_ = markdown([some]).splitlines()
    assert head.endswith("| FA2 µs (TFLOP/s) | our packed µs (TFLOP/s) | best peer ÷ ours |")
    assert line.endswith("| 120.0 (286) | 90.0 (382) | 1.200 |")


@pytest.mark.parametrize("cell", CELLS["packed"](), ids=lambda c: c.name)
def test_packed_cells_have_the_tiling_of_the_batch(cell: Cell) -> None:
    config = configuration(cell, "bf16", "")
    packed = packed_config(cell, config)
    assert (packed.heads, packed.keys, packed.consumers) == (cell.heads, config.keys, config.consumers)
    assert kernel_of(packed).__name__ == "packed_attention_forward"


def test_another_file_in_the_place_of_the_results_is_refused(measured: list[str], tmp_path: Path) -> None:
    path = tmp_path / "attention.jsonl"
    for text in ("{}\n", "no json\n", "[1]\n"):
        path.write_text(text)
        with pytest.raises(InputError) as caught:
            measure(Options(tmp_path), print, lambda *x: None)
        assert str(caught.value) == f"{path}:1: no result of this study; move the file away to measure anew"
    assert measured == []
    assert load(tmp_path / "none") == {}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--only", "D65"),
            "no cell's name holds 'D65'; one is 'D64 full B1 H8 S4096', and `D64`, `causal`, `S512` choose some",
        ),
        (("--dtype", "f64"), "Invalid value for '--dtype': 'f64' is not one of 'f16', 'bf16', 'e4m3'."),
    ],
)
def test_refusals(run: Run, words: tuple[str, ...], message: str) -> None:
    done = run("study", "attention", *words)
    assert done.status == 2
    assert done.err.splitlines()[-1].removeprefix("warpsmith: error: ").removeprefix("Error: ") == message


@pytest.mark.parametrize(
    ("variant", "message"),
    [("consumers=x", "attention: 'consumers=x': give NAME=NUMBER"), ("consumers", "attention: 'consumers': give NAME=NUMBER")],
)
def test_variants(variant: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        configuration(cells()[0], "bf16", variant)
    assert str(caught.value) == message
    with pytest.raises(InputError, match=r"^attention: 'nope' is no option of the kernel; it has "):
        configuration(cells()[0], "bf16", "nope=3")
