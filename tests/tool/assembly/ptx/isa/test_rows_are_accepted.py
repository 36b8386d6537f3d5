"""ptxas accepts every declared row: each word, each pair, each shape of operands, on the lowest architecture that has it."""

from __future__ import annotations

from collections import defaultdict

import pytest

from warpsmith.assembly.ptx.isa import rows
from warpsmith.assembly.ptx.isa.availability import lowest
from warpsmith.assembly.ptx.isa.generate import Sample, samples
from warpsmith.assembly.ptx.isa.judge import verdicts
from warpsmith.base.arch import ARCHITECTURES, parse_arch

# architectures ptxas no longer compiles for: below sm_75, and sm_101, which became sm_110
SUPPORTED = [a for a in ARCHITECTURES if parse_arch(a).number >= 75 and parse_arch(a).number != 101]
NEWEST = "9.5"


@pytest.fixture(scope="module")
def by_target() -> dict[tuple[str, str], list[Sample]]:
    """Samples by the lowest architecture that has them and the newest PTX version that still has them."""
    out: dict[tuple[str, str], list[Sample]] = defaultdict(list)
    for row in rows():
        written = list(samples(row))
        assert written, f"{row.place}: nothing can be written from {row}"
        for sample in written:
            place = lowest(sample.match, SUPPORTED)
            assert place, f"{row.place}: no architecture has {sample.text}"
            version = NEWEST if row.removed is None else f"{place[0][0]}.{place[0][1]}"
            out[place[1], version].append(sample)
    return out


def test_every_sample_of_every_row_is_accepted(by_target: dict[tuple[str, str], list[Sample]]):
    refused: list[str] = []
    for (arch, version), written in by_target.items():
        says = verdicts([s.text for s in written], version=version, target=arch)
        refused += [f"{s.match.row.place}: {s.text} {arch}: {say}" for s, say in zip(written, says, strict=True) if say]
    assert refused == []


def test_a_wrong_instruction_is_refused_at_its_own_place():
    texts = ["add.u32 %r0, %r1, %r2;", "add.f32x %r0, %r1, %r2;", "fma.rn.f32 %r0, %r1, %r2, %d0;", "ret;"]
    says = verdicts(texts, version=NEWEST, target="sm_90a")
    assert [bool(s) for s in says] == [False, True, True, False]
