"""Arrays of any library as a launch sees them: the adapter of each library, and what an adapter says of an array."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, final

from warpsmith.base.errors import InputError
from warpsmith.base.optional import adapter, is_loaded

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

__all__ = ["ArrayFacts", "Arrays", "arrays_of", "stream_handle"]


@final
class ArrayFacts(NamedTuple):
    """An array on a GPU."""

    dtype: str
    """numpy's name of the element type, or ml_dtypes': `float16`, `bfloat16`, `float8_e4m3fn`, `bool`."""
    itemsize: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """Bytes between neighbours of each dimension."""
    address: int
    device: int


class Arrays(Protocol):
    """The arrays of one library."""

    name: str
    functional: bool
    """Calls go through the library's own function transformations: `.call(kernel, arrays, keywords)` does everything."""

    def on_gpu(self, value: Any) -> bool:
        """Say whether the array is in the memory of a GPU."""
        ...

    def probe(self, arrays: Sequence[Any]) -> tuple[Hashable, list[int]]:
        """Return a key of everything but the addresses that a launch depends on, and the addresses; called for every launch."""
        ...

    def abstract(self, arrays: Sequence[Any]) -> bool:
        """Say whether an array stands for one that has no data here."""
        ...

    def recording(self, arrays: Sequence[Any]) -> bool:
        """Say whether automatic differentiation records what is done with these arrays."""
        ...

    def guard(self, arrays: Sequence[Any]) -> Callable[..., bool] | None:
        """Return a function that says whether arrays are of the same kinds as these (aligned addresses apart); None for none.

        With one there are `.addresses(arrays)`, which returns their lowest four bits or'ed and the addresses, and
        `.code(device)`, an `ArrayCode`.
        """
        ...

    def facts(self, value: Any) -> ArrayFacts:
        """Describe one array."""
        ...

    def allocator(self, shape: tuple[int, ...], dtype: str, device: int, column_major: bool) -> Callable[[], Any]:
        """Return a function that makes an uninitialised array in the current stream's order."""
        ...

    def address(self, value: Any) -> int:
        """Return the address of an array that `allocator` made."""
        ...

    def stream(self, device: int, arrays: Sequence[Any]) -> int:
        """Return the library's current stream on a device."""
        ...

    def wait(self, device: int, stream: int, arrays: Sequence[Any]) -> None:
        """Order a launch in `stream=` after the work that made the arrays, where the library demands it."""
        ...

    def to_numpy(self, value: Any) -> Any:
        """Return a numpy view of an array in the host's memory."""
        ...

    def from_numpy(self, value: Any) -> Any:
        """Return the library's array of a numpy array, by sharing its memory where possible."""
        ...


_ROOTS = {"torch": "torch", "cupy": "cupy", "jax": "jax", "jaxlib": "jax"}
"""First part of the module of a type -> the adapter of its library."""
_known: dict[type, Arrays | None] = {}


def arrays_of(value: Any) -> Arrays | None:
    """Return the adapter of an array's library; None for numpy and for what is no array of another library."""
    kind = type(value)
    try:
        return _known[kind]
    except KeyError:
        found = _known[kind] = _adapter(value)
        return found


def _adapter(value: Any) -> Arrays | None:
    for base in type(value).__mro__:
        name = _ROOTS.get(base.__module__.partition(".")[0])
        if name is not None and is_loaded(name):
            return adapter(name).ARRAYS
    if type(value).__module__.partition(".")[0] == "numpy":
        return None
    if hasattr(value, "__cuda_array_interface__") or hasattr(value, "__dlpack_device__"):
        return adapter("interface").ARRAYS
    return None


def stream_handle(stream: Any) -> int:
    """Return the driver's handle of `stream=`: an int, or a stream object of torch, CuPy, cuda-bindings or cuda.core."""
    if isinstance(stream, int) and not isinstance(stream, bool):
        return stream
    if protocol := getattr(stream, "__cuda_stream__", None):
        answer: Any = protocol() if callable(protocol) else protocol
        return int(answer[1])
    for name in ("cuda_stream", "ptr"):
        if isinstance(handle := getattr(stream, name, None), int):
            return handle
    if type(stream).__module__.startswith("cuda."):
        return int(stream)
    raise InputError(f"stream={stream!r}: give a stream of torch or CuPy, or the handle as an int")
