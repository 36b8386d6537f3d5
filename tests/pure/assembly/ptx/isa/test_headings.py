"""The headings of the instruction chapter and the rows agree: none declared without rows, no row without a heading."""

import re
from importlib.resources import files

from warpsmith.assembly.ptx.isa import rows

TEXT = (files("warpsmith.assembly.ptx.isa") / "headings.txt").read_text("utf-8")
LINES = [line for line in TEXT.splitlines() if line and not line.startswith("#")]
HEADINGS = {section: (title, status) for section, title, status in (re.split(r" {2,}", line, maxsplit=2) for line in LINES)}
SECTIONS = {row.section for row in rows()}


def test_every_line_is_a_heading_with_a_status():
    assert len(HEADINGS) == len(LINES)
    for section, (title, status) in HEADINGS.items():
        assert re.fullmatch(r"9\.7(\.\d+)+", section)
        assert title
        assert re.fullmatch(r"declared|prose|(refused|grammar): .{10,}", status), section


def test_declared_headings_have_rows():
    for section, (title, status) in HEADINGS.items():
        has_rows = any(s == section or s.startswith(section + ".") for s in SECTIONS)
        assert has_rows == (status == "declared"), f"{section} {title} is {status}"


def test_every_row_has_a_heading():
    assert [s for s in SECTIONS if s not in HEADINGS] == []


def test_no_heading_is_left_out():
    """Sections are numbered without gaps, and each has its parent."""
    for section in HEADINGS:
        parent, _, number = section.rpartition(".")
        assert parent == "9.7" or parent in HEADINGS, section
        assert number == "1" or f"{parent}.{int(number) - 1}" in HEADINGS, section


def test_chapters_and_sections_of_the_manual_are_all_there():
    counts = {1: 25, 2: 6, 3: 22, 4: 10, 5: 3, 6: 4, 7: 4, 8: 2, 9: 9, 10: 31, 11: 5, 12: 6, 13: 4, 14: 7, 15: 19, 16: 6}
    counts |= {17: 7, 18: 12, 19: 3, 20: 2, 21: 5}
    for chapter, count in counts.items():
        below = [s for s in HEADINGS if re.fullmatch(rf"9\.7\.{chapter}\.\d+", s)]
        assert len(below) == count, chapter
