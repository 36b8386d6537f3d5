"""docs/audit.md says what the counts beside it say, and nothing in them is printed wrongly."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs"
COUNTS = ("words", "exact", "differing", "unknown", "rejected", "raw", "encoded", "canonical")


def totals(name: str) -> dict[str, dict[str, int]]:
    """Return architecture -> sums over the mnemonics."""
    out: dict[str, dict[str, int]] = {}
    lines = [line.split("\t") for line in (DOCS / "audit" / name).read_text().splitlines() if not line.startswith("#")]
    assert lines[0] == ["arch", "mnemonic", *COUNTS]
    for arch, _, *counts in lines[1:]:
        sums = out.setdefault(arch, dict.fromkeys(COUNTS, 0))
        for count, number in zip(COUNTS, counts, strict=True):
            sums[count] += int(number)
    return out


@pytest.mark.parametrize(("name", "exact"), [("training.tsv", 1.0), ("held-out.tsv", 0.9999)])
def test_all_words_are_exact_or_unknown_and_come_back(name: str, exact: float) -> None:
    for arch, t in totals(name).items():
        assert t["differing"] == t["rejected"] == 0, arch
        assert t["words"] == t["exact"] + t["unknown"]
        assert t["exact"] >= exact * t["words"] > 0
        assert t["raw"] >= t["encoded"] >= exact * t["raw"]


@pytest.mark.parametrize("name", ["training.tsv", "held-out.tsv"])
def test_the_page_shows_the_sums(name: str) -> None:
    page = (DOCS / "audit.md").read_text()
    for arch, t in totals(name).items():
        shown = f"| {t['words']:,} | "
        row = re.search(rf"^\| {arch} \| [\d,]+ {re.escape(shown)}(.*)$", page, re.MULTILINE)
        assert row, arch
        cells = [c.strip() for c in row[1].strip("| ").split("|")]
        counts = (t["differing"], t["unknown"], t["rejected"], f"{t['raw']:,}")
        assert cells[1:5] == [str(c) for c in counts]
        assert cells[6] == f"{t['canonical']:,}"
