"""Mutants of a kernel (`kernel_mutants`), named by where they stand in its source.

A site is named by where its instruction stands in the kernel's source, what it is, and its number among those of its kind in
that function: `softmax.publish mbarrier.arrive 0`. A finding is named the same way, by the source line it points to:
`softmax.publish: ptx.mbarrier.arrive(…)`. Both survive lines that move.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kernel_mutants import Body, Mutant, bodies, further, numbered, other_parity
from warpsmith.assembly.ptx.tree import AddressOperand, Instruction, Name, RegisterDeclaration
from warpsmith.base.source import Place

__all__ = ["Mutant", "Site", "Verdict", "edits", "findings_of", "mutants", "place_text", "sites", "verdict"]

_NOISE = {
    "sync", "aligned", "b64", "b32", "u32", "f32", "parity", "shared::cta", "cta_group::2", "cta_group::1", "kind::f16",
    "global", "32x32b", "x8", "x16", "x32", "tile", "mbarrier::complete_tx::bytes", "mbarrier::arrive::one",
    "multicast::cluster", "2d", "3d",
}  # fmt: skip
"""Words of a mnemonic that do not help to tell sites apart."""


# --- sites ------------------------------------------------------------------------------------------------------------


@cache
def _source(file: str) -> tuple[list[str], list[tuple[int, int, str]]]:
    """Return the lines of a source file, and (first line, last line, name) of its functions, outermost first."""
    text = Path(file).read_text()
    spans = [(n.lineno, n.end_lineno or n.lineno, n.name) for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef)]
    return text.splitlines(), spans


def _function(place: Place) -> str:
    inside = [s for s in _source(place.file)[1] if s[0] <= place.line <= s[1]]
    return f"{Path(place.file).stem}.{max(inside)[2]}" if inside else Path(place.file).stem


def place_text(place: Place | None) -> str:
    """Return `file.function: the source line`, without the file's ending."""
    if place is None:
        return "nowhere"
    return f"{_function(place)}: {_source(place.file)[0][place.line - 1].strip()}"


def _short(mnemonic: str) -> str:
    words = mnemonic.split(".")
    noise = _NOISE if words[0] == "mbarrier" else _NOISE | {"shared::cluster"}
    return ".".join(w for w in words if w not in noise)


@dataclass(frozen=True)
class Site:
    """An instruction of a kernel: `body[index]`."""

    name: str
    short: str
    number: int
    body: Body
    index: int

    @property
    def instruction(self) -> Instruction:
        """The instruction."""
        return self.body[self.index]


def sites(module: Any, opcodes: tuple[str, ...]) -> list[Site]:
    """Return the sites of a kernel whose mnemonics begin with one of `opcodes`."""
    entry = next(f for f in module.functions() if f.body is not None)
    seen: Counter[tuple[str, str]] = Counter()
    out: list[Site] = []
    for body in bodies(entry.body):
        for n, s in enumerate(body):
            if not isinstance(s, Instruction) or not s.mnemonic.startswith(opcodes) or s.place is None:
                continue
            key = (_function(s.place), _short(s.mnemonic))
            out.append(Site(f"{key[0]} {key[1]} {seen[key]}", key[1], seen[key], body, n))
            seen[key] += 1
    return out


# --- edits ------------------------------------------------------------------------------------------------------------


class Edit(NamedTuple):
    """`count` statements from the site on give way to `new`."""

    what: str
    start: int
    count: int
    new: tuple[Any, ...]


def _operand(i: Instruction, n: int, new: Any) -> Instruction:
    out = deepcopy(i)
    out.operands[n] = new
    return out


def _spelled(i: Instruction, old: str, new: str) -> Instruction:
    out = deepcopy(i)
    assert old in out.mnemonic
    out.mnemonic = out.mnemonic.replace(old, new)
    return out


def _wait(i: Instruction) -> Iterator[tuple[str, int, tuple[Any, ...]]]:
    yield "not looked at", 2, (i,)
    what, _, count, new = other_parity(i)
    yield what, count, new


