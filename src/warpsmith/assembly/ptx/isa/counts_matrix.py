"""Vector counts of the asynchronous copies and the tensor-core instructions (`*(name)` in the tables)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from warpsmith.assembly.ptx.isa.counts import computed_type, count

if TYPE_CHECKING:
    from collections.abc import Mapping

    _Values = Mapping[str, str | bool | None]

__all__: list[str] = []


@count
def im2col_offsets(values: _Values) -> int:
    """Offsets of an im2col load: two fewer than the dimensions (9.7.10.28.5.3)."""
    return int(str(values["dim"])[0]) - 2


@count
def lower_strides(values: _Values) -> int:
    """Strides of a tensor: the innermost dimension has none (9.7.10.28.5.2.2)."""
    return int(str(values["dim"])[0]) - 1


@count
def sparse_indices(values: _Values) -> int:
    """Registers of indices of `spcompress` for `.num` registers of kept elements (9.7.10.30)."""
    return -(-_num(values) * _bits(values["index"]) // _bits(values["element"]))


@count
def sparse_kept(values: _Values) -> int:
    """Registers of the elements that `spdecompress` spreads: `kept` of each group (9.7.10.31)."""
    kept, _ = _ratio(values)
    return -(-kept * _bits(values["element"]) * _num(values) // 32)


@count
def sparse_spread(values: _Values) -> int:
    """Registers that `spdecompress` writes."""
    _, group = _ratio(values)
    return -(-group * _bits(values["element"]) * _num(values) // 32)


@count
def sparse_places(values: _Values) -> int:
    """Registers of indices that `spdecompress` reads."""
    kept, _ = _ratio(values)
    return -(-kept * _bits(values["index"]) * _num(values) // 32)


@count
def tmem_kept(values: _Values) -> int:
    """Registers of kept elements of `tcgen05.ld.spcompress`: two of four (9.7.18.8.3)."""
    return _num(values) // 2


@count
def tmem_indices(values: _Values) -> int:
    """Registers of indices of `tcgen05.ld.spcompress`: two bits for each kept element."""
    return -(-_num(values) // 32)


def _num(values: _Values) -> int:
    return int(str(values["num"])[1:])


def _bits(word: object) -> int:
    return int(str(word)[1:])


def _ratio(values: _Values) -> tuple[int, int]:
    """Return (2, 4) for `.sp::2:4`: elements kept of each group."""
    kept, group = str(values["ratio"]).removeprefix("sp::").split(":")
    return int(kept), int(group)


@count
def twice_num(values: _Values) -> int:
    """Registers of `ldmatrix.m16n16`: two for each matrix."""
    return 2 * int(str(values["num"])[1:])


@count
def wgmma_wide(values: _Values) -> int:
    """32-bit accumulators of a thread of the warpgroup: 64 x N over 128 threads (9.7.17.5.1)."""
    return _columns(values) // 2


@count
def wgmma_f16(values: _Values) -> int:
    """Registers that hold the packed f16 accumulators."""
    return _columns(values) // 4


def _columns(values: _Values) -> int:
    return int(str(values["shape"]).partition("n")[2].partition("k")[0])


@count
def wmma_bytes(values: _Values) -> int:
    """Registers of the 8-bit fragment that `wmma.load.a` or `.b` loads (9.7.16.4.1)."""
    return _extent(values, "m" if values["matrix"] == "a" else "n") // 8


@count
def wmma_bytes_a(values: _Values) -> int:
    """Registers of an 8-bit A fragment: rows x 16 bytes over 32 threads."""
    return _extent(values, "m") // 8


@count
def wmma_bytes_b(values: _Values) -> int:
    """Registers of an 8-bit B fragment."""
    return _extent(values, "n") // 8


@count
def wmma_halves(values: _Values) -> int:
    """Registers of the bf16 fragment that `wmma.load.a` or `.b` loads."""
    return _extent(values, "m" if values["matrix"] == "a" else "n") // 4


@count
def wmma_halves_a(values: _Values) -> int:
    """Registers of a bf16 A fragment."""
    return _extent(values, "m") // 4


@count
def wmma_halves_b(values: _Values) -> int:
    """Registers of a bf16 B fragment."""
    return _extent(values, "n") // 4


def _extent(values: _Values, dimension: str) -> int:
    m = re.search(rf"{dimension}(\d+)", str(values["shape"]))
    return int(m[1]) if m else 0


@count
def tcgen05_registers(values: _Values) -> int:
    """32-bit registers of a thread that `tcgen05.ld` and `.st` move: `.num` repetitions of the shape (9.7.18.8.3)."""
    per_repetition = {"16x128b": 2, "16x256b": 4}.get(str(values["shape"]), 1)
    return per_repetition * int(str(values["num"])[1:])


@count
def output_lanes(values: _Values) -> int:
    """Words of the disable-output-lane mask of `tcgen05.mma`: 128 lanes, twice that for a CTA pair (9.7.18.10.10.1)."""
    return 4 if values["group"] == "cta_group::1" else 8


@computed_type
def packed4(element: str) -> str:
    """Four 8-bit floats in a register: e4m3 -> e4m3x4."""
    return f"{element}x4"
