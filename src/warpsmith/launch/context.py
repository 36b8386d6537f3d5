"""Devices with their primary contexts: what a launch on one needs, and whether it is still usable."""

from __future__ import annotations

import hashlib
from collections import deque
from threading import Lock
from typing import TYPE_CHECKING, final

from warpsmith.base.errors import InputError, LaunchError
from warpsmith.launch.binding import DriverError, driver
from warpsmith.launch.faults import explain_fault
from warpsmith.launch.image import check_image

if TYPE_CHECKING:
    from warpsmith.launch.binding import Driver
    from warpsmith.launch.plan import Plan

__all__ = ["Context", "Function", "context", "forget_contexts"]

_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR
_SHARED_OPTIN = 97  # CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
_STATIC_SHARED, _LOCAL, _REGISTERS, _MAX_THREADS = 1, 3, 4, 0  # CU_FUNC_ATTRIBUTE_…
_MAX_DYNAMIC_SHARED, _NON_PORTABLE_CLUSTER = 8, 14
_PORTABLE_CLUSTER = 8
_UNASKED_SHARED = 48 * 1024
_REMEMBERED = 8
"""Launches that a fault's report names."""


@final
class Function:
    """A kernel of a module that is loaded in a context."""

    __slots__ = ("_driver", "dynamic_shared", "handle", "name", "non_portable")

    def __init__(self, driver: Driver, handle: int, name: str) -> None:
        self._driver, self.handle, self.name = driver, handle, name
        self.dynamic_shared = 0
        """Bytes of dynamic shared memory it may have beyond the 48 KiB that need no asking; 0 before the first time."""
        self.non_portable = False

    def allow(self, dynamic_shared: int, cluster_size: int) -> None:
        """Make the kernel launchable with so much dynamic shared memory and so large a cluster."""
        if dynamic_shared > max(self.dynamic_shared, _UNASKED_SHARED - self.static_shared):
            self._driver.set_function_attribute(self.handle, _MAX_DYNAMIC_SHARED, dynamic_shared)
            self.dynamic_shared = dynamic_shared
        if cluster_size > _PORTABLE_CLUSTER and not self.non_portable:
            self._driver.set_function_attribute(self.handle, _NON_PORTABLE_CLUSTER, 1)
            self.non_portable = True

    @property
    def static_shared(self) -> int:
        """Bytes of static shared memory."""
        return self._driver.function_attribute(self.handle, _STATIC_SHARED)

    @property
    def registers(self) -> int:
        """Registers of a thread."""
        return self._driver.function_attribute(self.handle, _REGISTERS)

    @property
    def local(self) -> int:
        """Bytes of local memory of a thread."""
        return self._driver.function_attribute(self.handle, _LOCAL)

    @property
    def max_threads(self) -> int:
        """Most threads of a CTA with so many registers."""
        return self._driver.function_attribute(self.handle, _MAX_THREADS)


@final
class Context:
    """The primary context of a device: the one that torch, CuPy, JAX and the CUDA runtime use."""

    def __init__(self, driver: Driver, device: int) -> None:
        count = driver.device_count()
        if not 0 <= device < count:
            raise InputError(f"no CUDA device {device}; there are {count}, numbered from 0")
        self.driver, self.device = driver, device
        self.handle = driver.retain_primary(device)
        self.alone = count == 1
        """No other device: then the calling thread's context is checked only after a failure."""
        self.name = driver.device_name(device)
        self.capability = 10 * driver.device_attribute(device, _MAJOR) + driver.device_attribute(device, _MINOR)
        self.recent = _recent
        """The latest launches of the process, on any device."""
        self._modules: dict[bytes, int] = {}
        self._functions: dict[tuple[bytes, str], Function] = {}
        self._lock = Lock()

    @property
    def broken(self) -> LaunchError | None:
        """The report of the fault that made the contexts of the process unusable: of one device, they break with it."""
        return _faults[0] if _faults else None

    @broken.setter
    def broken(self, report: LaunchError) -> None:
        _faults.append(report)

    def enter(self) -> int:
        """Make this the calling thread's context; return the one before."""
        before = self.driver.current_context()
        if before != self.handle:
            self.driver.set_context(self.handle)
        return before

    def leave(self, before: int) -> None:
        """Go back to the context before `enter`; a thread that had none keeps this one."""
        if before not in (0, self.handle):
            self.driver.set_context(before)

    def module(self, image: bytes, name: str) -> int:
        """Return the handle of a cubin's module, loaded once; the context must be entered."""
        digest = hashlib.sha256(image).digest()
        with self._lock:
            if digest not in self._modules:
                check_image(image, self.capability, self.name, name)
                self._modules[digest] = self.driver.load_module(image)
            return self._modules[digest]

    def function(self, image: bytes, name: str) -> Function:
        """Return a kernel of a cubin; the module is loaded once in this context."""
        key = hashlib.sha256(image).digest(), name
        found = self._functions.get(key)
        if found is None:
            before = self.enter()
            try:
                handle = self.driver.get_function(self.module(image, name), name)
            except DriverError as failure:
                raise explain_fault(failure, self) from None
            finally:
                self.leave(before)
            found = self._functions.setdefault(key, Function(self.driver, handle, name))
        return found

    def shared_limit(self) -> int:
        """Most bytes of shared memory of a CTA, static and dynamic."""
        return self.driver.device_attribute(self.device, _SHARED_OPTIN)


_contexts: dict[int, Context] = {}
_recent: deque[Plan] = deque(maxlen=_REMEMBERED)
_faults: list[LaunchError] = []
_making = Lock()


def context(device: int = 0) -> Context:
    """Return the context of a device; raise `ToolError` without a driver, `InputError` for a device that is not there."""
    found = _contexts.get(device)
    if found is None:
        with _making:
            found = _contexts.get(device) or Context(driver(), device)
            _contexts[device] = found
    return found


def forget_contexts() -> None:
    """Forget every context and what was launched, for tests that replace the driver."""
    for known in (_contexts, _recent, _faults):
        known.clear()
