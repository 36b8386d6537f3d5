"""A new version of the disassembler is a difference of tables: 13.5 against the table of sm_80 that 13.2.51 gave."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import pytest

from warpsmith.cli.main import main

EARLIER = Path(__file__).parents[3] / "data" / "sass" / "since" / "sm_80.tsv.xz"
"""Made by `warpsmith probe --arch sm_80 --since TABLES --nvdisasm NVDISASM_13.2.51 --seeds-only --out .`, compressed."""


def test_what_13_5_added_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    (old / "sm_80.tsv").write_bytes(lzma.decompress(EARLIER.read_bytes()))
    options = ["--since", str(old), "--out", str(new), "--scan", "24", "--seeds-only"]
    assert main(["probe", "--arch", "sm_80", *options, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    names = {d["class"] for d in found}
    assert {d["kind"] for d in found} == {"new"}
    operands = ("RCR_RCR", "RCxR_RCxR", "RRC_RRC", "RRCx_RRCx", "RRR_RRR", "RRU_RRU", "RUR_RUR")
    # others are new to the table, which lacked some that both versions print
    assert names >= {*(f"clmad__{o}" for o in operands), "r2b_"}
    assert all(d["before"] == "" and d["after"] for d in found)
