"""Kernel arguments as they are written on the command line.

a.npy                 an array from a file; `a.npy:bf16` takes its bits as another type of that size
f32[128x64]           an array of zeros; `=ones`, `=range`, `=normal` or `=7.5` fill it
out:f32[128x64]       an array with a name: what `--out DIR` writes it to, and what `&out` means
&out  &0+16           a pointer into an array given before, by its name or number, 16 elements from its start
a.npz                 every array of the file, in order: as many arguments (`WARPSMITH_DUMP` writes such files)
128  0x80  -1  1.5    a number of the parameter's type; 3:s16, 1.5:f32 or 1.5f one of a stated type
{a.npy,3:s32,1.5f}    a structure: arrays are pointers, numbers state their type, members are laid out as in C
@blob.bin             the bytes of a file
map:ARRAY:box=64x64:swizzle=128B
                      a tensor map of an array; the other options of TensorMap are written the same way; `tma:` means the same
"""

from __future__ import annotations

import math
import re
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import ml_dtypes
import numpy as np

from warpsmith.base.errors import InputError
from warpsmith.simulator import ptr
from warpsmith.simulator.host_memory import require
from warpsmith.simulator.sizes import PARAMETER_BYTES
from warpsmith.simulator.tensormap import TensorMap

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

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
_DEEPEST = 16
"""Structures inside structures."""
_MAP_PREFIXES = ("map", "tma")
_MAP_LISTS = ("box", "element_strides", "lower", "upper")
_MAP_WORDS = ("swizzle", "element", "interleave", "l2", "fill", "mode")
_MAP_NUMBERS = ("channels", "pixels")


@final
@dataclass(frozen=True, slots=True)
class Value:
    """One argument: how it was written, what the simulator is given, and the arrays it brings."""

    text: str
    argument: object
    arrays: tuple[tuple[str, NDArray[Any]], ...] = ()
    """(name, or how it was written; array)"""

    @property
    def array(self) -> NDArray[Any] | None:
        """The array of an argument that is one."""
        return self.arrays[0][1] if self.arrays and not self.text.startswith("{") else None


