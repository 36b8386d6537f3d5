"""The columns of a vector clock: the threads of a CTA, and what else writes or reads its memory.

A thread's column counts time (`check.clocks`). The others count what a thread can wait for, the phases of an mbarrier, the
groups of copies or products of a warp, or what it can observe, the asynchronous release stores of a warp. Their numbers begin
at `ORDINAL`, above every time, so that an entry of theirs is never taken for one that a barrier of the CTA has ordered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from collections.abc import Sequence, Set

__all__ = ["ORDINAL", "Columns"]

ORDINAL = 1 << 24
_BARRIERS = 64
_GROUPS = ("cp.async", "cp.async.bulk", "cp.async.bulk.read", "wgmma", "tcgen05")


@final
class Columns:
    """Where the columns of a launch lie."""

    def __init__(self, threads: int, opcodes: Set[str], stores: Sequence[object] = ()) -> None:
        self.threads = threads
        self.warps = threads // 32
        asynchronous = any(o in opcodes for o in ("cp", "wgmma", "mbarrier", "st", "red", "tcgen05"))
        self.barriers = _BARRIERS if "mbarrier" in opcodes else 0
        self.groups = len(_GROUPS) * self.warps if asynchronous else 0
        self.numbers = {id(operation): n for n, operation in enumerate(stores)}
        """Asynchronous release stores of the program, numbered: each has a column for every warp."""
        self.stores = len(stores) * self.warps
        self.count = threads + self.groups + self.barriers + self.stores

    def group(self, kind: str, warp: int) -> int:
        """Return the column of a warp's groups of a kind; `cp.async.bulk.read`: what they read."""
        return self.threads + _GROUPS.index(kind) * self.warps + warp

    def barrier(self, number: int) -> int:
        """Return the column of the mbarrier that was initialised as the `number`-th of its CTA; with very many some share."""
        return self.threads + self.groups + number % self.barriers

    def store(self, operation: object, warp: int) -> int:
        """Return the column of what a warp stores with an asynchronous release store of the program."""
        return self.count - self.stores + self.numbers[id(operation)] * self.warps + warp

    def is_store(self, column: int) -> bool:
        """Say whether a column is that of an asynchronous release store."""
        return column >= self.count - self.stores

    def mend(self, column: int) -> str:
        """Say what lets an access come after the operations of a column."""
        if self.is_store(column):
            return "Read what it stores with ld.acquire until the value shows, and let all others know by a barrier."
        return "Wait for the operation (its mbarrier phase, or its group), and let all others know by a barrier."

    def name(self, column: int) -> str:
        """Say what a column is."""
        if column < self.threads:
            return f"warp {column // 32} lane {column % 32}"
        if self.is_store(column):
            return f"an asynchronous store of warp {(column - self.count) % self.warps}"
        column -= self.threads
        if column < self.groups:
            return f"a group of warp {column % self.warps}"
        return "a copy that signals an mbarrier"
