"""Spread a launch's CTAs over processes, where that gives what one process gives.

Every part runs on a memory of its own that holds what was there before the launch. Its result is that of one process if no
part read a byte that another changed, and no two changed the same. Where instructions say beforehand that CTAs work on
common memory (atomics on global memory, dynamic work distribution), or the bytes say it afterwards, one process runs all.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from warpsmith.base.errors import InputError, ToolError, WarpsmithError
from warpsmith.simulator.cooperative import is_cooperative
from warpsmith.simulator.counters import Counters
from warpsmith.simulator.execution import Execution, Report
from warpsmith.simulator.fidelity import Fidelity
from warpsmith.simulator.findings import LIMIT
from warpsmith.simulator.memory import UNDEFINED
from warpsmith.simulator.parts import Image, run_part
from warpsmith.simulator.timeline import Timeline
from warpsmith.simulator.workers import run_in_processes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from warpsmith.base.findings import Finding
    from warpsmith.simulator.execution import Launch
    from warpsmith.simulator.memory import GlobalMemory, Space
    from warpsmith.simulator.parts import Part
    from warpsmith.simulator.program import Operation
    from warpsmith.simulator.watch import Watch

    Progress = Callable[[int, int], None]

__all__ = ["Executor", "run"]

PARTS_EACH = 3
"""Parts for each process, so that those that are done early take over."""
ENOUGH = 8
"""Clusters that a part should have at least: CTAs that run together cost less."""
_PIECE = 1 << 22
"""Bytes of bit sets compared at once."""


class Executor(Protocol):
    """What runs parts elsewhere: an executor of `concurrent.futures`, Dask's client, …"""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **options: Any) -> Any:
        """Return a future with `result()`."""
        ...


def run(
    launch: Launch, memory: GlobalMemory, const: Space, jobs: int, executor: Executor | None, progress: Progress | None,
    watch: Sequence[Watch],
) -> tuple[Report, str]:  # fmt: skip
    """Run a launch on `memory`; return the report, and which processes ran it."""
    whole = Execution(launch, memory, const, 0, launch.ctas, watch)
    if jobs == 1 and executor is None:
        return whole.run(progress), "one process"
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise InputError(f"executor={executor!r:.60}: give an object with submit(function, *arguments)")
    ranges = _ranges(launch.ctas, whole.machine.cluster_size, jobs, local=executor is None)
    reason = "watch points look at one process" if watch else _common(whole)
    reason = reason or ("the grid is one cluster" if len(ranges) < 2 else "")
    if not reason:
        image = Image.of(memory, const)
        if executor is None:
            parts = run_in_processes(launch, image, ranges, jobs, progress)
        else:
            parts = _submitted(executor, launch, image, ranges, progress)
        reason = _conflict(parts, memory)
        if not reason:
            report = _merged(parts, memory, whole, len(parts) == len(ranges))
            where = f"{min(jobs, len(ranges))} processes" if executor is None else type(executor).__name__
            return report, f"{len(ranges)} parts in {where}"
    return whole.run(progress), f"one process: {reason}"


