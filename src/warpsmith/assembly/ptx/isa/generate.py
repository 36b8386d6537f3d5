"""Write instructions from the declarations: every row, each of its words, each pair of words, each shape of its operands.

The instructions are trees; `sample_module.module` puts them into kernels that declare what they use. `mutate` turns one into a
neighbour that may well be illegal, for comparing verdicts.

    for sample in samples(rows("fma")[0]): sample.text -> "fma.rn.f32 %r0, %r1, %r2, %r3;"
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from warpsmith.assembly.ptx.isa.cover import pairwise
from warpsmith.assembly.ptx.isa.loader import match, opcodes, rows
from warpsmith.assembly.ptx.isa.sample_module import module
from warpsmith.assembly.ptx.isa.shapes import POOLS, Shape, build, shapes
from warpsmith.assembly.ptx.print_operands import print_instruction
from warpsmith.assembly.ptx.tree import AddressOperand, Immediate, Instruction, Name, Operand, VectorOperand

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from random import Random

    from warpsmith.assembly.ptx.isa.row import Match, Row

__all__ = ["Sample", "Shape", "mnemonics", "module", "mutate", "random_sample", "samples"]

_GUARDED = frozenset({"bra", "brx", "ret", "exit", "trap", "brkpt"})
"""Instructions written under a predicate, so that what follows them is reached."""


@final
@dataclass(frozen=True, slots=True)
class Sample:
    """A generated instruction and the match it was generated from."""

    match: Match
    shape: Shape
    instruction: Instruction

    @property
    def text(self) -> str:
        """The instruction as PTX."""
        return print_instruction(self.instruction).replace(" \t", " ")


def mnemonics(row: Row) -> tuple[str, ...]:
    """Return mnemonics of `row` in which each word and each pair of words occurs (where some architecture has both)."""
    domains: list[tuple[str, ...]] = []
    for e in row.elements:
        words = tuple(e.words)
        domains.append(("", *words) if e.optional else words)
    return tuple(".".join([row.opcode, *filter(None, words)]) for words in pairwise(domains))


def samples(row: Row) -> Iterator[Sample]:
    """Yield instructions of `row`: its mnemonics and the shapes of its operands, each at least once; rules are respected."""
    found = [m for name in mnemonics(row) for m in match(name) if m.row is row]
    if not found:
        return
    longest = max(found, key=lambda m: len(m.operands))
    pending = [(longest, shape) for shape in shapes(longest)]
    for n, m in enumerate(found):
        choice = shapes(m)
        pending.append((m, choice[n % len(choice)]))
    seen: set[str] = set()
    for m, shape in pending:
        sample = _sample(m, shape) or _sample(m, Shape())
        if sample is not None and sample.text not in seen:
            seen.add(sample.text)
            yield sample


def _sample(m: Match, shape: Shape) -> Sample | None:
    operands = build(m, shape)
    if operands is None:
        return None
    return Sample(m, shape, Instruction(m.mnemonic, operands, Name("%p0") if m.row.opcode in _GUARDED else None))


def random_sample(rng: Random, names: Sequence[str] | None = None) -> Sample | None:
    """Return a random legal instruction of one of the opcodes `names` (all by default); None when a rule forbids the draw."""
    row = rng.choice(rows(rng.choice(names or opcodes())))
    words: list[str] = []
    for e in row.elements:
        if not e.optional or rng.random() < 0.4:
            words.append(rng.choice(tuple(e.words)))
    found = [m for m in match(".".join([row.opcode, *words])) if m.row is row]
    if not found:
        return None
    shape = rng.choice(shapes(found[0]))
    return _sample(found[0], shape)


def mutate(sample: Sample, rng: Random) -> Instruction:
    """Return a neighbour of a legal instruction: one word or one operand added, dropped, exchanged or moved."""
    mnemonic, operands = sample.match.mnemonic, list(sample.instruction.operands)
    words = mnemonic.split(".")
    others = sorted({w for row in rows(sample.match.row.opcode) for w in row.words})
    kind = rng.randrange(8)
    at = rng.randrange(1, len(words)) if len(words) > 1 else 0
    if kind == 0 and others:
        words.insert(rng.randrange(1, len(words) + 1), rng.choice(others))
    elif kind == 1 and at:
        del words[at]
    elif kind == 2 and at and others:
        words[at] = rng.choice(others)
    elif kind == 3 and len(words) > 2:
        rest = words[1:]
        rng.shuffle(rest)
        words[1:] = rest
    elif kind == 4 and operands:
        del operands[rng.randrange(len(operands))]
    elif kind == 5:
        operands.append(Name(rng.choice(tuple(POOLS.values())) + "9"))
    elif operands:
        operands[rng.randrange(len(operands))] = _stray(rng)
    return Instruction(".".join(words), operands, sample.instruction.predicate)


def _stray(rng: Random) -> Operand:
    registers: list[Operand] = [Name(p + "7") for p in POOLS.values() if p != "%q"]
    width = rng.choice((2, 4))
    vector = VectorOperand([Name(f"%r{n}") for n in range(width)])
    return rng.choice([*registers, Immediate("3", 3), Immediate("0f40000000", 2.0, "f32"), vector, AddressOperand(Name("%d8"))])
