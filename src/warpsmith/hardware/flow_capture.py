"""Run random programs of many threads (`hardware/flow`) on a GPU and on the simulator, compare all they leave, bit for bit.

    python -m warpsmith.hardware.flow_capture build --arch sm_90a --cubins DIR       (needs ptxas)
    python -m warpsmith.hardware.flow_capture run --cubins DIR --out OUT             (needs the GPU and numpy)
    python -m warpsmith.hardware.flow_capture some --cubins DIR --out OUT --seconds S   (as run, for a bounded time)
    python -m warpsmith.hardware.flow_capture compare FILE                           (needs numpy)
    python -m warpsmith.hardware.flow_capture others --first N --count M --cubins DIR    (as build: other programs)
    python -m warpsmith.hardware.flow_capture schedules --first N --count M          (every way to run them gives the same)
    python -m warpsmith.hardware.flow_capture show N                                 (the text of program N)

Every program is compiled twice, with ptxas's default optimisation and with -O0, and runs both ways. None has a race or a
hang, so a finding of the simulator is a difference as well. The capture keeps a digest of each program's text, and four of
what it left.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import time
import zipfile
import zlib
from ctypes import c_int, c_size_t
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from warpsmith.assembly.ptx.parser import parse
from warpsmith.base.errors import InputError, WarpsmithError
from warpsmith.hardware.command import CaptureCommand, Differing, about, count_report, open_build
from warpsmith.hardware.flow.program import FlowProgram, arguments, generate
from warpsmith.hardware.gpu_run import prepare
from warpsmith.hardware.isolated import each_isolated
from warpsmith.launch.driver import driver
from warpsmith.simulator.api import simulate
from warpsmith.toolchain.ptxas import compile_ptx

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "MODES", "OPTIONS", "FlowCapture", "build", "compare", "differing", "differs", "digest_of", "digests", "execute", "main",
    "run", "scheduled", "simulated",
]  # fmt: skip

PROGRAMS = 2_000
DIGESTS = ("first store", "second store", "cells", "counters and bulk copies")
"""What the four digests of a program are of."""
OPTIONS = (["--fmad=false"], ["--fmad=false", "-O0"])
WAYS = ("default", "-O0")
"""What the two ways of compiling are called."""
_PATIENCE = 8.0
"""Seconds that a program is given on the GPU."""
_TOGETHER = 200
"""Programs that run before what they left is judged and written."""
_STACK = 32 * 1024
"""Bytes of a thread's stack on the GPU: the driver does not know what functions need that call themselves."""
MODES: tuple[dict[str, Any], ...] = (
    {}, {"check": False}, {"schedule": "random", "seed": 1}, {"schedule": "random", "seed": 2},
    {"schedule": "random", "seed": 3}, {"schedule": "random", "seed": 4, "check": False},
    {"schedule": "adversarial", "seed": 1}, {"schedule": "adversarial", "seed": 2}, {"lines": True},
)  # fmt: skip
"""Ways to simulate a program, all of which must give the same, and no finding."""


@final
@dataclass(slots=True)
class FlowCapture:
    """A capture in memory: for each program its number, the digest of its text, and those of what hardware left."""

    about: dict[str, Any]
    numbers: list[int]
    texts: NDArray[np.uint32]
    """`[program]`"""
    left: NDArray[np.uint32]
    """`[program, 4]`"""

    def write(self, path: Path) -> None:
        """Write the file."""
        temporary = path.with_suffix(".part")
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_LZMA) as z:
            z.writestr("index.json", json.dumps({**self.about, "numbers": self.numbers}))
            z.writestr("texts", self.texts.tobytes())
            z.writestr("left", self.left.tobytes())
        temporary.replace(path)

    @classmethod
    def read(cls, path: Path) -> FlowCapture:
        """Read the file; raise `InputError` if it is no such capture."""
        try:
            with zipfile.ZipFile(path) as z:
                index = json.loads(z.read("index.json"))
                texts = np.frombuffer(z.read("texts"), np.uint32)
                left = np.frombuffer(z.read("left"), np.uint32).reshape(len(texts), len(DIGESTS))
        except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
            raise InputError(f"{path} is not a capture of random programs of many threads: {error}") from error
        return cls(index, index.pop("numbers"), texts, left)


def digest_of(text: str) -> int:
    """Return the digest of a program's text."""
    return zlib.crc32(text.encode())


def pool() -> Any:
    """Return processes, one a core."""
    return multiprocessing.get_context("spawn").Pool(os.cpu_count())


def digests(values: list[Any]) -> NDArray[np.uint32]:
    """Return the digests of what a run left in its arguments."""
    _, out, cells, counters, bulk, _ = values
    half = len(out) // 2
    parts = (out[:half].tobytes(), out[half:].tobytes(), cells.tobytes(), counters.tobytes() + bulk.tobytes())
    return np.array([zlib.crc32(p) for p in parts], np.uint32)


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
    wrong = _unlike(left, ours)
    return f"program {p.number}: {wrong}" if wrong else ""


def _unlike(left: NDArray[np.uint32], ours: NDArray[np.uint32]) -> str:
    return ", ".join(name for name, a, b in zip(DIGESTS, left, ours, strict=True) if a != b)


