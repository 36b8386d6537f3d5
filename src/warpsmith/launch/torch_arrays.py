"""torch's tensors as a launch sees them."""

# The package is optional, and its types with it.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportUnknownParameterType=false
# pyright: reportUntypedBaseClass=false, reportUntypedFunctionDecorator=false

from __future__ import annotations

import math
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, final

import ml_dtypes
import numpy as np
import torch

from warpsmith.base.errors import InputError
from warpsmith.base.optional import adapter
from warpsmith.launch.arrays import ArrayFacts
from warpsmith.launch.straight import ArrayCode

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

__all__ = ["ARRAYS", "TorchArrays", "dtype_of", "name_of"]

_NAMES = {
    torch.float16: "float16", torch.bfloat16: "bfloat16", torch.float32: "float32", torch.float64: "float64",
    torch.uint8: "uint8", torch.int8: "int8", torch.int16: "int16", torch.int32: "int32", torch.int64: "int64",
    torch.uint16: "uint16", torch.uint32: "uint32", torch.uint64: "uint64", torch.bool: "bool",
    torch.float8_e4m3fn: "float8_e4m3fn", torch.float8_e5m2: "float8_e5m2",
    **({torch.float8_e8m0fnu: "float8_e8m0fnu"} if hasattr(torch, "float8_e8m0fnu") else {}),
    **({torch.float4_e2m1fn_x2: "float4_e2m1fn_x2"} if hasattr(torch, "float4_e2m1fn_x2") else {}),
}  # fmt: skip
# methods called through map: a third of the time of a loop; `shape` and `stride` cost as much as the rest together
_address, _device, _contiguous = torch.Tensor.data_ptr, torch.Tensor.get_device, torch.Tensor.is_contiguous
_kind = attrgetter("dtype", "shape", "requires_grad")
_Guards: Any = getattr(getattr(getattr(torch._C, "_dynamo", None), "guards", None), "TensorGuards", None)
_empty_cuda: Any = getattr(getattr(getattr(torch._C, "_dynamo", None), "guards", None), "_empty_strided_cuda", None)
_current: Any = getattr(torch._C, "_cuda_getDevice", torch.cuda.current_device)
_DTYPES = {name: dtype for dtype, name in _NAMES.items()}
_THROUGH = {"bfloat16": torch.uint16, "float8_e4m3fn": torch.uint8, "float8_e5m2": torch.uint8, "float8_e8m0fnu": torch.uint8}
"""Types numpy does not have -> the type whose bits numpy sees."""


def name_of(dtype: torch.dtype) -> str:
    """Return numpy's (or ml_dtypes') name of a torch dtype."""
    if dtype not in _NAMES:
        raise InputError(f"a tensor of {dtype}: kernels take {', '.join(str(d) for d in _NAMES)}")
    return _NAMES[dtype]


def dtype_of(name: str) -> torch.dtype:
    """Return the torch dtype of numpy's name of an element type."""
    if name not in _DTYPES:
        raise InputError(f"torch has no element type {name}")
    return _DTYPES[name]


