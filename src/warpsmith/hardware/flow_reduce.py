"""Make random programs on which a GPU and the simulator differ as small as can be, on a machine with the GPU and ptxas.

    python -m warpsmith.hardware.flow_reduce --out OUT --seconds S [--way 0|1] N …
    python -m warpsmith.hardware.flow_reduce --out OUT --seconds S --apart N …

For each number N, `OUT/N.ptx` gets the smallest program found in S seconds, and `OUT/N.txt` where its results differ. A
program that does not end on the GPU is made smaller in the same way. `--way 1` compiles with -O0. `--apart` makes many smaller
at once, of which ptxas's default makes something else than its -O0: they are compared with each other, not with the simulator.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from warpsmith.base.errors import WarpsmithError
from warpsmith.hardware.flow.program import FlowProgram, generate, results
from warpsmith.hardware.flow.shrink import shrunk, shrunk_together, size
from warpsmith.hardware.flow_capture import simulated
from warpsmith.hardware.flow_gpu import OPTIONS, execute, opened
from warpsmith.hardware.gpu_watch import STOP
from warpsmith.hardware.isolated import Crowd
from warpsmith.toolchain.ptxas import compile_ptx

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.hardware.gpu_watch import Watch

__all__ = ["main", "reduced"]

_PATIENCE = 2.0
_ALL = 40.0
"""Seconds in which a process must answer, which compiles and simulates as well."""
_TOGETHER = 14
_HANGS = f"it did not end within {_PATIENCE:g} s"
Both = tuple["NDArray[np.uint64]", "NDArray[np.uint64]"]


def _try(task: tuple[FlowProgram, int]) -> str | Both:
    """Return what hardware and simulator leave; a text if the program is none that the simulator takes or ptxas compiles."""
    p, way = task
    try:
        ours = results(simulated(p))
        cubin = compile_ptx(p.text("sm_90a"), "sm_90a", OPTIONS[way], timeout=60).cubin
    except Exception as error:
        return f"not run: {error}"
    return results(execute(p, cubin, _open(), _PATIENCE)), ours


@cache
def _open() -> Watch:
    return opened(compile_ptx(STOP.format(arch="sm_90a"), "sm_90a").cubin)


def _try_apart(p: FlowProgram) -> str:
    """Return what ptxas's default makes of a program beside its -O0: `same`, `other results`, or why there is no result."""
    text = p.text("sm_90a")
    default, plain = (compile_ptx(text, "sm_90a", options, timeout=60).cubin for options in OPTIONS)
    expected = results(execute(p, plain, _open(), _PATIENCE))
    return "other results" if (results(execute(p, default, _open(), _PATIENCE)) != expected).any() else "same"


def _apart(number: int, out: Path, seconds: float) -> str:
    """Make a program smaller of which the default makes something else; write it, and return a line on it."""
    crowd, p = Crowd(_try_apart, 1, _open), generate(number)
    try:
        (first,) = crowd.each([p], _ALL)
        end = time.monotonic() + seconds

        def holds(candidate: FlowProgram) -> bool:
            return time.monotonic() < end and str(crowd.each([candidate], _ALL)[0])[:20] == str(first)[:20]

        small = p if first == "same" else shrunk(p, holds)
        (out / f"{number}.ptx").write_text(small.text("sm_90a"), encoding="utf-8")
        return f"program {number}: {size(p)} nodes, {size(small)} left: {first}\n"
    finally:
        crowd.end()


def _hangs(answer: Any) -> bool:
    return isinstance(answer, str) and answer.startswith(_HANGS)


def reduced(p: FlowProgram, way: int, crowd: Crowd, seconds: float) -> tuple[FlowProgram, str | Both]:
    """Return the smallest program found that behaves as this one does, and what it leaves."""
    (first,) = crowd.each([(p, way)], _ALL)
    hangs, end = _hangs(first), time.monotonic() + seconds
    last: dict[int, Any] = {id(p): first}

    def holds(answer: Any) -> bool:
        return _hangs(answer) if hangs else not isinstance(answer, str) and bool((answer[0] != answer[1]).any())

    def which(candidates: list[FlowProgram]) -> list[bool]:
        answers = crowd.each([(c, way) for c in candidates], _ALL)
        last.update({id(c): a for c, a in zip(candidates, answers, strict=True)})
        return [holds(a) for a in answers]

    if holds(first):
        p = shrunk_together(p, which, lambda: time.monotonic() < end)
    return p, last[id(p)]


def _shown(p: FlowProgram, answer: str | Both) -> str:
    """Return the results that differ, by their index among `results`."""
    if isinstance(answer, str):
        return answer
    theirs, ours = answer
    total = p.shape.ctas * p.shape.threads
    bad = np.flatnonzero(theirs != ours)
    lines = [f"{len(bad)} results differ; word {k // total} of thread {k % total}" for k in bad[:1].tolist()]
    return "\n".join([*lines, *(f"{k}: hardware {int(theirs[k]):x}, simulator {int(ours[k]):x}" for k in bad[:40].tolist())])


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="flow_reduce", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("numbers", type=int, nargs="+")
    parser.add_argument("--way", type=int, default=0, choices=(0, 1))
    parser.add_argument("--apart", action="store_true")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    if given.apart:
        with ThreadPoolExecutor(min(_TOGETHER, os.cpu_count() or 2)) as threads:
            for line in threads.map(lambda n: _apart(n, given.out, given.seconds), given.numbers):
                sys.stdout.write(line)
                sys.stdout.flush()
        return 0
    crowd = Crowd(_try, min(_TOGETHER, os.cpu_count() or 2), _open)
    try:
        for number in given.numbers:
            p = generate(number)
            small, answer = reduced(p, given.way, crowd, given.seconds)
            (given.out / f"{number}.ptx").write_text(small.text("sm_90a"), encoding="utf-8")
            (given.out / f"{number}.txt").write_text(_shown(small, answer) + "\n", encoding="utf-8")
            sys.stdout.write(f"program {number}: {size(p)} nodes, {size(small)} left: {_shown(small, answer)[:300]}\n")
            sys.stdout.flush()
    except WarpsmithError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    finally:
        crowd.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
