"""Run random programs of many threads (`hardware/flow`) on a GPU and on the simulator, compare all they leave, bit for bit.

    python -m warpsmith.hardware.flow_capture build --arch sm_90a --cubins DIR       (needs ptxas)
    python -m warpsmith.hardware.flow_capture run --cubins DIR --out OUT             (needs the GPU and numpy)
    python -m warpsmith.hardware.flow_capture some --cubins DIR --out OUT --seconds S   (as run, for a bounded time)
    python -m warpsmith.hardware.flow_capture gather OUT                             (the capture of a run that was broken off)
    python -m warpsmith.hardware.flow_capture compare FILE                           (needs numpy)
    python -m warpsmith.hardware.flow_capture others --first N --count M --cubins DIR    (as build: other programs)
    python -m warpsmith.hardware.flow_capture schedules --first N --count M          (every way to run them gives the same)
    python -m warpsmith.hardware.flow_capture show N                                 (the text of program N)

Every program is compiled twice, with ptxas's default optimisation and with -O0, and runs both ways. None has a race or a
hang, so a finding of the simulator is a difference as well. The capture keeps a digest of each program's text, four of what
it left with -O0, and how it went by default.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warpsmith.assembly.ptx.parser import parse
from warpsmith.base.errors import WarpsmithError
from warpsmith.hardware.command import CaptureCommand, Differing, count_report
from warpsmith.hardware.flow.program import FlowProgram, arguments, generate
from warpsmith.hardware.flow_gpu import PROGRAMS, build, pool, run
from warpsmith.hardware.flow_store import FlowCapture, Log, digest_of, digests, unlike
from warpsmith.simulator.api import simulate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["MODES", "build", "compare", "differing", "differs", "main", "run", "scheduled", "simulated"]

MODES: tuple[dict[str, Any], ...] = (
    {}, {"check": False}, {"schedule": "random", "seed": 1}, {"schedule": "random", "seed": 2},
    {"schedule": "random", "seed": 3}, {"schedule": "random", "seed": 4, "check": False},
    {"schedule": "adversarial", "seed": 1}, {"schedule": "adversarial", "seed": 2}, {"lines": True},
)  # fmt: skip
"""Ways to simulate a program, all of which must give the same, and no finding."""


def simulated(p: FlowProgram, arch: str = "sm_90a", **mode: Any) -> list[Any]:
    """Return the arguments as the simulator leaves them; raise `WarpsmithError` for a finding."""
    values, ctas = arguments(p), p.shape.ctas
    cluster = ctas if p.shape.cluster else None
    try:
        result = simulate(
            parse(p.text(arch)), kernel="k", grid=ctas, block=p.shape.threads, cluster=cluster, args=values, **mode
        )
    except WarpsmithError:
        raise
    except Exception as error:  # a fault of the simulator, which must not hide the other programs
        raise WarpsmithError(f"program {p.number}, {mode or 'fair'}: {type(error).__name__}: {error}") from error
    if result.findings or not result.completed:
        raise WarpsmithError(f"program {p.number}, {mode or 'fair'}: {'; '.join(str(f) for f in result.findings)}")
    return values


def differs(p: FlowProgram, left: NDArray[np.uint32], **mode: Any) -> str:
    """Say in which parts the simulator differs from what hardware left; "" if in none."""
    try:
        ours = digests(simulated(p, **mode))
    except WarpsmithError as error:
        return str(error)
    wrong = unlike(left, ours)
    return f"program {p.number}: {wrong}" if wrong else ""


def scheduled(number: int) -> str:
    """Run a program in every mode; say what differs, "" if nothing does."""
    p = generate(number)
    try:
        expected = digests(simulated(p))
    except WarpsmithError as error:
        return str(error)
    return "\n".join(text for mode in MODES[1:] if (text := differs(p, expected, **mode)) and (text := f"{text} ({mode})"))


def compare(path: Path) -> str:
    """Compare a capture with the simulator."""
    return count_report("programs", *differing(path))


def differing(path: Path) -> Differing:
    """Return how many programs a capture holds, and what differs by number."""
    capture = FlowCapture.read(path)
    found: dict[str, str] = {}
    for number, text, left in zip(capture.numbers, capture.texts, capture.left, strict=True):
        p = generate(number)
        same = digest_of(p.text(capture.about["arch"])) == text
        said = (
            differs(p, left) if same else f"program {number}: the generator makes another text of it now; take the capture anew"
        )
        if said:
            found[str(number)] = said
    return len(capture.numbers), found


def _gathered(out: Path) -> str:
    log = Log.read(out / "flow.log")
    log.capture().write(out / "flow.capture")
    return log.report()


def _schedules(first: int, count: int) -> str:
    with pool() as workers:
        found = [text for text in workers.imap(scheduled, range(first, first + count)) if text]
    return "\n".join([f"{count} programs in {len(MODES)} ways, {len(found)} differ in any", *found])


def _printed(number: int, arch: str) -> str:
    """Print a program whole, however long it is."""
    sys.stdout.write(generate(number).text(arch))
    return ""


def main(arguments_: list[str] | None = None) -> int:
    """Run one of the commands; return the exit status."""
    command = CaptureCommand("flow_capture", __doc__, build=build, run=run, compare=compare)
    others = command.add("others", "compile other programs for the GPU", lambda a: build(a.arch, a.cubins, a.first, a.count))
    others.add_argument("--arch", default="sm_90a")
    others.add_argument("--cubins", type=Path, required=True)
    part = command.add("some", "run for a bounded time", lambda a: run(a.cubins, a.out, a.seconds))
    part.add_argument("--cubins", type=Path, required=True)
    part.add_argument("--out", type=Path, required=True)
    part.add_argument("--seconds", type=float, required=True, metavar="S", help="begin no further programs after S seconds")
    command.add("gather", "make the capture of a log", lambda a: _gathered(a.out)).add_argument("out", type=Path)
    schedules = command.add("schedules", "run programs in every way", lambda a: _schedules(a.first, a.count))
    for p in (others, schedules):
        p.add_argument("--first", type=int, required=True, metavar="N", help="number of the first program, which is its seed")
        p.add_argument("--count", type=int, default=PROGRAMS, metavar="M")
    show = command.add("show", "print a program", lambda a: _printed(a.number, a.arch))
    show.add_argument("number", type=int)
    show.add_argument("--arch", default="sm_90a")
    return command.main(arguments_)


if __name__ == "__main__":
    sys.exit(main())
