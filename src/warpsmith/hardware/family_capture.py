"""Capture the products of a GPU's tensor cores in every form, and compare them with the simulator bit for bit.

    python -m warpsmith.hardware.family_capture build --arch sm_90a --cubins DIR      (needs ptxas)
    python -m warpsmith.hardware.family_capture run --cubins DIR --out OUT            (needs the GPU and numpy)
    python -m warpsmith.hardware.family_capture compare FILE                          (needs numpy)

`hardware/tensor_families.py` makes the programs and their operands. `run` writes `OUT/families.capture`, and of what differs
`OUT/families.txt` and the whole results, `OUT/families-differing.npz`.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import zipfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from warpsmith.assembly.ptx.parser import parse
from warpsmith.base.errors import InputError, WarpsmithError
from warpsmith.hardware.command import CaptureCommand, Differing, about, compiled, count_report, open_build
from warpsmith.hardware.gpu_run import prepare
from warpsmith.hardware.scalar_store import BLOCK, block_hashes
from warpsmith.hardware.tensor_families import Family, families, module_text
from warpsmith.launch.driver import driver
from warpsmith.simulator.api import simulate

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Captured", "FamilyCapture", "build", "compare", "difference", "differing", "main", "run", "simulated"]

_PER_MODULE = 32
_HEAD = 256
"""Words that are kept of each form's results."""
_KEPT = 1_000_000
"""Words of differing forms that are kept whole."""


@final
@dataclass(frozen=True, slots=True)
class Captured:
    """What hardware gave for a form: its first results, and 16 bits of hash for each 64 of all."""

    family: Family
    head: NDArray[Any]
    hashes: NDArray[np.uint16]


