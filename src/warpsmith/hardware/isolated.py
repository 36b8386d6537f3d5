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

__all__ = ["Crowd", "NotStartedError", "each_isolated"]

T = TypeVar("T")
R = TypeVar("R")

_START = 60.0
"""Seconds in which a process must have started, imported what the task needs, and opened what it opens."""
_LEAVE = 2.0
"""Seconds in which a process that was killed must have ended; one that hangs in the driver is left behind."""
_STARTS = 2
"""How often in a row a process of a crowd may fail to start."""


@final
class NotStartedError(WarpsmithError):
    """No process could be started: it says nothing of the task."""


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
    """Processes that stay for further tasks, for as long as none fails in them.

    `opening` is what a fresh process does before it is given tasks, for which it has a minute; like `action` it must be
    importable.
    """

    def __init__(self, action: Callable[[Any], Any], workers: int, opening: Callable[[], object] | None = None) -> None:
        self._workers = [_Worker(action, opening) for _ in range(workers)]

    def each(
        self, tasks: Sequence[Any], patience: float, *,
        tell: Callable[[int, Any], None] = lambda index, answer: None, more: Callable[[], bool] = lambda: True,
    ) -> list[Any]:  # fmt: skip
        """Return for each task what `each_isolated` does, in at most as many processes as there are workers.

        `tell(index, answer)` is called as answers come, one at a time. No task is begun once `more()` is false; one that was
        not begun, or for which no process could be started, has the answer None.
        """
        answers: list[Any] = [None] * len(tasks)
        numbers = iter(range(len(tasks)))
        lock = threading.Lock()

        def follow(worker: _Worker) -> None:
            failures = 0
            while failures < _STARTS:
                with lock:
                    index = next(numbers, None) if more() else None
                if index is None:
                    return
                try:
                    answers[index] = worker.do(tasks[index], patience)
                except NotStartedError:
                    failures += 1
                    continue
                except Exception as error:
                    answers[index] = f"{type(error).__name__}: {error}"
                failures = 0
                with lock:
                    tell(index, answers[index])

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

    def __init__(self, action: Callable[[Any], Any], opening: Callable[[], object] | None = None) -> None:
        self.action, self.opening = action, opening
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
            self.process.join(_LEAVE)
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
        self.process = context.Process(target=_serve, args=(theirs, self.action, self.opening), daemon=True)
        self.process.start()
        theirs.close()
        self.pipe = ours
        try:
            said = ours.recv()[1] if ours.poll(_START) else f"not within {_START:g} s"
        except (EOFError, ConnectionResetError):
            said = "it died"
        if said is not None:
            self.end()
            raise NotStartedError(f"a process did not start: {said}")
        return ours

    def end(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.join(_LEAVE)
        if self.pipe is not None:
            self.pipe.close()
        self.process = self.pipe = None


def _serve(pipe: Any, action: Callable[[Any], Any], opening: Callable[[], object] | None) -> None:
    said = None
    try:
        if opening is not None:
            opening()
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
    pipe.send(("ready", said))
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
