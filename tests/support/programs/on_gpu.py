"""Compare the programs with a Hopper GPU bit for bit: cubins and expected arrays made where the tools are, compared on a GPU.

    PYTHONPATH=src:tests/support python -m programs.on_gpu prepare FOLDER [COMPILER…]
    PYTHONPATH=src:tests/support python -m programs.on_gpu compare FOLDER

COMPILER is a folder of tests/data/ptx, e.g. `clang`; without one, all programs are prepared. Whatever the PTX is for, the
simulator has the H200's numerics. `compare` needs numpy and a driver, no compiler. Every program is judged on the GPU by its
own reference, too.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from ctypes import c_int, c_size_t
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from programs.every import PROGRAMS
from programs.program import Launch, Program, run
from ptx_corpus import sample_text
from warpsmith.hardware.gpu_run import prepare as on_device
from warpsmith.launch.driver import driver
from warpsmith.toolchain import find_tool

PREFERRED = ("sm_90a.lines", "sm_90a", "sm_90", "sm_80")


def arch_of(p: Program) -> str | None:
    """The architecture whose PTX a Hopper GPU runs."""
    return next((a for a in PREFERRED if a in p.archs), None)


def chosen() -> list[tuple[Program, str]]:
    return [(p, a) for p in PROGRAMS if not p.machine and (a := arch_of(p))]


def key(p: Program) -> str:
    return f"{p.compiler}-{p.source}-{p.name}"


def digest(arrays: list[np.ndarray]) -> list[str]:
    return [hashlib.sha256(np.ascontiguousarray(a).tobytes()).hexdigest()[:16] for a in arrays]


def prepare(folder: Path, compilers: Sequence[str]) -> None:
    """Assemble the files of these compilers, or all, without contraction, and note what the simulator computes."""
    folder.mkdir(parents=True, exist_ok=True)
    expected: dict[str, Any] = {}
    ptxas = find_tool("ptxas")
    assert ptxas, "ptxas is needed: pip install 'warpsmith[cuda]'"
    for p, arch in chosen():
        if compilers and p.compiler not in compilers:
            continue
        cubin = folder / f"{p.file(arch).replace('/', '-')}.cubin"
        if not cubin.exists():
            text = sample_text(p.file(arch))
            with tempfile.NamedTemporaryFile("w", suffix=".ptx") as ptx:
                ptx.write(text)
                ptx.flush()
                real = "sm_90a" if "sm_90a" in text or "sm_90" not in text else "sm_90"
                subprocess.run([str(ptxas.path), "--fmad=false", f"-arch={real}", ptx.name, "-o", str(cubin)], check=True)
        arrays = run(p, arch, {"device": "H200"}).arrays
        expected[key(p)] = {"cubin": cubin.name, "arrays": digest(arrays) if p.ordered else None}
    (folder / "expected.json").write_text(json.dumps(expected, indent=1))


@contextlib.contextmanager
def captured() -> Iterator[Any]:
    """Take what the driver writes to the standard output; `.printed` of what is yielded, afterwards."""
    out = SimpleNamespace(printed="")
    with tempfile.TemporaryFile() as file:
        sys.stdout.flush()
        kept = os.dup(1)
        os.dup2(file.fileno(), 1)
        try:
            yield out
        finally:
            os.dup2(kept, 1)
            os.close(kept)
            file.seek(0)
            out.printed = file.read().decode("utf-8", "replace")


def three(shape: Any) -> tuple[int, int, int]:
    x, y, z = (*((shape,) if isinstance(shape, int) else shape), 1, 1)[:3]
    return x, y, z


_STACK = 16 << 10
"""Bytes of stack for each thread: what the simulator gives to recursive functions."""


def launch_once(launch: Launch, cubin: bytes, kernel: str) -> Any:
    args = [np.float32(a) if type(a) is float else a for a in launch.args]
    with captured() as out:
        prepared = on_device(
            cubin, kernel, grid=three(launch.grid), block=three(launch.block), args=args, cluster=three(launch.cluster or 1),
            dynamic_shared=launch.shared,
        )  # fmt: skip
        driver().call("cuCtxSetLimit", c_int(0), c_size_t(_STACK))
        prepared.run()
    prepared.free()
    return out


def compare_one(p: Program, arch: str, folder: Path, expected: dict[str, Any]) -> str:
    """Return '' when the GPU computes what the simulator computed, and what the reference wants; else what is wrong."""
    cubin = (folder / expected["cubin"]).read_bytes()
    arrays: list[np.ndarray] = []
    judge = p.judge(arch)
    launch = next(judge)
    while True:
        out = launch_once(launch, cubin, launch.kernel or p.name)
        arrays += [a.copy() for a in launch.arrays()]
        try:
            launch = judge.send(out)
        except StopIteration:
            break
    got, want = digest(arrays), expected["arrays"]
    if want is not None and got != want:
        return (
            f"other bits than the simulator in arrays {[i for i, (a, b) in enumerate(zip(got, want, strict=True)) if a != b]}"
        )
    return ""


def compare(folder: Path, start: int = 0) -> None:
    """Compare from program `start` on; a fault ends the process, and a fresh one goes on behind it."""
    expected = json.loads((folder / "expected.json").read_text())
    programs = [(p, a) for p, a in chosen() if key(p) in expected]
    for i, (p, arch) in enumerate(programs):
        if i < start:
            continue
        try:
            wrong = compare_one(p, arch, folder, expected[key(p)])
        except AssertionError as e:
            wrong = f"the reference disagrees: {str(e)[:200]}"
        except Exception as e:
            print(f"FAULT {key(p)} {arch}: {type(e).__name__}: {str(e)[:300]}", flush=True)
            os.execv(sys.executable, [sys.executable, "-m", "programs.on_gpu", "compare", str(folder), str(i + 1)])
        print(f"{'WRONG' if wrong else 'same'} {key(p)} {arch} {wrong}", flush=True)
    print(f"{len(programs)} programs", flush=True)


if __name__ == "__main__":
    folder = Path(sys.argv[2])
    if sys.argv[1] == "prepare":
        prepare(folder, sys.argv[3:])
    else:
        compare(folder, int(sys.argv[3]) if len(sys.argv) > 3 else 0)
