"""Mutants of a kernel: an edit of its tree at one site; the instruction removed, doubled, moved, or with another number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from warpsmith.assembly.ptx.tree import AddressOperand, Immediate, Instruction, Name, RegisterDeclaration, Scope

__all__ = [
    "Body",
    "Edit",
    "Mutant",
    "bodies",
    "changed_numbers",
    "further",
    "moved_before",
    "mutants",
    "named",
    "numbered",
    "other_parity",
    "short_name",
]

Body = list[Any]
SITES = (
    "mbarrier.", "fence.", "bar.", "cp.async", "wgmma.fence", "wgmma.commit_group", "wgmma.wait_group", "tcgen05.",
    "setmaxnreg", "vote.", "and.b32",
)  # fmt: skip
COLUMNS = 128
"""Columns of tensor memory by which an access is moved: those of a tile of S or O."""


@dataclass(frozen=True)
class Mutant:
    """An edit: `count` statements of `body` from `start` on give way to `new`."""

    name: str
    body: Body
    start: int
    count: int
    new: tuple[Any, ...]
    place: Any
    what: str
    """The edit."""
    site: Instruction

    @property
    def mnemonic(self) -> str:
        """Of the instruction."""
        return self.site.mnemonic

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Make the edit for a while."""
        kept = self.body[self.start : self.start + self.count]
        self.body[self.start : self.start + self.count] = self.new
        try:
            yield
        finally:
            self.body[self.start : self.start + len(self.new)] = kept


Edit = tuple[str, int, int, tuple[Any, ...]]
"""What, first statement (from the site on), how many are replaced, by which."""


def numbered(i: Instruction, operand: int, change: Callable[[int], int]) -> Instruction:
    """Return a copy with another immediate operand."""
    out = deepcopy(i)
    old = out.operands[operand]
    assert isinstance(old, Immediate)
    value = change(int(old.value))
    out.operands[operand] = Immediate(str(value), value)
    return out


def further(i: Instruction, operand: int, by: int) -> Instruction:
    """Return a copy whose address operand lies `by` further."""
    out = deepcopy(i)
    old = out.operands[operand]
    assert isinstance(old, AddressOperand)
    old.offset += by
    return out


def other_parity(i: Instruction) -> Edit:
    """Return the edit that lets a wait of an mbarrier look for the other phase."""
    flipped, other = Name("%mutant"), deepcopy(i)
    flip = Instruction("xor.b32", [flipped, i.operands[2], Immediate("1", 1)], place=i.place)
    other.operands[2] = flipped
    return "other parity", 0, 1, (RegisterDeclaration("b32", [("%mutant", None)]), flip, other)


def short_name(mnemonic: str) -> str:
    """Return a mnemonic without what says little: state spaces, alignment."""
    if "bar.sync" in mnemonic:
        return "bar.sync"
    return mnemonic.partition(".shared")[0].partition(".sync.aligned")[0]


def changed_numbers(i: Instruction) -> Iterator[Edit]:
    """Yield the edits that give a barrier, an announcement or a wait for groups another number."""
    m = i.mnemonic
    if m.startswith("mbarrier.init"):
        yield "count + 1", 0, 1, (numbered(i, 1, lambda v: v + 1),)
        if int(i.operands[1].value) > 1:
            yield "count - 1", 0, 1, (numbered(i, 1, lambda v: v - 1),)
    if "expect_tx" in m:
        yield "16 bytes more", 0, 1, (numbered(i, 2, lambda v: v + 16),)
        yield "16 bytes fewer", 0, 1, (numbered(i, 2, lambda v: v - 16),)
    if "wait_group" in m:
        yield "one group more in flight", 0, 1, (numbered(i, 0, lambda v: v + 1),)
    if m.startswith("bar.sync") and len(i.operands) == 2:
        yield "32 threads more", 0, 1, (numbered(i, 1, lambda v: v + 32),)
        yield "32 threads fewer", 0, 1, (numbered(i, 1, lambda v: v - 32),)


