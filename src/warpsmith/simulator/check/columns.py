"""The columns of a vector clock: the threads of a CTA, and what else writes or reads its memory.

A thread's column counts time (`check.clocks`). The others count what a thread can wait for: the phases of an mbarrier, the
groups of copies or products of a warp. Their numbers begin at `ORDINAL`, above every time, so that an entry of theirs is
never taken for one that a barrier of the CTA has ordered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from collections.abc import Set

__all__ = ["ORDINAL", "Columns"]

ORDINAL = 1 << 24
_BARRIERS = 64
_GROUPS = ("cp.async", "cp.async.bulk", "cp.async.bulk.read", "wgmma", "tcgen05")


@final
class Columns:
    """Where the columns of a launch lie."""

    def __init__(self, threads: int, opcodes: Set[str]) -> None:
        self.threads = threads
        self.warps = threads // 32
        asynchronous = any(o in opcodes for o in ("cp", "wgmma", "mbarrier", "st", "red", "tcgen05"))
        self.barriers = _BARRIERS if "mbarrier" in opcodes else 0
        self.groups = len(_GROUPS) * self.warps if asynchronous else 0
        self.count = threads + self.groups + self.barriers

    def group(self, kind: str, warp: int) -> int:
        """Return the column of a warp's groups of a kind; `cp.async.bulk.read`: what they read."""
        return self.threads + _GROUPS.index(kind) * self.warps + warp

    def barrier(self, number: int) -> int:
        """Return the column of the mbarrier that was initialised as the `number`-th of its CTA; with very many some share."""
        return self.threads + self.groups + number % self.barriers

    def name(self, column: int) -> str:
        """Say what a column is."""
        if column < self.threads:
            return f"warp {column // 32} lane {column % 32}"
        column -= self.threads
        if column < self.groups:
            return f"a group of warp {column % self.warps}"
        return "a copy that signals an mbarrier"
