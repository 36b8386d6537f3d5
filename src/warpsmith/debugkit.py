"""Instruments for kernels: `WaitMap` counts the cycles each thread spends in each `mbarrier.wait`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from warpsmith.base.place import error, shown_path, user_place
from warpsmith.base.ptx_types import TYPES
from warpsmith.dsl.address import address
from warpsmith.dsl.registers import NegPred, Reg
from warpsmith.dsl.trace import current

if TYPE_CHECKING:
    from collections.abc import Mapping

    from warpsmith.base.source import Place
    from warpsmith.dsl.trace import Trace

__all__ = ["WAITMAP_MAX_SITES", "WaitMap"]

WAITMAP_MAX_SITES = 128
"""Words of a thread's row in the record, and the most waits a kernel may have while the map is active."""


@final
class WaitMap:
    """One counter of `%clock` cycles for every `mbarrier.wait` traced while active, written out by `flush`.

    The record is `Tile(threads, WAITMAP_MAX_SITES, b32)`: row = thread, column = site, in the order the waits are traced.
    A wait that would not fit, or that comes after `flush`, is refused: no site is left out silently.
    """

    def __init__(self) -> None:
        self._sites: list[Place] = []
        self._counters: list[Reg] = []
        self._trace: Trace | None = None
        self._row: Reg | None = None
        self._started: Reg | None = None
        self._flushed: Place | None = None

    def site_names(self) -> list[str]:
        """Return `file:line` of every site, by number."""
        return [f"{shown_path(p.file)}:{p.line}" for p in self._sites]

    def attach(self, dbg_ptr: Reg, tid_reg: Reg) -> None:
        """Start a record: `dbg_ptr` is the global address of the output tensor, `tid_reg` the thread's number (its row)."""
        trace = current()
        self._sites, self._counters, self._trace, self._flushed = [], [], trace, None
        self._row = trace.root_register("u64")
        trace.emit("mad.wide.u32", (self._row, tid_reg, WAITMAP_MAX_SITES * 4, dbg_ptr))

    def active(self) -> _Active:
        """Return a context manager: the waits traced inside are sites."""
        return _Active(self)

    def before_wait(self) -> None:
        """Read the clock before a wait."""
        trace = current()
        if self._trace is not trace or self._row is None:
            raise error(
                "this wait cannot be mapped: the WaitMap is not attached to this kernel", "call wm.attach(ptr, tid) first"
            )
        if self._flushed is not None:
            raise error(
                f"this wait would be lost: the WaitMap was flushed at {shown_path(self._flushed.file)}:{self._flushed.line}",
                "flush after the last wait, or leave active() before this one",
            )
        if len(self._sites) == WAITMAP_MAX_SITES:
            raise error(
                f"this wait would be lost: a WaitMap holds {WAITMAP_MAX_SITES} sites", "leave active() around fewer waits"
            )
        self._sites.append(user_place())
        counter = trace.root_register("u32")
        trace.emit_first("mov.u32", (counter, 0))
        self._counters.append(counter)
        self._started = trace.new(TYPES["u32"])
        trace.emit("mov.u32", (self._started, "%clock"))

    def after_wait(self) -> None:
        """Add the cycles since to the site's counter."""
        trace = current()
        now = trace.new(TYPES["u32"])
        trace.emit("mov.u32", (now, "%clock"))
        trace.emit("sub.u32", (now, now, self._started))
        trace.emit("add.u32", (self._counters[-1], self._counters[-1], now))

    def flush(self, pred: Reg | NegPred | None = None) -> None:
        """Write this thread's counters to its row; `pred` selects the CTA that writes."""
        trace = current()
        if self._trace is not trace or self._row is None:
            raise error("this WaitMap is not attached to this kernel", "call wm.attach(ptr, tid) first")
        for site, counter in enumerate(self._counters):
            trace.emit("st.global.u32", (address(self._row, 4 * site), counter), pred)
        self._flushed = user_place()

    def decode(
        self, dbg_tensor: Any, n_threads: int = 512, roles: Mapping[str, tuple[int, int]] | None = None
    ) -> dict[str, dict[str, int]]:
        """Return role → site (`number file:line`) → cycles summed over the role's threads (first, one past the last)."""
        parts = {"all": (0, n_threads)} if roles is None else dict(roles)
        names = [f"{i} {name}" for i, name in enumerate(self.site_names())]
        return {
            role: {name: int(sum(int(dbg_tensor[t][i]) for t in range(low, high))) for i, name in enumerate(names)}
            for role, (low, high) in parts.items()
        }


@final
class _Active:
    """Entered and left by `with` or by explicit calls."""

    def __init__(self, owner: WaitMap) -> None:
        self._owner = owner
        self._before: object = None

    def __enter__(self) -> WaitMap:
        trace = current()
        self._before = trace.wait_map
        trace.wait_map = self._owner
        return self._owner

    def __exit__(self, *exc: object) -> None:
        current().wait_map = self._before  # type: ignore[assignment]