@final
@dataclass(slots=True)
class FamilyCapture:
    """A capture in memory."""

    about: dict[str, Any]
    items: list[Captured]

    def write(self, path: Path) -> None:
        """Write the file."""
        temporary = path.with_suffix(".part")
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_LZMA) as z:
            z.writestr("index.json", json.dumps({**self.about, "forms": [asdict(c.family) for c in self.items]}))
            z.writestr("heads", b"".join(c.head.tobytes() for c in self.items))
            z.writestr("hashes", b"".join(c.hashes.tobytes() for c in self.items))
        temporary.replace(path)

    @classmethod
    def read(cls, path: Path) -> FamilyCapture:
        """Read the file; raise `InputError` if it is no such capture."""
        try:
            with zipfile.ZipFile(path) as z:
                index = json.loads(z.read("index.json"))
                heads, hashes = z.read("heads"), z.read("hashes")
        except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
            raise InputError(f"{path} is not a capture of tensor cores: {error}") from error
        items: list[Captured] = []
        at = hash_at = 0
        for entry in index.pop("forms"):
            f = Family(**entry)
            count = f.ctas * f.words_out
            kept = min(_HEAD, count)
            head = np.frombuffer(heads, f"u{f.unit}", kept, at)
            items.append(Captured(f, head, np.frombuffer(hashes, np.uint16, count // BLOCK, hash_at)))
            at, hash_at = at + kept * f.unit, hash_at + count // BLOCK * 2
        return cls(index, items)


def simulated(f: Family, ctas: int, arch: str = "sm_90a") -> NDArray[Any]:
    """Return what the simulator computes on the first CTAs."""
    args = f.arguments(ctas)
    module = parse(module_text([f], arch))
    r = simulate(module, kernel="k0", grid=(ctas, 1, 1), block=(128, 1, 1), args=args, check=False, numerics="exact")
    if not r.completed:
        raise WarpsmithError(f"{f.key} did not complete: {'; '.join(str(x) for x in r.findings)}")
    return args[0]


def difference(c: Captured, ctas: int | None = None) -> str:
    """Say how the simulator differs on the first CTAs (None: on all); "" if it does not."""
    f = c.family
    try:
        ours = simulated(f, min(f.ctas, ctas or f.ctas))
    except WarpsmithError as error:
        return f"{f.key}: {error}"
    bad = np.flatnonzero(c.head[: ours.size] != ours[: c.head.size])
    if bad.size:
        shown = "; ".join(f"[{i}] {int(c.head[i]):x}, simulator {int(ours[i]):x}" for i in bad[:: max(1, bad.size // 4)][:4])
        return f"{f.key}: {bad.size} of the first {c.head.size} words differ: {shown}"
    found = block_hashes(ours)
    wrong = int((found != c.hashes[: found.size]).sum())
    return f"{f.key}: {wrong} of {found.size} blocks of {BLOCK} words differ" if wrong else ""


# --- the GPU ----------------------------------------------------------------------------------------------------------


def _build_part(task: tuple[list[Family], str]) -> bytes:
    part, arch = task
    return compiled(module_text(part, arch), arch)


def build(arch: str, folder: Path) -> str:
    """Compile every form into `folder/families.zip`."""
    folder.mkdir(parents=True, exist_ok=True)
    every = families(arch)
    parts = [list(every[at : at + _PER_MODULE]) for at in range(0, len(every), _PER_MODULE)]
    with (
        multiprocessing.get_context("spawn").Pool(max(1, (os.cpu_count() or 2) // 2)) as pool,
        zipfile.ZipFile(folder / "families.zip", "w", zipfile.ZIP_DEFLATED) as z,
    ):
        for i, cubin in enumerate(pool.imap(_build_part, [(p, arch) for p in parts])):
            z.writestr(f"{i}.cubin", cubin)
        z.writestr("manifest.json", json.dumps({"arch": arch, "modules": [[asdict(f) for f in p] for p in parts]}))
    return f"{len(every)} forms in {len(parts)} modules"


_Answer = tuple[list[Captured], list[tuple[str, "NDArray[Any] | None"]]]


def _run_part(task: tuple[list[Family], bytes]) -> _Answer:
    """Run a module in a process of its own; return its captures, and texts of what differs with the whole results."""
    part, cubin = task
    captured: list[Captured] = []
    differing: list[tuple[str, NDArray[Any] | None]] = []
    for i, f in enumerate(part):
        args = f.arguments(f.ctas)
        try:
            loaded = prepare(cubin, f"k{i}", grid=(f.ctas, 1, 1), block=(128, 1, 1), args=args)
            loaded.run()
            loaded.free()
        except WarpsmithError as error:
            return captured, [*differing, (f"{f.key}: {error}", None)]
        captured.append(Captured(f, args[0][:_HEAD].copy(), block_hashes(args[0])))
        if text := difference(captured[-1]):
            differing.append((text, args[0]))
    return captured, differing


def run(folder: Path, out: Path) -> str:
    """Run `folder/families.zip`, compare, and write the capture."""
    out.mkdir(parents=True, exist_ok=True)
    with open_build(folder / "families.zip", "family_capture") as z:
        manifest = json.loads(z.read("manifest.json"))
        tasks = [([Family(**e) for e in part], z.read(f"{i}.cubin")) for i, part in enumerate(manifest["modules"])]
    # a fault kills the context, so every module has a process of its own
    with multiprocessing.get_context("spawn").Pool(os.cpu_count() or 2, maxtasksperchild=1) as pool:
        answers = pool.map(_run_part, tasks, chunksize=1)
    items = [c for captured, _ in answers for c in captured]
    FamilyCapture(about(manifest["arch"], driver()), items).write(out / "families.capture")
    differing = [d for _, found in answers for d in found]
    kept: dict[str, Any] = {}
    for text, values in differing:
        if values is not None and sum(v.size for v in kept.values()) < _KEPT:
            kept[text.partition(":")[0]] = values
    np.savez_compressed(out / "families-differing.npz", **kept)
    report = "\n".join([f"{len(items)} forms, {len(differing)} differ", *(t for t, _ in differing)])
    (out / "families.txt").write_text(report + "\n", encoding="utf-8")
    return report


def compare(path: Path) -> str:
    """Compare a capture with the simulator."""
    return count_report("forms", *differing(path))


def differing(path: Path) -> Differing:
    """Return how many forms a capture holds, and what differs by form."""
    capture = FamilyCapture.read(path)
    return len(capture.items), {c.family.key: text for c in capture.items if (text := difference(c))}


def main(arguments: list[str] | None = None) -> int:
    """Run one of the commands; return the exit status."""
    return CaptureCommand("family_capture", __doc__, build=build, run=run, compare=compare).main(arguments)


if __name__ == "__main__":
    sys.exit(main())
