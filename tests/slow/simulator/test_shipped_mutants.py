"""Every synchronisation of the shipped kernels, taken away or changed, one at a time: each is found or proved equivalent.

A mutant is an edit of the kernel's tree at one site: the instruction removed, executed twice, or with another number. It
must be named by a finding, or give a result that differs from the correct kernel's; `EQUIVALENT` lists those that change
nothing, with the reason. `python tests/slow/simulator/test_shipped_mutants.py` prints what was found of each.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest

from warpsmith.assembly.ptx.tree import Immediate, Instruction, Name, RegisterDeclaration, Scope
from warpsmith.kernels import gemm
from warpsmith.kernels.attention import ampere, hopper

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
    "ampere: cp.async.commit_group 0, removed": "the copies of Q join the group of the first K tile, which is waited for",
    "ampere: bar.warp.sync 0, removed": "the warp has read Q by ldmatrix, which no lane leaves before all have read",
    "hopper: wgmma.fence 2, removed": "P and O are changed before the fence of the next Q Kᵀ only, which orders them already",
    "hopper: cp.async.bulk.tensor.3d.global 0, twice": "the same bytes are stored twice, in one group",
    "gemm: cp.async.bulk.tensor.2d.global 0, twice": "the same bytes are stored twice, in one group",
}
"""Mutants that are correct kernels, and why."""

# --- edits ------------------------------------------------------------------------------------------------------------

Body = list[Any]


@dataclass(frozen=True)
class Mutant:
    """An edit: `count` statements of `body` from `start` on give way to `new`."""

    name: str
    body: Body
    start: int
    count: int
    new: tuple[Any, ...]
    place: Any

    @contextmanager
    def applied(self) -> Iterator[None]:
        kept = self.body[self.start : self.start + self.count]
        self.body[self.start : self.start + self.count] = self.new
        try:
            yield
        finally:
            self.body[self.start : self.start + len(self.new)] = kept


def with_number(i: Instruction, operand: int, change: Callable[[int], int]) -> Instruction:
    """Return a copy with another immediate operand."""
    out = deepcopy(i)
    old = out.operands[operand]
    assert isinstance(old, Immediate)
    value = change(int(old.value))
    out.operands[operand] = Immediate(str(value), value)
    return out


def edits(body: Body, n: int) -> Iterator[tuple[str, int, tuple[Any, ...]]]:
    """Yield (what, statements replaced, replacement) for the instruction at `body[n]`."""
    i = body[n]
    m = i.mnemonic
    if m.startswith("mbarrier.try_wait"):
        parity, flipped = i.operands[2], Name("%mutant")
        flip = Instruction("xor.b32", [flipped, parity, Immediate("1", 1)], place=i.place)
        other = deepcopy(i)
        other.operands[2] = flipped
        yield "not looked at", 2, (i,)
        yield "other parity", 1, (RegisterDeclaration("b32", [("%mutant", None)]), flip, other)
        return
    yield "removed", 1, ()
    if m.startswith(("mbarrier.arrive", "cp.async.bulk.tensor")):
        yield "twice", 1, (i, deepcopy(i))
    if m.startswith("mbarrier.init"):
        yield "count + 1", 1, (with_number(i, 1, lambda v: v + 1),)
        if int(i.operands[1].value) > 1:
            yield "count - 1", 1, (with_number(i, 1, lambda v: v - 1),)
    if "expect_tx" in m:
        yield "16 bytes more", 1, (with_number(i, 2, lambda v: v + 16),)
        yield "16 bytes fewer", 1, (with_number(i, 2, lambda v: v - 16),)
    if "wait_group" in m:
        yield "one group more in flight", 1, (with_number(i, 0, lambda v: v + 1),)
    if m.startswith("bar.sync") and len(i.operands) == 2:
        yield "32 threads more", 1, (with_number(i, 1, lambda v: v + 32),)
        yield "32 threads fewer", 1, (with_number(i, 1, lambda v: v - 32),)


def bodies(body: Body) -> Iterator[Body]:
    """Yield a statement list and those of the scopes in it."""
    yield body
    for s in body:
        if isinstance(s, Scope):
            yield from bodies(s.body)


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
            short = (
                s.mnemonic.partition(".shared")[0].partition(".sync.aligned")[0] if "bar.sync" not in s.mnemonic else "bar.sync"
            )
            for what, count, new in edits(body, n):
                name = f"{kernel}: {short} {seen[short]}, {what}"
                out[name] = Mutant(name, body, n, count, new, s.place)
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


@pytest.mark.parametrize("name", [n for k in ("ampere", "gemm", "hopper") for n in mutants(k)])
def test_every_mutant_is_found(name: str) -> None:
    how, findings = verdict(mutants(name.partition(":")[0])[name])
    assert (how == "silent") == (name in EQUIVALENT)
    allowed = ("error[", "portability[uninitialised-barrier]", "note[uninitialised-read]")
    assert all(any(word in f for word in allowed) for f in findings)


if __name__ == "__main__":
    for kernel in sys.argv[1:] or ("ampere", "gemm", "hopper"):
        for name, mutant in mutants(kernel).items():
            print(f"{name:<70} line {mutant.place.line if mutant.place else '?'}: {verdict(mutant)[0]}", flush=True)
