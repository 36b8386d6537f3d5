"""ptxas makes machine code of every declared row, and has each form exactly where its declaration says.

`pytest tests/slow/assembly/ptx/isa` takes some minutes.
"""

from __future__ import annotations

from collections import defaultdict

from warpsmith.assembly.ptx.isa import match, rows
from warpsmith.assembly.ptx.isa.availability import lowest, missing, version
from warpsmith.assembly.ptx.isa.generate import Sample, samples
from warpsmith.assembly.ptx.isa.judge import verdicts
from warpsmith.base.arch import ARCHITECTURES, first_ptx_version, parse_arch

SUPPORTED = [a for a in ARCHITECTURES if parse_arch(a).number >= 75 and parse_arch(a).number != 101]
NEWEST = (9, 5)
VERSIONS = [(6, n) for n in (3, 4, 5)] + [(7, n) for n in range(9)] + [(8, n) for n in range(9)] + [(9, n) for n in range(6)]

DIFFERENCES = {
    # our floor is lower: one row, two beginnings (sm_89 from 8.1, sm_90 from 7.8), and the earlier one is declared
    "cvt.rn.satfinite.e4m3x2.f32": "sm_89",
    "cvt.rn.satfinite.e4m3x2.f16x2": "sm_89",
    "cvt.rn.f16x2.e4m3x2": "sm_89",
}
"""First sample of a row whose declared PTX version differs from ptxas's, and the architecture where it does."""


def every_sample() -> list[Sample]:
    return [sample for row in rows() if row.removed is None for sample in samples(row)]


def name(v: tuple[int, int]) -> str:
    return f"{v[0]}.{v[1]}"


def test_code_is_made():
    groups: dict[str, list[Sample]] = defaultdict(list)
    for sample in every_sample():
        place = lowest(sample.match, SUPPORTED)
        assert place
        groups[place[1]].append(sample)
    refused: list[str] = []
    for arch, written in groups.items():
        says = verdicts([s.text for s in written], version=name(NEWEST), target=arch, code=True)
        refused += [f"{s.match.row.place}: {s.text} {arch}: {say}" for s, say in zip(written, says, strict=True) if say]
    assert refused == []


def test_architectures_are_those_of_ptxas():
    written = every_sample()
    wrong: list[str] = []
    for arch in SUPPORTED:
        says = verdicts([s.text for s in written], version=name(NEWEST), target=arch)
        for sample, say in zip(written, says, strict=True):
            declared = any(not any(n.arch for n in missing(m, NEWEST, arch)) for m in match(sample.match.mnemonic))
            if declared == bool(say):
                wrong.append(f"{sample.match.row.place}: {arch}: {sample.text} {say or 'is accepted'}")
    assert wrong == []


def test_versions_are_those_of_ptxas():
    groups: dict[str, list[Sample]] = defaultdict(list)
    for sample in every_sample():
        place = lowest(sample.match, SUPPORTED)
        assert place
        groups[place[1]].append(sample)
    wrong: dict[str, str] = {}
    for arch, written in groups.items():
        for v in [v for v in VERSIONS if v >= first_ptx_version(arch)]:
            says = verdicts([s.text for s in written], version=name(v), target=arch)
            for sample, say in zip(written, says, strict=True):
                if (version(sample.match) <= v) != (not say) and not _since(sample, v):
                    wrong.setdefault(sample.match.row.id, f"{arch} {name(v)}: {sample.text} {say or 'is accepted'}")
    unexplained = {k: w for k, w in wrong.items() if not any(m in w and w.startswith(a) for m, a in DIFFERENCES.items())}
    assert unexplained == {}


def _since(sample: Sample, v: tuple[int, int]) -> bool:
    """Say whether an optional operand newer than `v` may be what ptxas refuses."""
    slots = [p for s in sample.match.operands for p in (s, s.pair) if p]
    return any(s.since and s.since > v for s in slots)
