"""wmma: warp-level loads, stores and products on opaque fragments (PTX ISA 9.7.14.4).

How elements lie in a fragment is unspecified, so this layout is the simulator's own: slot (register·32 + lane)·parts + part
holds element slot mod size; A and C count along rows, B along columns. A fragment may hold a matrix twice, as on hardware.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from warpsmith.simulator.meanings.mbarrier import space_of
from warpsmith.simulator.meanings.mma_double import double_product
from warpsmith.simulator.meanings.registry import machine, refuse
from warpsmith.simulator.multiply import multiply
from warpsmith.simulator.operand_values import WIDTH, values
from warpsmith.simulator.packing import elements, matrices, packed, registers, write_registers
from warpsmith.simulator.product_definedness import masks_of, put_undefined_elements, undefined_elements

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.assembly.ptx.isa import Match
    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.meanings.registry import Function, Refused

__all__: list[str] = []

_WIDTHS = {**WIDTH, "f32": 32, "s32": 32}


_SPLIT = {"tf32": (slice(0, 4), slice(4, 8))}
"""Parts of K that a chain of narrower instructions takes."""


@cache
def _map(matrix: str, rows: int, columns: int, count: int, width: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return (row, column) `[register, lane, part]` of a fragment of `count` registers."""
    parts = max(1, 32 // width)
    element = np.arange(count * 32 * parts).reshape(count, 32, parts) % (rows * columns)
    return (element % rows, element // rows) if matrix == "b" else (element // columns, element % columns)


def _shape(m: Match) -> tuple[int, int, int]:
    found = re.search(r"m(\d+)n(\d+)k(\d+)", m.mnemonic)
    assert found is not None
    return int(found[1]), int(found[2]), int(found[3])


def _extent(matrix: str, shape: tuple[int, int, int]) -> tuple[int, int]:
    m, n, k = shape
    return {"a": (m, k), "b": (k, n)}.get(matrix, (m, n))


def _memory(m: Match, matrix: str) -> tuple[Any, int, bool, int]:
    """Return (map without the count, width, whether rows are contiguous, default leading dimension) of a load or store."""
    rows, columns = _extent(matrix, _shape(m))
    words = m.mnemonic.split(".")
    by_rows = "row" in words
    return (rows, columns), _WIDTHS[words[-1]], by_rows, columns if by_rows else rows


@machine("wmma.load")
def load(m: Match) -> Function:
    """Load a fragment from rows or columns `stride` elements apart."""
    matrix = next(w for w in m.mnemonic.split(".")[2:] if w in ("a", "b", "c"))
    (rows, columns), width, by_rows, leading = _memory(m, matrix)
    space = space_of(m)

    def run(x: Lanes, d: Any, address: NDArray[np.int64], stride: Any = None) -> None:
        step = leading if stride is None else np.broadcast_to(np.asarray(stride).astype(np.int64), x.shape)
        row, column = _map(matrix, rows, columns, len(d), width)
        for i, dest in enumerate(d):
            outer, inner = (row[i], column[i]) if by_rows else (column[i], row[i])
            word, undefined = _load_register(x, space, address, outer, inner, step, width)
            x.put(dest, word)
            if undefined is not None:
                x.put_undefined(dest, undefined)

    return run


def _load_register(
    x: Lanes, space: str | None, base: Any, outer: Any, inner: Any, step: Any, width: int
) -> tuple[NDArray[Any], NDArray[np.uint8] | None]:
    """Return one register `[C, T]` and the mask of its undefined bytes (None: none)."""
    size = {1: 4, 4: 4, 64: 8}.get(width, width // 8)
    parts = 1 if size * 8 != width or size == 8 else outer.shape[1]
    word = np.zeros(x.shape, np.uint64 if size == 8 else np.uint32)
    undefined: NDArray[np.uint8] | None = None
    for part in range(parts):
        where = base + _offset(outer[:, part], inner[:, part], step, width, x.shape[1] // 32)
        data, flags = x.load_items(space, where, size)
        word |= np.ascontiguousarray(data).view(f"u{size}")[..., 0].astype(word.dtype) << word.dtype.type(part * width)
        if flags is not None:
            mask = np.packbits(flags, axis=-1, bitorder="little")[..., 0] << np.uint8(part * size)
            undefined = mask if undefined is None else undefined | mask
    return word, undefined


def _offset(outer: NDArray[np.intp], inner: NDArray[np.intp], step: Any, width: int, tile: int) -> Any:
    return (np.tile(outer, tile) * step + np.tile(inner, tile)) * width // 8


@machine("wmma.store")
def store(m: Match) -> Function:
    """Store the fragment of D."""
    (rows, columns), width, by_rows, leading = _memory(m, "d")
    space = space_of(m)

    def run(x: Lanes, address: NDArray[np.int64], a: Any, stride: Any = None) -> None:
        step = leading if stride is None else np.broadcast_to(np.asarray(stride).astype(np.int64), x.shape)
        bits = registers(x, a)
        row, column = _map("d", rows, columns, bits.shape[0], width)
        parts = elements(bits, width)
        undefined = x.undefined_bytes(1)
        for i in range(bits.shape[0]):
            for part in range(row.shape[2]):
                outer, inner = (row[i, :, part], column[i, :, part]) if by_rows else (column[i, :, part], row[i, :, part])
                where = address + _offset(outer, inner, step, width, x.shape[1] // 32)
                bad = None if undefined is None else (undefined[..., i] & masks_of(row.shape[2])[part]) != 0
                x.store(space, where, np.ascontiguousarray(parts[i, ..., part])[..., None].view(np.uint8), bad)

    return run


@machine("wmma.mma")
def mma(m: Match) -> Function | Refused:
    """Compute D = A·B + C on fragments."""
    words = m.mnemonic.split(".")
    rounding = next((w for w in words if w in ("rz", "rm", "rp")), "rn")
    shape = _shape(m)
    found = [w for w in words if w in _WIDTHS]
    d_type, a_type, b_type, c_type = found[:4] if len(found) >= 4 else (found[0], "f16", "f16", found[1])
    saturate, xor = "satfinite" in words, "xor" in words
    if saturate and d_type in ("f16", "f32"):
        return refuse("`.satfinite` of floating-point products is not modelled")
    types = (d_type, a_type, b_type, c_type)

    def run(x: Lanes, d: Any, a: Any, b: Any, c: Any) -> None:
        warps = x.warps(x.active()).any(-1).reshape(-1)
        sides: list[Any] = []
        maps: list[Any] = []
        for name, operand, type_ in (("a", a, a_type), ("b", b, b_type), ("c", c, c_type)):
            bits, extent = registers(x, operand), _extent(name, shape)
            parts = elements(bits, _WIDTHS[type_])
            maps.append(_map(name, *extent, bits.shape[0], _WIDTHS[type_]))
            matrix = matrices(parts, maps[-1], extent, warps)
            dtype = {"f32": np.float32, "s32": np.int32}.get(type_)
            sides.append(values(matrix, type_) if dtype is None else np.ascontiguousarray(matrix).view(dtype))
        if xor:
            left, right = sides[0].astype(np.int64), sides[1].astype(np.int64)
            product = (left.sum(-1)[..., None] + right.sum(-2)[..., None, :] - 2 * (left @ right) + sides[2]).astype(np.int32)
        elif a_type == "f64":
            product = double_product(sides[0], sides[1], sides[2], rounding)
        else:
            product = sides[2]
            for k in _SPLIT.get(a_type, (slice(None),)):  # what ptxas makes of a product: one after the other
                product = multiply(x.machine, sides[0][..., k], sides[1][..., k, :], product, types, saturate=saturate)
        where = _map("d", *_extent("d", shape), len(d), _WIDTHS[d_type])
        undefined = undefined_elements(x, (maps[0], maps[1], maps[2]), warps)
        write_registers(x, d, packed(product, where), warps)
        put_undefined_elements(x, d, undefined, where, warps)

    run.knows_defined = True  # type: ignore[attr-defined]  # pyright: ignore[reportFunctionMemberAccess]
    return run
