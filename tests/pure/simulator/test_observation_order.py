"""A write that a strong read has found comes before whatever follows the read (PTX ISA 8.9.5, the second rule of causality).

The word through which threads synchronise is itself written again by a weak store: a lock that is set back, a counter that the
last one clears. Each has mutants in which the store is a race.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from litmus import SCHEDULES, judge, until
from warpsmith.simulator import simulate

FENCE = "fence.acq_rel.gpu;"
RED = "red.relaxed.gpu.SPACE.add.u32 [%f], 1; // race?"
CLEAR = "st.SPACE.u32 [%f], 0;"
RACE = CLEAR + " // race"
ACQUIRE, RELAXED = "ld.acquire.gpu.SPACE.u32 %w, [%f]", "ld.relaxed.gpu.SPACE.u32 %w, [%f]"
PLACES = [("ctas", "global"), ("warps", "global"), ("warps", "shared")]


def unmarked(threads: list[str]) -> list[str]:
    return [re.sub("// race$", "", t, flags=re.MULTILINE) for t in threads]


def lines(*items: str) -> str:
    return "\n".join(items)


FOUND = {
    "acquired": [lines(FENCE, RED), lines(until(ACQUIRE, 1), CLEAR)],
    "nothing but a relaxed read": [RED, lines(until(RELAXED, 1), CLEAR)],
    "volatile": ["st.volatile.SPACE.u32 [%f], 1;", lines(until("ld.volatile.SPACE.u32 %w, [%f]", 1), CLEAR)],
    "a store": ["st.relaxed.gpu.SPACE.u32 [%f], 1;", lines(until(RELAXED, 1), CLEAR)],
    "a chain of three": [RED, lines(until(RELAXED, 1), RED), lines(until(RELAXED, 2), CLEAR)],
    "two that nobody orders": [RED, RED, lines(until(RELAXED, 2), CLEAR)],
    "an exchange of its own": [RED, lines(until("atom.relaxed.gpu.SPACE.or.b32 %w, [%f], 0", 1), CLEAR)],
    "read again": [RED, lines(until(RELAXED, 1), "ld.SPACE.u32 %w, [%f];")],
    "through a third": [
        RED,
        lines(until(RELAXED, 1), "st.release.gpu.SPACE.u32 [%g], 1;"),
        lines(until("ld.acquire.gpu.SPACE.u32 %w, [%g]", 1), CLEAR),
    ],
    "through a third with fences": [
        lines(FENCE, RED),
        lines(until(RELAXED, 1), FENCE, "st.relaxed.gpu.SPACE.u32 [%g], 1;"),
        lines(until("ld.relaxed.gpu.SPACE.u32 %w, [%g]", 1), FENCE, CLEAR),
    ],
}  # fmt: skip
"""What has been found is ordered before a weak access that follows."""

RACES = {
    "never looked at": [RED.replace("?", ""), lines(until("ld.relaxed.gpu.SPACE.u32 %w, [%x]", 0), RACE)],
    "another word": [
        lines("red.relaxed.gpu.SPACE.add.u32 [%g], 1; // race", RED),
        lines(until(RELAXED, 1), "st.SPACE.u32 [%g], 0; // race"),
    ],
    "the later of two": [
        lines(
            "st.relaxed.gpu.SPACE.u32 [%f], 1; // race?",
            until("ld.relaxed.gpu.SPACE.u32 %w, [%g]", 1),
            RED.replace("?", ""),
        ),
        lines(until(RELAXED, 1), "st.relaxed.gpu.SPACE.u32 [%g], 1;", RACE),
    ],
    "through a third that releases nothing": [
        RED,
        lines(until(RELAXED, 1), "st.relaxed.gpu.SPACE.u32 [%g], 1;"),
        lines(until("ld.acquire.gpu.SPACE.u32 %w, [%g]", 1), RACE),
    ],
    "through a third that acquires nothing": [
        RED,
        lines(until(RELAXED, 1), "st.release.gpu.SPACE.u32 [%g], 1;"),
        lines(until("ld.relaxed.gpu.SPACE.u32 %w, [%g]", 1), RACE),
    ],
    "the read of one who has not written": [
        lines(until(RELAXED, 1)),
        RED.replace("?", ""),
        "st.SPACE.u32 [%f], 9; // race",
    ],
}  # fmt: skip


DATA, READ = "st.SPACE.u32 [%x], 7; // race?", "ld.SPACE.u32 %v, [%x]; // race"
STORE, RELEASE = "st.relaxed.gpu.SPACE.u32 [%f], 1; // race?", "st.release.gpu.SPACE.u32 [%f], 1;"
NARROW = FENCE.replace("gpu", "cta")
AWAIT, SEE = until(ACQUIRE, 1), until(RELAXED, 1)
ATOM = "atom.relaxed.gpu.SPACE.add.u32 %v, [%f], 1; // race?"
GO, WENT = "st.relaxed.gpu.SPACE.u32 [%g], 1;", until("ld.relaxed.gpu.SPACE.u32 %w, [%g]", 1)
"""Says when, and orders nothing."""

PATTERNS = {
    "release and acquire": ([lines(DATA, RELEASE), lines(AWAIT, READ)], True),
    "no release": ([lines(DATA, STORE), lines(AWAIT, READ)], False),
    "no acquire": ([lines(DATA, RELEASE), lines(SEE, READ)], False),
    "fences": ([lines(DATA, FENCE, STORE), lines(SEE, FENCE, READ)], True),
    "one-sided fences": (
        [lines(DATA, "fence.release.gpu;", STORE), lines(SEE, "fence.acquire.gpu;", READ)], True,
    ),
    "an acquiring fence releases nothing": ([lines(DATA, "fence.acquire.gpu;", STORE), lines(SEE, FENCE, READ)], False),
    "a releasing fence acquires nothing": ([lines(DATA, FENCE, STORE), lines(SEE, "fence.release.gpu;", READ)], False),
    "written behind the fence": ([lines(FENCE, DATA, STORE), lines(AWAIT, READ)], False),
    "read before the fence": ([lines(DATA, RELEASE), lines(SEE, READ, FENCE)], False),
    "a release, written again": (
        [lines(DATA, RELEASE, "st.relaxed.gpu.SPACE.u32 [%f], 2;"), lines(until(ACQUIRE, 2), READ)], True,
    ),
    "a release of another word": (
        [lines(DATA, RELEASE.replace("%f", "%g"), STORE), lines(AWAIT, READ)], False,
    ),
    "a release, written behind and told again": (
        [lines(RELEASE, DATA, "st.relaxed.gpu.SPACE.u32 [%f], 2;"), lines(until(ACQUIRE, 2), READ)], False,
    ),
    "a release, written again by another": (
        [lines(DATA, RELEASE), lines(AWAIT, "st.relaxed.gpu.SPACE.u32 [%f], 2;", GO), lines(WENT, ACQUIRE + ";", READ)], False,
    ),
    "a release, overwritten weakly": (
        [lines(DATA, RELEASE), lines(AWAIT, "st.SPACE.u32 [%f], 2;", GO), lines(WENT, ACQUIRE + "; // race?", READ)], False,
    ),
    "a relaxed read, an acquiring one of the word": (
        [lines(DATA, RELEASE), lines(SEE, "st.relaxed.gpu.SPACE.u32 [%f], 0;", ACQUIRE + ";", READ)], True,
    ),
    "a relaxed read, an acquiring one of another": (
        [lines(DATA, RELEASE), lines(SEE, ACQUIRE.replace("%f", "%g") + ";", READ)], False,
    ),
    "a chain of relaxed additions": (
        [lines(DATA, FENCE, RED), lines(SEE, RED), lines(until(RELAXED, 2), ATOM), lines(until(ACQUIRE, 3), READ)], True,
    ),
    "a chain with a store between": (
        [lines(DATA, FENCE, RED), lines(SEE, "st.relaxed.gpu.SPACE.u32 [%f], 2;", GO), lines(WENT, ACQUIRE + ";", READ)], False,
    ),
    "a chain that none has released": ([lines(DATA, RED), lines(SEE, ATOM), lines(until(ACQUIRE, 2), READ)], False),
    "two that release to one word": (
        [lines(DATA, FENCE, RED), lines("st.SPACE.u32 [%g], 7;", FENCE, RED),
         lines(until(ACQUIRE, 2), READ.replace("race", "race?"), "ld.SPACE.u32 %v, [%g]; // race")], True,
    ),
    "one of two that release to one word": (
        [lines(DATA, FENCE, RED), lines("st.SPACE.u32 [%g], 7; // race?", RED),
         lines(until(ACQUIRE, 2), READ.replace("race", "race?"), "ld.SPACE.u32 %v, [%g]; // race")], False,
    ),
    "an addition that acquires by its result": (
        [lines(DATA, FENCE, RED), lines(SEE, "atom.acquire.gpu.SPACE.add.u32 %v, [%f], 1;", READ)], True,
    ),
    "a reduction acquires nothing": ([lines(DATA, RELEASE, GO), lines(WENT, RED, FENCE, READ)], False),
    "handed on by a third": (
        [lines(DATA, FENCE, RED), lines(AWAIT, "red.release.gpu.SPACE.add.u32 [%g], 1;"),
         lines(until(ACQUIRE.replace("%f", "%g"), 1), READ)], True,
    ),
}  # fmt: skip
"""Release and acquire patterns, and whether they order what is written before behind what is read after."""

SCOPES = {
    "a narrow fence before": ([lines(DATA, NARROW, STORE), lines(SEE, FENCE, READ)], False),
    "a narrow fence behind": ([lines(DATA, FENCE, STORE), lines(SEE, NARROW, READ)], False),
    "a wide fence behind the narrow one": ([lines(DATA, FENCE, STORE), lines(SEE, NARROW, FENCE, READ)], True),
    "a narrow fence behind the wide one": ([lines(DATA, FENCE, NARROW, STORE), lines(SEE, FENCE, READ)], True),
    "written between a wide and a narrow fence": ([lines(FENCE, DATA, NARROW, STORE), lines(SEE, FENCE, READ)], False),
    "a narrow release in a chain": (
        [lines(DATA, "red.release.cta.SPACE.add.u32 [%f], 1; // race?"),
         lines("red.release.gpu.SPACE.add.u32 [%f], 1; // race?"), lines(until(ACQUIRE, 2), READ)], False,
    ),
    "a narrow acquire": ([lines(DATA, RELEASE), lines(SEE, "ld.acquire.cta.SPACE.u32 %w, [%f]; // race?", READ)], False),
    "a narrow write behind a wide fence": (
        [lines(DATA, FENCE, STORE.replace("gpu", "cta")), lines(until(ACQUIRE, 1), READ)], False,
    ),
}  # fmt: skip
"""The same between CTAs, which a narrow scope does not include."""


@pytest.mark.parametrize("place", PLACES, ids="-".join)
@pytest.mark.parametrize("case", FOUND)
def test_what_has_been_found_is_before_what_follows(case: str, place: tuple[str, str]) -> None:
    judge(FOUND[case], *place)


@pytest.mark.parametrize("place", PLACES, ids="-".join)
@pytest.mark.parametrize("case", RACES)
def test_what_has_not_been_found_races(case: str, place: tuple[str, str]) -> None:
    judge(RACES[case], *place)


@pytest.mark.parametrize("place", PLACES, ids="-".join)
@pytest.mark.parametrize("case", PATTERNS)
def test_release_and_acquire_patterns(case: str, place: tuple[str, str]) -> None:
    threads, ordered = PATTERNS[case]
    judge(unmarked(threads) if ordered else threads, *place)


@pytest.mark.parametrize("case", SCOPES)
def test_a_scope_that_does_not_include_the_other_cta_orders_nothing(case: str) -> None:
    threads, ordered = SCOPES[case]
    judge(unmarked(threads) if ordered else threads)
    judge(unmarked(threads), "warps")


def counter(space: str, who: str, clears: str) -> str:
    """Every thread adds one to a word; the one that finds `who` there runs `clears`, and may let the first thread clear it."""
    words = "words" if space == "shared" else "m"
    return f"""
