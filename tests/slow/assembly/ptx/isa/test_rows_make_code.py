"""ptxas makes machine code of every declared row, and has each form exactly where its declaration says.

`pytest tests/slow/assembly/ptx/isa` takes some minutes.
"""

from __future__ import annotations

from collections import defaultdict

from warpsmith.assembly.ptx.check import Symbol, check_instruction, register
from warpsmith.assembly.ptx.check.symbols import variable
from warpsmith.assembly.ptx.isa import rows
from warpsmith.assembly.ptx.isa.availability import lowest, version
from warpsmith.assembly.ptx.isa.generate import Sample, samples
from warpsmith.assembly.ptx.isa.judge import verdicts
from warpsmith.assembly.ptx.isa.shapes import POOLS
from warpsmith.base.arch import ARCHITECTURES, first_ptx_version, parse_arch

SUPPORTED = [a for a in ARCHITECTURES if parse_arch(a).number >= 75 and parse_arch(a).number != 101]
NEWEST = (9, 5)
VERSIONS = [(6, n) for n in (3, 4, 5)] + [(7, n) for n in range(9)] + [(8, n) for n in range(9)] + [(9, n) for n in range(6)]

DIFFERENCES = {
    # our floor is lower: one row, two beginnings (sm_89 from 8.1, sm_90 from 7.8), and the earlier one is declared
    "cvt.rn.satfinite.e4m3x2.f32": "sm_89",
    "cvt.rn.satfinite.e4m3x2.f16x2": "sm_89",
    "cvt.rn.f16x2.e4m3x2": "sm_89",
    # a constant: it is also that of the row with a 64-bit size, which is older
    "st.bulk [%d0], 16, 0": "sm_100",
}
"""First sample of a row whose declared PTX version differs from ptxas's, and the architecture where it does."""

ENDLESS = "applypriority.async.bulk"
"""ptxas 13.5 reads it, and then does not end making code of it."""
GLOBAL = variable("variable", "b8", "global", 1, 64)
PARAMETERS = {
    "local": variable("variable", "b8", "param", 1, 64),
    "formal": variable("parameter", "b8", "param", 1, 128),
}


def lookup(name: str) -> Symbol | None:
    """What the names of the generated kernels stand for."""
    if name == "gvar":
        return GLOBAL
    if name in PARAMETERS:
        return PARAMETERS[name]
    prefix = name.rstrip("0123456789")
    return next((register(t) for t, p in POOLS.items() if p == prefix), None)


def every_sample() -> list[Sample]:
    return [sample for row in rows() if row.removed is None for sample in samples(row)]


def name(v: tuple[int, int]) -> str:
    return f"{v[0]}.{v[1]}"


def test_code_is_made():
    groups: dict[str, list[Sample]] = defaultdict(list)
    for sample in every_sample():
        place = lowest(sample.match, SUPPORTED)
        assert place
        if not sample.text.startswith(ENDLESS):
            groups[place[1]].append(sample)
    refused: list[str] = []
    for arch, written in groups.items():
        says = verdicts([s.text for s in written], version=name(NEWEST), target=arch, code=True)
        refused += [f"{s.match.row.place}: {s.text} {arch}: {say}" for s, say in zip(written, says, strict=True) if say]
    assert refused == []


def test_architectures_are_those_of_ptxas():
    # labels and functions are the module's business
    written = [s for s in every_sample() if all(o.kind not in ("label", "list") for o in s.match.operands)]
    wrong: list[str] = []
    for arch in SUPPORTED:
        says = verdicts([s.text for s in written], version=name(NEWEST), target=arch)
        for sample, say in zip(written, says, strict=True):
            problems = check_instruction(sample.instruction, lookup, NEWEST, arch)
            if bool(problems) != bool(say):
                ours = problems[0].message if problems else "the checker takes it"
                wrong.append(f"{sample.match.row.place}: {arch}: {sample.text} {ours}; {say or 'ptxas takes it'}")
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
