"""Kernel arguments as they are written on the command line.

a.npy                 an array from a file; `a.npy:bf16` takes its bits as another type of that size
f32[128x64]           an array of zeros; `=ones`, `=range`, `=normal` or `=7.5` fill it
128  0x80  -1  1.5    a number
@blob.bin             the bytes of a file
map:ARRAY:box=64x64:swizzle=128B
                      a tensor map of an array; the other options of TensorMap are written the same way
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import ml_dtypes
import numpy as np

from warpsmith.base.errors import InputError
from warpsmith.simulator.host_memory import require
from warpsmith.simulator.tensormap import TensorMap

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["DTYPES", "Value", "parse_value", "parse_values"]

DTYPES: dict[str, np.dtype[Any]] = {
    **{f"{letter}{8 * size}": np.dtype(f"{code}{size}") for size in (1, 2, 4, 8) for letter, code in (("u", "u"), ("s", "i"))},
    **{f"b{8 * size}": np.dtype(f"u{size}") for size in (1, 2, 4, 8)},
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "e5m2": np.dtype(ml_dtypes.float8_e5m2),
}
"""PTX type -> numpy type of an array of it."""

_FILLED = re.compile(r"(?P<type>\w+)\[(?P<shape>\d+(?:x\d+)*)\](?:=(?P<fill>.+))?")
_MAP_LISTS = ("box", "element_strides", "lower", "upper")
_MAP_WORDS = ("swizzle", "element", "interleave", "l2", "fill", "mode")
_MAP_NUMBERS = ("channels", "pixels")


@final
@dataclass(frozen=True, slots=True)
class Value:
    """One argument: how it was written, what the simulator is given, and its array, if it has one."""

    text: str
    argument: object
    array: NDArray[Any] | None = None


def parse_values(texts: Sequence[str], *, seed: int = 0) -> list[Value]:
    """Read arguments; each text may hold several, separated by commas."""
    parts = [part.strip() for text in texts for part in text.split(",")]
    return [parse_value(part, seed=seed + i) for i, part in enumerate(parts) if part]


def parse_value(text: str, *, seed: int = 0) -> Value:
    """Read one argument; raise `InputError` that shows the ways to write one."""
    if text.startswith("map:"):
        return _tensor_map(text, seed)
    if text.startswith("@"):
        return Value(text, _read(text[1:]))
    if m := _FILLED.fullmatch(text):
        array = _filled(text, m["type"], m["shape"], m["fill"], seed)
        return Value(text, array, array)
    path, _, word = text.rpartition(":")
    if text.endswith(".npy") or path.endswith(".npy"):
        array = _load(text) if text.endswith(".npy") else _view(_load(path), path, word)
        return Value(text, array, array)
    return Value(text, _number(text))


def _number(text: str) -> int | float:
    for read in (lambda: int(text, 0), lambda: float(text)):
        try:
            return read()
        except ValueError:
            continue
    raise InputError(
        f"{text!r} is no argument; write a number, a file a.npy (or a.npy:bf16), f32[128x64] (or f32[128x64]=normal), "
        "@file for bytes, or map:ARRAY:box=64x64:swizzle=128B"
    )


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None


def _load(path: str) -> NDArray[Any]:
    try:
        return np.load(path, allow_pickle=False)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, EOFError) as error:
        raise InputError(f"{path}: not a .npy file of numbers: {error}") from None


def _dtype(word: str, where: str) -> np.dtype[Any]:
    if word not in DTYPES:
        raise InputError(f"{where}: no array type {word!r}; known: {', '.join(DTYPES)}")
    return DTYPES[word]


def _view(array: NDArray[Any], path: str, word: str) -> NDArray[Any]:
    dtype = _dtype(word, path)
    if dtype.itemsize != array.dtype.itemsize:
        raise InputError(
            f"{path}: its elements have {array.dtype.itemsize} bytes ({array.dtype}), those of {word} have {dtype.itemsize}"
        )
    return array.view(dtype)


def _filled(text: str, word: str, shape: str, fill: str | None, seed: int) -> NDArray[Any]:
    dtype = _dtype(word, text)
    extents = _extents(text, shape, dtype)
    if fill in (None, "zeros"):
        return np.zeros(extents, dtype)
    if fill == "normal":
        return np.random.default_rng(seed).standard_normal(extents).astype(dtype)
    if fill == "range":
        return np.arange(np.prod(extents)).reshape(extents).astype(dtype)
    return np.full(extents, _element(text, dtype, fill))


def _extents(text: str, shape: str, dtype: np.dtype[Any]) -> tuple[int, ...]:
    """Read `128x64`; refuse more dimensions than numpy has and more bytes than this computer has."""
    words = shape.split("x")
    if len(words) > 32 or any(len(word) > 18 for word in words):
        raise InputError(f"{text:.80}: at most 32 extents of at most 18 digits")
    extents = tuple(map(int, words))
    require(f"{text}: an array in", math.prod(extents) * dtype.itemsize)
    return extents


def _element(text: str, dtype: np.dtype[Any], fill: str | None) -> Any:
    """Read the number that fills an array, as `dtype`; refuse one that the type cannot hold."""
    try:
        number = 1.0 if fill == "ones" else _number(fill or "0")
    except InputError:
        raise InputError(f"{text}: no filling {fill!r}; write =zeros, =ones, =range, =normal or a number") from None
    try:
        if dtype.kind in "iu":
            if int(number) != number:
                raise ValueError
            return np.array(int(number), dtype)
        with np.errstate(all="ignore"):
            element = np.array(float(number)).astype(dtype)
        if math.isfinite(float(number)) and not math.isfinite(float(element)):
            raise OverflowError
    except (OverflowError, ValueError):
        raise InputError(f"{text:.80}: {dtype.name} cannot hold {fill!s:.40}") from None
    return element


def _tensor_map(text: str, seed: int) -> Value:
    known = (*_MAP_LISTS, *_MAP_WORDS, *_MAP_NUMBERS)
    tokens = text.split(":")[1:]
    pairs = [t.partition("=") for t in tokens if t.partition("=")[0] in known]
    inner = parse_value(":".join(t for t in tokens if t.partition("=")[0] not in known), seed=seed)
    if inner.array is None:
        raise InputError(f"{text}: a tensor map is of an array, not of {inner.text!r}")
    options: dict[str, Any] = {}
    for name, _, value in pairs:
        try:
            if name in _MAP_LISTS:
                options[name] = tuple(map(int, value.split("x")))
            else:
                options[name] = int(value) if name in _MAP_NUMBERS else value
        except ValueError:
            raise InputError(f"{text}: {name}={value} is no number or list of numbers such as 64x64") from None
    return Value(text, TensorMap(inner.array, **options), inner.array)