def scheduled(number: int) -> str:
    """Run a program in every mode; say what differs, "" if nothing does."""
    p = generate(number)
    try:
        expected = digests(simulated(p))
    except WarpsmithError as error:
        return str(error)
    return "\n".join(text for mode in MODES[1:] if (text := differs(p, expected, **mode)) and (text := f"{text} ({mode})"))


# --- the GPU ----------------------------------------------------------------------------------------------------------


def _build_one(task: tuple[int, str]) -> tuple[int, list[bytes | str]]:
    """Compile a program in both ways; as text what ptxas says where it does not."""
    number, arch = task
    text = generate(number).text(arch)
    made: list[bytes | str] = []
    for options in OPTIONS:
        try:
            made.append(compile_ptx(text, arch, options, timeout=60).cubin)
        except WarpsmithError as error:
            made.append(str(error))
    return number, made


def build(arch: str, folder: Path, first: int = 0, count: int = PROGRAMS) -> str:
    """Make and compile programs into `folder/flow.zip`."""
    folder.mkdir(parents=True, exist_ok=True)
    rejected: list[str] = []
    numbers: list[int] = []
    with (
        pool() as workers,
        zipfile.ZipFile(folder / "flow.zip", "w", zipfile.ZIP_STORED) as z,
    ):
        for number, made in workers.imap(_build_one, [(n, arch) for n in range(first, first + count)], chunksize=4):
            errors = [cubin for cubin in made if isinstance(cubin, str)]
            rejected += [f"program {number}: {error}" for error in errors]
            if errors:
                continue
            numbers.append(number)
            for k, cubin in enumerate(made):
                z.writestr(f"{number}-{k}.cubin", cubin)
        z.writestr("manifest.json", json.dumps({"arch": arch, "numbers": numbers}))
    return "\n".join([f"{len(numbers)} programs", *rejected])


@cache
def _deep_stack() -> None:
    driver().call("cuCtxSetLimit", c_int(0), c_size_t(_STACK))


def execute(p: FlowProgram, cubin: bytes) -> list[Any]:
    """Return the arguments as this machine's GPU leaves them."""
    _deep_stack()
    values, ctas = arguments(p), p.shape.ctas
    cluster = (ctas, 1, 1) if p.shape.cluster else (1, 1, 1)
    loaded = prepare(cubin, "k", grid=(ctas, 1, 1), block=(p.shape.threads, 1, 1), args=values, cluster=cluster)
    loaded.run()
    loaded.free()
    return values


def _run_one(task: tuple[str, int, int]) -> NDArray[np.uint32]:
    """Run a program on this machine's GPU as compiled in one of the ways; raise `WarpsmithError` where the GPU stops."""
    path, number, way = task
    with zipfile.ZipFile(path) as z:
        cubin = z.read(f"{number}-{way}.cubin")
    return digests(execute(generate(number), cubin))


def _judge(task: tuple[int, list[NDArray[np.uint32] | str]]) -> str:
    """Return what differs between hardware and simulator for each way of compiling, and between two schedules."""
    number, answers = task
    p = generate(number)
    try:
        ours = digests(simulated(p))
    except WarpsmithError as error:
        return str(error)
    lines: list[str] = []
    for way, left in zip(WAYS, answers, strict=True):
        text = left if isinstance(left, str) else _unlike(left, ours)
        lines += [f"program {number}, {way}: {text}"] if text else []
    lines += [text] if (text := differs(p, ours, schedule="random", seed=number)) else []
    return "\n".join(lines)


def run(folder: Path, out: Path, seconds: float = float("inf")) -> str:
    """Run `folder/flow.zip`, compare, write `out/flow.capture` (what -O0 left) and `out/flow.txt`, for about `seconds`."""
    out.mkdir(parents=True, exist_ok=True)
    path = folder / "flow.zip"
    with open_build(path, "flow_capture") as z:
        manifest = json.loads(z.read("manifest.json"))
    numbers, arch = manifest["numbers"], manifest["arch"]
    started, lines, done = time.monotonic(), list[str](), 0
    kept: list[tuple[int, NDArray[np.uint32]]] = []
    with pool() as judges:
        while done < len(numbers) and time.monotonic() - started < seconds:
            some = numbers[done : done + _TOGETHER]
            tasks = [(str(path), n, way) for n in some for way in range(len(WAYS))]
            raw = each_isolated(_run_one, tasks, workers=min(12, os.cpu_count() or 2), patience=_PATIENCE)
            answers = [raw[i : i + len(WAYS)] for i in range(0, len(raw), len(WAYS))]
            lines += [text for text in judges.imap(_judge, list(zip(some, answers, strict=True))) if text]
            kept += [(n, left) for n, (_, left) in zip(some, answers, strict=True) if not isinstance(left, str)]
            done += len(some)
            report = "\n".join([f"{done} programs, compiled in two ways, {len(lines)} differ in any", *lines])
            (out / "flow.txt").write_text(report + "\n", encoding="utf-8")
            _written(kept, arch, out / "flow.capture")
    return (out / "flow.txt").read_text(encoding="utf-8").rstrip("\n")


def _written(kept: list[tuple[int, NDArray[np.uint32]]], arch: str, path: Path) -> None:
    texts = np.array([digest_of(generate(n).text(arch)) for n, _ in kept], np.uint32)
    left = np.array([digests_ for _, digests_ in kept], np.uint32).reshape(-1, len(DIGESTS))
    FlowCapture(about(arch, driver()), [n for n, _ in kept], texts, left).write(path)


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
