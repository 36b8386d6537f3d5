"""Cohorts held before a collective because other lanes of their warps have not come.

Where nothing can run any more, one is let go on without them, and reported (`divergent-collective`). Not where those lanes wait
themselves and nothing behind the collective could let them go on: that is a hang like any other, and the lanes that wait
for the collective are no fault. The usual case: one lane of a warp plays a role while the others wait at the kernel's end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from warpsmith.simulator.check.signal_sites import signals
from warpsmith.simulator.program import Branch, Exit, Jump, Stop, Sync

if TYPE_CHECKING:
    from warpsmith.simulator.cohort import Cohort
    from warpsmith.simulator.engine import Engine
    from warpsmith.simulator.program import Operation

__all__ = ["bystander", "collective", "part_complete"]

_TELLS = ("st", "red", "atom", "cp")


def bystander(engine: Engine, cohort: Cohort) -> bool:
    """Say whether the lanes that a held cohort lacks wait for something that the cohort cannot bring."""
    m = engine.machine
    c0, c1, t0, t1 = cohort.rect
    active = cohort.active()
    whole = np.repeat(active.reshape(active.shape[0], -1, 32).any(axis=2), 32, axis=1)
    absent = m.live[c0:c1, t0:t1] & whole & ~active
    parked = np.zeros((m.rows, m.threads), np.bool_)
    for p in engine.parked:
        a0, a1, b0, b1 = p.cohort.rect
        parked[a0:a1, b0:b1] |= p.cohort.active()
    return bool((parked[c0:c1, t0:t1] | ~absent).all()) and not _tells_later(engine, cohort)


def part_complete(engine: Engine) -> bool:
    """Let the warps of a held cohort go on (for `wgmma` warpgroups) whose lanes have all come; return whether there were any.

    They are held together with others while those may come: warps of several CTAs that wait for each other by locks.
    """
    m = engine.machine
    for cohort in engine.held:
        c0, c1, t0, t1 = cohort.rect
        operation = collective(engine, cohort)
        width = 128 if operation is not None and operation.opcode == "wgmma" else 32
        first, stop = t0 // width * width, min(-(-t1 // width) * width, m.threads)
        here = np.zeros((c1 - c0, stop - first), np.bool_)
        here[:, t0 - first : t1 - first] = cohort.active()
        starts = np.arange(0, stop - first, width)
        lacking = np.logical_or.reduceat(m.live[c0:c1, first:stop] & ~here, starts, axis=1)
        lacking = np.repeat(lacking, width, axis=1)[:, t0 - first : t1 - first]
        able = cohort.active() & ~lacking
        if able.any() and (cohort.active() & lacking).any():
            engine.held.remove(cohort)
            engine.held.append(cohort.part(lacking & cohort.active()))
            engine.ready.append(cohort.part(able))
            return True
    return False


def _tells_later(engine: Engine, cohort: Cohort) -> bool:
    """Say whether a cohort may come to an instruction that lets others go on, barriers of whole CTAs and clusters aside."""
    if cohort.frames:
        return True
    seen, left = {cohort.block}, [cohort.block]
    while left:
        block = engine.blocks[left.pop()]
        last = getattr(block.ending, "operation", None)
        if not isinstance(block.ending, Branch | Exit | Jump | Stop | Sync):
            return True
        if any(op.opcode in _TELLS or signals(op) for op in (*block.operations, last) if op is not None):
            return True
        ahead = [b for b in block.successors() if b not in seen]
        seen.update(ahead)
        left += ahead
    return False


def collective(engine: Engine, cohort: Cohort) -> Operation | None:
    """Return the collective that a held cohort stands before."""
    block = engine.blocks[cohort.block]
    if cohort.start < len(block.operations):
        return block.operations[cohort.start]
    return block.ending.operation if isinstance(block.ending, Sync) else None
