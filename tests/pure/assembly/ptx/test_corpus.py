"""What compilers emit: text → tree → text → tree, by the short path and by tokens alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptx_corpus import FILES, QUICK, text_of
from ptx_round_trip import checks, reads_back
from warpsmith.assembly.ptx import parse
from warpsmith.assembly.ptx.parser import ModuleReader
from warpsmith.base.source import Source


def test_the_corpus_is_there() -> None:
    assert {p.parent.name for p in FILES} == {
        "clang", "cute", "cutlass", "gcc", "gluon", "libraries", "mojo", "numba", "nvcc", "nvrtc",
        "tilelang", "tinygrad", "triton", "warp",
    }  # fmt: skip
    assert len(FILES) > 90


@pytest.mark.parametrize("path", QUICK, ids=lambda p: f"{p.parent.name}-{p.name}")
def test_round_trip(path: Path) -> None:
    reads_back(path)


SMALL = [p for p in QUICK if p.stat().st_size < 20_000]


@pytest.mark.parametrize("path", SMALL, ids=lambda p: f"{p.parent.name}-{p.name}")
def test_both_ways_of_reading_agree(path: Path) -> None:
    text = text_of(path)
    assert ModuleReader(Source(text, "x"), plain=False).read().items == parse(text).items


@pytest.mark.parametrize("path", QUICK, ids=lambda p: f"{p.parent.name}-{p.name}")
def test_the_checker_has_nothing_to_say(path: Path) -> None:
    checks(path)
