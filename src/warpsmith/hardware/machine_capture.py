"""Capture what a GPU does with memory, atomics, barriers, copies and matrix moves in every form; compare with the simulator.

    python -m warpsmith.hardware.machine_capture build --arch sm_90a --cubins DIR      (needs ptxas)
    python -m warpsmith.hardware.machine_capture run --cubins DIR --out OUT            (needs the GPU and numpy)
    python -m warpsmith.hardware.machine_capture compare FILE                          (needs numpy)

`machine_memory.py`, `machine_lanes.py`, `machine_async.py` and `machine_wmma.py` hold the cases. The capture keeps the text
of programs, of each result slot the first values and two hashes of 64, and the same of the cells in global memory.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from warpsmith.assembly.ptx.parser import parse
from warpsmith.base.errors import InputError, WarpsmithError
from warpsmith.hardware.command import CaptureCommand, Differing, about, compiled, count_report, open_build
from warpsmith.hardware.gpu_run import prepare
from warpsmith.hardware.isolated import each_isolated
from warpsmith.hardware.machine_async import async_cases
from warpsmith.hardware.machine_case import CTAS, THREADS, MachineProgram, arguments, grouped
from warpsmith.hardware.machine_lanes import lane_cases
from warpsmith.hardware.machine_memory import memory_cases
from warpsmith.hardware.machine_wmma import wmma_cases
from warpsmith.hardware.scalar_store import block_hashes
from warpsmith.launch.driver import driver
from warpsmith.simulator.api import simulate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

__all__ = [
    "Captured",
    "MachineCapture",
    "build",
    "compare",
    "difference",
    "differing",
    "machine_programs",
    "main",
    "run",
    "simulated",
]

_HEAD = 4
_LANES = THREADS * CTAS
_CELLS = 8
"""Rows that the cells in global memory add to the results."""
_PATIENCE = 20.0
"""Seconds that a program is given on the GPU and on the simulator."""


def machine_programs() -> list[MachineProgram]:
    """Return every program."""
    groups = (("memory", memory_cases), ("lanes", lane_cases), ("async", async_cases), ("wmma", wmma_cases))
    return [p for name, cases in groups for p in grouped(name, cases())]


@final
@dataclass(frozen=True, slots=True)
class Captured:
    """A program's text, what each of its cases covers, and what hardware gave."""

    name: str
    cluster: bool
    covers: tuple[tuple[tuple[str, ...], int], ...]
    """Per case: the mnemonics it is there for, and its result slots."""
    text: str
    heads: NDArray[np.uint64]
    """`[slot or row of cells, 4]`: the first values."""
    hashes: NDArray[np.uint16]
    """`[slot or row of cells, 2]`."""

    @property
    def slots(self) -> int:
        """Result slots, those of the cells left aside."""
        return sum(n for _, n in self.covers)


@final
@dataclass(slots=True)
class MachineCapture:
    """A capture in memory."""

    about: dict[str, Any]
    items: list[Captured]

    def write(self, path: Path) -> None:
        """Write the file."""
        index = {**self.about, "programs": [[c.name, c.cluster, c.covers] for c in self.items]}
        temporary = path.with_suffix(".part")
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_LZMA) as z:
            z.writestr("index.json", json.dumps(index))
            z.writestr("texts", "\0".join(c.text for c in self.items))
            z.writestr("heads", b"".join(c.heads.tobytes() for c in self.items))
            z.writestr("hashes", b"".join(c.hashes.tobytes() for c in self.items))
        temporary.replace(path)

    @classmethod
    def read(cls, path: Path) -> MachineCapture:
        """Read the file; raise `InputError` if it is no such capture."""
        try:
            with zipfile.ZipFile(path) as z:
                index = json.loads(z.read("index.json"))
                texts, heads, hashes = z.read("texts").decode().split("\0"), z.read("heads"), z.read("hashes")
        except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
            raise InputError(f"{path} is not a capture of machine programs: {error}") from error
        items: list[Captured] = []
        row = 0
        for (name, cluster, covers), text in zip(index.pop("programs"), texts, strict=True):
            cases = tuple((tuple(m), n) for m, n in covers)
            count = max(1, sum(n for _, n in cases)) + _CELLS
            head = np.frombuffer(heads, np.uint64, count * _HEAD, row * _HEAD * 8).reshape(-1, _HEAD)
            mine = np.frombuffer(hashes, np.uint16, count * 2, row * 4).reshape(-1, 2)
            items.append(Captured(name, cluster, cases, text, head, mine))
            row += count
        return cls(index, items)


def _rows(args: list[Any]) -> NDArray[np.uint64]:
    """Return results and cells as rows of one value a thread."""
    return np.concatenate([args[0], args[2].T])


def _condensed(rows: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.uint16]]:
    return rows[:, :_HEAD].copy(), block_hashes(np.ascontiguousarray(rows)).reshape(-1, 2)


def simulated(text: str, slots: int, *, cluster: bool) -> NDArray[np.uint64]:
    """Return what the simulator computes: rows of results, then of the cells."""
    args = arguments(slots)
    shape = (CTAS, 1, 1)
    result = simulate(
        parse(text),
        kernel="k",
        grid=shape,
        block=(THREADS, 1, 1),
        cluster=shape if cluster else (1, 1, 1),
        args=args,
        check=False,
    )
    if not result.completed:
        raise WarpsmithError(f"it did not complete: {'; '.join(str(f) for f in result.findings)}")
    return _rows(args)


