"""Arrays after a launch: written to files, described in a line."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpsmith.base.errors import InputError
from warpsmith.cli.output import write_whole
from warpsmith.cli.values import DTYPES

__all__ = ["Named", "chosen_array", "parse_output", "save_all", "save_array", "summary"]

Named = tuple[str, NDArray[Any]]
"""How an array was written, and the array."""


def parse_output(text: str) -> tuple[str, Path]:
    """Read `N=FILE.npy`; return the number or name, and the path."""
    word, equals, path = text.partition("=")
    if not equals or not (word.isdecimal() or word.isidentifier()) or not path.endswith(".npy"):
        raise InputError(f"--output {text}: write N=FILE.npy, N being the array's number from 0, or its name")
    return word, Path(path)


def chosen_array(word: str, arrays: list[Named], path: Path) -> NDArray[Any]:
    """Return the array of a number or a name."""
    if word.isdecimal() and int(word) < len(arrays):
        return arrays[int(word)][1]
    for name, array in arrays:
        if name == word:
            return array
    if word.isdecimal():
        raise InputError(f"--output {word}={path}: there are {len(arrays)} arrays, numbered from 0")
    named = ", ".join(name for name, _ in arrays if name.isidentifier()) or "none"
    raise InputError(f"--output {word}={path}: no array is called {word!r}; names there: {named}")


def save_array(path: Path, array: NDArray[Any]) -> None:
    """Write an array as a whole file or not at all."""
    buffer = io.BytesIO()
    np.save(buffer, array)
    write_whole(path, buffer.getvalue())


def save_all(folder: Path, arrays: list[Named], printed: str = "") -> None:
    """Write every array as its name or number, and the text that was printed, if any."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--out {folder}: cannot be made a folder: {error.strerror or error}") from None
    for index, (name, array) in enumerate(arrays):
        save_array(folder / f"{name if name.isidentifier() else index}.npy", array)
    if printed:
        write_whole(folder / "printed.txt", printed.encode())


def summary(name: str, array: NDArray[Any]) -> str:
    """Describe an array in a line: type, shape, range, and how many values are not numbers."""
    shape = "x".join(map(str, array.shape))
    if array.size == 0 or not (array.dtype.kind in "biuf" or array.dtype in DTYPES.values()):
        return f"{name}: {array.dtype}[{shape}]"
    numbers = array.astype(np.float64)
    finite = numbers[np.isfinite(numbers)]
    bad = f", {numbers.size - finite.size} not finite" if finite.size < numbers.size else ""
    low, high, mean = (finite.min(), finite.max(), finite.mean()) if finite.size else (np.nan,) * 3
    return f"{name}: {array.dtype}[{shape}] from {low:.6g} to {high:.6g}, mean {mean:.6g}{bad}"
