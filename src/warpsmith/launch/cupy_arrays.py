"""CuPy's arrays as a launch sees them."""

# The package is optional, and its types with it.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportUnknownParameterType=false
# pyright: reportUntypedBaseClass=false, reportUntypedFunctionDecorator=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import cupy
import ml_dtypes
import numpy as np

from warpsmith.base.errors import InputError
from warpsmith.launch.arrays import ArrayFacts

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

__all__ = ["ARRAYS", "CupyArrays"]


@final
class CupyArrays:
    """`Arrays` of CuPy."""

    name = "CuPy"

    functional = False

    def on_gpu(self, value: Any) -> bool:
        """CuPy has no arrays elsewhere."""
        return True

    def probe(self, arrays: Sequence[Any]) -> tuple[Hashable, list[int]]:
        """Return key and addresses."""
        key: list[Any] = []
        addresses: list[int] = []
        for a in arrays:
            memory = a.data
            addresses.append(memory.ptr)
            key += (a.dtype, a.shape, a.strides, memory.device_id, memory.ptr & 15)
        return tuple(key), addresses

    def abstract(self, arrays: Sequence[Any]) -> bool:
        """Every array has data."""
        return False

    def recording(self, arrays: Sequence[Any]) -> bool:
        """There is no automatic differentiation."""
        return False

    def guard(self, arrays: Sequence[Any]) -> None:
        """There is no check but the key."""

    def facts(self, value: Any) -> ArrayFacts:
        """Describe one array."""
        return ArrayFacts(value.dtype.name, value.itemsize, value.shape, value.strides, value.data.ptr, value.data.device_id)

    def allocator(self, shape: tuple[int, ...], dtype: str, device: int, column_major: bool) -> Callable[[], Any]:
        """Return a function that makes an uninitialised array."""
        kind = np.dtype(getattr(ml_dtypes, dtype)) if hasattr(ml_dtypes, dtype) else np.dtype(dtype)
        order = "F" if column_major else "C"

        def make() -> Any:
            with cupy.cuda.Device(device):
                return cupy.empty(shape, kind, order=order)

        return make

    def address(self, value: Any) -> int:
        """Return an array's address."""
        return value.data.ptr

    def stream(self, device: int, arrays: Sequence[Any]) -> int:
        """Return the current stream."""
        return cupy.cuda.get_current_stream(device).ptr

    def wait(self, device: int, stream: int, arrays: Sequence[Any]) -> None:
        """Leave the order to the caller, as the library's own functions do."""

    def to_numpy(self, value: Any) -> Any:
        """Refuse: every array is on a GPU."""
        raise InputError("a CuPy array is on a GPU; call .get() for a numpy array")

    def from_numpy(self, value: Any) -> Any:
        """Copy an array to the GPU."""
        return cupy.asarray(value)


ARRAYS = CupyArrays()
