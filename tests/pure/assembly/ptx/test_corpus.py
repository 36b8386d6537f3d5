"""What compilers emit: text → tree → text → tree, by the short path and by tokens alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptx_corpus import FILES, text_of
from warpsmith.assembly.ptx import parse
from warpsmith.assembly.ptx.check import check
from warpsmith.assembly.ptx.parser import ModuleReader
from warpsmith.base.source import Source


def test_the_corpus_is_there() -> None:
    assert {p.parent.name for p in FILES} == {
        "clang", "cute", "cutlass", "gcc", "gluon", "libraries", "numba", "nvcc", "nvrtc",
        "tilelang", "tinygrad", "triton", "warp",
    }  # fmt: skip
    assert len(FILES) > 90


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}-{p.name}")
def test_round_trip(path: Path) -> None:
    module = parse(text_of(path), path.name)
    printed = str(module)
    again = parse(printed)
    assert again.items == module.items
    assert (again.version, again.target, again.address_size) == (module.version, module.target, module.address_size)
    assert str(again) == printed


SMALL = [p for p in FILES if p.stat().st_size < 20_000]


@pytest.mark.parametrize("path", SMALL, ids=lambda p: f"{p.parent.name}-{p.name}")
def test_both_ways_of_reading_agree(path: Path) -> None:
    text = text_of(path)
    assert ModuleReader(Source(text, "x"), plain=False).read().items == parse(text).items


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}-{p.name}")
def test_the_checker_has_nothing_to_say(path: Path) -> None:
    assert [str(p) for p in check(parse(text_of(path), path.name))] == []