def _arrive(i: Instruction) -> Iterator[tuple[str, int, tuple[Any, ...]]]:
    yield "removed", 1, ()
    yield "twice", 1, (i, deepcopy(i))
    if "expect_tx" in i.mnemonic:
        yield "16 bytes more", 1, (numbered(i, 2, lambda v: v + 16),)
        yield "16 bytes fewer", 1, (numbered(i, 2, lambda v: v - 16),)
        if i.predicate is not None:
            everyone = deepcopy(i)
            everyone.predicate = None
            yield "in every CTA", 1, (everyone,)
            yield "bytes of one CTA", 1, (numbered(i, 2, lambda v: v // 2),)
    elif i.predicate is not None:
        always = deepcopy(i)
        always.predicate = None
        yield "always", 1, (always,)


def _product(i: Instruction, number: int, group: int) -> Iterator[tuple[str, int, tuple[Any, ...]]]:
    if number % group == 0:
        flag = i.operands[-1]
        opposite = Instruction("not.pred", [Name("%mutant"), flag], place=i.place)
        yield "other accumulate flag", 1, (
            RegisterDeclaration("pred", [("%mutant", None)]), opposite, _operand(i, len(i.operands) - 1, Name("%mutant")),
        )  # fmt: skip
        yield "D 64 columns further", 1, (further(i, 0, 64),)
        if isinstance(i.operands[1], AddressOperand):
            yield "P 8 columns further", 1, (further(i, 1, 8),)


def edits(site: Site, group: int = 4) -> Iterator[Edit]:
    """Yield the edits of a site; of products every `group`-th of a function is edited."""
    i, body, n = site.instruction, site.body, site.index
    m = i.mnemonic
    simple: Iterator[tuple[str, int, tuple[Any, ...]]] = iter(())
    if m.startswith("mbarrier.try_wait"):
        simple = _wait(i)
    elif m.startswith(("mbarrier.arrive", "tcgen05.commit")):
        simple = _arrive(i)
    elif m.startswith("mbarrier.init"):
        counts = [("count + 1", 1), ("count - 1", -1)] if int(i.operands[1].value) > 1 else [("count + 1", 1)]
        simple = ((what, 1, (numbered(i, 1, lambda v, by=by: v + by),)) for what, by in counts)
    elif m.startswith("mapa"):
        there = Instruction("mov.u32", [i.operands[0], i.operands[1]], place=i.place)
        simple = iter((("other rank", 1, (numbered(i, 2, lambda v: 1 - v),)), ("left out", 1, (there,))))
    elif m.startswith("cp.async.bulk.tensor"):
        simple = iter((("removed", 1, ()), ("twice", 1, (i, deepcopy(i)))))
    elif m.startswith("tcgen05.mma"):
        simple = _product(i, site.number, group)
    elif m.startswith(("tcgen05.ld", "tcgen05.st")):
        simple = iter((("16 columns further", 1, (further(i, 1 if m.startswith("tcgen05.ld") else 0, 16),)),))
    elif m.startswith("barrier.cluster.arrive"):
        simple = iter((("removed with its wait", 2, ()),))
    elif m.startswith("setmaxnreg"):
        simple = iter((("removed", 1, ()), ("8 more", 1, (numbered(i, 0, lambda v: v + 8),))))
    elif m.startswith(("tcgen05.alloc", "tcgen05.dealloc")):
        simple = iter((("removed", 1, ()), ("half of the columns", 1, (numbered(i, 1, lambda v: v // 2),))))
    elif not m.startswith("barrier.cluster.wait"):
        simple = iter((("removed", 1, ()),))
    for what, count, new in simple:
        yield Edit(what, n, count, new)
    if m.startswith("tcgen05.commit"):
        yield from _commit(body, n)
    if m.startswith("cp.async.bulk.tensor") and "cta_group::2" in m:
        yield Edit("of cta_group::1", n, 1, (_spelled(i, ".cta_group::2", ""),))
    if m.startswith("tcgen05.relinquish"):
        alloc = next(k for k in range(n - 1, -1, -1) if isinstance(body[k], Instruction) and "alloc" in body[k].mnemonic)
        yield Edit("before the allocation", alloc, n + 1 - alloc, (i, *body[alloc:n]))


def _commit(body: Body, n: int) -> Iterator[Edit]:
    """Yield commits before a product they should cover, and other masks."""
    before = [k for k in range(n) if isinstance(body[k], Instruction) and body[k].mnemonic.startswith("tcgen05.mma")]
    if before:
        last = before[-1]
        yield Edit("before the last product", last, n + 1 - last, (*body[last + 1 : n + 1], body[last]))
    mask = body[n - 1]
    if "multicast" in body[n].mnemonic:
        yield Edit("mask 1", n - 1, 1, (numbered(mask, 1, lambda _: 1),))
        yield Edit("mask 2", n - 1, 1, (numbered(mask, 1, lambda _: 2),))


def mutants(module: Any, opcodes: tuple[str, ...], keep: Callable[[Site, Edit], bool] = lambda *_: True) -> dict[str, Mutant]:
    """Return every mutant of a kernel, or those to `keep`, by name."""
    out: dict[str, Mutant] = {}
    for s in sites(module, opcodes):
        for e in edits(s):
            if keep(s, e):
                name = f"{s.name}, {e.what}"
                out[name] = Mutant(name, s.body, e.start, e.count, e.new, s.instruction.place, e.what, s.instruction)
    return out


# --- judging ----------------------------------------------------------------------------------------------------------


class Verdict(NamedTuple):
    """What the first schedule that shows something says: the findings (kind, place), or that the result differs."""

    schedule: str
    findings: tuple[tuple[str, str], ...]
    differs: bool


def findings_of(result: Any) -> tuple[tuple[str, str], ...]:
    """Return (kind, place) of each finding, those of severity error first."""
    found = sorted(result.findings, key=lambda f: f.severity != "error")
    return tuple(dict.fromkeys((f.kind, place_text(f.where)) for f in found))


def verdict(
    mutant: Mutant, run: Callable[..., Any], expected: Callable[..., tuple[bytes, ...]], orders: list[dict[str, Any]]
) -> Verdict:  # fmt: skip
    """Run a mutant under schedules until one shows something.

    An order has `schedule`, `seed` and flags that choose inputs; `run` takes all of it, and `expected` the flags.
    """
    for order in orders:
        flags = {k: v for k, v in order.items() if k not in ("schedule", "seed")}
        wanted = expected(**flags)
        with mutant.applied():
            result = run(**order)
        differs = tuple(np.asarray(o).tobytes() for o in result.outputs) != wanted
        if result.findings or differs:
            name = " ".join((order["schedule"], str(order["seed"]), *flags)) if order else "fair"
            return Verdict(name, findings_of(result), differs)
    return Verdict("none", (), differs=False)
