"""Processes on this computer that run parts of a launch.

They are started as `python -m warpsmith.simulator.worker FOLDER`: a fresh interpreter, so that neither the caller's threads
nor its main module matter. The folder holds the launch and the image of memory, which the processes map; parts come back as
files. A worker reads the numbers of parts from its standard input, a line each, and writes lines: `ended N` (CTAs of the
part so far) and `done`.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, final

import numpy as np

from warpsmith.base.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable

    from warpsmith.simulator.execution import Launch
    from warpsmith.simulator.parts import Image, Part

__all__ = ["END", "part_path", "run_in_processes"]

_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
END = "end\n"
"""Line by which a worker is told that no more parts come."""
_PATIENCE = 30
"""Seconds an interrupted worker has to hand over what it has."""


def part_path(folder: Path, index: int) -> Path:
    """Return where the result of a part is."""
    return folder / f"part{index}.pickle"


@final
class _Worker:
    """One process, and the part it is at."""

    def __init__(self, folder: Path, number: int, events: queue.Queue[tuple[_Worker, str]]) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        for name in _THREADS:
            environment[name] = "1"
        self.errors = (folder / f"errors{number}.txt").open("w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "warpsmith.simulator.worker", str(folder)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, env=environment, text=True,
            start_new_session=True,  # Ctrl-C reaches this process, which passes it on
        )  # fmt: skip
        self.part: int | None = None
        self.ended = 0
        threading.Thread(target=self._listen, args=(events,), daemon=True).start()

    def _listen(self, events: queue.Queue[tuple[_Worker, str]]) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            events.put((self, line.strip()))
        events.put((self, "gone"))

    def give(self, part: int) -> None:
        """Let it run a part."""
        self.part, self.ended = part, 0
        self._write(f"{part}\n")

    def dismiss(self) -> None:
        """Let it end."""
        self.part = None
        if self.process.stdin is not None:
            self._write(END)
            self.process.stdin.close()

    def _write(self, text: str) -> None:
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):  # it is gone, which `_listen` tells
            self.process.stdin.write(text)
            self.process.stdin.flush()

    def stop(self) -> None:
        """End it, whatever it does."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.errors):
            if stream is not None:
                stream.close()

    def how_it_ended(self) -> str:
        """Say how a process ended that should not have."""
        code = self.process.wait()
        self.errors.seek(0)
        last = self.errors.read().strip().splitlines()[-1:]
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
        return " (".join([how, *last]) + (")" if last else "")


def run_in_processes(
    launch: Launch, image: Image, ranges: list[tuple[int, int]], jobs: int, progress: Callable[[int, int], None] | None
) -> list[Part]:
    """Run the parts `ranges` in `jobs` processes; fewer come back after Ctrl-C. Raise `ToolError` where a process dies."""
    with tempfile.TemporaryDirectory(prefix="warpsmith-") as name:
        folder = Path(name)
        np.save(folder / "data.npy", image.data)
        np.save(folder / "shadow.npy", image.shadow)
        content = (launch, image.top, image.allocations, image.const, ranges)
        (folder / "launch.pickle").write_bytes(pickle.dumps(content))
        return _Run(folder, launch.ctas, ranges, progress).run(min(jobs, len(ranges)))


@final
class _Run:
    """The parts of a launch, given out to workers."""

    def __init__(
        self, folder: Path, total: int, ranges: list[tuple[int, int]], progress: Callable[[int, int], None] | None
    ) -> None:
        self.folder, self.total, self.ranges, self.progress = folder, total, ranges, progress
        self.events: queue.Queue[tuple[_Worker, str]] = queue.Queue()
        self.left = list(range(len(ranges)))
        self.ended = 0
        self.interrupted = False
        self.workers: list[_Worker] = []

    def run(self, count: int) -> list[Part]:
        """Run them all in `count` processes."""
        try:
            self.workers = [_Worker(self.folder, i, self.events) for i in range(count)]
            for worker in self.workers:
                worker.give(self.left.pop(0))
            try:
                self._follow(None)
            except KeyboardInterrupt:
                self._interrupt()
        finally:
            for worker in self.workers:
                worker.stop()
        found = [path for i in range(len(self.ranges)) if (path := part_path(self.folder, i)).exists()]
        results = [pickle.loads(path.read_bytes()) for path in found]
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return results

    def _interrupt(self) -> None:
        self.left, self.interrupted = [], True
        for worker in self.workers:
            if worker.part is not None and worker.process.poll() is None:
                worker.process.send_signal(signal.SIGINT)
        with suppress(queue.Empty, KeyboardInterrupt):  # a second Ctrl-C: what is there counts
            self._follow(_PATIENCE)

    def _follow(self, timeout: float | None) -> None:
        """Take what workers say until every part is done."""
        while any(w.part is not None for w in self.workers):
            worker, line = self.events.get(timeout=timeout)
            word, _, number = line.partition(" ")
            if word == "ended":
                self._count(worker, int(number))
            elif word == "done" and worker.part is not None:
                first, stop = self.ranges[worker.part]
                self._count(worker, stop - first)
                if self.left:
                    worker.give(self.left.pop(0))
                else:
                    worker.dismiss()
            elif word == "gone" and self.interrupted:
                worker.part = None  # it had not begun
            elif word == "gone" and worker.part is not None:
                first, stop = self.ranges[worker.part]
                raise ToolError(
                    f"simulator: the process that ran CTAs {first} to {stop - 1} died: {worker.how_it_ended()}; "
                    f"use fewer jobs if memory was short"
                )

    def _count(self, worker: _Worker, ended: int) -> None:
        self.ended += ended - worker.ended
        worker.ended = ended
        if self.progress is not None:
            self.progress(self.ended, self.total)
