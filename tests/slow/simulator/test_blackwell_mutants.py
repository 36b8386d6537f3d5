"""Mutants of the Blackwell attention kernels: each is named by its kind, at its line, or proved equivalent.

`blackwell_mutants.txt` holds what is said of every mutant first, `mutant | kind | file: line of source`; run as a program this
file prints it. `KINDS` states, apart from it, which kinds an edit may be named as, and `HAZARDS` which mutants stand for the
known ways in which such kernels go wrong. Of sites at one line with equal numbers the first is taken, of waits the last, too.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import warpsmith as ws
from kernel_mutants import Mutant, moved_before, mutants, named
from warpsmith.kernels.attention.blackwell import one_cta, two_per_sm

TABLE = Path(__file__).with_name("blackwell_mutants.txt")
KERNELS = ("one_cta", "two_per_sm")
ORDERS = ({}, {"schedule": "adversarial", "seed": 1}, {"schedule": "random", "seed": 0})
"""Schedules that are tried one after the other until something is found."""

DEADLOCK = {"deadlock", "phase-alias"}
TENSOR = {"tmem-alias", "missing-tcgen05-wait", "missing-tcgen05-fence"}
RACES = TENSOR | {"shared-race", "async-overwrite", "async-read-before-complete", "uninitialised-read", "over-arrival"}
KINDS: dict[tuple[str, str], set[str]] = {
    ("mbarrier.init", "removed"): {"uninitialised-barrier"},
    ("mbarrier.init", "count + 1"): DEADLOCK,
    ("mbarrier.init", "count - 1"): {"over-arrival", "phase-alias", "deadlock"} | TENSOR,
    ("mbarrier.arrive.shared", "removed"): DEADLOCK,
    ("mbarrier.arrive.shared", "twice"): {"over-arrival", *DEADLOCK, *RACES},
    ("mbarrier.arrive.shared", "earlier"): RACES,
    ("mbarrier.arrive.expect_tx", "removed"): {"tx-mismatch", *DEADLOCK, *RACES},
    ("mbarrier.arrive.expect_tx", "twice"): {"over-arrival", "tx-mismatch", *DEADLOCK},
    ("mbarrier.arrive.expect_tx", "16 bytes more"): {"tx-mismatch"},
    ("mbarrier.arrive.expect_tx", "16 bytes fewer"): {"tx-mismatch"},
    ("mbarrier.try_wait", "removed"): RACES | {"phase-alias"},
    ("mbarrier.try_wait", "other parity"): RACES | DEADLOCK,
    ("fence.proxy", "removed"): {"uninitialised-barrier"},
    ("bar.sync", "removed"): {"uninitialised-barrier", "uninitialised-read", "tmem-lifetime", "shared-race"},
    ("cp.async.bulk", "removed"): {"tx-mismatch", "uninitialised-read", *DEADLOCK},
    ("cp.async.bulk", "twice"): {"tx-mismatch", "async-overwrite", *DEADLOCK},
    ("tcgen05.commit", "removed"): DEADLOCK,
    ("tcgen05.commit", "twice"): {"over-arrival", *DEADLOCK, *RACES},
    ("tcgen05.commit", "to the next barrier"): {"over-arrival", *DEADLOCK, *RACES},
    ("tcgen05.commit", "earlier"): {"empty-commit", *RACES},
    ("tcgen05.wait", "removed"): {"missing-tcgen05-wait"},
    ("tcgen05.fence", "removed"): {"missing-tcgen05-fence"},
    ("tcgen05.alloc", "removed"): {"tmem-lifetime", "uninitialised-read"},
    ("tcgen05.alloc", "half of the columns"): {"tmem-lifetime"},
    ("tcgen05.dealloc", "removed"): {"tmem-lifetime"},
    ("tcgen05.dealloc", "half of the columns"): {"tmem-lifetime"},
    ("tcgen05.ld", "other columns"): TENSOR | {"tmem-lifetime", "uninitialised-read"},
    ("tcgen05.st", "other columns"): TENSOR | {"tmem-lifetime", "uninitialised-read"},
    ("tcgen05.mma", "other columns"): TENSOR | {"tmem-lifetime", "uninitialised-read"},
    ("tcgen05.mma", "accumulates"): {"uninitialised-read"},
    ("setmaxnreg", "8 registers more"): {"setmaxnreg-budget"},
    ("vote.sync.any", "all for any"): {"over-arrival", *DEADLOCK, *RACES},
    ("and.b32", "no lanes"): {"out-of-bounds", *TENSOR},
}
"""(instruction, edit) -> how it may be named."""

_ALLOCATION = "it orders accesses of tensor memory, of which there are none before, and the address comes through shared memory"
_FREEING = "tcgen05.dealloc accesses no cells, and every access has been waited for before the barrier"
_RESCALE = "of three tiles the first two have nothing to rescale: the first sets the basis, and one moves it for the next"
EQUIVALENT: dict[str, str] = {
    "one_cta: tcgen05.fence::before_thread_sync 0, removed": _ALLOCATION,
    "one_cta: tcgen05.fence::after_thread_sync 0, removed": _ALLOCATION,
    "one_cta: tcgen05.fence::before_thread_sync 1, removed": _FREEING,
    "one_cta: tcgen05.fence::after_thread_sync 1, removed": _FREEING,
    "one_cta: tcgen05.fence::before_thread_sync 12, removed": (
        "the fence of the second stage stands behind it and before the epilogue gate, which all products of the next item await"
    ),
    "one_cta: mbarrier.arrive 16, earlier": (
        "the epilogue gate, which all products of the next item await, is opened behind it (hazard 10)"
    ),
    "one_cta: mbarrier.try_wait.parity 16, removed": _RESCALE,
    "two_per_sm: mbarrier.try_wait.parity 11, removed": _RESCALE,
    "one_cta: mbarrier.try_wait.parity 38, removed": (
        "an item's first keys: Q is free behind all scores of the item before, which have read the slot"
    ),
    "two_per_sm: mbarrier.try_wait.parity 22, removed": "the first keys of a CTA: nobody has used the slot",
    "two_per_sm: tcgen05.fence::before_thread_sync 0, removed": _ALLOCATION,
    "two_per_sm: tcgen05.fence::after_thread_sync 0, removed": _ALLOCATION,
    "two_per_sm: tcgen05.fence::before_thread_sync 1, removed": _FREEING,
    "two_per_sm: tcgen05.fence::after_thread_sync 1, removed": _FREEING,
}
"""Mutants that are correct kernels, and why."""

GATE = "ptx.mbarrier.wait(base + at.output_read, parity(item.index, 1))"
REARM = "self.report(ptx.addr(self.lead, self.at.rescaled + 8 * stage))"
RELEASE = "ptx.mbarrier.arrive(self.base + self.at.output_read)"


@cache
def subject(name: str) -> tuple[Any, list[Any], Any]:
    """Return a kernel, its inputs and its device: three key tiles; two work items of one CTA, or three CTAs, two at a time.

    Every second warp's rows have small scores: their basis never moves. Of the other warps two thirds of the rows' bases do.
    """
    module = {"one_cta": one_cta, "two_per_sm": two_per_sm}[name]
    how: dict[str, Any] = {"multiprocessors": 1, "order_probe": True} if name == "one_cta" else {}
    kernel = module.build(module.Config(heads=1, sequence=384, dim=64, dtype="bf16", rescale_threshold=1.0, **how))
    random = np.random.default_rng(0)
    q, k, v = (random.standard_normal((1, 384, 64)) for _ in range(3))
    rows = np.arange(384)
    q *= np.where((rows // 32 % 2 == 1) & (rows % 3 > 0), 1.5, 0.05)[:, None]
    k *= (0.2 + 0.7 * (np.arange(384) // 128))[:, None]
    return kernel, [x.astype(ml_dtypes.bfloat16) for x in (q, k, v)], replace(ws.device("B200"), multiprocessors=1)


@cache
def edits(name: str) -> dict[str, Mutant]:
    """Return the mutants of a kernel."""
    return mutants(name, subject(name)[0].module(), each=1, waits=2)


def run(name: str, **order: Any) -> Any:
    kernel, arrays, device = subject(name)
    return kernel.simulate(*(a.copy() for a in arrays), numerics="fast", max_steps=60_000, device=device, **order)


def verdict(*edited: Mutant) -> tuple[str, str]:
    """Return the kind of the first finding and where it stands; ("silent", "") when no schedule shows one."""
    name = edited[0].name.partition(":")[0]
    with ExitStack() as stack:
        for mutant in edited:
            stack.enter_context(mutant.applied())
        for order in ORDERS:
            if findings := run(name, **order).findings:
                first = min(findings, key=lambda f: f.severity != "error")
                return first.kind, named(first.where)
    return "silent", ""


def all_of(*edited: Mutant) -> list[Any]:
    """Return the findings of a run with several edits."""
    with ExitStack() as stack:
        for mutant in edited:
            stack.enter_context(mutant.applied())
        return run(edited[0].name.partition(":")[0]).findings


def expected() -> dict[str, tuple[str, str]]:
    """Return the table."""
    rows = [line.split(" | ") for line in TABLE.read_text().splitlines() if line and not line.startswith("#")]
    return {name: (kind, place) for name, kind, place in rows}


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("order", ORDERS)
def test_the_kernels_are_clean(name: str, order: dict[str, Any]) -> None:
    result = run(name, **order)
    assert [str(f) for f in result.findings] == []
    assert result.completed


@pytest.mark.parametrize("mutant", expected() if TABLE.exists() else [])
def test_every_mutant_is_named_at_its_line(mutant: str) -> None:
    edit = edits(mutant.partition(":")[0])[mutant]
    assert verdict(edit) == expected()[mutant]


def test_the_table_is_complete_and_each_kind_fits_its_edit() -> None:
    table = expected()
    every = {n: m for name in KERNELS for n, m in edits(name).items()}
    assert set(table) | set(EQUIVALENT) == set(every)
    assert not set(table) & set(EQUIVALENT)
    for name, (kind, _) in table.items():
        (allowed,) = [v for (m, what), v in KINDS.items() if every[name].mnemonic.startswith(m) and every[name].what == what]
        assert kind in allowed, name


@pytest.mark.parametrize("mutant", EQUIVALENT)
def test_equivalent_mutants_show_nothing(mutant: str) -> None:
    assert verdict(edits(mutant.partition(":")[0])[mutant]) == ("silent", "")


def found(line: str, what: str, last: bool = False) -> Mutant:
    """Return the mutant of `one_cta` at a line of source."""
    same = [m for m in edits("one_cta").values() if named(m.place).endswith(line) and m.what == what]
    return same[-1 if last else 0]


def test_a_missing_gate_is_seen_by_the_order_of_the_probe() -> None:
    """Nothing in tensor memory conflicts: the next item's softmax touches other columns than the epilogue (hazard 9)."""
    read = "softmax.py: ptx.inst.ld.shared.b32(read, ptx.addr(place, self.at.probe))"
    assert verdict(found(GATE, "removed")) == ("shared-race", read)


def test_an_output_given_back_too_early_is_masked_by_the_gate() -> None:
    """O may be overwritten before it has been read: the gate hides it, since no P comes before (hazard 10)."""
    early = moved_before(found(REARM, "removed", last=True), "tcgen05.ld")
    assert verdict(early) == ("silent", "")
    kinds = {f.kind for f in all_of(early, found(GATE, "removed"))}
    assert {"shared-race", "tmem-alias"} <= kinds


def test_a_gate_opened_before_the_last_read() -> None:
    """The epilogue lets the next item begin before its last load is complete (hazard 11)."""
    early = moved_before(found(RELEASE, "removed"), "tcgen05.ld")
    assert verdict(early)[0] == "shared-race"


if __name__ == "__main__":  # prints the table
    for kernel in sys.argv[1:] or KERNELS:
        for full, edit in edits(kernel).items():
            if full not in EQUIVALENT:
                print(full, *verdict(edit), sep=" | ", flush=True)
