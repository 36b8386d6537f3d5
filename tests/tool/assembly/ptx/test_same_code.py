"""ptxas makes the same code of a text and of what its tree prints: `.text.*` and `.nv.info*` sections are equal."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptx_corpus import QUICK
from ptx_round_trip import same_code


@pytest.mark.parametrize("path", QUICK, ids=lambda p: f"{p.parent.name}-{p.name}")
def test_equal_sections(path: Path, tmp_path: Path) -> None:
    same_code(path, tmp_path)
