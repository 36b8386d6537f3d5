"""Where the threads of a launch stand that was ended before they did, and round which loops they go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.simulator.check.held import collective
from warpsmith.simulator.findings import threads_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warpsmith.base.source import Place
    from warpsmith.simulator.cohort import Cohort
    from warpsmith.simulator.engine import Engine
    from warpsmith.simulator.program import Block

__all__ = ["whereabouts", "who"]

_NAMELESS = "a branch"


def who(engine: Engine, cohort: Cohort) -> str:
    """Name the threads of a cohort."""
    x = engine.machine.lanes(cohort.rect)
    x.mask = cohort.mask
    return threads_text(x, x.active())


def whereabouts(engine: Engine) -> list[tuple[str, Place | None]]:
    """Return for each group of threads that has not ended who it is, what it does, and at which line; those that run first."""
    out: list[tuple[str, Place | None]] = []
    for c in _running(engine):
        text, place = _instruction(engine.blocks[c.block], c.start)
        out.append((f"{who(engine, c)} at {text}{_loop(engine, c)}", place))
    for c in engine.held:
        op = collective(engine, c)
        if op is not None:
            out.append((f"{who(engine, c)} at `{op.text}` waits for the other lanes of the warp", op.place))
    for p in engine.parked:
        at = f"{who(engine, p.cohort)} at `{p.operation.text}`"
        out.append((f"{at} waits for {p.condition.describe()}", p.operation.place))
    return out


def _running(engine: Engine) -> Iterator[Cohort]:
    """Yield the cohorts that can run; first the one that an interruption has caught in its turn."""
    m, c = engine.machine, engine.running
    if c is not None:
        left = m.live.copy()
        for other in (*engine.ready, *engine.held, *(p.cohort for p in engine.parked)):
            c0, c1, t0, t1 = other.rect
            left[c0:c1, t0:t1] &= ~other.active()
        c0, c1, t0, t1 = c.rect
        lanes = left[c0:c1, t0:t1] & c.active()
        if lanes.any():
            yield c.part(lanes)
    yield from engine.ready


def _instruction(block: Block, start: int) -> tuple[str, Place | None]:
    """Return the instruction a cohort stands before, and its line."""
    for op in block.operations[start:]:
        if op.text:
            return f"`{op.text}`", op.place
    op = getattr(block.ending, "operation", None)
    if op is not None:
        return f"`{op.text}`", op.place
    return _NAMELESS, getattr(block.ending, "place", None)


def _loop(engine: Engine, c: Cohort) -> str:
    """Say round which loop a cohort goes, the innermost one, and how often it has; empty outside of loops."""
    for block, iterations in zip((c.block, *reversed(c.frames)), reversed(c.trail), strict=True):
        around = engine.blocks[block].order[:-1]
        if around and iterations:
            lines = _lines(engine, engine.blocks[block].function, around)
            return f", in round {iterations[-1] + 1:,} of the loop{lines}"
    return ""


def _lines(engine: Engine, function: str, around: tuple[int, ...]) -> str:
    """Return the lines of the loop whose blocks stand at `around` in the order of their function."""
    depth = len(around)
    inside = (b for b in engine.blocks if b.function == function and len(b.order) > depth and b.order[:depth] == around)
    ends = (end for b in inside for end in (*b.operations, getattr(b.ending, "operation", None), b.ending))
    places = [place for end in ends if (place := getattr(end, "place", None)) is not None]
    if not places:
        return ""
    own = [p.line for p in places if p.file == places[0].file]
    return f" of line {min(own)}" if min(own) == max(own) else f" of lines {min(own)} to {max(own)}"
