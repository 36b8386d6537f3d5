"""No compiler's PTX in tests/data has a pattern that ptxas makes wrong code of."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptx_corpus import FILES, text_of
from warpsmith.assembly.ptx import parse
from warpsmith.assembly.ptx.miscompiled import miscompiled


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_no_compiler_writes_them(path: Path) -> None:
    assert miscompiled(parse(text_of(path), path.name)) == []
