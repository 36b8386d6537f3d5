"""Do tasks in processes of their own, which may fault, hang or die: what a GPU's context does not survive.

A process does one task after the other until one fails; then a fresh one takes its place. So a fault costs one start, and
nothing that was done is lost.
"""

from __future__ import annotations

import itertools
import multiprocessing
import threading
from typing import TYPE_CHECKING, Any, TypeVar, final

from warpsmith.base.errors import WarpsmithError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Crowd", "each_isolated"]

T = TypeVar("T")
R = TypeVar("R")

_START = 60.0
"""Seconds in which a process must have started and imported what the task needs."""


def each_isolated(
    action: Callable[[T], R], tasks: Sequence[T], *, workers: int, patience: float,
    tell: Callable[[int, int], None] = lambda done, total: None,
) -> list[R | str]:  # fmt: skip
    """Return for each task what `action` returns, or as text why it failed: it raised a `WarpsmithError`, its process died,
    or it took longer than `patience` seconds. `tell(done, total)` reports progress.

    `action` must be importable by a fresh interpreter, tasks and results must be picklable. Where it fails for what the GPU's
    context does not survive it must raise, since its process goes on after it returns. Other exceptions are raised here.
    """
    answers: list[Any] = [None] * len(tasks)
    numbers, lock, raised = itertools.count(), threading.Lock(), list[BaseException]()
    done = itertools.count(1)

    def follow() -> None:
        worker = _Worker(action)
        try:
            while True:
                with lock:
                    index = next(numbers)
                if index >= len(tasks) or raised:
                    return
                answers[index] = worker.do(tasks[index], patience)
                with lock:
                    tell(next(done), len(tasks))
        except BaseException as error:
            raised.append(error)
        finally:
            worker.end()

    threads = [threading.Thread(target=follow, daemon=True) for _ in range(min(workers, len(tasks)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]
    return answers


@final
class Crowd:
    """Processes that stay for further tasks, for as long as none fails in them."""

    def __init__(self, action: Callable[[Any], Any], workers: int) -> None:
        self._workers = [_Worker(action) for _ in range(workers)]

    def each(self, tasks: Sequence[Any], patience: float) -> list[Any]:
        """Return for each task what `each_isolated` does, in at most as many processes as there are workers."""
        answers: list[Any] = [None] * len(tasks)
        numbers = iter(range(len(tasks)))
        lock = threading.Lock()

        def follow(worker: _Worker) -> None:
            while True:
                with lock:
                    index = next(numbers, None)
                if index is None:
                    return
                try:
                    answers[index] = worker.do(tasks[index], patience)
                except Exception as error:
                    answers[index] = f"{type(error).__name__}: {error}"

        threads = [threading.Thread(target=follow, args=(w,), daemon=True) for w in self._workers[: len(tasks)]]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return answers

    def end(self) -> None:
        """End the processes."""
        for worker in self._workers:
            worker.end()


@final
class _Worker:
    """A process, started when there is something to do."""

    def __init__(self, action: Callable[[Any], Any]) -> None:
        self.action = action
        self.process: Any = None
        self.pipe: Any = None

    def do(self, task: Any, patience: float) -> Any:
        try:
            pipe = self.pipe if self.pipe is not None else self._start()
            pipe.send(task)
            if not pipe.poll(patience):
                self.end()
                return f"it did not end within {patience:g} s"
            kind, answer = pipe.recv()
        except (EOFError, BrokenPipeError, ConnectionResetError):
            self.process.join()
            code = self.process.exitcode
            self.end()
            return f"its process died with {code}"
        if kind == "raised":
            raise answer
        if kind == "failed":
            self.end()
        return answer

    def _start(self) -> Any:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, self.action), daemon=True)
        self.process.start()
        theirs.close()
        self.pipe = ours
        if not ours.poll(_START):
            raise WarpsmithError(f"a process did not start within {_START:g} s")
        ours.recv()
        return ours

    def end(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.join(10)  # one that hangs in the driver is left behind
        if self.pipe is not None:
            self.pipe.close()
        self.process = self.pipe = None


def _serve(pipe: Any, action: Callable[[Any], Any]) -> None:
    pipe.send(("ready", None))
    while True:
        try:
            task = pipe.recv()
        except EOFError:
            return
        try:
            answer = ("done", action(task))
        except WarpsmithError as error:
            answer = ("failed", str(error))
        except Exception as error:
            answer = ("raised", error)
        pipe.send(answer)
