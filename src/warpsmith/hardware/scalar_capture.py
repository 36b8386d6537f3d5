"""Capture what a GPU computes for every scalar instruction form, and compare it with the simulator.

    python -m warpsmith.hardware.scalar_capture build --arch sm_90a --cubins DIR      (needs ptxas)
    python -m warpsmith.hardware.scalar_capture run --cubins DIR --out OUT            (needs the GPU and numpy)
    python -m warpsmith.hardware.scalar_capture compare FILE                          (needs numpy)

docs/design/hardware-capture.md says what is in the files.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import struct
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpsmith.base.errors import CompilationError
from warpsmith.hardware.command import CaptureCommand, Differing, about, count_report, open_build
from warpsmith.hardware.scalar_compare import Difference, compare_captured, compare_outputs, report
from warpsmith.hardware.scalar_evaluate import stored_dtype
from warpsmith.hardware.scalar_forms import ScalarForm, scalar_forms
from warpsmith.hardware.scalar_kernels import groups, kernel_text
from warpsmith.hardware.scalar_store import Capture, Captured, block_hashes
from warpsmith.hardware.scalar_values import edge_count, inputs
from warpsmith.launch.driver import Driver, driver
from warpsmith.toolchain.ptxas import compile_ptx

__all__ = ["build", "compare", "differing", "main", "run"]

Array = NDArray[Any]
Results = tuple[ScalarForm, list[Array]]
_THREADS = 128


def build(arch: str, folder: Path) -> str:
    """Compile the kernels of every form into `folder/scalar.zip`; return a summary."""
    folder.mkdir(parents=True, exist_ok=True)
    manifest: list[list[dict[str, Any]]] = []
    refused: list[str] = []
    with zipfile.ZipFile(folder / "scalar.zip", "w", zipfile.ZIP_DEFLATED) as z:
        batches = list(groups(scalar_forms(arch)))
        with multiprocessing.get_context("spawn").Pool(max(1, (os.cpu_count() or 2) // 2)) as pool:
            for parts, no in pool.imap(_compile_batch, [(b, arch) for b in batches], chunksize=4):
                refused += no
                for part, cubin in parts:
                    z.writestr(f"{len(manifest)}.cubin", cubin)
                    manifest.append([f.json() for f in part])
        z.writestr("manifest.json", json.dumps({"arch": arch, "kernels": manifest}))
    lines = [f"{sum(map(len, manifest))} forms in {len(manifest)} kernels; ptxas rejects {len(refused)} forms"]
    return "\n".join([*lines, *refused])


def _compile_batch(task: tuple[list[ScalarForm], str]) -> tuple[list[tuple[list[ScalarForm], bytes]], list[str]]:
    refused: list[str] = []
    return list(_compile(*task, refused)), refused


def _compile(batch: list[ScalarForm], arch: str, refused: list[str]) -> Iterator[tuple[list[ScalarForm], bytes]]:
    """Compile a batch; where ptxas rejects it, halves of it, down to the form at fault."""
    try:
        yield batch, compile_ptx(kernel_text(batch, arch), arch, ["--fmad=false"]).cubin
    except CompilationError as error:
        if len(batch) == 1:
            refused.append(f"{batch[0].key}: {error.findings[0].message}")
            return
        middle = len(batch) // 2
        yield from _compile(batch[:middle], arch, refused)
        yield from _compile(batch[middle:], arch, refused)


def _upload(gpu: Driver, codes: Array, threads: int) -> int:
    padded = np.zeros(threads, codes.dtype)
    padded[: len(codes)] = codes
    address = gpu.allocate(padded.nbytes)
    gpu.upload(address, padded.tobytes())
    return address


def _execute(gpu: Driver, cubin: bytes, batch: list[ScalarForm], ins: list[Array]) -> list[Results]:
    """Run one kernel and return the results of its forms."""
    n = len(ins[0])
    threads = (n + _THREADS - 1) // _THREADS * _THREADS
    buffers = [_upload(gpu, x, threads) for x in ins]
    slots = sum(len(f.writes) for f in batch)
    out = gpu.allocate(8 * threads * slots)
    arguments = [struct.pack("<Q", a) for a in (*buffers, out)] + [struct.pack("<I", threads)]
    gpu.load(cubin, "k").launch((threads // _THREADS, 1, 1), (_THREADS, 1, 1), arguments)
    gpu.synchronize()
    raw = np.frombuffer(gpu.download(out, 8 * threads * slots), np.uint8)
    for address in (*buffers, out):
        gpu.free(address)
    results: list[Results] = []
    slot = 0
    for form in batch:
        values: list[Array] = []
        for type_ in form.writes:
            dtype = stored_dtype(type_)
            start = 8 * threads * slot
            values.append(raw[start : start + n * dtype.itemsize].view(dtype).copy())
            slot += 1
        results.append((form, values))
    return results


def _compare_batch(results: list[Results]) -> list[Difference]:
    ins = inputs(results[0][0].reads)
    found = [compare_outputs(form, ins, values) for form, values in results]
    return [d for d in found if d is not None]


def run(folder: Path, out: Path) -> str:
    """Run the kernels of `folder/scalar.zip`, write `out/scalar.capture` and `out/scalar.txt`; return the start of the text."""
    out.mkdir(parents=True, exist_ok=True)
    gpu = driver()
    capture = Capture({})
    pending: list[Any] = []
    pool_of = multiprocessing.get_context("spawn").Pool
    with pool_of(max(1, (os.cpu_count() or 2) - 2)) as pool, open_build(folder / "scalar.zip", "scalar_capture") as z:
        manifest = json.loads(z.read("manifest.json"))
        capture.about |= about(manifest["arch"], gpu)
        for i, entries in enumerate(manifest["kernels"]):
            batch = [ScalarForm.from_json(e) for e in entries]
            ins, n = inputs(batch[0].reads), edge_count(batch[0].reads)
            results = _execute(gpu, z.read(f"{i}.cubin"), batch, ins)
            for form, values in results:
                capture.items.append(Captured(form, [v[:n] for v in values], [block_hashes(v[n:]) for v in values]))
            pending.append(pool.apply_async(_compare_batch, (results,)))
        capture.write(out / "scalar.capture")
        differences = [d for p in pending for d in p.get()]
    text = report(differences, len(capture.items))
    (out / "scalar.txt").write_text(text, encoding="utf-8")
    return text


def compare(path: Path) -> str:
    """Compare a capture with the meanings; return the report."""
    return count_report("forms", *differing(path))


def differing(path: Path) -> Differing:
    """Return how many forms a capture holds, and what differs by form."""
    capture = Capture.read(path)
    found = [compare_captured(c) for c in capture.items]
    return len(capture.items), {d.form.key: str(d) for d in found if d is not None}


def main(arguments: list[str] | None = None) -> int:
    """Run one of the commands; return the exit status."""
    return CaptureCommand("scalar_capture", __doc__, build=build, run=run, compare=compare).main(arguments)


if __name__ == "__main__":
    sys.exit(main())
