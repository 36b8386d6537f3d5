"""Run random straight-line programs on a GPU and on the simulator, and compare every register bit for bit.

    python -m warpsmith.hardware.differential_capture build --arch sm_90a --cubins DIR      (needs ptxas)
    python -m warpsmith.hardware.differential_capture run --cubins DIR --out OUT            (needs the GPU)
    python -m warpsmith.hardware.differential_capture compare FILE                          (needs numpy)
    python -m warpsmith.hardware.differential_capture others --first 10000 --cubins DIR     (as build: 10,000 others)

`hardware/random_programs.py` makes the programs. Of those that differ `run` says how many do not with `ptxas -O0`, and of the
first the first line whose result does, with its operands. Both need ptxas on the machine with the GPU.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import struct
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from warpsmith.assembly.ptx.parser import parse
from warpsmith.base.errors import InputError, WarpsmithError
from warpsmith.hardware.command import CaptureCommand, Differing, about, compiled, count_report, open_build
from warpsmith.hardware.random_programs import BANKS, SLOTS, THREADS, RandomProgram, generate, module_text, program_inputs
from warpsmith.hardware.scalar_store import block_hashes
from warpsmith.launch.driver import Driver, driver
from warpsmith.simulator.api import simulate
from warpsmith.toolchain.ptxas import compile_ptx

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["DifferentialCapture", "build", "compare", "differing", "differs", "main", "run", "simulated"]

PROGRAMS = 10_000
_PER_MODULE = 50
_WHOLE = 25
"""One of so many programs is captured with all its results."""
_EXPLAINED = 100
"""Programs that differ of which the first differing line is looked for."""
_REGISTERS = [f"{bank}{k}" for bank, n in BANKS.items() if bank != "p" for k in range(n)] + ["predicates"]


@final
@dataclass(slots=True)
class DifferentialCapture:
    """A capture in memory: `about`, the programs, a hash of each register of each, and some programs' results whole."""

    about: dict[str, Any]
    programs: list[RandomProgram]
    hashes: NDArray[np.uint16]
    """`[program, SLOTS]`: one for the 64 threads' values of a register."""
    whole: dict[int, NDArray[np.uint64]] = field(default_factory=dict[int, "NDArray[np.uint64]"])
    """Index of a program -> its results `[SLOTS, THREADS]`."""

    def write(self, path: Path) -> None:
        """Write the file."""
        index = {**self.about, "numbers": [p.number for p in self.programs], "whole": list(self.whole)}
        temporary = path.with_suffix(".part")
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_LZMA) as z:
            z.writestr("index.json", json.dumps(index))
            z.writestr("programs", "\n\n".join("\n".join(p.lines) for p in self.programs))
            z.writestr("hashes", self.hashes.tobytes())
            z.writestr("whole", b"".join(w.tobytes() for w in self.whole.values()))
        temporary.replace(path)

    @classmethod
    def read(cls, path: Path) -> DifferentialCapture:
        """Read the file; raise `InputError` if it is no such capture."""
        try:
            with zipfile.ZipFile(path) as z:
                index = json.loads(z.read("index.json"))
                texts = z.read("programs").decode().split("\n\n")
                hashes = np.frombuffer(z.read("hashes"), np.uint16).reshape(-1, SLOTS)
                whole = np.frombuffer(z.read("whole"), np.uint64).reshape(-1, SLOTS, THREADS)
        except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
            raise InputError(f"{path} is not a capture of random programs: {error}") from error
        numbers, which = index.pop("numbers"), index.pop("whole")
        programs = [RandomProgram(n, tuple(t.split("\n"))) for n, t in zip(numbers, texts, strict=True)]
        return cls(index, programs, hashes, dict(zip(which, whole, strict=True)))


def simulated(program: RandomProgram, arch: str = "sm_90a", *, keep: bool = False) -> NDArray[np.uint64]:
    """Return what the simulator computes: `[SLOTS, THREADS]`, with `keep` that after every line, one after the other."""
    out = np.zeros(((len(program.lines) if keep else 1) * SLOTS, THREADS), np.uint64)
    module = parse(module_text([program], arch, keep=keep))
    args = [program_inputs(program.number), out]
    result = simulate(module, kernel=program.name, grid=(1, 1, 1), block=(THREADS, 1, 1), args=args, check=False)
    if not result.completed:
        raise WarpsmithError(f"{program.name} did not complete: {'; '.join(str(f) for f in result.findings)}")
    return out


