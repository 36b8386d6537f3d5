"""The boundary to the CUDA driver: what is asked of it, in plain Python values.

`Driver` is the interface, `cuda_driver.py` its one implementation; tests put a recording object in its place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, final

from warpsmith.base.errors import LaunchError
from warpsmith.base.optional import adapter

if TYPE_CHECKING:
    from warpsmith.base.tensormap import TensorMapFields

__all__ = ["Driver", "DriverError", "LaunchShape", "driver", "use_driver"]


@final
class DriverError(LaunchError):
    """A driver call that failed: `.call`, `.code` (CUresult), `.label` (its name), `.text`."""

    def __init__(self, call: str, code: int, label: str, text: str) -> None:
        self.call, self.label, self.text = call, label, text
        super().__init__(f"{call} failed: {label} ({code}): {text}", code)


@final
class LaunchShape(NamedTuple):
    """How a kernel is launched, but for its arguments and its stream."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int] = (1, 1, 1)
    dynamic_shared: int = 0
    cooperative: bool = False
    """All CTAs are resident at once (cudaLaunchCooperativeKernel); the driver refuses a grid that does not fit."""
    programmatic: bool = False
    """May start before the previous kernel of the stream has ended (programmatic dependent launch, `griddepcontrol.wait`)."""

    def __str__(self) -> str:
        parts = [f"grid {self.grid}, block {self.block}"]
        parts += [f"cluster {self.cluster}"] if self.cluster != (1, 1, 1) else []
        parts += ["cooperative"] if self.cooperative else []
        return ", ".join(parts)


class Driver(Protocol):
    """Driver calls; handles are ints. A call that fails raises `DriverError`, but for `launch`."""

    def device_count(self) -> int:
        """Return the number of devices."""
        ...

    def driver_version(self) -> int:
        """Return e.g. 13000 for CUDA 13.0."""
        ...

    def device_attribute(self, device: int, attribute: int) -> int:
        """Return a CUdevice_attribute."""
        ...

    def device_name(self, device: int) -> str:
        """Return e.g. `NVIDIA H200`."""
        ...

    def device_of(self, address: int) -> int:
        """Return the device that holds an address."""
        ...

    def retain_primary(self, device: int) -> int:
        """Return the primary context of a device, retained."""
        ...

    def current_context(self) -> int:
        """Return the context of the calling thread, 0 for none."""
        ...

    def set_context(self, context: int) -> None:
        """Make a context the calling thread's."""
        ...

    def load_module(self, image: bytes) -> int:
        """Load a cubin into the current context, also while a stream of this thread is captured."""
        ...

    def get_function(self, module: int, name: str) -> int:
        """Return a kernel of a module."""
        ...

    def get_global(self, module: int, name: str) -> tuple[int, int]:
        """Return address and bytes of a global variable."""
        ...

    def function_attribute(self, function: int, attribute: int) -> int:
        """Return a CUfunction_attribute."""
        ...

    def set_function_attribute(self, function: int, attribute: int, value: int) -> None:
        """Set a CUfunction_attribute."""
        ...

    def parameter(self, function: int, index: int) -> tuple[int, int] | None:
        """Return (offset, bytes) of a parameter, None past the last."""
        ...

    def encode_tensor_map(self, fields: TensorMapFields) -> bytes:
        """Return the 128 bytes of a tensor map."""
        ...

    def config(self, shape: LaunchShape) -> Any:
        """Return a launch configuration for `launch`."""
        ...

    def set_stream(self, config: Any, stream: int) -> None:
        """Set the stream of a configuration."""
        ...

    def launchable(self, function: int) -> Any:
        """Return what `launch` takes for a kernel."""
        ...

    def launch(self, config: Any, function: Any, parameters: int, extra: int, /) -> tuple[int, ...]:
        """Launch; `parameters` is the address of the array of pointers to the arguments, `extra` is 0. Return (CUresult,).

        This is cuLaunchKernelEx of cuda-bindings itself: a function around it costs a tenth of a microsecond.
        """
        ...

    def failure(self, call: str, code: int) -> DriverError:
        """Return the failure of a CUresult, with the driver's own words."""
        ...

    def allocate(self, size: int) -> int:
        """Return the address of fresh device memory."""
        ...

    def free(self, address: int) -> None:
        """Free device memory."""
        ...

    def upload(self, address: int, data: bytes) -> None:
        """Copy bytes to the device and wait."""
        ...

    def download(self, address: int, size: int) -> bytes:
        """Copy bytes from the device; waits for the work before."""
        ...

    def synchronize(self) -> None:
        """Wait for the current context; an asynchronous fault comes out here."""
        ...

    def wait_for_stream(self, waiting: int, other: int) -> None:
        """Let what comes next in stream `waiting` start after what `other` holds now; the host does not wait."""
        ...


_drivers: list[Driver] = []


def driver() -> Driver:
    """Return the process's driver; raise `ToolError` where there is none."""
    if not _drivers:
        _drivers.append(adapter("cuda").open_driver())
    return _drivers[0]


def use_driver(replacement: Driver | None) -> None:
    """Put another driver in the place of the real one (None: the real one again); for tests."""
    _drivers[:] = [] if replacement is None else [replacement]
