"""Every synchronisation of the shipped kernels, taken away or changed, one at a time: each is found or proved equivalent.

A mutant is an edit of the kernel's tree at one site: the instruction removed, executed twice, or with another number. It
must be named by a finding, or give a result that differs from the correct kernel's; `EQUIVALENT` lists those that change
nothing, with the reason. `python tests/slow/simulator/test_shipped_mutants.py` prints what was found of each.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from kernel_mutants import Edit, Mutant, bodies, changed_numbers, other_parity, short_name
from warpsmith.assembly.ptx.tree import Instruction
from warpsmith.kernels import gemm
from warpsmith.kernels.attention import ampere, hopper, hopper_fp8

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


def verdict(mutant: Mutant) -> tuple[str, list[str]]:
    """Return how the mutant shows, `silent` if it does not, and the findings."""
    kernel = mutant.name.partition(":")[0]
    expected = correct(kernel)
    with mutant.applied():
        for order in ({}, *({"schedule": "random", "seed": s} for s in SEEDS)):
            result = run(kernel, **order)
            if result.findings:
                kinds = list(dict.fromkeys(f.kind for f in result.findings))
                return ", ".join(kinds) + (f" (seed {order['seed']})" if order else ""), [str(f) for f in result.findings]
            if tuple(o.tobytes() for o in result.outputs) != expected:
                return "wrong result" + (f" (seed {order['seed']})" if order else ""), []
    return "silent", []


@pytest.mark.parametrize("name", [n for k in ("ampere", "fp8", "gemm", "hopper") for n in mutants(k)])
def test_every_mutant_is_found(name: str) -> None:
    how, findings = verdict(mutants(name.partition(":")[0])[name])
    assert (how == "silent") == (name in EQUIVALENT)
    allowed = ("error[", "portability[uninitialised-barrier]", "note[uninitialised-read]")
    assert all(any(word in f for word in allowed) for f in findings)


if __name__ == "__main__":
    for kernel in sys.argv[1:] or ("ampere", "fp8", "gemm", "hopper"):
        for name, mutant in mutants(kernel).items():
            print(f"{name:<70} line {mutant.place.line if mutant.place else '?'}: {verdict(mutant)[0]}", flush=True)
