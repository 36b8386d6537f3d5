"""Capture what a GPU's tensor cores and tensor copies do, and compare it with the simulator, bit for bit.

python -m warpsmith.hardware.tensor_capture build --arch sm_90a --cubins DIR     (needs ptxas)
python -m warpsmith.hardware.tensor_capture run --cubins DIR --out OUT           (needs the GPU, numpy, ml_dtypes)
python -m warpsmith.hardware.tensor_capture compare OUT/tensor.npz
"""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from warpsmith.assembly.ptx import parse
from warpsmith.base.errors import CapabilityError, InputError, WarpsmithError
from warpsmith.hardware.command import CaptureCommand, Differing, about, count_report, open_build
from warpsmith.hardware.gpu_run import prepare
from warpsmith.hardware.isolated import each_isolated
from warpsmith.hardware.tensor_programs import TensorProgram, tensor_programs
from warpsmith.launch.driver import driver
from warpsmith.simulator.api import simulate
from warpsmith.toolchain.ptxas import compile_ptx

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["build", "compare", "difference", "differing", "main", "on_gpu", "run", "simulated"]


def build(arch: str, folder: Path) -> str:
    """Compile every program into `folder/tensor.zip`."""
    folder.mkdir(parents=True, exist_ok=True)
    every = tensor_programs()
    with zipfile.ZipFile(folder / "tensor.zip", "w", zipfile.ZIP_DEFLATED) as z:
        for i, p in enumerate(every):
            z.writestr(f"{i}.cubin", compile_ptx(p.text, arch, name=p.name).cubin)
        z.writestr("manifest.json", json.dumps({"arch": arch, "names": [p.name for p in every]}))
    return f"{len(every)} programs"


_PATIENCE = 20.0
"""Seconds that a GPU is given for one program."""

Task = tuple[str, bytes]
"""A program's name and its cubin."""
Answer = NDArray[Any] | str
"""The output of a program, or the driver's error."""


def run(folder: Path, out: Path, *, each: Callable[[list[Task]], list[Answer]] | None = None) -> str:
    """Run `folder/tensor.zip` and write `out/tensor.npz`: by name the output of each program, or the driver's error as text.

    `each` answers the tasks, by default on the GPU, each in a process of its own.
    """
    out.mkdir(parents=True, exist_ok=True)
    known = {p.name for p in tensor_programs()}
    with open_build(folder / "tensor.zip", "tensor_capture") as z:
        manifest = json.loads(z.read("manifest.json"))
        names = manifest["names"]
        tasks = [(name, z.read(f"{i}.cubin")) for i, name in enumerate(names) if name in known]
    answers = (each or _each_on_gpu)(tasks)
    failed = [f"{name}: {answer}" for (name, _), answer in zip(tasks, answers, strict=True) if isinstance(answer, str)]
    results = {name: np.asarray(answer) for (name, _), answer in zip(tasks, answers, strict=True)}
    results["about"] = np.array(json.dumps(about(manifest["arch"], driver())))
    np.savez_compressed(out / "tensor.npz", **results)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    report = "\n".join([compare(out / "tensor.npz"), *failed])
    (out / "tensor.txt").write_text(report + "\n")
    return f"{len(results) - 1} programs\n{report}"


def _each_on_gpu(tasks: list[Task]) -> list[Answer]:
    return each_isolated(on_gpu, tasks, workers=min(12, os.cpu_count() or 2), patience=_PATIENCE)


def on_gpu(task: Task) -> NDArray[Any]:
    """Run a program on this machine's GPU; raise `WarpsmithError` with the driver's error, after which the context is lost."""
    name, cubin = task
    (p,) = (p for p in tensor_programs() if p.name == name)
    args = p.arguments()
    loaded = prepare(cubin, "k", grid=(1, 1, 1), block=(p.block, 1, 1), args=args)
    loaded.run()
    loaded.free()
    return args[0]


def simulated(p: TensorProgram) -> np.ndarray:
    """Return what the simulator computes for a program."""
    args = p.arguments()
    r = simulate(parse(p.text), kernel="k", grid=(1, 1, 1), block=(p.block, 1, 1), args=args, check=False, numerics="exact")
    if not r.completed:
        raise WarpsmithError(f"{p.name} did not complete: {'; '.join(str(f) for f in r.findings)}")
    return args[0]


def compare(path: Path) -> str:
    """Compare a capture with the simulator; return a report that begins with the number of programs that differ."""
    return count_report("programs", *differing(path))


def differing(path: Path) -> Differing:
    """Return how many programs a capture holds, and what differs by name."""
    try:
        captured = dict(np.load(path))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is not a tensor capture: {error}") from error
    every = [p for p in tensor_programs() if p.name in captured]
    found = {p.name: difference(p, captured[p.name]) for p in every}
    return len(every), {name: f"{name}: {text}" for name, text in found.items() if text}


def difference(p: TensorProgram, captured: NDArray[Any]) -> str:
    """Return how the simulator differs from what was captured of a program; "" if it does not.

    Where the GPU stopped the simulator must stop with a finding.
    """
    failed = str(captured) if captured.dtype.kind == "U" else ""
    try:
        ours, theirs = simulated(p).reshape(-1), captured.reshape(-1)
    except CapabilityError as error:
        return f"{error}; the GPU stopped: {failed}" if failed else str(error)
    except WarpsmithError as error:
        return "" if failed else f"{error}; the GPU completed"
    if failed:
        return f"the simulator completed; the GPU stopped: {failed}"
    bad = np.flatnonzero(ours != theirs)
    if not bad.size:
        return ""
    shown = "; ".join(f"[{i}] {int(theirs[i]):x}, simulator {int(ours[i]):x}" for i in bad[:: max(1, bad.size // 6)][:6])
    return f"{bad.size} of {ours.size} differ: {shown}"


def main(arguments: list[str] | None = None) -> int:
    """Run one of the commands; return the exit status."""
    return CaptureCommand("tensor_capture", __doc__, build=build, run=run, compare=compare).main(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
