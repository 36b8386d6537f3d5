"""Kernels in JAX: a foreign function for each kernel and shapes, called through typed FFI inside what `jax.jit` compiles.

The foreign function is a Python function behind a C pointer that ctypes makes: no compiler is needed on the user's machine.
XLA calls it on a thread of its own with the addresses of the arrays and the stream. On a GPU it does nothing but launch, so it
is marked as fit for XLA's command buffers: XLA records its launch in a CUDA graph, and calls it again only where the graph is
made anew, as it does when arrays have moved. XLA's flag `xla_gpu_enable_command_buffer` says which calls are recorded at all.
"""

# The package is optional, and its types with it.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportUnknownParameterType=false
# pyright: reportUntypedBaseClass=false, reportUntypedFunctionDecorator=false

from __future__ import annotations

import ctypes
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol, final

import jax
import jax.ffi
import ml_dtypes
import numpy as np

from warpsmith.base.errors import InputError
from warpsmith.launch.arrays import ArrayFacts
from warpsmith.launch.xla_frame import COMMAND_BUFFER, make_error, read_frame

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["ARRAYS", "ForeignKernel", "JaxArrays"]

_PLATFORMS = ("cpu", "CUDA")
_HANDLER = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


class ForeignKernel(Protocol):
    """A kernel with its keywords, as a foreign function calls it."""

    targets: dict[Any, Any]
    """Shapes and types of the inputs -> the foreign function for them."""

    def outputs(self, shapes: Sequence[tuple[int, ...]], dtypes: Sequence[str]) -> list[tuple[tuple[int, ...], str, bool]]:
        """Return (shape, element type, column-major) of each output."""
        ...

    def column_major(self) -> list[bool]:
        """Say of each input whether it is column-major."""
        ...

    def run(self, arrays: list[Any]) -> None:
        """Run on numpy arrays: the inputs, then the outputs, which are written."""
        ...

    def prepare(self, facts: list[ArrayFacts]) -> Callable[[Sequence[int], int], None]:
        """Return the launch on arrays of a GPU (inputs, then outputs) as a function of their addresses and the stream."""
        ...


@final
class _Target:
    """A foreign function: one kernel with shapes and types of its arrays."""

    def __init__(self, name: str, foreign: ForeignKernel, shapes: list[tuple[int, ...]], dtypes: list[str]) -> None:
        outputs = foreign.outputs(shapes, dtypes)
        self.name, self.foreign = name, foreign
        self.shapes = [*shapes, *[o[0] for o in outputs]]
        self.dtypes = [_dtype(n) for n in (*dtypes, *[o[1] for o in outputs])]
        self.columns = [*foreign.column_major(), *[o[2] for o in outputs]]
        self.count = len(shapes)
        self.results = [jax.ShapeDtypeStruct(o[0], _dtype(o[1])) for o in outputs]
        layouts = [_layout(len(s), c) for s, c in zip(self.shapes, self.columns, strict=True)]
        self.layouts = layouts[: self.count], layouts[self.count :]
        self._launches: dict[int, Callable[[Sequence[int], int], None]] = {}
        self._handlers = [_HANDLER(self._on_host), _HANDLER(self._on_gpu)]
        for platform, handler in zip(_PLATFORMS, self._handlers, strict=True):
            jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(handler), platform=platform)

    def _on_host(self, address: int) -> int:
        try:
            frame = read_frame(address)
            if frame is not None:
                self.foreign.run([self._host_array(i, at) for i, at in enumerate(frame.addresses)])
        except BaseException as error:  # an exception cannot pass through C: XLA raises it again from this message
            return make_error(address, f"{type(error).__name__}: {error}")
        return 0

    def _on_gpu(self, address: int) -> int:
        try:
            frame = read_frame(address, COMMAND_BUFFER)
            if frame is not None:
                device = frame.device() if _several_gpus() else 0
                launch = self._launches.get(device) or self._prepare(frame.addresses, device)
                launch(frame.addresses, frame.stream())
        except BaseException as error:
            return make_error(address, f"{type(error).__name__}: {error}")
        return 0

    def _prepare(self, addresses: Sequence[int], device: int) -> Callable[[Sequence[int], int], None]:
        facts = [
            ArrayFacts(t.name, t.itemsize, s, _strides(s, t.itemsize, c), at, device)
            for t, s, c, at in zip(self.dtypes, self.shapes, self.columns, addresses, strict=True)
        ]
        launch = self._launches[device] = self.foreign.prepare(facts)
        return launch

    def _host_array(self, i: int, address: int) -> Any:
        shape, dtype = self.shapes[i], self.dtypes[i]
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        memory: Any = (ctypes.c_char * size).from_address(address) if size else b""
        return np.frombuffer(memory, dtype).reshape(shape, order="F" if self.columns[i] else "C")


