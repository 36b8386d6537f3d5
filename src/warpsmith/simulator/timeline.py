"""When things happened: what each warp waited on, and when operations were in flight.

The clock counts the instructions that cohorts have issued: warps that run together pass the time together. It orders a run and
shows who waits for whom; it says nothing about cycles of hardware.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from warpsmith.base.errors import InputError
from warpsmith.base.whole_file import write_whole

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from warpsmith.base.source import Place

__all__ = ["InFlight", "Timeline", "Wait", "WaitRow", "roles_of"]


@final
@dataclass(frozen=True, slots=True)
class Wait:
    """Warps of some CTAs that waited at one instruction."""

    place: Place | None
    instruction: str
    ctas: NDArray[np.int64]
    """Linear in the grid."""
    warps: NDArray[np.bool_]
    """`[cta, warp]` from the warp `first` on: which of them."""
    first: int
    start: int
    stop: int


@final
@dataclass(frozen=True, slots=True)
class InFlight:
    """An asynchronous operation from its issue to its completion."""

    kind: str
    place: Place | None
    cta: int
    start: int
    stop: int


class WaitRow(NamedTuple):
    """How often and how long the warps of a role waited at an instruction."""

    place: Place | None
    instruction: str
    role: str
    times: int
    total: int


@final
@dataclass(frozen=True, slots=True)
class Timeline:
    """The course of a run."""

    steps: int
    """Blocks that cohorts ran."""
    ended_ctas: int
    """CTAs whose threads all ended."""
    preparing: float = 0.0
    """Seconds it took to lower the kernel and place its arguments."""
    running: float = 0.0
    """Seconds it took to run."""
    waits: list[Wait] = field(default_factory=list[Wait], repr=False)
    operations: list[InFlight] = field(default_factory=list[InFlight], repr=False)
    roles: tuple[str, ...] = field(default=(), repr=False)
    """Of every warp of a CTA: its role, named by the kernel, or after the warps that ran the same code."""
    left_out: int = 0
    """Waits and operations beyond those that are kept."""

    def waits_by_site(self) -> list[WaitRow]:
        """Return how often and how long each role waited at each instruction, the longest first."""
        times: Counter[tuple[Place | None, str, str]] = Counter()
        totals: Counter[tuple[Place | None, str, str]] = Counter()
        for w in self.waits:
            for warp, count in zip(range(w.first, w.first + w.warps.shape[1]), w.warps.sum(axis=0).tolist(), strict=True):
                if count:
                    key = w.place, w.instruction, self.role(warp)
                    times[key] += count
                    totals[key] += count * (w.stop - w.start)
        rows = [WaitRow(*key, n, totals[key]) for key, n in times.items()]
        return sorted(rows, key=lambda r: (-r.total, -r.times, str(r.place), r.instruction, r.role))

    def role(self, warp: int) -> str:
        """Return the role of a warp."""
        return self.roles[warp] if warp < len(self.roles) else "all warps"

    def named(self, roles: Mapping[str, tuple[int, int]]) -> Timeline:
        """Return the timeline with roles named: name -> its first thread and the one behind its last.

        A warp with threads of several roles gets all their names; one with none keeps the name it has. Raise `InputError` for
        what is no range of threads.
        """
        names = list(self.roles)
        parts: dict[int, list[str]] = {}
        for name, (first, stop) in roles.items():
            if not 0 <= first < stop:
                raise InputError(f"roles: {name!r} is threads {first} to {stop}, which is no range; give (first, last + 1)")
            for warp in range(first // 32, min(-(-stop // 32), len(names))):
                parts.setdefault(warp, []).append(name)
        for warp, of in parts.items():
            names[warp] = ", ".join(of)
        return replace(self, roles=tuple(names))

    def save(self, path: str | os.PathLike[str], ctas: int | None = 16) -> None:
        """Write the first `ctas` CTAs of the grid (None: all) as a Chrome trace, which Perfetto and chrome://tracing show.

        One process for each CTA, one thread for each warp; a microsecond there is an instruction of the clock. The file
        appears whole or not at all; a device or a pipe is written to.
        """
        text = json.dumps({"traceEvents": list(self._events(ctas)), "displayTimeUnit": "ns"})
        write_whole(Path(path), text.encode())

    def _events(self, ctas: int | None) -> Iterator[dict[str, Any]]:
        threads: set[tuple[int, int]] = set()
        for w in self.waits:
            for c, k in np.argwhere(w.warps).tolist():
                cta, warp = int(w.ctas[c]), w.first + k
                if ctas is None or cta < ctas:
                    threads.add((cta, warp))
                    yield {
                        "name": w.instruction, "cat": "wait", "ph": "X", "ts": w.start, "dur": w.stop - w.start,
                        "pid": cta, "tid": warp, "args": {"line": str(w.place), "role": self.role(warp)},
                    }  # fmt: skip
        for number, op in enumerate(self.operations):
            if ctas is None or op.cta < ctas:
                threads.add((op.cta, 0))
                same = {"name": op.kind, "cat": "operation", "id": number, "pid": op.cta, "tid": 0}
                yield {**same, "ph": "b", "ts": op.start, "args": {"line": str(op.place)}}
                yield {**same, "ph": "e", "ts": op.stop}
        for cta in sorted({c for c, _ in threads}):
            yield {"name": "process_name", "ph": "M", "pid": cta, "args": {"name": f"CTA {cta}"}}
        for cta, warp in sorted(threads):
            name = f"warp {warp} ({self.role(warp)})"
            yield {"name": "thread_name", "ph": "M", "pid": cta, "tid": warp, "args": {"name": name}}

    @classmethod
    def joined(cls, parts: list[Timeline], preparing: float) -> Timeline:
        """Return the timelines of parts of a grid, which ran beside each other, as one."""
        return cls(
            sum(t.steps for t in parts), sum(t.ended_ctas for t in parts), preparing, sum(t.running for t in parts),
            [w for t in parts for w in t.waits], [o for t in parts for o in t.operations],
            parts[0].roles if parts else (), sum(t.left_out for t in parts),
        )  # fmt: skip


def roles_of(ran: list[int], sizes: list[int], warps: int) -> tuple[str, ...]:
    """Return the role of each warp: `ran` are the warps (bit sets) that ran each block, `sizes` the blocks' instructions.

    Warps play one role if most of the instructions that either ran, both did: the elected warp of a warpgroup belongs to it.
    """
    roles: list[tuple[set[int], list[int]]] = []
    for w in range(warps):
        code = {i for i, bits in enumerate(ran) if bits >> w & 1}
        for known, members in roles:
            both, either = (sum(sizes[i] for i in s) for s in (code & known, code | known))
            if 2 * both > either:
                members.append(w)
                break
        else:
            roles.append((code, [w]))
    names = {w: "all warps" if len(roles) == 1 else _named(members) for _, members in roles for w in members}
    return tuple(names[w] for w in range(warps))


def _named(warps: list[int]) -> str:
    runs: list[list[int]] = []
    for w in warps:
        if runs and runs[-1][-1] == w - 1:
            runs[-1].append(w)
        else:
            runs.append([w])
    text = ",".join(str(r[0]) if len(r) == 1 else f"{r[0]}-{r[-1]}" for r in runs)
    return f"warp {text}" if len(warps) == 1 else f"warps {text}"