@final
class TorchArrays:
    """`Arrays` of torch."""

    name = "torch"

    functional = False

    def on_gpu(self, value: Any) -> bool:
        """Say whether the tensor is on a CUDA device."""
        return value.is_cuda

    def probe(self, arrays: Sequence[Any]) -> tuple[Hashable, list[int]]:
        """Return key and addresses."""
        low, addresses = self.addresses(arrays)
        contiguous = tuple(map(_contiguous, arrays))
        key: tuple[Any, ...] = (*map(_kind, arrays), *map(_device, arrays))
        if low:
            key += tuple(address & 15 for address in addresses)
        if False in contiguous:
            key += tuple(None if c else t.stride() for c, t in zip(contiguous, arrays, strict=True))
        return key, addresses

    def abstract(self, arrays: Sequence[Any]) -> bool:
        """Say whether a tensor is of a class of its own, such as torch's fake tensors: those have no data, or not here."""
        return any(isinstance(t, torch.Tensor) and type(t) not in (torch.Tensor, torch.nn.Parameter) for t in arrays)

    def recording(self, arrays: Sequence[Any]) -> bool:
        """Say whether autograd records what is done with these tensors."""
        return torch.is_grad_enabled() and any(isinstance(t, torch.Tensor) and t.requires_grad for t in arrays)

    def guard(self, arrays: Sequence[Any]) -> Callable[..., bool] | None:
        """Return torch's own check that tensors are of these kinds, ten times as fast as a key; None for a torch without it."""
        if _Guards is None:
            return None
        try:
            return _Guards(*arrays, dynamic_dims_sizes=None, dynamic_dims_strides=None).check
        except (TypeError, RuntimeError):
            return None

    def code(self, device: int) -> ArrayCode:
        """Return how generated code handles tensors on a device."""
        return ArrayCode("{}.data_ptr()", partial(torch._C._cuda_getCurrentRawStream, device), torch.is_grad_enabled)

    def addresses(self, arrays: Sequence[Any]) -> tuple[int, list[int]]:
        """Return the addresses, and their lowest four bits or'ed."""
        found = list(map(_address, arrays))
        low = 0
        for address in found:
            low |= address
        return low & 15, found

    def facts(self, value: Any) -> ArrayFacts:
        """Describe one tensor."""
        if value.is_sparse or value.layout != torch.strided:
            raise InputError(f"a {value.layout} tensor has no address; pass a dense one")
        if value.is_neg() or value.is_conj():
            raise InputError("a tensor that is a lazily negated or conjugated view; pass .resolve_neg().resolve_conj()")
        size = value.element_size()
        strides = tuple(s * size for s in value.stride())
        return ArrayFacts(name_of(value.dtype), size, tuple(value.shape), strides, value.data_ptr(), value.get_device())

    def allocator(self, shape: tuple[int, ...], dtype: str, device: int, column_major: bool) -> Callable[[], Any]:
        """Return a function that makes an uninitialised tensor.

        On the current device this is the allocation of torch's own compiled code, which is quicker than `torch.empty` and takes
        no device; as there, `torch.utils.deterministic.fill_uninitialized_memory` does not fill it.
        """
        where, kind = torch.device("cuda", device) if device >= 0 else torch.device("cpu"), _DTYPES[dtype]
        if not column_major:
            empty = torch.empty
            if device < 0 or _empty_cuda is None:
                return lambda: empty(shape, dtype=kind, device=where)
            steps = tuple(math.prod(max(1, extent) for extent in shape[i + 1 :]) for i in range(len(shape)))
            if torch.cuda.device_count() == 1:
                return partial(_empty_cuda, shape, steps, kind)
            return lambda: _empty_cuda(shape, steps, kind) if _current() == device else empty(shape, dtype=kind, device=where)
        strides = tuple(int(np.prod(shape[:i], dtype=np.int64)) for i in range(len(shape)))
        return lambda: torch.empty_strided(shape, strides, dtype=kind, device=where)

    def address(self, value: Any) -> int:
        """Return a tensor's address."""
        return value.data_ptr()

    def stream(self, device: int, arrays: Sequence[Any]) -> int:
        """Return the current stream."""
        return torch._C._cuda_getCurrentRawStream(device)  # pyright: ignore[reportAttributeAccessIssue]

    def differentiate(self, pair: Any, tensors: Sequence[Any]) -> Any:
        """Call a pair of kernels, recorded by autograd."""
        return adapter("torch op").differentiate(pair, *tensors)

    def wait(self, device: int, stream: int, arrays: Sequence[Any]) -> None:
        """Leave the order to the caller, as the library's own functions do."""

    def to_numpy(self, value: Any) -> Any:
        """Return a numpy view of a CPU tensor."""
        tensor = value.detach()
        name = name_of(tensor.dtype)
        if name in _THROUGH:
            return tensor.view(_THROUGH[name]).numpy().view(getattr(ml_dtypes, name))
        if name == "float4_e2m1fn_x2":
            return tensor.view(torch.uint8).numpy()
        return tensor.numpy()

    def from_numpy(self, value: Any) -> Any:
        """Return a CPU tensor that shares the array's memory."""
        name = value.dtype.name
        if name in _THROUGH:
            bits = np.uint16 if value.itemsize == 2 else np.uint8
            return torch.from_numpy(value.view(bits)).view(_DTYPES[name])
        return torch.from_numpy(value)


ARRAYS = TorchArrays()
