"""The file of a scalar capture: outputs of the edge inputs, and 16 bits of hash for each 64 results on random inputs.

A zip of `index.json` (arch, device, driver, date, counts, the forms in order) and two members of raw little-endian
data, both in that order:
`edges` (predicates as bits, other results in their stored width) and `hashes` (uint16).
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from warpsmith.base.errors import InputError
from warpsmith.hardware.scalar_evaluate import stored_dtype
from warpsmith.hardware.scalar_forms import ScalarForm
from warpsmith.hardware.scalar_values import edge_count

__all__ = ["BLOCK", "Capture", "Captured", "block_hashes"]

Array = NDArray[Any]
BLOCK = 64
"""Results per hash."""


def block_hashes(values: Array) -> NDArray[np.uint16]:
    """Return one 16-bit hash for each 64 values: the top of the sum of mixed (value, position) pairs."""
    v = values.astype(np.uint64).reshape(-1, BLOCK)
    z = v + np.arange(1, BLOCK + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (z.sum(axis=1, dtype=np.uint64) >> np.uint64(48)).astype(np.uint16)


@final
@dataclass(frozen=True, slots=True)
class Captured:
    """What hardware gave for one form: per written operand the edge results and the hashes of the random ones."""

    form: ScalarForm
    edges: list[Array]
    hashes: list[NDArray[np.uint16]]


@final
@dataclass(slots=True)
class Capture:
    """A capture in memory: `about` (arch, device, driver, date), and its forms."""

    about: dict[str, Any]
    items: list[Captured] = field(default_factory=list)

    def write(self, path: Path) -> None:
        """Write the file."""
        index = {**self.about, "block": BLOCK, "forms": [c.form.json() for c in self.items]}
        counts = [[len(h) for h in c.hashes] for c in self.items]
        edges = b"".join(_pack(e, t) for c in self.items for e, t in zip(c.edges, c.form.writes, strict=True))
        hashes = b"".join(h.tobytes() for c in self.items for h in c.hashes)
        temporary = path.with_suffix(".part")
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_LZMA) as z:
            z.writestr("index.json", json.dumps({**index, "blocks": counts}))
            z.writestr("edges", edges)
            z.writestr("hashes", hashes)
        temporary.rename(path)

    @classmethod
    def read(cls, path: Path) -> Capture:
        """Read the file; raise `InputError` if it is no capture."""
        try:
            with zipfile.ZipFile(path) as z:
                index = json.loads(z.read("index.json"))
                edges, hashes = z.read("edges"), z.read("hashes")
        except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
            raise InputError(f"{path} is not a scalar capture: {error}") from error
        forms = [ScalarForm.from_json(f) for f in index.pop("forms")]
        counts = index.pop("blocks")
        return cls(index, list(_items(forms, counts, edges, hashes)))


def _pack(values: Array, type_: str) -> bytes:
    return np.packbits(values, bitorder="little").tobytes() if type_ == "pred" else values.tobytes()


def _items(forms: list[ScalarForm], counts: list[list[int]], edges: bytes, hashes: bytes) -> Iterator[Captured]:
    at = hash_at = 0
    for form, blocks in zip(forms, counts, strict=True):
        n = edge_count(form.reads)
        mine: list[Array] = []
        theirs: list[NDArray[np.uint16]] = []
        for type_, k in zip(form.writes, blocks, strict=True):
            dtype = stored_dtype(type_)
            size = (n + 7) // 8 if type_ == "pred" else n * dtype.itemsize
            raw = np.frombuffer(edges, np.uint8, size, at)
            mine.append(np.unpackbits(raw, count=n, bitorder="little") if type_ == "pred" else raw.view(dtype))
            theirs.append(np.frombuffer(hashes, np.uint16, k, hash_at))
            at, hash_at = at + size, hash_at + 2 * k
        yield Captured(form, mine, theirs)
