"""`WARPSMITH_DUMP=folder`: the input arrays of every launch, kept before it runs, for a run on the simulator.

A file `0003-softmax.npz` holds the inputs by name, in order; a type that numpy lacks is kept as its bits under `name:bf16`.
`warpsmith simulate k.py:softmax -a 0003-softmax.npz` reads it. Every launch then waits and copies: this is for finding faults.
"""

from __future__ import annotations

import io
import os
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from warpsmith.base.errors import InputError
from warpsmith.base.whole_file import write_whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warpsmith.launch.arrays import ArrayFacts
    from warpsmith.launch.context import Context

__all__ = ["dump_folder", "dump_inputs"]

_SUFFIXES = {"bfloat16": "bf16", "float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2"}
_numbers = count()


def dump_folder() -> Path | None:
    """Return the folder that WARPSMITH_DUMP names, None where it is not set."""
    text = os.environ.get("WARPSMITH_DUMP")
    return Path(text) if text else None


def dump_inputs(folder: Path, kernel: str, context: Context, names: Sequence[str], facts: Sequence[ArrayFacts]) -> Path:
    """Wait for the device, copy the inputs from it and write them; return the file."""
    before = context.enter()
    try:
        context.driver.synchronize()
        arrays = {f"{n}{_suffix(f)}": _copy(context, f) for n, f in zip(names, facts, strict=False)}
    finally:
        context.leave(before)
    path = folder / f"{next(_numbers):04}-{kernel}.npz"
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(path, buffer.getvalue())
    except OSError as error:
        raise InputError(f"WARPSMITH_DUMP={folder}: cannot be written: {error.strerror or error}") from None
    return path


def _suffix(facts: ArrayFacts) -> str:
    return f":{_SUFFIXES[facts.dtype]}" if facts.dtype in _SUFFIXES else ""


def _copy(context: Context, facts: ArrayFacts) -> Any:
    size = facts.itemsize * int(np.prod(facts.shape, dtype=np.int64))
    data = context.driver.download(facts.address, size)
    dtype = np.dtype(f"u{facts.itemsize}") if _suffix(facts) or facts.dtype not in np.sctypeDict else np.dtype(facts.dtype)
    order = "C" if len(facts.strides) < 2 or facts.strides[-1] == facts.itemsize else "F"
    return np.frombuffer(data, dtype).reshape(facts.shape, order=order)
