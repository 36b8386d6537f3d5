"""Replay of random programs of many threads that ran on an H200: a share here, more in tests/slow."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from warpsmith.assembly.ptx.miscompiled import miscompiled
from warpsmith.assembly.ptx.parser import parse
from warpsmith.hardware.differences import differing_forms
from warpsmith.hardware.flow.program import generate
from warpsmith.hardware.flow_capture import differs
from warpsmith.hardware.flow_gpu import PROGRAMS
from warpsmith.hardware.flow_store import OUTCOMES, FlowCapture, digest_of, words_of

FILE = Path(__file__).parent / "data" / "flow-sm_90a.capture"
CAPTURE = FlowCapture.read(FILE)
DISAGREE = {int(n) for n in differing_forms(FILE) or ()}
"""Programs that disagree with what -O0 makes of them."""
CONVERTED = {"narrowed-argument", "narrowed-float"}
"""What ptxas 13.0 builds wrongly with -O0 as well, of what the generator makes (docs/findings/ptxas-miscompiles.md)."""
SHARE = 50


def wrong(chosen: range) -> set[int]:
    """The programs that disagree."""
    return {CAPTURE.numbers[k] for k in chosen if differs(generate(CAPTURE.numbers[k]), CAPTURE.left[k], check=False)}


@pytest.mark.parametrize("first", range(0, PROGRAMS, 10 * SHARE))
def test_programs_agree_bit_for_bit(first: int) -> None:
    some = range(first, first + 10 * SHARE, SHARE)
    assert wrong(some) == DISAGREE & {CAPTURE.numbers[k] for k in some}


def test_the_generator_makes_these_very_programs() -> None:
    """Another text of any means that what hardware left is of no use: take the capture anew."""
    assert list(range(PROGRAMS)) == CAPTURE.numbers
    programs = [generate(n) for n in CAPTURE.numbers]
    assert [digest_of(p.text("sm_90a")) for p in programs] == CAPTURE.texts.tolist()
    assert CAPTURE.about["words"] == sum(map(words_of, programs))


def test_each_program_that_disagrees_has_a_store_that_ptxas_converts() -> None:
    """`narrowed-float` or `narrowed-argument`, told of its text by the check for it; and it still disagrees."""
    found = {n: {f.message.rpartition("[")[2][:-1] for f in miscompiled(parse(generate(n).text("sm_90a")))} for n in DISAGREE}
    assert {n for n, names in found.items() if not names & CONVERTED} == set()
    at = [CAPTURE.numbers.index(n) for n in sorted(DISAGREE)]
    assert {n for k in at for n in wrong(range(k, k + 1))} == DISAGREE


def test_how_the_programs_went_by_default() -> None:
    """As docs/design/hardware-capture.md says."""
    counted = Counter(OUTCOMES[k] for k in CAPTURE.optimised.tolist())
    assert counted == {"same": 1901, "other results": 81, "did not end": 17, "fault": 1}
