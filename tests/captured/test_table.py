"""The table of what was captured is fresh; that nothing in it differs, the replays beside this file and in tests/slow show."""

from pathlib import Path

from warpsmith.hardware.summary import table

ROOT = Path(__file__).parents[2]


def test_the_page_is_fresh():
    page = (ROOT / "docs" / "design" / "captured.md").read_text(encoding="utf-8")
    assert page.partition("\n\n|")[2] == table(ROOT / "tests" / "captured" / "data").partition("|")[2]
