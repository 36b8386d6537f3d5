"""Array element types and PTX types: which array can be a tensor argument, and which dtype an output has."""

from __future__ import annotations

from typing import Any

from warpsmith.base.errors import CapabilityError, InputError
from warpsmith.base.ptx_types import PtxType
from warpsmith.dsl import rooms

__all__ = ["check_array", "check_element", "element_name", "itemsize_of", "output_dtype"]

_NUMPY = {
    "f16": "float16", "f32": "float32", "f64": "float64", "tf32": "float32", "b8": "uint8", "b16": "uint16", "b32": "uint32",
    "b64": "uint64", "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64", "s8": "int8", "s16": "int16",
    "s32": "int32", "s64": "int64",
}  # fmt: skip
_ML_DTYPES = {
    "bf16": "bfloat16", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2", "ue8m0": "float8_e8m0fnu",
}  # fmt: skip


def element_name(dtype: PtxType) -> str:
    """Return the name of the numpy (or ml_dtypes) type of an output; `CapabilityError` for elements that fill no whole byte."""
    if name := _NUMPY.get(dtype.name) or _ML_DTYPES.get(dtype.name):
        return name
    if dtype.bits % 8 or dtype.bits > 64:
        raise CapabilityError(f"an output of type {dtype} has no numpy dtype; declare it as b8 with the packed shape")
    return f"uint{dtype.bits}"


def output_dtype(dtype: PtxType) -> Any:
    """Return the numpy dtype of an output; `CapabilityError` for elements that fill no whole byte."""
    name = element_name(dtype)
    return rooms.numpy().dtype(getattr(rooms.ml_dtypes(), name) if dtype.name in _ML_DTYPES else name)


def itemsize_of(element: str) -> int:
    """Return the bytes of an element type of numpy or ml_dtypes."""
    known = rooms.ml_dtypes()
    return rooms.numpy().dtype(getattr(known, element) if hasattr(known, element) else element).itemsize


def _accepts(dtype: PtxType, name: str, itemsize: int) -> bool:
    """Say whether elements of a numpy type are of `dtype`: the type itself, or unsigned (for bit types: any) of its width."""
    if dtype.bits % 8:
        return name == "uint8"
    if itemsize * 8 != dtype.bits:
        return False
    wanted = {_NUMPY.get(dtype.name), _ML_DTYPES.get(dtype.name), f"uint{dtype.bits}"}
    return (
        dtype.kind in ("bits", "packed")
        or name in wanted
        or (dtype.kind in ("unsigned", "signed") and name.startswith(("int", "uint")))
    )


def check_element(kernel: str, name: str, element: str, itemsize: int, dtype: PtxType) -> None:
    """Raise `InputError` for an array of `element` (numpy's name of its type) that cannot be the argument `name`."""
    if not _accepts(dtype, element, itemsize):
        wanted = _NUMPY.get(dtype.name) or _ML_DTYPES.get(dtype.name) or f"uint{dtype.bits}"
        raise InputError(f"{kernel}: argument {name} has dtype {element} where {dtype} is declared; give {wanted}")


def check_array(kernel: str, name: str, array: Any, dtype: PtxType) -> None:
    """Raise `InputError` for an array that cannot be the argument `name`."""
    check_element(kernel, name, array.dtype.name, array.dtype.itemsize, dtype)
