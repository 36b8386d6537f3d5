"""Every page of docs/ is reached from its index, as `make docs` demands."""

from __future__ import annotations

import fnmatch
import re
from pathlib import Path


def test_every_page_is_in_the_index(root: Path, tracked: list[Path]) -> None:
    docs = root / "docs"
    pages = {p.relative_to(docs).with_suffix("").as_posix() for p in tracked if p.suffix == ".md" and p.is_relative_to(docs)}
    entries = re.findall(r"^[\w/*-]+$", (docs / "index.md").read_text(), re.MULTILINE)
    reached = {page for page in pages for entry in entries if fnmatch.fnmatch(page, entry)}
    assert pages - reached == {"index"}