_numbers = count()


@cache
def _several_gpus() -> bool:
    return len(jax.local_devices()) > 1


def _dtype(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name)) if hasattr(ml_dtypes, name) else np.dtype(name)


def _strides(shape: tuple[int, ...], itemsize: int, column: bool) -> tuple[int, ...]:
    out: list[int] = []
    step = itemsize
    for extent in shape if column else reversed(shape):
        out.append(step)
        step *= extent
    return tuple(out) if column else tuple(reversed(out))


@final
class JaxArrays:
    """`Arrays` of JAX. Its arrays cannot be written, and inside `jax.jit` they have no address: calls go through XLA."""

    name = "JAX"
    functional = True

    def call(self, kernel: Any, arrays: Sequence[Any], keywords: dict[str, Any]) -> Any:
        """Call a kernel through XLA; `kernel.foreign(keywords)` makes the foreign kernel, once for these keywords."""
        if len(arrays) != kernel.input_count:
            kernel.check_count(len(arrays))
            raise InputError(
                f"{kernel.__name__}: arrays of JAX cannot be written; call with the inputs alone and take the outputs"
            )
        for i, a in enumerate(arrays):
            if not isinstance(a, jax.Array | np.ndarray):
                raise InputError(
                    f"{kernel.__name__}: argument {i} is a {type(a).__name__} beside arrays of JAX; pass jax.numpy arrays"
                )
        foreign: ForeignKernel = kernel.foreign(keywords)
        shapes, dtypes = [tuple(a.shape) for a in arrays], [np.dtype(a.dtype).name for a in arrays]
        key = (*shapes, *dtypes)
        target = foreign.targets.get(key)
        if target is None:
            name = f"warpsmith_{kernel.__name__}_{next(_numbers)}"
            target = foreign.targets[key] = _Target(name, foreign, shapes, dtypes)
        made = jax.ffi.ffi_call(
            target.name,
            target.results,
            vmap_method="sequential",
            input_layouts=target.layouts[0],
            output_layouts=target.layouts[1],
        )(*arrays)
        return made[0] if len(made) == 1 else tuple(made)

    def differentiate(self, pair: Any, arrays: Sequence[Any]) -> Any:
        """Call a pair of kernels, with the backward kernel as its derivative."""

        def first(*inputs: Any) -> Any:
            outputs = pair.forward_kernel(*inputs)
            every = (*inputs, *(outputs if isinstance(outputs, tuple) else (outputs,)))
            return outputs, (inputs if pair.save is None else tuple(every[i] for i in pair.save), len(inputs))

        def second(kept: Any, gradients: Any) -> Any:
            saved, count = kept
            found = pair.backward_kernel(*saved, *(gradients if isinstance(gradients, tuple) else (gradients,)))
            return pair.gradients(found, count)

        function = jax.custom_vjp(pair.forward_kernel)
        function.defvjp(first, second)
        return function(*arrays)

    def on_gpu(self, value: Any) -> bool:
        """Say whether the array is on a GPU; a traced one is on none."""
        return isinstance(value, jax.Array) and not isinstance(value, jax.core.Tracer) and _platform(value) == "gpu"

    def to_numpy(self, value: Any) -> Any:
        """Return a numpy array of it (a view on the host); for `simulate`."""
        return np.asarray(value)

    def from_numpy(self, value: Any) -> Any:
        """Return a JAX array of it."""
        return jax.numpy.asarray(value)


def _platform(value: Any) -> str:
    return next(iter(value.devices())).platform


def _layout(rank: int, column: bool) -> tuple[int, ...]:
    return tuple(reversed(range(rank))) if column else tuple(range(rank))


ARRAYS = JaxArrays()
