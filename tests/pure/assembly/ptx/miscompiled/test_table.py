"""The table of patterns: what it holds, and what it refuses."""

from __future__ import annotations

import pytest

from warpsmith.assembly.ptx.miscompiled.table import parse_table, release
from warpsmith.base.errors import DeclarationError

GOOD = """\
# a comment
measured 12.0 13.0 13.5
targets sm_80 sm_90a

some-pattern
    looks_at bfe\\.s32
    besides  mov\\..*
    ptxas    12.0 13.0
    makes    gives -1
    instead  Write `shr`.
"""

RELEASES = "t.txt: some-pattern: `ptxas` is the first and the last release, both measured: "


def test_an_entry() -> None:
    table = parse_table(GOOD, "t.txt")
    (entry,) = table.entries
    assert (table.measured, table.targets) == (((12, 0), (13, 0), (13, 5)), ("sm_80", "sm_90a"))
    assert (entry.name, entry.first, entry.last) == ("some-pattern", (12, 0), (13, 0))
    assert (entry.makes, entry.instead) == ("gives -1", "Write `shr`.")
    assert entry.looks_at.fullmatch("bfe.s32")
    assert entry.besides is not None
    assert entry.besides.fullmatch("mov.b32")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("some-pattern", "some pattern", "t.txt:5: a pattern begins with its name alone, once: 'some pattern'"),
        ("    makes ", "    made ", "t.txt:9: 'made' is no line of a pattern, or there twice"),
        ("    makes    gives -1\n", "", "t.txt: some-pattern lacks makes"),
        ("12.0 13.0\n    makes", "13.0\n    makes", RELEASES + "'13.0'"),
        ("12.0 13.0\n    makes", "12.0 13.1\n    makes", RELEASES + "'12.0 13.1'"),
        ("measured 12.0", "measured twelve", "not a release of ptxas: 'twelve'"),
    ],
)  # fmt: skip
def test_what_is_refused(old: str, new: str, said: str) -> None:
    assert old in GOOD
    with pytest.raises(DeclarationError) as caught:
        parse_table(GOOD.replace(old, new), "t.txt")
    assert str(caught.value) == said


def test_releases_are_told_without_the_build() -> None:
    assert [release(t) for t in ("13.5.37", "13.5", "9.0.1")] == [(13, 5), (13, 5), (9, 0)]
