"""Programs of the test tree, compiled for every architecture with a table: listed and assembled, the bytes come back."""

from __future__ import annotations

import pytest

from ptx_corpus import DATA, text_of
from warpsmith import cubin
from warpsmith.base.errors import CompilationError
from warpsmith.study.sass_round_trip import RoundTrip, round_trip
from warpsmith.toolchain import compile_ptx

ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_103a", "sm_110a", "sm_120",
                 "sm_120a", "sm_121a")  # fmt: skip
PROGRAMS = sorted(
    p for p in DATA.glob("*/*.ptx*") if any(f".{arch}." in p.name for arch in ("sm_75", "sm_80")) and "debug" not in p.name
)
"""Programs for the oldest architectures compile for the later ones, too."""


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_every_function_comes_back(arch: str) -> None:
    total = RoundTrip()
    for path in PROGRAMS[:: 1 if arch in ("sm_75", "sm_80", "sm_90a", "sm_100a") else 3]:
        try:
            built = compile_ptx(text_of(path), arch, name=path.name)
        except CompilationError:  # the program is for another family
            continue
        for function in cubin.open(built.cubin).functions.values():
            round_trip(function.code, arch, total)
    assert total.functions > 30
    assert not total.wrong
    assert total.same == total.functions
