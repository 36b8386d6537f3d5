"""Wait for a kernel for so long, and end one that does not end, so that its process gives the GPU back.

A process that is killed while its kernel runs may stay in the driver, its kernel on the GPU. So another kernel of the same
context, on a stream of its own, faults on purpose: the fault ends all that runs in the context.
"""

from __future__ import annotations

import struct
import time
from typing import TYPE_CHECKING, final

from warpsmith.base.errors import ToolError, WarpsmithError

if TYPE_CHECKING:
    from warpsmith.launch.driver import Driver

__all__ = ["STOP", "DidNotEndError", "Watch"]

STOP = """.version 8.0
.target {arch}
.address_size 64
.visible .entry stop(.param .u32 really)
{{
.reg .pred %p;
.reg .b32 %r;
ld.param.u32 %r, [really];
setp.ne.u32 %p, %r, 0;
@%p trap;
ret;
}}
"""
"""The kernel that faults."""
_FAULT = 5.0
"""Seconds that the fault is given."""
_STEP = 0.0005


@final
class DidNotEndError(WarpsmithError):
    """A kernel ran for longer than it was given."""


@final
class Watch:
    """Waits for stream 0 of the process's context. Made before any kernel runs: nothing loads beside one that does not end."""

    def __init__(self, gpu: Driver, stop: bytes) -> None:
        """`stop` is `STOP` as a cubin for this GPU."""
        self._gpu = gpu
        self._stop = gpu.load(stop, "stop")
        self._stream = gpu.stream()
        self._launch(0)
        gpu.synchronize()

    def wait(self, patience: float) -> None:
        """Return when the GPU is done; after `patience` seconds raise `DidNotEndError`, the context being of no further use."""
        if self._ended(patience):
            return
        self._launch(1)
        try:
            stopped = self._ended(_FAULT)
        except ToolError:
            stopped = True
        raise DidNotEndError(f"it did not end within {patience:g} s" + ("" if stopped else ", nor by a fault beside it"))

    def _launch(self, really: int) -> None:
        self._stop.launch((1, 1, 1), (1, 1, 1), [struct.pack("<I", really)], stream=self._stream)

    def _ended(self, seconds: float) -> bool:
        end = time.monotonic() + seconds
        while self._gpu.busy():
            if time.monotonic() > end:
                return False
            time.sleep(_STEP)
        return True
