"""Compile random programs of many threads in two ways, and run them on this machine's GPU.

First all run as compiled with -O0, then all as ptxas compiles them by default, in which some do not end. Such a program is
ended after some seconds (`gpu_watch.py`), and the process it ran in replaced. In the end, what left other results by default,
or none, runs again, to show whether that repeats.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import time
import zipfile
from ctypes import c_int, c_size_t
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warpsmith.base.errors import WarpsmithError
from warpsmith.hardware.command import about, open_build
from warpsmith.hardware.flow.program import FlowProgram, arguments, generate
from warpsmith.hardware.flow_store import UNOPTIMISED, WAYS, Log, digests
from warpsmith.hardware.gpu_run import prepare
from warpsmith.hardware.gpu_watch import STOP, Watch
from warpsmith.hardware.isolated import Crowd
from warpsmith.launch.driver import driver
from warpsmith.toolchain.ptxas import compile_ptx

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["OPTIONS", "PROGRAMS", "build", "execute", "opened", "pool", "run"]

PROGRAMS = 2_000
OPTIONS = (["--fmad=false"], ["--fmad=false", "-O0"])
_PATIENCE = 4.0
"""Seconds that a program is given on the GPU."""
_ALL = 20.0
"""Seconds in which a process must answer; it loads and copies too, and may wait for others' kernels."""
_WORKERS = 6
_AGAIN = 3
"""How often what went otherwise by default is run again."""
_STACK = 8 * 1024
"""Bytes of a thread's stack on the GPU: the driver does not know what functions need that call themselves."""


def pool() -> Any:
    """Return processes, one a core."""
    return multiprocessing.get_context("spawn").Pool(os.cpu_count())


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
        z.writestr("stop.cubin", compile_ptx(STOP.format(arch=arch), arch).cubin)
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
def opened(stop: bytes) -> Watch:
    """Open the GPU for programs in this process: their stack, and what ends one that does not end."""
    gpu = driver()
    gpu.call("cuCtxSetLimit", c_int(0), c_size_t(_STACK))
    return Watch(gpu, stop)


def execute(p: FlowProgram, cubin: bytes, watch: Watch, patience: float = _PATIENCE) -> list[Any]:
    """Return the arguments as this machine's GPU leaves them; raise `WarpsmithError` if it stops, or is stopped."""
    values, ctas = arguments(p), p.shape.ctas
    cluster = (ctas, 1, 1) if p.shape.cluster else (1, 1, 1)
    loaded = prepare(cubin, "k", grid=(ctas, 1, 1), block=(p.shape.threads, 1, 1), args=values, cluster=cluster)
    loaded.run(lambda: watch.wait(patience))
    loaded.free()
    return values


@cache
def _built(path: str) -> zipfile.ZipFile:
    return zipfile.ZipFile(path)


def _open(path: str) -> Watch:
    return opened(_built(path).read("stop.cubin"))


def _run_one(task: tuple[str, int, int]) -> NDArray[np.uint32]:
    """Run a program on this machine's GPU as compiled in one of the ways; raise `WarpsmithError` where the GPU stops."""
    path, number, way = task
    return digests(execute(generate(number), _built(path).read(f"{number}-{way}.cubin"), _open(path)))


def run(folder: Path, out: Path, seconds: float = float("inf")) -> str:
    """Run `folder/flow.zip`; write `out/flow.log` as results come, then `out/flow.capture` and `out/flow.txt`.

    No program is begun after `seconds`. One that `out/flow.log` has already is not run again.
    """
    out.mkdir(parents=True, exist_ok=True)
    path, end = folder / "flow.zip", time.monotonic() + seconds
    with open_build(path, "flow_capture") as z:
        manifest = json.loads(z.read("manifest.json"))
    log = Log.begin(out / "flow.log", about(manifest["arch"], driver()))
    crowd = Crowd(_run_one, _WORKERS, partial(_open, str(path)))

    def do(numbers: list[int], way: int) -> None:
        crowd.each(
            [(str(path), n, way) for n in numbers], _ALL,
            tell=lambda k, answer: log.add(numbers[k], way, answer), more=lambda: time.monotonic() < end,
        )  # fmt: skip

    try:
        for way in (UNOPTIMISED, 1 - UNOPTIMISED):
            started = time.monotonic()
            do([n for n in manifest["numbers"] if not log.answers.get((n, way))], way)
            log.note(f"{WAYS[way]} in {time.monotonic() - started:.0f} s")
        kept = [n for n in manifest["numbers"] if log.left(n) and log.outcome(n) not in ("same", "not run")]
        for _ in range(_AGAIN):
            do(kept, 1 - UNOPTIMISED)
    finally:
        crowd.end()
    log.capture().write(out / "flow.capture")
    report = log.report()
    (out / "flow.txt").write_text(report + "\n", encoding="utf-8")
    return report