def _tensor_memory(i: Instruction) -> Iterator[Edit]:
    m = i.mnemonic
    if m.startswith(("tcgen05.alloc", "tcgen05.dealloc")):
        at = 1
        yield "half of the columns", 0, 1, (numbered(i, at, lambda v: v // 2),)
    if m.startswith("tcgen05.commit"):
        yield "to the next barrier", 0, 1, (further(i, 0, 8),)
    if m.startswith("tcgen05.ld"):
        yield "other columns", 0, 1, (further(i, 1, COLUMNS),)
    if m.startswith(("tcgen05.st", "tcgen05.mma")):
        yield "other columns", 0, 1, (further(i, 0, COLUMNS),)
    if m.startswith("tcgen05.mma"):
        flag, other = Name("%mutant_flag"), deepcopy(i)
        truth = Instruction("setp.eq.u32", [flag, Immediate("0", 0), Immediate("0", 0)], place=i.place)
        other.operands[4] = flag
        yield "accumulates", 0, 1, (RegisterDeclaration("pred", [("%mutant_flag", None)]), truth, other)
    if m.startswith("setmaxnreg"):
        yield "8 registers more", 0, 1, (numbered(i, 0, lambda v: v + 8),)


def edits(body: Body, n: int) -> Iterator[Edit]:
    """Yield the edits of the instruction at `body[n]`."""
    i = body[n]
    m = i.mnemonic
    if m.startswith("mbarrier.try_wait"):
        yield "removed", 0, 2, ()
        yield other_parity(i)
        return
    if not m.startswith(("tcgen05.ld", "tcgen05.st", "tcgen05.mma", "tcgen05.relinquish", "setmaxnreg", "vote.", "and.")):
        yield "removed", 0, 1, ()
    if m.startswith(("mbarrier.arrive", "cp.async.bulk.tensor", "tcgen05.commit")):
        yield "twice", 0, 1, (i, deepcopy(i))
    yield from changed_numbers(i)
    if m.startswith("vote.sync.any"):
        other = deepcopy(i)
        other.mnemonic = m.replace("any", "all")
        yield "all for any", 0, 1, (other,)
    if m == "and.b32" and isinstance(i.operands[2], Immediate) and i.operands[2].value == 96:
        yield "no lanes", 0, 1, (numbered(i, 2, lambda _: 0),)
    if m.startswith(("tcgen05.", "setmaxnreg")):
        yield from _tensor_memory(i)
    if m.startswith(("mbarrier.arrive.shared", "tcgen05.commit")):
        before = next((k for k in range(n - 1, -1, -1) if _site(body[k])), None)
        if before is not None and i.predicate is None and not body[before].mnemonic.startswith(("mbarrier.", "tcgen05.commit")):
            yield "earlier", before - n, n - before + 1, (i, *body[before:n])


def moved_before(m: Mutant, mnemonic: str) -> Mutant:
    """Return the mutant whose site, with what computes its address, stands before the nearest `mnemonic` in front of it."""
    at = next(k for k in range(len(m.body)) if m.body[k] is m.site)
    first = next(k for k in range(at - 1, -1, -1) if getattr(m.body[k], "mnemonic", "").startswith(mnemonic))
    address = next(o for o in m.site.operands if isinstance(o, AddressOperand))
    between = m.body[first:at]
    made = [s for s in between if getattr(s, "operands", None) and getattr(s.operands[0], "name", "") == address.base.name]
    new = (*made, m.site, *(s for s in between if s not in made))
    return replace(m, name=f"{m.name}, before {mnemonic}", start=first, count=at - first + 1, new=new, what="moved")


def _site(s: Any) -> bool:
    return isinstance(s, Instruction) and s.mnemonic.startswith(SITES)


def bodies(body: Body) -> Iterator[Body]:
    """Yield a statement list and those of the scopes in it."""
    yield body
    for s in body:
        if isinstance(s, Scope):
            yield from bodies(s.body)


def _ends(same: list[int], each: int | None) -> list[int]:
    if each is None or len(same) <= each:
        return same
    late = each // 2
    return same[: each - late] + same[len(same) - late :]


def mutants(kernel: str, module: Any, *, each: int | None = None, waits: int | None = None) -> dict[str, Mutant]:
    """Return the mutants of a module's kernel by name: the mnemonic, its number among those of its kind, the edit.

    `each`: of the sites that stand at one line with equal numbers so many only, from both ends; `waits`: of mbarriers' waits.
    """
    entry = next(f for f in module.functions() if f.body is not None)
    sites: list[tuple[str, Body, int]] = []
    seen: Counter[str] = Counter()
    alike: dict[tuple[Any, ...], list[int]] = {}
    for body in bodies(entry.body):
        for n, s in enumerate(body):
            if not _site(s):
                continue
            short = short_name(s.mnemonic).partition(".cta_group")[0]
            numbers = [str(o) for o in s.operands if isinstance(o, Immediate)]
            alike.setdefault((short, str(s.place), *numbers), []).append(len(sites))
            sites.append((f"{kernel}: {short} {seen[short]}", body, n))
            seen[short] += 1
    chosen = {k for key, same in alike.items() for k in _ends(same, waits if "try_wait" in key[0] else each)}
    out: dict[str, Mutant] = {}
    for k in sorted(chosen):
        name, body, n = sites[k]
        for what, first, count, new in edits(body, n):
            full = f"{name}, {what}"
            out[full] = Mutant(full, body, n + first, count, new, body[n].place, what, body[n])
    return out


def named(place: Any) -> str:
    """Return `file.py: its line`; nothing for a finding without a place (of an output that nobody writes)."""
    if place is None:
        return ""
    path = Path(place.file)
    return f"{path.name}: {path.read_text().splitlines()[place.line - 1].strip()}"
