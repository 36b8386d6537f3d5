"""Launches that were taken down when a library's host code was compiled (tests/data/launches): parameters in pieces.

Parameters are structures with pointers and tensor maps inside; arrays stand in them by their names.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from programs.program import Launch
from ptx_corpus import DATA
from warpsmith.simulator.arguments import ptr
from warpsmith.simulator.tensormap import TensorMap

Arrays = Mapping[str, np.ndarray]
_PLAIN = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


@cache
def _taken_down(file: Path) -> dict[str, Any]:
    return json.loads(file.read_text())


def launches(folder: str, name: str, arrays: Arrays, *, unlike: str = "") -> Iterator[Launch]:
    """Yield the launches of `name` in a folder of tests/data one after the other; fill and copy what the host does between.

    The contents of the array `unlike` are not compared between runs.
    """
    plain = {key: a.reshape(-1).view(_PLAIN[a.itemsize]) for key, a in arrays.items()}
    for how in _taken_down(DATA.parent / folder / "launches.json")[name]:
        if "zero" in how:
            plain[how["zero"]].view(np.uint8)[how["at"] : how["at"] + how["size"]] = how.get("value", 0)
        elif "copy" in how:
            (to, at), (of, start), n = how["copy"], how["of"], how["size"]
            plain[to].view(np.uint8)[at : at + n] = plain[of].view(np.uint8)[start : start + n]
        else:
            args = [tuple(_piece(piece, plain) for piece in param) for param in how["params"]]
            cluster = tuple(how["cluster"]) if how["cluster"] != [1, 1, 1] else None
            shape = tuple(how["grid"]), tuple(how["block"]), cluster, how["shared"]
            yield Launch(args, how["kernel"], *shape, unlike=(id(plain[unlike]),) if unlike else ())


def _piece(piece: list[Any], arrays: Arrays) -> Any:
    match piece:
        case ["bytes", text]:
            return bytes.fromhex(text)
        case ["pointer", name, 0]:
            return arrays[name]
        case ["pointer", name, at]:
            return ptr(arrays[name], at // arrays[name].itemsize)
        case _:
            return _map(piece[1], arrays)


def _map(fields: dict[str, Any], arrays: Arrays) -> TensorMap:
    memory, dims = arrays[fields["array"]], fields["dims"]
    memory = memory[fields["at"] // memory.itemsize :]
    shaped = np.lib.stride_tricks.as_strided(memory, dims[::-1], [*fields["strides"][::-1], memory.itemsize])
    options: dict[str, Any] = {k: tuple(fields[k][::-1]) for k in ("box", "element_strides")}
    how: dict[str, Any] = {k: fields[k] for k in ("element", "swizzle", "l2")}
    return TensorMap(shaped, **how, memory=memory, **options)