def _names(covers: tuple[tuple[tuple[str, ...], int], ...]) -> Iterator[str]:
    for mnemonics, slots in covers:
        for k in range(slots):
            yield f"{' '.join(mnemonics)} result {k}"
    for k in range(_CELLS):
        yield f"word {k} of the cells"


def difference(c: Captured) -> list[str]:
    """Return a line for each result in which the simulator differs."""
    return [line for _, line in _differences(c)]


def _differences(c: Captured) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the forms that a differing result is of (all of the program if that is unknown), and a line that shows it."""
    every = tuple(name for names, _ in c.covers for name in names)
    try:
        heads, hashes = _condensed(simulated(c.text, c.slots, cluster=c.cluster))
    except WarpsmithError as error:
        yield every, f"{c.name}: {error}"
        return
    of = [names for names, slots in c.covers for _ in range(slots)]
    for k, (name, a, b, x, y) in enumerate(zip(_names(c.covers), c.heads, heads, c.hashes, hashes, strict=True)):
        if (a != b).any() or (x != y).any():
            shown = " ".join(f"{int(p):x}/{int(q):x}" for p, q in zip(a, b, strict=True))
            yield of[k] if k < len(of) else every, f"{c.name}: {name}: hardware/simulator {shown}"


# --- the GPU ----------------------------------------------------------------------------------------------------------


def _build_one(task: tuple[int, str]) -> list[tuple[MachineProgram, bytes | str]]:
    """Compile a program; where ptxas rejects it, each of its cases alone."""
    index, arch = task
    p = machine_programs()[index]
    whole = _compiled(p, arch)
    if isinstance(whole, bytes) or len(p.cases) == 1:
        return [(p, whole)]
    parts = [MachineProgram(f"{p.name} case {k}", (c,)) for k, c in enumerate(p.cases)]
    return [(part, _compiled(part, arch)) for part in parts]


def _compiled(p: MachineProgram, arch: str) -> bytes | str:
    try:
        return compiled(p.text(arch), arch)
    except WarpsmithError as error:
        return str(error)


def build(arch: str, folder: Path) -> str:
    """Compile every program into `folder/machine.zip`."""
    folder.mkdir(parents=True, exist_ok=True)
    every = machine_programs()
    lines: list[str] = []
    with (
        multiprocessing.get_context("spawn").Pool(max(1, (os.cpu_count() or 2) // 2)) as pool,
        zipfile.ZipFile(folder / "machine.zip", "w", zipfile.ZIP_DEFLATED) as z,
    ):
        built: list[Any] = []
        tasks = [(i, arch) for i in range(len(every))]
        for p, cubin in (made for parts in pool.imap(_build_one, tasks, chunksize=8) for made in parts):
            if isinstance(cubin, str):
                lines.append(f"{p.name}: {cubin}")
                continue
            z.writestr(f"{len(built)}.cubin", cubin)
            built.append([p.name, p.cluster, [(c.covers, len(c.puts)) for c in p.cases], p.text(arch)])
        z.writestr("manifest.json", json.dumps({"arch": arch, "programs": built}))
    return "\n".join([f"{len(built)} programs, {sum(len(p.cases) for p in every)} cases", *lines])


def _run_one(task: tuple[list[Any], bytes]) -> tuple[Captured, list[str]]:
    """Run a program on this machine's GPU, and compare it; raise `WarpsmithError` where the GPU stops."""
    (name, cluster, covers, text), cubin = task
    cases = tuple((tuple(m), n) for m, n in covers)
    args = arguments(sum(n for _, n in cases))
    shape = (CTAS, 1, 1)
    loaded = prepare(cubin, "k", grid=shape, block=(THREADS, 1, 1), args=args, cluster=shape if cluster else (1, 1, 1))
    loaded.run()
    loaded.free()
    captured = Captured(name, cluster, cases, text, *_condensed(_rows(args)))
    return captured, difference(captured)


def run(folder: Path, out: Path) -> str:
    """Run `folder/machine.zip`, compare, write `out/machine.capture` and `out/machine.txt`."""
    out.mkdir(parents=True, exist_ok=True)
    with open_build(folder / "machine.zip", "machine_capture") as z:
        manifest = json.loads(z.read("manifest.json"))
        tasks = [(p, z.read(f"{i}.cubin")) for i, p in enumerate(manifest["programs"])]
    items: list[Captured] = []
    lines: list[str] = []
    found = each_isolated(_run_one, tasks, workers=min(12, os.cpu_count() or 2), patience=_PATIENCE)
    for ((name, *_), _), answer in zip(tasks, found, strict=True):
        if isinstance(answer, str):
            lines.append(f"{name}: {answer}")
            continue
        items.append(answer[0])
        lines += answer[1]
    MachineCapture(about(manifest["arch"], driver()), items).write(out / "machine.capture")
    report = "\n".join([f"{len(items)} programs, {len(lines)} results differ", *lines])
    (out / "machine.txt").write_text(report + "\n", encoding="utf-8")
    return report


def compare(path: Path) -> str:
    """Compare a capture with the simulator."""
    return count_report("forms", *differing(path))


def differing(path: Path) -> Differing:
    """Return how many forms a capture is there to execute, and what differs by form."""
    capture = MachineCapture.read(path)
    forms = {name for c in capture.items for names, _ in c.covers for name in names}
    return len(forms), {name: line for c in capture.items for names, line in _differences(c) for name in names}


def main(arguments_: list[str] | None = None) -> int:
    """Run one of the commands; return the exit status."""
    return CaptureCommand("machine_capture", __doc__, build=build, run=run, compare=compare).main(arguments_)


if __name__ == "__main__":
    sys.exit(main())
