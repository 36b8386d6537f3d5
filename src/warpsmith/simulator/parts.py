"""Run a range of a launch's CTAs on a memory of its own, and say which bytes of global memory it read and changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from warpsmith.simulator.execution import Execution
from warpsmith.simulator.memory import GlobalMemory, Space

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from warpsmith.simulator.execution import Launch, Report
    from warpsmith.simulator.memory import Allocation

    Bytes = NDArray[np.uint8]

__all__ = ["Image", "Part", "run_part"]


@final
@dataclass(frozen=True, slots=True)
class Image:
    """What global and constant memory hold before a launch. It can be pickled."""

    data: Bytes
    shadow: Bytes
    top: int
    allocations: list[Allocation]
    const: tuple[Bytes, Bytes, list[Allocation]]

    @classmethod
    def of(cls, memory: GlobalMemory, const: Space) -> Image:
        """Return the image of memories (a view of them)."""
        constants = (const.data, const.shadow, const.allocations)
        return cls(memory.data, memory.shadow, memory.top, memory.allocations, constants)

    def memory(self) -> tuple[GlobalMemory, Space]:
        """Return memories that hold copies."""
        global_ = GlobalMemory()
        global_.restore(np.array(self.data), np.array(self.shadow), self.top, list(self.allocations))
        data, shadow, allocations = self.const
        const = Space("const", data.size)
        const.data[...], const.shadow[...] = data, shadow
        const.allocations = list(allocations)
        return global_, const


@final
@dataclass(frozen=True, slots=True)
class Part:
    """What a part of a launch gave. Bytes of global memory are given by one bit each (`numpy.packbits`)."""

    first: int
    stop: int
    report: Report
    changed: Bytes
    values: Bytes
    """What the changed bytes hold, in order."""
    reads: Bytes
    heap: bool
    """The part called `malloc` or `free`."""


def run_part(launch: Launch, image: Image, first: int, stop: int, progress: Callable[[int, int], None] | None = None) -> Part:
    """Run the CTAs `first` to `stop` (linear in the grid, whole clusters) on a copy of `image`."""
    memory, const = image.memory()
    size = memory.data.size
    memory.reads = np.zeros(size, np.uint8)
    report = Execution(launch, memory, const, first, stop).run(progress)
    changed = memory.data[:size] != image.data
    return Part(
        first, stop, report, np.packbits(changed), memory.data[:size][changed], np.packbits(memory.reads[:size]),
        memory.heap_calls > 0,
    )  # fmt: skip
