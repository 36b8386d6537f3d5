"""Findings of a run: collected once per kind and place, with the threads concerned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import numpy as np

from warpsmith.base.findings import Finding, Related, Severity
from warpsmith.findings import KINDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from warpsmith.base.source import Place
    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.machine import Machine

__all__ = ["FindingLog", "ranges_text", "threads_text", "warps_of", "warps_text"]

LIMIT = 100
"""Findings kept in all; one per kind and place."""


@final
class FindingLog:
    """The findings of a launch."""

    def __init__(self, schedule: str) -> None:
        self.schedule = schedule
        self.list: list[Finding] = []
        self.seen: dict[tuple[str, Any], int] = {}
        """(kind, place) -> where its finding stands in the list."""
        self.stop = False
        """The launch ends: what follows would be meaningless."""

    def add(
        self,
        x: Lanes,
        kind: str,
        message: str,
        *,
        lanes: NDArray[np.bool_] | None,
        severity: Severity,
        related: Sequence[Related],
        repair: str,
        stop: bool,
    ) -> None:
        """Add a finding of the lanes of `x`."""
        active = x.active()
        mask = active if lanes is None else np.broadcast_to(lanes, x.shape) & active
        self.report(kind, message, x.place, threads_text(x, mask), severity, tuple(related), repair, stop=stop)

    def report(
        self,
        kind: str,
        message: str,
        where: Place | None,
        threads: str,
        severity: Severity = "error",
        related: tuple[Related, ...] = (),
        repair: str = "",
        *,
        stop: bool = False,
    ) -> None:
        """Add a finding unless one of its kind is known at that place; an error takes the place of what is none."""
        self.stop = self.stop or stop
        key = (kind, where if where is not None else message)
        old = self.seen.get(key)
        if (old is None and len(self.list) >= LIMIT) or (old is not None and not self._worse(severity, old)):
            return
        found = Finding(kind, severity, message, where, threads, related, repair or KINDS[kind].repair, self.schedule)
        if old is None:
            self.seen[key] = len(self.list)
            self.list.append(found)
        else:
            self.list[old] = found

    def _worse(self, severity: Severity, at: int) -> bool:
        return severity == "error" and self.list[at].severity != "error"

    def known(self, kind: str, where: Place | None, severity: Severity = "error") -> bool:
        """Say whether a finding of this kind, as severe, stands at this place already."""
        at = self.seen.get((kind, where))
        return at is not None and not self._worse(severity, at)


def ranges_text(numbers: list[int]) -> str:
    """Write ascending numbers as `0,5-8,11`."""
    out: list[str] = []
    start = previous = numbers[0]
    for n in [*numbers[1:], None]:
        if n is not None and n == previous + 1:
            previous = n
            continue
        out.append(str(start) if start == previous else f"{start}-{previous}")
        if n is not None:
            start = previous = n
    return ",".join(out)


def warps_text(machine: Machine, row: int, first: int, count: int) -> str:
    """Name `count` whole warps of a resident CTA as `threads_text` does."""
    cta = "{},{},{}".format(*machine.cta_of(row))
    return f"cta ({cta}) warp {first} lanes 0-31" if count == 1 else f"cta ({cta}) warps {first}-{first + count - 1} lanes 0-31"


def threads_text(x: Lanes, mask: NDArray[np.bool_]) -> str:
    """Name threads as `cta (0,0,0) warp 4 lanes 0-31`; of several CTAs or unlike warps the first, and how many more."""
    ctas = x.machine.cta_numbers["%ctaid"][:, x.c0 : x.c1]
    return x.kept(("text", mask.tobytes(), ctas.tobytes()), lambda: _threads_text(x, mask))


def _threads_text(x: Lanes, mask: NDArray[np.bool_]) -> str:
    rows = np.flatnonzero(mask.any(axis=1))
    if rows.size == 0:
        return ""
    if rows.size == 1 and np.count_nonzero(mask) == 1:
        thread = int(mask[rows[0]].argmax()) + x.t0
        return "cta ({},{},{}) warp {} lanes {}".format(*x.machine.cta_of(x.c0 + int(rows[0])), thread // 32, thread % 32)
    row = int(rows[0])
    bits = x.lane_bits(mask[row])
    warps = np.flatnonzero(bits).tolist()
    lanes = {w + x.t0 // 32: int(bits[w]) for w in warps}
    warps = list(lanes)
    same = [w for w in lanes if lanes[w] == lanes[warps[0]]]
    cta = ",".join(str(v) for v in x.machine.cta_of(x.c0 + row))
    one = len(same) == 1
    inside = ranges_text([i for i in range(32) if lanes[same[0]] >> i & 1])
    text = f"cta ({cta}) warp{'' if one else 's'} {ranges_text(same)} lanes {inside}"
    others = len(warps) - len(same)
    if others:
        text += f", and {others} more warp{'s' if others > 1 else ''}"
    ctas = rows.size
    return text if ctas == 1 else f"{text}, and {ctas - 1} more CTA{'s' if ctas > 2 else ''}"


def warps_of(x: Lanes, lanes: NDArray[np.bool_]) -> tuple[tuple[int, int], ...]:
    """Return the (row, warp) of lanes `[C, T]`."""
    return x.kept(("warps", lanes.tobytes()), lambda: _warps_of(x, lanes))


def _warps_of(x: Lanes, lanes: NDArray[np.bool_]) -> tuple[tuple[int, int], ...]:
    rows, warps = np.nonzero(x.warps(lanes).any(-1))
    first = x.t0 // 32
    return tuple((x.c0 + r, first + w) for r, w in zip(rows.tolist(), warps.tolist(), strict=True))
