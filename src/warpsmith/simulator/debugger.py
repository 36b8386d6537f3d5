"""Run a kernel one instruction or one line of a warp at a time.

The simulation runs in a thread of its own that stands still whenever the warp is before an instruction, until the caller
lets it go on: only one of the two runs at any moment, and the run is the one that `simulate` would give.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, final

from warpsmith.base.errors import InputError
from warpsmith.simulator.api import SimulationResult, simulate
from warpsmith.simulator.watch import Stop, Watch

if TYPE_CHECKING:
    from types import TracebackType

    from warpsmith.base.source import Place

__all__ = ["Debugger"]


@final
class _Ended(KeyboardInterrupt):
    """Ends the simulation as Ctrl-C does."""


@final
class Debugger:
    """Steps one warp of a launch; the other warps go on as the schedule says.

    >>> with Debugger(module, kernel="k", grid=1, block=32, args=[out]) as run:  # doctest: +SKIP
    ...     for stop in run:
    ...         print(stop.place, stop.instruction, stop.register("%r1"))

    `module` is what `simulate` takes, or a `@kernel` object with its arrays behind it; keywords are those of `simulate`.
    `cta` is a linear number or an index, `warp` a warp of it. The simulator's errors are raised where the caller waits.
    """

    def __init__(self, module: Any, *arrays: Any, cta: int | Sequence[int] = 0, warp: int = 0, **options: Any) -> None:
        if options.get("jobs", 1) != 1 or options.get("executor") is not None:
            raise InputError("a debugger runs in one process: leave out jobs= and executor=")
        if isinstance(warp, bool) or not isinstance(warp, int) or warp < 0:
            raise InputError(f"debugger: warp={warp!r:.60}: give the number of a warp in its CTA, from 0")
        self.warp = warp
        self.result: SimulationResult | None = None
        """Of the launch, once it has ended."""
        self._stop: Stop | None = None
        self._error: BaseException | None = None
        self._ending = False
        self._met = False
        """The warp has come to an instruction."""
        self._stopped, self._go = threading.Semaphore(0), threading.Semaphore(0)
        watch = Watch(on=(cta, None, None), do=self._reached, every=True, by_warp=True)
        options["watch"] = [*options.get("watch", ()), watch]
        run: Callable[[], SimulationResult]
        if hasattr(module, "simulate"):
            run = lambda: module.simulate(*arrays, **options)  # noqa: E731
        elif arrays:
            raise InputError("the arguments of a module are given as args=[…]")
        else:
            run = lambda: simulate(module, **options)  # noqa: E731
        self._thread = threading.Thread(target=self._run, args=(run,), daemon=True)

    # --- what the caller does ---------------------------------------------------------------------------------------

    def step(self, by: Literal["instruction", "line"] = "instruction") -> Stop | None:
        """Go to the warp's next instruction, or to its next instruction of another line; None when the launch has ended."""
        if by not in ("instruction", "line"):
            raise InputError(f'step({by!r}): by "instruction" or by "line"')
        before = self._place()
        while True:
            stop = self._next()
            if stop is None or by == "instruction" or stop.place != before:
                return stop

    def run_to(self, line: int) -> Stop | None:
        """Go to the warp's next instruction of line number `line`; None when the launch has ended before."""
        while (stop := self._next()) is not None:
            if stop.place is not None and stop.place.line == line:
                return stop
        return None

    def close(self) -> SimulationResult | None:
        """End the launch where it is; return its result, with `completed=False` unless it had ended."""
        self._ending = True
        if self._thread.is_alive():
            self._go.release()
        if self._thread.ident is not None:
            self._thread.join()
        return self.result

    def __iter__(self) -> Iterator[Stop]:
        """Yield every stop, instruction by instruction."""
        while (stop := self.step()) is not None:
            yield stop

    def __enter__(self) -> Debugger:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _place(self) -> Place | None:
        return None if self._stop is None else self._stop.place

    def _next(self) -> Stop | None:
        if self._thread.ident is None:
            self._thread.start()
        elif self._thread.is_alive():
            self._go.release()
        if self._thread.is_alive() or self._stop is not None:
            self._stopped.acquire()
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        return self._stop

    # --- what the simulation does -----------------------------------------------------------------------------------

    def _run(self, run: Callable[[], SimulationResult]) -> None:
        try:
            self.result = run()
            if self.result.completed and not self._met:
                why = "the launch has none, or the kernel does nothing"
                self._error = InputError(f"debugger: warp {self.warp} came to no instruction: {why}")
        except BaseException as error:
            self._error = error
        self._stop = None
        self._stopped.release()

    def _reached(self, stop: Stop) -> None:
        if stop.warp != self.warp:
            return
        self._met = True
        if self._ending:
            raise _Ended
        self._stop = stop
        self._stopped.release()
        self._go.acquire()
        if self._ending:
            raise _Ended
