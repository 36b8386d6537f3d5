"""The process that `workers` starts: run parts of a launch, by number, and leave each result in a file."""

from __future__ import annotations

import os
import pickle
import queue
import shutil
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from warpsmith.base.errors import WarpsmithError
from warpsmith.simulator.parts import Image, run_part
from warpsmith.simulator.workers import END, part_path

if TYPE_CHECKING:
    from warpsmith.simulator.execution import Launch

__all__ = ["main"]


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _load(folder: Path) -> tuple[Launch, Image, list[tuple[int, int]]]:
    launch, top, allocations, const, ranges = pickle.loads((folder / "launch.pickle").read_bytes())
    data, shadow = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("data", "shadow"))
    return launch, Image(np.asarray(data), np.asarray(shadow), top, allocations, const), ranges


def _listen(folder: Path, wanted: queue.SimpleQueue[int | None]) -> None:
    """Take the numbers of parts up to `end`; where their sender is gone without it, nobody waits: end, too."""
    for line in sys.stdin:
        if line == END:
            wanted.put(None)
            return
        wanted.put(int(line))
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)


def main(folder: Path) -> None:
    """Run the parts whose numbers come in on the standard input, a line each, up to the line `end`."""
    launch, image, ranges = _load(folder)
    wanted: queue.SimpleQueue[int | None] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(folder, wanted), daemon=True).start()
    while (index := wanted.get()) is not None:
        first, stop = ranges[index]
        result: Any
        try:
            result = run_part(launch, image, first, stop, lambda ended, _: _say(f"ended {ended}"))
        except WarpsmithError as error:
            result = error
        path = part_path(folder, index)
        path.with_suffix(".new").write_bytes(pickle.dumps(result))
        os.replace(path.with_suffix(".new"), path)
        _say("done")


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except KeyboardInterrupt:
        sys.exit(130)  # between parts: there is nothing to hand over
