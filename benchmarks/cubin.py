"""Speed of listing and of reading and writing cubins, beside cuobjdump: `python benchmarks/cubin.py [LIBRARY…]`.

Without a library one is made from the cubins of the tests: a host object of 64 MiB whose fat binary holds a quarter of it.
Times are the best of several runs in this process; cuobjdump, which is looked for on PATH and in CUOBJDUMP, starts a process a
run. The floor for listing is 1 GB/s of processor time.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/support"))

from containers import container, entry, host_elf
from cubin_corpus import cubins
from warpsmith import cubin as ws_cubin

FLOOR = 1.0
SIZE = 64 << 20


def best(function: Callable[[], object], runs: int = 5) -> tuple[float, float]:
    """Return the shortest processor time and the shortest elapsed time of `runs` calls."""
    times: list[tuple[float, float]] = []
    for _ in range(runs):
        cpu, wall = time.process_time(), time.perf_counter()
        function()
        times.append((time.process_time() - cpu, time.perf_counter() - wall))
    return min(t[0] for t in times), min(t[1] for t in times)


def made(folder: Path) -> Path:
    """Return a host object with fat binaries, most of it other data."""
    some = [entry(data) for data in cubins().values()]
    fat = b"".join(container(*some) for _ in range(SIZE // 4 // sum(map(len, some))))
    rest = bytes(range(256)) * ((SIZE - len(fat)) // 256)
    path = folder / "made.so"
    path.write_bytes(host_elf({".rodata": rest, ".nv_fatbin": fat}))
    return path


def listing(path: Path) -> bool:
    """Measure `find` on a library, and `cuobjdump -lelf` where it is there."""
    size = path.stat().st_size / 1e9
    count = sum(1 for _ in ws_cubin.find(path))
    cpu, wall = best(lambda: list(ws_cubin.find(path)))
    holds = size / cpu >= FLOOR
    speed = f"{size / cpu:.2f} GB/s of processor time ({size / wall:.2f} elapsed)"
    print(f"list {path.name}: {count:,} entries, {speed}; floor {FLOOR}: {holds}")
    if tool := os.environ.get("CUOBJDUMP") or shutil.which("cuobjdump"):
        _, theirs = best(lambda: subprocess.run([tool, "-lelf", str(path)], capture_output=True, check=False), runs=1)
        print(f"list {path.name}: cuobjdump -lelf {size / theirs:.2f} GB/s elapsed, {theirs / wall:.0f} times as long")
    return holds


def reading() -> None:
    """Measure taking apart and writing back, on the cubins of the tests."""
    data = list(cubins().values())
    size = sum(map(len, data)) / 1e6
    read, _ = best(lambda: [ws_cubin.open(d) for d in data])
    models = [ws_cubin.open(d) for d in data]
    write, _ = best(lambda: [m.write() for m in models])
    print(f"read {len(data)} small cubins: {size / read:.1f} MB/s, {len(data) / read:,.0f} cubins/s")
    print(f"write {len(data)} small cubins: {size / write:.1f} MB/s, {len(data) / write:,.0f} cubins/s")


def main() -> int:
    """Measure, print a line each, and return 1 when listing is below the floor."""
    reading()
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(p) for p in sys.argv[1:]] or [made(Path(folder))]
        return 0 if min(map(listing, paths)) else 1


if __name__ == "__main__":
    sys.exit(main())
