"""Carrying a tensor copy out: rows of global memory to and from a swizzled box in shared memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from warpsmith.simulator.memory import UNDEFINED
from warpsmith.simulator.reduction import reduce_into
from warpsmith.simulator.tma import Rows, fill_pattern, inner_bytes, packed, padding, pieces, row_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from warpsmith.base.tensormap import TensorMapFields
    from warpsmith.simulator.memory import Space

__all__ = ["gather", "load", "store"]


def load(f: TensorMapFields, rows: Rows, source: Space, base: int, target: Space, row_start: int, address: int) -> None:
    """Copy rows of `source` (byte index `base`) to the box at `address` of the shared row that starts at `row_start`."""
    inner, spread = row_bytes(f), inner_bytes(f) != row_bytes(f)
    where = pieces(f, address, len(rows.offsets)) + ((row_start + address) >> 4)
    whole = not spread and rows.valid is None and rows.first == 0 and rows.last == inner
    start = base + rows.offsets
    if whole and not int(np.bitwise_or.reduce(start)) & 15:
        source.note_read(start, inner)
        index = ((start >> 4)[:, None] + np.arange(inner // 16, dtype=np.int64)).reshape(-1)
        data = source.views[16].take(index)
        flags = source.shadows[16].take(index)
    else:
        at, inside = _bytes(rows, start, inner)
        source.note_read(at[inside], 1)
        plain = source.data.take(at, mode="clip")
        if not inside.all():
            fill = fill_pattern(f)
            plain = np.where(inside, plain, np.resize(fill, inner))
        shadow = source.shadow.take(at, mode="clip") * inside
        data = np.ascontiguousarray(padding(f, plain, 0)).view(np.complex128).reshape(-1)
        flags = np.ascontiguousarray(padding(f, shadow, UNDEFINED)).view(np.complex128).reshape(-1)
    target.views[16][where] = _converted(f, data)
    if flags.view(np.uint8).any():
        target.shadows[16][where] = (flags.view(np.uint8) & UNDEFINED).view(np.complex128)


def _bytes(rows: Rows, start: NDArray[np.int64], inner: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the byte index of everything in the box, and which of it exists, `[row, byte]`."""
    byte = np.arange(inner, dtype=np.int64)
    inside = np.broadcast_to((byte >= rows.first) & (byte < rows.last), (len(start), inner))
    if rows.valid is not None:
        inside = inside & rows.valid[:, None]
    return start[:, None] + byte, inside


def _converted(f: TensorMapFields, data: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Round to tf32, where the element type says so; `ftz` types keep subnormals in loads (seen on an H200)."""
    if f.element not in ("tf32", "tf32_ftz"):
        return data
    bits = data.view(np.uint32)
    finite = (bits & 0x7F800000) != 0x7F800000
    rounded = (bits + 0xFFF + (bits >> 13 & 1)) & np.uint32(0xFFFFE000)
    bits = np.where(finite, rounded, bits & np.uint32(0xFFFFE000) | ((bits & 0x1FFF) != 0).astype(np.uint32) << 22)
    return bits.astype(np.uint32).view(np.complex128)


def gather(
    f: TensorMapFields, count: int, source: Space, row_start: int, address: int
) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Return the bytes of a box in shared memory, `[row, byte]`, the swizzle undone and packed, and which are undefined."""
    where = pieces(f, address, count) + ((row_start + address) >> 4)
    data, flags = (
        memory.take(where).view(np.uint8).reshape(count, inner_bytes(f)) for memory in (source.views[16], source.shadows[16])
    )
    undefined: NDArray[np.uint8] = (flags & np.uint8(UNDEFINED)) * np.uint8(0xFF)
    return packed(f, data), packed(f, undefined) != 0


def store(
    f: TensorMapFields,
    rows: Rows,
    held: tuple[NDArray[np.uint8], NDArray[np.bool_]],
    target: Space,
    base: int,
    op: str | None,
    step: Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]] | None = None,
) -> bool:
    """Write rows to global memory, or reduce into it with `op` (`step` in its place); bytes outside the tensor are left out.

    Say whether any of the bytes written was undefined.
    """
    data, undefined = held
    at, inside = _bytes(rows, base + rows.offsets, data.shape[1])
    if op is None:
        if inside.all():
            target.data[at] = data
        else:
            target.data[at[inside]] = data[inside]
    else:
        size = f.bits // 8
        first = inside[:, ::size]
        reduce_into(target, at[:, ::size][first], data.reshape(data.shape[0], -1, size)[first], f.element, op, step)
    target.shadow[at[inside]] &= 0xFF ^ UNDEFINED
    return bool((undefined & inside).any())
