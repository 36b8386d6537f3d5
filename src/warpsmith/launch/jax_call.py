"""Kernels in JAX: one foreign function for each platform, called through typed FFI, so that `jax.jit` compiles around it.

The foreign function is a Python function behind a C pointer that ctypes makes: no compiler is needed on the user's machine.
XLA calls it on a thread of its own with the addresses of the arrays and the stream. It is not marked as fit for XLA's command
buffers, so XLA calls it for every execution.
"""

# The package is optional, and its types with it.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportUnknownParameterType=false
# pyright: reportUntypedBaseClass=false, reportUntypedFunctionDecorator=false

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Protocol, final

import jax
import jax.ffi
import ml_dtypes
import numpy as np

from warpsmith.base.errors import InputError
from warpsmith.launch.arrays import ArrayFacts
from warpsmith.launch.xla_frame import Buffer, answer_metadata, make_error, read_frame

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["ARRAYS", "ForeignKernel", "JaxArrays"]

_PLATFORMS = {"cpu": False, "CUDA": True}
_TARGET = "warpsmith_kernel"
_HANDLER = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


class ForeignKernel(Protocol):
    """A kernel with its keywords, as the foreign function calls it."""

    def outputs(self, shapes: Sequence[tuple[int, ...]], dtypes: Sequence[str]) -> list[tuple[tuple[int, ...], str, bool]]:
        """Return (shape, element type, column-major) of each output."""
        ...

    def run(self, arrays: list[Any]) -> None:
        """Run on numpy arrays: the inputs, then the outputs, which are written."""
        ...

    def launch(self, facts: list[ArrayFacts], stream: int) -> None:
        """Launch on arrays of a GPU: the inputs, then the outputs."""
        ...

    def column_major(self) -> list[bool]:
        """Say of each input whether it is column-major."""
        ...


_kernels: list[ForeignKernel] = []
_alive: list[Any] = []
"""The C pointers' Python objects."""


def _dtype(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name)) if hasattr(ml_dtypes, name) else np.dtype(name)


def _strides(shape: tuple[int, ...], itemsize: int, column: bool) -> tuple[int, ...]:
    out: list[int] = []
    step = itemsize
    for extent in shape if column else reversed(shape):
        out.append(step)
        step *= extent
    return tuple(out) if column else tuple(reversed(out))


def _on_host(buffer: Buffer, column: bool) -> Any:
    dtype = _dtype(buffer.dtype)
    size = int(np.prod(buffer.shape, dtype=np.int64)) * dtype.itemsize
    memory: Any = (ctypes.c_char * size).from_address(buffer.address) if size else b""
    flat = np.frombuffer(memory, dtype)
    return flat.reshape(buffer.shape, order="F" if column else "C")


def _on_gpu(buffer: Buffer, column: bool, device: int) -> ArrayFacts:
    size = _dtype(buffer.dtype).itemsize
    return ArrayFacts(buffer.dtype, size, buffer.shape, _strides(buffer.shape, size, column), buffer.address, device)


def _handler(gpu: bool) -> Any:
    def handle(address: int) -> int:
        try:
            if answer_metadata(address):
                return 0
            frame = read_frame(address, gpu=gpu)
            kernel = _kernels[frame.attributes["kernel"]]
            columns = [*kernel.column_major(), *[False] * len(frame.results)]
            every = [*frame.arguments, *frame.results]
            shapes, dtypes = [b.shape for b in frame.arguments], [b.dtype for b in frame.arguments]
            columns[len(frame.arguments) :] = [o[2] for o in kernel.outputs(shapes, dtypes)]
            if gpu:
                kernel.launch([_on_gpu(b, c, frame.device) for b, c in zip(every, columns, strict=True)], frame.stream)
            else:
                kernel.run([_on_host(b, c) for b, c in zip(every, columns, strict=True)])
        except BaseException as error:  # an exception cannot pass through C: XLA raises it again from this message
            return make_error(address, f"{type(error).__name__}: {error}")
        return 0

    return _HANDLER(handle)


def _register() -> None:
    if _alive:
        return
    for platform, gpu in _PLATFORMS.items():
        handler = _handler(gpu)
        jax.ffi.register_ffi_target(_TARGET, jax.ffi.pycapsule(handler), platform=platform)
        _alive.append(handler)


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
        _register()
        foreign: Any = kernel.foreign(keywords)
        if not hasattr(foreign, "number"):
            foreign.number = len(_kernels)
            _kernels.append(foreign)
        outputs = foreign.outputs([tuple(a.shape) for a in arrays], [np.dtype(a.dtype).name for a in arrays])
        results = [jax.ShapeDtypeStruct(shape, _dtype(name)) for shape, name, _ in outputs]
        call = jax.ffi.ffi_call(
            _TARGET, results, vmap_method="sequential",
            input_layouts=[_layout(a.ndim, c) for a, c in zip(arrays, foreign.column_major(), strict=True)],
            output_layouts=[_layout(len(shape), column) for shape, _, column in outputs],
        )  # fmt: skip
        made = call(*arrays, kernel=np.int64(foreign.number))
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
