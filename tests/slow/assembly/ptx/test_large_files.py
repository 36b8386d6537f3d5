"""What tests/pure and tests/tool test of small PTX files holds of the large ones of libraries, too."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptx_corpus import LARGE
from ptx_round_trip import checks, reads_back, same_code

EVERY = pytest.mark.parametrize("path", LARGE, ids=lambda p: p.name)


@EVERY
def test_round_trip(path: Path) -> None:
    reads_back(path)


@EVERY
def test_the_checker_has_nothing_to_say(path: Path) -> None:
    checks(path)


@EVERY
def test_equal_sections(path: Path, tmp_path: Path) -> None:
    same_code(path, tmp_path)