def differs(program: RandomProgram, hashes: NDArray[np.uint16], whole: NDArray[np.uint64] | None = None) -> str:
    """Say in which registers the simulator differs from what hardware gave; "" if in none."""
    try:
        ours = simulated(program)
    except WarpsmithError as error:
        return f"program {program.number}: {error}"
    wrong = [r for r, theirs, mine in zip(_REGISTERS, hashes, block_hashes(ours), strict=True) if theirs != mine]
    if not wrong and whole is not None and (whole != ours).any():
        wrong = ["values with equal hashes"]
    return f"program {program.number}: {', '.join(wrong)}" if wrong else ""


# --- the GPU ----------------------------------------------------------------------------------------------------------


def _build_part(task: tuple[range, str]) -> tuple[list[RandomProgram], bytes]:
    numbers, arch = task
    programs = [generate(n, arch) for n in numbers]
    return programs, compiled(module_text(programs, arch), arch)


def build(arch: str, folder: Path, first: int = 0) -> str:
    """Make and compile the programs with numbers from `first` on into `folder/differential.zip`."""
    folder.mkdir(parents=True, exist_ok=True)
    end = first + PROGRAMS
    tasks = [(range(at, min(at + _PER_MODULE, end)), arch) for at in range(first, end, _PER_MODULE)]
    with (
        multiprocessing.get_context("spawn").Pool(max(1, (os.cpu_count() or 2) // 2)) as pool,
        zipfile.ZipFile(folder / "differential.zip", "w", zipfile.ZIP_STORED) as z,
    ):
        manifest: list[list[tuple[int, tuple[str, ...]]]] = []
        for programs, cubin in pool.imap(_build_part, tasks):
            z.writestr(f"{len(manifest)}.cubin", cubin)
            manifest.append([(p.number, p.lines) for p in programs])
        z.writestr("manifest.json", json.dumps({"arch": arch, "modules": manifest}))
    return f"{PROGRAMS} programs in {len(manifest)} modules"


def _execute(gpu: Driver, cubin: bytes, programs: list[RandomProgram], stages: int = 1) -> NDArray[np.uint64]:
    """Return the results `[program, stages · SLOTS, THREADS]`."""
    ins = np.stack([program_inputs(p.number) for p in programs])
    shape = (len(programs), stages * SLOTS, THREADS)
    size = 8 * shape[1] * shape[2]
    source, target = gpu.allocate(ins.nbytes), gpu.allocate(size * len(programs))
    gpu.upload(source, ins.tobytes())
    gpu.upload(target, bytes(size * len(programs)))
    for i, kernel in enumerate(gpu.load_kernels(cubin, [p.name for p in programs])):
        addresses = (source + i * ins[0].nbytes, target + i * size)
        kernel.launch((1, 1, 1), (THREADS, 1, 1), [struct.pack("<Q", a) for a in addresses])
    gpu.synchronize()
    raw = np.frombuffer(gpu.download(target, size * len(programs)), np.uint64).reshape(shape)
    gpu.free(source)
    gpu.free(target)
    return raw


def _compare_part(task: tuple[list[RandomProgram], NDArray[np.uint64]]) -> list[tuple[int, str]]:
    programs, results = task
    texts = [differs(p, block_hashes(r), r) for p, r in zip(programs, results, strict=True)]
    return [(p.number, t) for p, t in zip(programs, texts, strict=True) if t]


def run(folder: Path, out: Path) -> str:
    """Run `folder/differential.zip`; write `out/differential.capture` and, of what differs, `out/differential.txt`."""
    out.mkdir(parents=True, exist_ok=True)
    gpu = driver()
    programs: list[RandomProgram] = []
    hashes: list[NDArray[np.uint16]] = []
    whole: dict[int, NDArray[np.uint64]] = {}
    pending: list[Any] = []
    pool_of = multiprocessing.get_context("spawn").Pool
    with (
        pool_of(max(1, (os.cpu_count() or 2) - 1)) as pool,
        open_build(folder / "differential.zip", "differential_capture") as z,
    ):
        manifest = json.loads(z.read("manifest.json"))
        for i, entries in enumerate(manifest["modules"]):
            part = [RandomProgram(number, tuple(lines)) for number, lines in entries]
            results = _execute(gpu, z.read(f"{i}.cubin"), part)
            whole |= {len(programs) + k: results[k] for k in range(0, len(part), _WHOLE)}
            programs += part
            hashes += [block_hashes(r) for r in results]
            pending.append(pool.apply_async(_compare_part, ((part, results),)))
        found = [d for p in pending for d in p.get()]
    DifferentialCapture(about(manifest["arch"], gpu), programs, np.stack(hashes), whole).write(out / "differential.capture")
    known = {p.number: p for p in programs}
    lines = _explained(gpu, [known[number] for number, _ in found], [text for _, text in found], manifest["arch"])
    lines.insert(0, f"{len(programs)} programs, {len(found)} differ{lines.pop(0) if found else ''}")
    (out / "differential.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return "\n".join(lines)


def _explained(gpu: Driver, programs: list[RandomProgram], texts: list[str], arch: str) -> list[str]:
    """Return how many of the programs agree without optimisation; then each with its text, and where it begins to differ."""

    def made(task: tuple[RandomProgram, bool]) -> bytes | WarpsmithError:
        program, keep = task
        options = ["--fmad=false", *([] if keep else ["-O0"])]
        try:
            return compile_ptx(module_text([program], arch, keep=keep), arch, options).cubin
        except WarpsmithError as error:
            return error

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        plain = list(pool.map(made, [(p, False) for p in programs]))
        kept = list(pool.map(made, [(p, True) for p in programs[:_EXPLAINED]]))
    lines, agree = [""], 0
    for i, (program, text) in enumerate(zip(programs, texts, strict=True)):
        try:
            ours = simulated(program)
        except WarpsmithError:
            lines.append(text)
            continue
        same = isinstance(cubin := plain[i], bytes) and bool((_execute(gpu, cubin, [program])[0] == ours).all())
        agree += same
        lines += [f"{text}; with -O0: {'agrees' if same else cubin if isinstance(cubin, WarpsmithError) else 'differs'}"]
        lines += _first_line(gpu, program, kept[i]) if i < _EXPLAINED else []
    lines[0] = f", {agree} of them agree with ptxas -O0"
    return lines


def _first_line(gpu: Driver, program: RandomProgram, cubin: bytes | WarpsmithError) -> list[str]:
    """Name the first line that differs in a cubin that stores all registers after every line."""
    if isinstance(cubin, WarpsmithError):
        return [f"    {cubin}"]
    theirs = _execute(gpu, cubin, [program], len(program.lines))[0].reshape(-1, SLOTS, THREADS)
    ours = simulated(program, keep=True).reshape(-1, SLOTS, THREADS)
    bad = np.argwhere(theirs != ours)
    if not bad.size:
        return ["    agrees when every line's results are stored: " + " ".join(program.lines)]
    line, slot, thread = (int(x) for x in bad[0])
    before = program_inputs(program.number) if line == 0 else theirs[line - 1]
    state = " ".join(f"{r}={int(before[k, thread]):x}" for k, r in enumerate(_REGISTERS))
    values = f"{_REGISTERS[slot]} {int(theirs[line, slot, thread]):x}, simulator {int(ours[line, slot, thread]):x}"
    return [f"    line {line}, thread {thread}: {program.lines[line]}", f"    {values}; before: {state}"]


def compare(path: Path) -> str:
    """Compare a capture with the simulator."""
    return count_report("programs", *differing(path))


def differing(path: Path) -> Differing:
    """Return how many programs a capture holds, and what differs by number."""
    capture = DifferentialCapture.read(path)
    programs = enumerate(zip(capture.programs, capture.hashes, strict=True))
    texts = {str(p.number): differs(p, h, capture.whole.get(i)) for i, (p, h) in programs}
    return len(texts), {number: text for number, text in texts.items() if text}


def main(arguments: list[str] | None = None) -> int:
    """Run one of the commands; return the exit status."""
    command = CaptureCommand("differential_capture", __doc__, build=build, run=run, compare=compare)
    p = command.add("others", "compile other programs for the GPU", lambda a: build(a.arch, a.cubins, a.first))
    p.add_argument("--first", type=int, required=True, metavar="N", help="number of the first program, which is its seed")
    p.add_argument("--arch", default="sm_90a")
    p.add_argument("--cubins", type=Path, required=True)
    return command.main(arguments)


if __name__ == "__main__":
    sys.exit(main())
