"""Instructions that access memory, numbered: how wide, how strong, and where they stand (PTX ISA 8.4, 8.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, final

import numpy as np

from warpsmith.simulator.check.columns import Columns
from warpsmith.simulator.check.entries import SITES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warpsmith.simulator.program import Operation, Program

__all__ = [
    "Site",
    "Sites",
    "columns_of",
    "executes_apart",
    "fences_memory",
    "is_strong",
    "is_strong_write",
    "operations_of",
    "orders_through_memory",
    "release_stores",
    "remembers_reads",
]

_SCOPES = {"cta": 1, "cluster": 2, "gpu": 3, "sys": 3, "gl": 3}
_ORDERED = {"acquire", "release", "acq_rel"}
_OTHER_FENCES = {"proxy", "mbarrier_init", "alias"}
"""Words of fences of something else. Without them, and without semantics (`fence.gpu`), a fence is `.acq_rel` (9.7.15.4)."""


class Site(NamedTuple):
    """An instruction as its accesses see it."""

    number: int
    operation: Operation
    strength: int
    """0 weak; strong at the scope 1 cta, 2 cluster, 3 gpu or sys."""
    acquires: bool
    releases: bool
    reduces: bool
    """A `red`: its read forms no acquire pattern (8.11.1)."""

    @property
    def text(self) -> str:
        """The instruction, quoted."""
        return f"`{self.operation.text}`"

    @property
    def short(self) -> str:
        """The instruction without its spaces and types, quoted."""
        words = self.operation.text.split(".")
        ends = [i for i, w in enumerate(words) if w.partition("::")[0] in ("shared", "global", "sync", "mbarrier", "ca", "cg")]
        return f"`{'.'.join(words[: ends[0] if ends and ends[0] else None])}`"


def operations_of(program: Program) -> Iterator[Operation]:
    """Yield every operation of a program, those that end blocks included."""
    for block in program.blocks:
        yield from block.operations
        last = getattr(block.ending, "operation", None)
        if last is not None:
            yield last


def fences_memory(words: list[str]) -> bool:
    """Say whether an instruction is a fence of what its thread accesses (not of proxies, nor of initialisations alone)."""
    if words[0] != "fence":
        return words[0] == "membar"
    return _OTHER_FENCES.isdisjoint(words)


def orders_through_memory(program: Program) -> bool:
    """Say whether threads may order their accesses through memory: fences, acquire and release operations."""
    for op in operations_of(program):
        words = op.text.split(".")
        if fences_memory(words):
            return True
        if words[0] in ("ld", "st", "atom", "red") and not _ORDERED.isdisjoint(words):
            return True
    return False


def remembers_reads(program: Program) -> bool:
    """Say whether something but a fence of all threads may end an acquire pattern that a relaxed read began (8.8)."""
    for op in operations_of(program):
        words = op.text.split(".")
        narrow = fences_memory(words) and not {"cta", "cluster"}.isdisjoint(words)
        if narrow or (words[0] in ("ld", "atom") and not {"acquire", "acq_rel"}.isdisjoint(words)):
            return True
    return False


def executes_apart(program: Program, *, clusters: bool) -> bool:
    """Say whether a program may order what is executed without ordering memory (`clusters`: of several CTAs).

    By relaxed arrivals and waits; by arrivals from other CTAs, whose scope may be too narrow; and, where that matters to tensor
    memory, by strong accesses.
    """
    tensor = strong = False
    for op in operations_of(program):
        words = op.text.split(".")
        if op.opcode == "mbarrier" and ("arrive" in words or "arrive_drop" in words):
            shared = next((w for w in words if w.startswith("shared")), "shared::cluster")
            if "relaxed" in words or (clusters and shared == "shared::cluster"):
                return True
        if "relaxed" in words and (
            words[:3] == ["barrier", "cluster", "arrive"] or not {"test_wait", "try_wait"}.isdisjoint(words)
        ):
            return True
        tensor |= op.opcode == "tcgen05"
        strong |= is_strong(op)
    return tensor and strong


def release_stores(program: Program) -> list[Operation]:
    """Return the asynchronous stores and reductions of a program that release to global memory (9.7.10.12, 9.7.15.7)."""
    return [o for o in operations_of(program) if o.opcode in ("st", "red") and {"async", "release"} <= set(o.text.split("."))]


def columns_of(threads: int, program: Program) -> Columns:
    """Return the columns of a launch of a program in CTAs of so many threads (whole warps)."""
    return Columns(threads, {op.opcode for op in operations_of(program)}, release_stores(program))


def is_strong(operation: Operation) -> bool:
    """Say whether an instruction makes strong accesses to memory."""
    return operation.opcode in ("ld", "st", "atom", "red") and _strength(operation.text.split(".")) > 0


def is_strong_write(operation: Operation, space: str) -> bool:
    """Say whether an instruction may make strong writes to a space, as far as its name tells."""
    if operation.opcode not in ("st", "atom", "red") or not is_strong(operation):
        return False
    spaces = {word.partition("::")[0] for word in operation.text.split(".")} & {"shared", "global", "local", "param"}
    return not spaces or space in spaces


def _strength(words: list[str]) -> int:
    """Return how strong the accesses of an instruction are."""
    atomic = words[0] in ("atom", "red")
    if "volatile" in words or "mmio" in words:
        return 3
    if not atomic and "relaxed" not in words and _ORDERED.isdisjoint(words):
        return 0
    return next((_SCOPES[w] for w in words if w in _SCOPES), 3)


@final
class Sites:
    """The instructions of a launch that have accessed memory."""

    def __init__(self) -> None:
        self.list: list[Site | None] = [None]
        self._of: dict[int, Site] = {}
        self.together = np.zeros(SITES, np.bool_)
        """Sites at which the lanes of a warp read together: none of them goes on before all have (`ldmatrix`)."""
        self.writes = np.zeros(SITES, np.bool_)
        """Sites of instructions that write memory."""
        self.finds = np.zeros(SITES, np.bool_)
        """Sites of strong operations that tell their threads what they have read."""

    def of(self, operation: Operation) -> Site:
        """Return the site of an instruction; those past the last number share number 0."""
        found = self._of.get(id(operation))
        if found is None:
            words = operation.text.split(".")
            acquires, releases = (not _ORDERED.isdisjoint(words) and w in words for w in ("acquire", "release"))
            both = "acq_rel" in words
            number = len(self.list) if len(self.list) < SITES else 0
            found = Site(
                number, operation, _strength(words), acquires or both, releases or both, words[0] == "red"
            )  # fmt: skip
            self._of[id(operation)] = found
            if number:
                self.list.append(found)
                self.together[number] = operation.opcode in ("ldmatrix", "wmma")
                self.writes[number] = operation.opcode in ("st", "atom", "red")
                self.finds[number] = found.strength > 0 and operation.opcode in ("ld", "atom")
        return found

    def at(self, number: int) -> Site | None:
        """Return the site of a number, if it is known."""
        return self.list[number]
