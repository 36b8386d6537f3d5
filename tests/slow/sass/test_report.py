"""The audit reports are of the decoder, the encoder and the tables that are here: a change of one wants another audit."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from warpsmith.assembly.sass.table import FOLDER
from warpsmith.sass.audit.work import code_digest, table_digest

REPORTS = Path(__file__).parents[3] / "docs" / "audit"


@pytest.mark.parametrize("name", ["training.tsv", "held-out.tsv"])
def test_the_report_is_of_this_source(name: str) -> None:
    lines = [line for line in (REPORTS / name).read_text(encoding="utf-8").splitlines() if line.startswith("#")]
    assert re.fullmatch(rf"# nvdisasm [\d.]+, decoder {code_digest()}", lines[0])
    stated = dict(m.groups() for line in lines if (m := re.fullmatch(r"# (sm_\w+)  .*table SHA-256 ([0-9a-f]+)", line)))
    assert stated
    assert stated == {arch: table_digest(arch, FOLDER) for arch in stated}