@final
class _Reader:
    """Reads one argument after the other; pointers name what came before."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.arrays: list[tuple[str, NDArray[Any]]] = []

    def value(self, text: str) -> Value:
        """Read one argument, at the top or within a structure."""
        if text.startswith("{"):
            return self._structure(text)
        if text.startswith("&"):
            return Value(text, self._pointer(text))
        name, colon, rest = text.partition(":")
        if colon and name.isidentifier() and name not in (*_MAP_PREFIXES, *DTYPES) and _is_array(rest):
            return self._array(text, name, rest)
        if name in _MAP_PREFIXES:
            return self.keep(_tensor_map(text, self._next_seed()))
        if text.startswith("@"):
            return Value(text, _read(text[1:]))
        return self._array(text, text, text) if _is_array(text) else Value(text, _number(text))

    def keep(self, value: Value) -> Value:
        """Let later pointers name the arrays of a value; return it."""
        self.arrays += value.arrays
        return value

    def _next_seed(self) -> int:
        self.seed += 1
        return self.seed - 1

    def _array(self, text: str, name: str, written: str) -> Value:
        if name != text and any(known == name for known, _ in self.arrays):
            raise InputError(f"{text}: two arrays are called {name!r}; give them different names")
        array = _array(written, self._next_seed())
        return self.keep(Value(text, array, ((name, array),)))

    def _structure(self, text: str) -> Value:
        if not text.endswith("}"):
            raise InputError(f"{text}: a structure ends with a brace, e.g. {{a.npy,3:s32,1.5f}}")
        members = [self.value(part) for part in _split(text[1:-1])]
        for member in members:
            if isinstance(member.argument, int | float) and not isinstance(member.argument, np.generic):
                raise InputError(f"{text}: {member.text} has no type in a structure; write {member.text}:s32 or the like")
        return Value(text, tuple(m.argument for m in members), tuple(a for m in members for a in m.arrays))

    def _pointer(self, text: str) -> object:
        word, plus, offset = text[1:].partition("+")
        found = [array for i, (name, array) in enumerate(self.arrays) if word in (name, str(i))]
        if not found:
            known = ", ".join(
                f"&{i}" + (f" (&{name})" if name.isidentifier() else "") for i, (name, _) in enumerate(self.arrays)
            )
            raise InputError(f"{text}: no array before it has that name or number; there are {known or 'none'}")
        if plus and not offset.isdecimal():
            raise InputError(f"{text}: the offset is a number of elements, e.g. &{word}+16")
        return ptr(found[0], int(offset or 0))


def _saved_arrays(path: str) -> list[Value]:
    """Return the arrays of an .npz file, in order; a key `name:bf16` says the type of the bits."""
    with _reading(path, "npz"):
        file = np.load(path, allow_pickle=False)
        if isinstance(file, np.ndarray):
            raise ValueError("it is a single array; name it .npy")
        with file:
            found = {key: file[key] for key in file.files}
    out: list[Value] = []
    for key, array in found.items():
        name, _, word = key.partition(":")
        made = _view(array, path, word) if word else array
        out.append(Value(f"{path}[{name}]", made, ((name, made),)))
    return out


def parse_values(texts: Sequence[str], *, seed: int = 0) -> list[Value]:
    """Read arguments; each text may hold several, separated by commas; raise `InputError` that shows the ways to write one."""
    reader = _Reader(seed)
    out: list[Value] = []
    for part in (part for text in texts for part in _split(text)):
        out += [reader.keep(v) for v in _saved_arrays(part)] if part.endswith(".npz") else [reader.value(part)]
    return out


def parse_value(text: str, *, seed: int = 0) -> Value:
    """Read one argument; raise `InputError` that shows the ways to write one."""
    return _Reader(seed).value(text)


def _split(text: str) -> list[str]:
    """Return the parts between commas that stand in no braces."""
    parts, depth = [""], 0
    for c in text:
        depth += (c == "{") - (c == "}")
        if depth < 0:
            raise InputError(f"{text}: a brace is closed that was not opened")
        if depth > _DEEPEST:
            raise InputError(f"structures are nested more than {_DEEPEST} deep")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    if depth:
        raise InputError(f"{text}: a brace is not closed; a structure is written {{a.npy,3:s32,1.5f}}")
    return [part.strip() for part in parts if part.strip()]


def _is_array(text: str) -> bool:
    path, _, _ = text.rpartition(":")
    return bool(_FILLED.fullmatch(text)) or text.endswith(".npy") or path.endswith(".npy")


def _array(text: str, seed: int) -> NDArray[Any]:
    """Make or load the array of `f32[4]=ones`, `a.npy` or `a.npy:bf16`."""
    if m := _FILLED.fullmatch(text):
        return _filled(text, m["type"], m["shape"], m["fill"], seed)
    path, _, word = text.rpartition(":")
    return _load(text) if text.endswith(".npy") else _view(_load(path), path, word)


def _number(text: str) -> Any:
    """Read a number; `3:s16` and `1.5f` are numpy scalars of that type."""
    word, colon, kind = text.rpartition(":")
    if colon and kind in DTYPES:
        plain = _number(word)
        return _element(text, DTYPES[kind], str(plain))[()]
    if re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?f", text):
        return _element(text, DTYPES["f32"], text[:-1])[()]
    for read in (lambda: int(text, 0), lambda: float(text)):
        try:
            return read()
        except ValueError:
            continue
    raise InputError(
        f"{text!r} is no argument; write a number (128, 1.5f, 3:s16), a file a.npy (or a.npy:bf16), f32[128x64] (or "
        "f32[128x64]=normal), &0+16 for a pointer into array 0, {a.npy,3:s32} for a structure, @file for bytes, or "
        "map:ARRAY:box=64x64:swizzle=128B"
    )


def _read(path: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            data = file.read(PARAMETER_BYTES + 1)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    if len(data) > PARAMETER_BYTES:
        raise InputError(f"{path}: more than the {PARAMETER_BYTES:,} bytes that the parameters of a kernel may have")
    return data


def _load(path: str) -> NDArray[Any]:
    with _reading(path, "npy"):
        array = np.load(path, allow_pickle=False)
        if not isinstance(array, np.ndarray):
            array.close()
            raise ValueError("it holds several arrays; name it .npz")
        return array


@contextmanager
def _reading(path: str, kind: str) -> Generator[None]:
    """Turn what a damaged file makes numpy, tokenize, ast and zipfile raise into an error of ours: it is of a dozen kinds."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except MemoryError:
        raise InputError(f"{path}: its arrays do not fit in this computer's memory, or its header is damaged") from None
    except Exception as error:
        raise InputError(f"{path}: not a .{kind} file of numbers: {error}") from None


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


def _plain(text: str) -> int | float:
    try:
        return int(text, 0)
    except ValueError:
        return float(text)


def _element(text: str, dtype: np.dtype[Any], fill: str | None) -> Any:
    """Read the number that fills an array, as `dtype`; refuse one that the type cannot hold."""
    try:
        number = 1.0 if fill == "ones" else _plain(fill or "0")
    except ValueError:
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
    written = ":".join(t for t in tokens if t.partition("=")[0] not in known)
    if not _is_array(written):
        raise InputError(f"{text}: a tensor map is of an array, not of {written!r}")
    array = _array(written, seed)
    options: dict[str, Any] = {}
    for name, _, value in pairs:
        try:
            if name in _MAP_LISTS:
                options[name] = tuple(map(int, value.split("x")))
            else:
                options[name] = int(value) if name in _MAP_NUMBERS else value
        except ValueError:
            raise InputError(f"{text}: {name}={value} is no number or list of numbers such as 64x64") from None
    return Value(text, TensorMap(array, **options), ((text, array),))