def _ranges(ctas: int, size: int, jobs: int, *, local: bool) -> list[tuple[int, int]]:
    """Return the CTAs of each part: whole clusters of `size`, as even as can be."""
    clusters = ctas // size
    count = jobs * PARTS_EACH if local and clusters >= jobs * PARTS_EACH * ENOUGH else jobs
    edges = [clusters * i // min(count, clusters) * size for i in range(min(count, clusters) + 1)]
    return list(pairwise(edges))


def _submitted(
    executor: Executor, launch: Launch, image: Image, ranges: list[tuple[int, int]], progress: Progress | None
) -> list[Part]:
    try:
        submit = _submitter(executor, launch, image)
        futures = [submit(first, stop) for first, stop in ranges]
    except Exception as error:
        raise _failed(executor, "took no CTAs", error) from error
    parts: list[Part] = []
    try:
        for (first, stop), future in zip(ranges, futures, strict=True):
            parts.append(_result(executor, future, first, stop))
            if progress is not None:
                progress(parts[-1].stop, launch.ctas)
    except KeyboardInterrupt:
        for future in futures:
            future.cancel()
    return parts


def _submitter(executor: Executor, launch: Launch, image: Image) -> Callable[[int, int], Any]:
    """Return what hands out the CTAs first to stop. Dask's client gets launch and memory once, and hashes neither."""
    scatter = getattr(executor, "scatter", None)
    if scatter is None:
        return lambda first, stop: executor.submit(run_part, launch, image, first, stop)
    sent = scatter([launch, image], hash=False, broadcast=True)  # every worker, so that it outlives one
    return lambda first, stop: executor.submit(run_part, *sent, first, stop, pure=False)


def _result(executor: Executor, future: Any, first: int, stop: int) -> Part:
    try:
        return future.result()
    except WarpsmithError:
        raise
    except Exception as error:  # a worker that died, a cluster that was closed: each library has its own
        raise _failed(executor, f"did not run CTAs {first} to {stop - 1}", error) from error


def _failed(executor: Executor, what: str, error: Exception) -> ToolError:
    why = f"{type(error).__name__}: {error}".strip(": ")
    return ToolError(f"simulator: {type(executor).__name__} {what}: {why}")


# --- whether parts can be told apart -----------------------------------------------------------------------------------


def _common(whole: Execution) -> str:
    """Say what makes CTAs work on common memory; empty for nothing."""
    if is_cooperative(whole.machine):
        return "a cooperative launch synchronises its grid"
    for block in whole.program.blocks:
        last: Operation | None = getattr(block.ending, "operation", None)
        for op in block.operations if last is None else [*block.operations, last]:
            words = op.text.split(".")
            shared_by_all = (
                (words[0] in ("atom", "red") and "global" in words)
                or words[0] in ("multimem", "clusterlaunchcontrol")
                or (words[:2] == ["cp", "reduce"] and "shared::cta" in words and "global" in words)
            )
            if shared_by_all:
                where = f" at {op.place}" if op.place else ""
                return f"`{op.text}`{where} is for all CTAs"
    return ""


def _conflict(parts: list[Part], memory: GlobalMemory) -> str:
    """Say which parts met in memory; empty for none."""
    for part in parts:
        if part.heap:
            return "device code calls malloc or free"
    for at in range(0, parts[0].changed.size if parts else 0, _PIECE):
        changed = [np.unpackbits(p.changed[at : at + _PIECE]) for p in parts]
        times = np.zeros(changed[0].size, np.uint8)
        for bits in changed:
            times += bits
        for p, bits in zip(parts, changed, strict=True):
            met = (bits & (times > 1)) | (np.unpackbits(p.reads[at : at + _PIECE]) & (times > bits))
            if met.any():
                byte = 8 * at + int(np.argmax(met))
                return _meeting(parts, p, byte, memory)
    return ""


def _meeting(parts: list[Part], p: Part, byte: int, memory: GlobalMemory) -> str:
    def has(bits: Any) -> bool:
        return bool(bits[byte >> 3] >> (7 - (byte & 7)) & 1)

    other = next(q for q in parts if q is not p and has(q.changed))
    found, _ = memory.allocation_near(byte)
    what = f"{found.name}, byte {byte - found.start}" if found is not None else f"byte {byte}"
    verb = "also wrote" if has(p.changed) else "read"
    return f"{_ctas(other)} wrote {what}, which {_ctas(p)} {verb}"


def _ctas(p: Part) -> str:
    return f"CTA {p.first}" if p.stop == p.first + 1 else f"CTAs {p.first}-{p.stop - 1}"


# --- the whole ----------------------------------------------------------------------------------------------------------


def _merged(parts: list[Part], memory: GlobalMemory, whole: Execution, complete: bool) -> Report:
    """Write what the parts changed to memory, and return their reports as one, in the order of the CTAs."""
    counters, fidelity = Counters(), Fidelity()
    findings: dict[Any, Finding] = {}
    for p in parts:
        place = np.flatnonzero(np.unpackbits(p.changed)[: memory.data.size])
        memory.data[place] = p.values
        memory.shadow[place] &= 0xFF ^ UNDEFINED
        counters.add(p.report.counters)
        for subject, (level, sentence) in p.report.fidelity.notes.items():
            fidelity.note(subject, level, sentence)
        for f in p.report.findings:
            findings.setdefault((f.kind, f.where if f.where is not None else f.message), f)
    timeline = Timeline.joined([p.report.timeline for p in parts], whole.preparing)
    printed = [text for p in parts for text in p.report.printed]
    completed = complete and all(p.report.completed for p in parts)
    interrupted = not complete or any(p.report.interrupted for p in parts)
    return Report(list(findings.values())[:LIMIT], counters, fidelity, timeline, completed, printed, interrupted)
