"""`setmaxnreg`: registers per thread of each warp, and what is left of the CTA's pool (PTX ISA 9.7.21.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import numpy as np

from warpsmith.base.findings import Related
from warpsmith.simulator.outcome import DONE, Outcome, Wait

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from warpsmith.base.source import Place
    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.machine import Machine

__all__ = ["RegisterBudget"]


@final
class RegisterBudget:
    """Registers per thread of each warp; the count at entry is what the launch allots."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        warps = machine.threads // 32
        self.entry = machine.config.registers_per_thread
        self.pool = self.entry * warps
        self.counts = np.full((machine.rows, warps), self.entry, np.int64)
        self.set = np.zeros((machine.rows, warps), np.bool_)
        """Warps that have executed setmaxnreg: the count of others is only what the launch may allot."""
        self.places: dict[tuple[int, int], tuple[str, Place | None]] = {}
        """(row, warpgroup) -> the last setmaxnreg there."""
        machine.end_hooks.append(self.judge_end)

    def reset(self, rows: NDArray[np.int64]) -> None:
        """Give fresh CTAs the count at entry."""
        self.counts[rows] = self.entry
        self.set[rows] = False

    def change(self, x: Lanes, count: int, *, grow: bool) -> Outcome:
        """Set the count of the active warps; those that grow wait until the pool has the registers."""
        warps = x.warps(x.active()).any(axis=-1)
        window = (slice(x.c0, x.c1), slice(x.t0 // 32, x.t1 // 32))
        view = self.counts[window]
        if self.machine.checking:
            self._judge_way(x, warps, view, count, grow=grow)
        self.set[window] |= warps
        if not grow:
            np.copyto(view, count, where=warps)
            self.machine.progress()
            return DONE
        granted = np.zeros_like(warps)
        for c, w in np.argwhere(warps).tolist():
            if count - view[c, w] <= self.pool - int(self.counts[x.c0 + c].sum()):
                view[c, w] = count
                granted[c, w] = True
        if granted.all() or not (warps & ~granted).any():
            return DONE
        return Wait(_Room(self, x, count), x.threads_of(granted[..., None]))

    def _judge_way(self, x: Lanes, warps: Any, view: Any, count: int, *, grow: bool) -> None:
        """Report a change in the wrong direction, by what an earlier setmaxnreg has set."""
        for c, w in np.argwhere(warps).tolist():
            self.places[x.c0 + c, (x.t0 // 32 + w) // 4] = (x.op.text, x.place)
        known = self.set[x.c0 : x.c1, x.t0 // 32 : x.t1 // 32] & warps
        wrong = known & ((view > count) if grow else (view < count))
        if wrong.any():
            text = f"`{x.op.text}` to {count} registers in warps that have {int(view[wrong][0])}"
            repair = "Raise the count with .inc and lower it with .dec."
            x.finding("setmaxnreg-budget", text, lanes=x.threads_of(wrong[..., None]), repair=repair)

    def judge_end(self, row: int) -> None:
        """Report warpgroups of an ended CTA whose warps have not all executed the same setmaxnreg.

        That each has executed one, of different counts, is a matter of portability: CUTLASS's attention for Blackwell does.
        """
        for (at, group), (text, place) in list(self.places.items()):
            if at != row:
                continue
            del self.places[at, group]
            counts = self.counts[row, 4 * group : 4 * group + 4]
            if (counts == counts[0]).all():
                continue
            cta = "({},{},{})".format(*self.machine.cta_of(row))
            have = ", ".join(map(str, counts.tolist()))
            each = bool(self.set[row, 4 * group : 4 * group + 4].all())
            by = "with different counts by the" if each else "by some"
            only = "" if each else " only"
            said = f"`{text}` was executed {by} warps of a warpgroup{only}: they have {have} registers"
            repair = "Let all four warps of a warpgroup execute the same setmaxnreg."
            who = f"cta {cta} warps {4 * group}-{4 * group + 3}"
            severity = "portability" if each else "error"
            self.machine.findings.report("setmaxnreg-budget", said, place, who, severity, repair=repair)

    def describe(self, row: int, count: int) -> str:
        """Say what the pool of a CTA lacks."""
        held = int(self.counts[row].sum())
        return f"{count} registers per thread: the CTA has {32 * self.pool} and its warps hold {32 * held}"


@final
class _Room:
    """Waits until a CTA's pool has room for one more warp that grows."""

    timed = False

    def __init__(self, budget: RegisterBudget, x: Lanes, count: int) -> None:
        self.budget, self.rows, self.count = budget, slice(x.c0, x.c1), count

    def ready(self) -> Any:
        """Say in which CTAs a warp can grow, as a mask `[C, 1]`."""
        counts = self.budget.counts[self.rows]
        least = self.count - counts.max(axis=1, where=counts < self.count, initial=0)
        return (least <= self.budget.pool - counts.sum(axis=1))[:, None]

    def describe(self) -> str:
        """Say what is lacking."""
        return self.budget.describe(self.rows.start, self.count)

    def causes(self) -> Iterator[tuple[str, str, str, list[Related], str]]:
        """Say, when nothing can run any more, that the registers will never be there."""
        m, row = self.budget.machine, self.rows.start
        others = [
            Related(f"`{text}` of warpgroup {g}", place) for (r, g), (text, place) in self.budget.places.items() if r == row
        ]
        cta = "cta ({},{},{})".format(*m.cta_of(row))
        yield (
            "setmaxnreg-budget",
            f"setmaxnreg waits for ever: {self.describe()}",
            cta,
            others,
            "Let the counts of all warpgroups add up to what the launch allots: lower the others with setmaxnreg.dec first.",
        )
