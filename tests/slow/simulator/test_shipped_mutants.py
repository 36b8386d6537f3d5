"""Every synchronisation of the shipped kernels, taken away or changed, one at a time: each is found or proved equivalent.

A mutant is an edit of the kernel's tree at one site: the instruction removed, executed twice, or with another number. It
is named by a finding of the kind and at the line that `shipped_mutants.txt` says, `mutant | kind | file: line of source |
schedule`, or gives a result that differs from the correct kernel's; `EQUIVALENT` lists those that change nothing, with the
reason. Run as a program this file prints the table; `KINDS` states, apart from it, which kinds an edit may be named as.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

from kernel_mutants import Edit, Mutant, bodies, changed_numbers, named, other_parity, short_name
from warpsmith.assembly.ptx.tree import Instruction
from warpsmith.kernels import gemm
from warpsmith.kernels.attention import ampere, hopper, hopper_fp8

TABLE = Path(__file__).with_name("shipped_mutants.txt")
KERNELS = ("ampere", "gemm", "hopper")
SEEDS = range(12)
"""Random schedules that a mutant is tried under when the fair one shows nothing."""
SITES = ("mbarrier.", "fence.", "bar.", "cp.async", "wgmma.fence", "wgmma.commit_group", "wgmma.wait_group")


@cache
def subject(name: str) -> tuple[Any, list[Any]]:
    """Return a kernel and its inputs, small enough that a run takes less than a second."""
    rng = np.random.default_rng(0)

    def arrays(*shapes: tuple[int, ...]) -> list[Any]:
        return [rng.standard_normal(s).astype(np.float16) for s in shapes]

    if name == "hopper":
        config = hopper.Config(1, 300, causal=True, keys=64, multiprocessors=2)
        return hopper.build(config), arrays(*[(1, 300, 64)] * 3)
    if name == "fp8":
        config = hopper.Config(1, 300, dtype="e4m3", causal=True, keys=64, staged=1, multiprocessors=2)
        q, k, v = (rng.standard_normal((1, 300, 64)).astype(ml_dtypes.float8_e4m3fn) for _ in range(3))
        return hopper_fp8.build(config), [q, k, v, *np.ones((3, 1), np.float32)]
    if name == "ampere":
        return ampere.build(ampere.Config(1, 200, causal=True)), arrays(*[(1, 200, 64)] * 3)
    return gemm.build(gemm.Config(136, 136, 328, "f16", columns=64, stages=2, multiprocessors=2)), arrays(
        (136, 328), (136, 328)
    )


EQUIVALENT = {
    "hopper: mbarrier.try_wait.parity 2, not looked at": "an item's first K: Q is free once the item before has been stored",
    "hopper: mbarrier.try_wait.parity 8, not looked at": (
        "here a skipped tile is an item's first, and its K is there only when all consumers have ended the item before"
    ),
    "fp8: mbarrier.try_wait.parity 2, not looked at": "an item's first K: Q is given back behind the last Q Kᵀ before it",
    "fp8: mbarrier.try_wait.parity 4, not looked at": (
        "V is loaded behind the K of the tile after it, which waits for products issued when the V two tiles before was there"
    ),
    "fp8: mbarrier.try_wait.parity 10, not looked at": (
        "here a skipped tile is an item's first, and its K is there only when all consumers have ended the item before"
    ),
    "ampere: cp.async.commit_group 0, removed": "the copies of Q join the group of the first K tile, which is waited for",
    "ampere: bar.warp.sync 0, removed": "the warp has read Q by ldmatrix, which no lane leaves before all have read",
    "hopper: wgmma.fence 2, removed": "P and O are changed before the fence of the next Q Kᵀ only, which orders them already",
    "fp8: wgmma.fence 2, removed": "P and O are changed before the fence of the next Q Kᵀ only, which orders them already",
    "fp8: cp.async.bulk.tensor.3d.global 0, twice": "the same bytes are stored twice, in one group",
    "hopper: cp.async.bulk.tensor.3d.global 0, twice": "the same bytes are stored twice, in one group",
    "gemm: cp.async.bulk.tensor.2d.global 0, twice": "the same bytes are stored twice, in one group",
}
"""Mutants that are correct kernels, and why."""

DEADLOCK = {"deadlock", "phase-alias"}
READ, RACES = "async-read-before-complete", {"async-read-before-complete", "async-overwrite", "shared-race", "over-arrival"}
KINDS: dict[tuple[str, str], set[str]] = {
    ("mbarrier.init", "removed"): {"uninitialised-barrier"},
    ("mbarrier.init", "count + 1"): DEADLOCK,
    ("mbarrier.init", "count - 1"): {"over-arrival", *DEADLOCK, *RACES},
    ("mbarrier.arrive.shared", "removed"): DEADLOCK,
    ("mbarrier.arrive.shared", "twice"): {"over-arrival", *DEADLOCK, *RACES},
    ("mbarrier.arrive.expect_tx", "removed"): {"tx-mismatch", *DEADLOCK, *RACES},
    ("mbarrier.arrive.expect_tx", "twice"): {"over-arrival", "tx-mismatch", *DEADLOCK},
    ("mbarrier.arrive.expect_tx", "16 bytes more"): {"tx-mismatch"},
    ("mbarrier.arrive.expect_tx", "16 bytes fewer"): {"tx-mismatch"},
    ("mbarrier.try_wait", "not looked at"): RACES | DEADLOCK,
    ("mbarrier.try_wait", "other parity"): RACES | DEADLOCK,
    ("fence.proxy", "removed"): {"missing-proxy-fence", "uninitialised-barrier"},
    ("bar.sync", "removed"): {"uninitialised-barrier", *RACES},
    ("bar.sync", "32 threads more"): {"named-barrier", *DEADLOCK},
    ("bar.sync", "32 threads fewer"): {"named-barrier", *RACES},
    ("bar.warp.sync", "removed"): {"shared-race"},
    ("cp.async.cg", "removed"): {"uninitialised-read", "wrong result"},
    ("cp.async.commit_group", "removed"): {"empty-commit", READ},
    ("cp.async.wait_group", "removed"): {READ},
    ("cp.async.wait_group", "one group more in flight"): {READ},
    ("cp.async.bulk.tensor", "removed"): {"tx-mismatch", "uninitialised-read", "wrong result", *DEADLOCK},
    ("cp.async.bulk.tensor", "twice"): {"tx-mismatch", "async-overwrite", *DEADLOCK},
    ("cp.async.bulk.commit_group", "removed"): {"empty-commit", "async-overwrite"},
    ("cp.async.bulk.wait_group", "removed"): {"async-overwrite", "leftover"},
    ("cp.async.bulk.wait_group", "one group more in flight"): {"async-overwrite", "leftover"},
    ("wgmma.fence", "removed"): {"register-before-wait"},
    ("wgmma.commit_group", "removed"): {"empty-commit", "register-before-wait", "async-overwrite"},
    ("wgmma.wait_group", "removed"): {"register-before-wait", "async-overwrite"},
    ("wgmma.wait_group", "one group more in flight"): {"register-before-wait", "async-overwrite"},
}
"""(instruction, edit) -> how it may be named."""

# --- edits ------------------------------------------------------------------------------------------------------------


def edits(i: Instruction) -> Iterator[Edit]:
    """Yield the edits of an instruction."""
    if i.mnemonic.startswith("mbarrier.try_wait"):
        yield "not looked at", 0, 2, (i,)
        yield other_parity(i)
        return
    yield "removed", 0, 1, ()
    if i.mnemonic.startswith(("mbarrier.arrive", "cp.async.bulk.tensor")):
        yield "twice", 0, 1, (i, deepcopy(i))
    yield from changed_numbers(i)


@cache
def mutants(kernel: str) -> dict[str, Mutant]:
    """Return every mutant of a kernel by name: the mnemonic, its number among those of its kind, the edit."""
    module = subject(kernel)[0].module()
    out: dict[str, Mutant] = {}
    seen: Counter[str] = Counter()
    entry = next(f for f in module.functions() if f.body is not None)
    for body in bodies(entry.body):
        for n, s in enumerate(body):
            if not isinstance(s, Instruction) or not s.mnemonic.startswith(SITES):
                continue
            short = short_name(s.mnemonic)
            for what, first, count, new in edits(s):
                name = f"{kernel}: {short} {seen[short]}, {what}"
                out[name] = Mutant(name, body, n + first, count, new, s.place, what, s)
            seen[short] += 1
    return out


# --- judging ----------------------------------------------------------------------------------------------------------


def run(kernel: str, **order: Any) -> Any:
    built, arrays = subject(kernel)
    return built.simulate(*(a.copy() for a in arrays), numerics="fast", max_steps=60_000, **order)


@cache
def correct(kernel: str) -> tuple[bytes, ...]:
    """Return the outputs of the kernel as it is shipped."""
    result = run(kernel)
    assert result.completed
    assert [str(f) for f in result.findings] == []
    return tuple(o.tobytes() for o in result.outputs)


class Verdict(NamedTuple):
    """What the first schedule that shows something says: its first finding, errors first, or that the result is wrong."""

    kind: str
    place: str
    schedule: str
    others: tuple[str, ...]
    """The kinds of all findings."""


def orders(schedule: str) -> list[dict[str, Any]]:
    """Return the schedules to try: the one named, or all."""
    every: list[dict[str, Any]] = [{}, *({"schedule": "random", "seed": s} for s in SEEDS)]
    return [o for o in every if schedule in ("", _name(o))]


def _name(order: dict[str, Any]) -> str:
    return f"random {order['seed']}" if order else "fair"


def verdict(mutant: Mutant, schedule: str = "") -> Verdict:
    """Return how a mutant shows under a schedule, or under the first that shows something; `silent` if none does."""
    kernel = mutant.name.partition(":")[0]
    expected = correct(kernel)
    with mutant.applied():
        for order in orders(schedule):
            result = run(kernel, **order)
            if result.findings:
                first = min(result.findings, key=lambda f: f.severity != "error")
                return Verdict(first.kind, named(first.where), _name(order), tuple(f.kind for f in result.findings))
            if tuple(o.tobytes() for o in result.outputs) != expected:
                return Verdict("wrong result", "", _name(order), ())
    return Verdict("silent", "", "", ())


def table() -> dict[str, list[str]]:
    """Return kind, place and schedule of every mutant that is none of `EQUIVALENT`."""
    rows = [line.split(" | ") for line in TABLE.read_text().splitlines() if line and not line.startswith("#")]
    return {name: rest for name, *rest in rows}


def every() -> dict[str, Mutant]:
    """Return all mutants."""
    return {n: m for k in KERNELS for n, m in mutants(k).items()}


@pytest.mark.parametrize("name", every())
def test_every_mutant_is_named_at_its_line(name: str) -> None:
    if name in EQUIVALENT:
        assert verdict(every()[name]).kind == "silent"
        return
    kind, place, schedule = table()[name]
    assert verdict(every()[name], schedule)[:2] == (kind, place)


def test_the_table_is_complete_and_each_kind_fits_its_edit() -> None:
    assert set(table()) == set(every()) - set(EQUIVALENT)
    for name, (kind, place, _) in table().items():
        mutant = every()[name]
        (allowed,) = [v for (m, what), v in KINDS.items() if mutant.mnemonic.startswith(m) and mutant.what == what]
        assert kind in allowed, name
        assert place != "" or kind == "wrong result" or (kind == "uninitialised-read" and ".global" in mutant.mnemonic), name


if __name__ == "__main__":  # prints the table
    for kernel in sys.argv[1:] or KERNELS:
        for full, edit in mutants(kernel).items():
            if full not in EQUIVALENT:
                print(full, *verdict(edit)[:3], sep=" | ", flush=True)