.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 m)
{{
 .reg .b32 %v, %t; .reg .b64 %f; .reg .pred %p, %q;
 .shared .align 4 .b32 words;
 .shared .align 4 .b32 last;
 mov.u32 %t, %tid.x; setp.eq.u32 %q, %t, 0;
 {"mov.u64 %f, words" if space == "shared" else "ld.param.u64 %f, [m]"};
 {f"@%q st.shared.u32 [{words}], 0;" if space == "shared" else ""}
 @%q st.shared.u32 [last], 0;
 bar.sync 0;
 atom.relaxed.gpu.{space}.add.u32 %v, [%f], 1;
 setp.eq.u32 %p, %v, {who};
 @!%p bra OUT;
 {clears}
OUT:
 bar.sync 0;
 ld.shared.u32 %v, [last]; setp.eq.u32 %p, %v, 1; and.pred %p, %p, %q;
 @%p st.{space}.u32 [%f], 0;
 ret;
}}"""


@pytest.mark.parametrize(("space", "grid"), [("global", 3), ("shared", 1)])
@pytest.mark.parametrize("another", [False, True])
@pytest.mark.parametrize("early", [False, True])
def test_the_last_one_clears_the_counter(space: str, grid: int, another: bool, early: bool) -> None:
    """threadFenceReduction of the CUDA samples; `early`: one clears that is not the last."""
    threads = 64 * grid
    clear = "st.shared.u32 [last], 1;" if another else f"st.{space}.u32 [%f], 0;"
    text = counter(space, str(threads - 1 if not early else threads // 2 + 8), clear)
    for schedule in SCHEDULES:
        memory = np.zeros(1, np.uint32)
        result = simulate(text, grid=grid, block=64, args=[memory], **schedule)
        assert result.completed
        late = early and not (another and space == "shared")  # a barrier of the CTA has ordered all additions
        assert {f.kind for f in result.findings} == ({f"{space}-race"} if late else set()), (schedule, str(result))
        assert late or memory[0] == 0
