"""Products of one A with several B as one product with a wide B: how a warp computes its tile of an output.

mma %d0…%d3, %a0…%a3, %b0…%b1, %d0…%d3        D[16 x 8k] = A[16 x 16] · B[16 x 8k] + D
mma %d4…%d7, %a0…%a3, %b2…%b3, %d4…%d7    →
…

Every element is the same sum as before. A is unpacked once, and numpy called once for all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from warpsmith.simulator.meanings.mma_emulated import lacks_bytes
from warpsmith.simulator.multiply import multiply
from warpsmith.simulator.operand_values import WIDTH, values
from warpsmith.simulator.packing import elements, gathered, registers, spread, write_registers

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.packing import Map

__all__ = ["Form", "wide_product"]

_SUMS = 1 << 17
"""Elements of the output computed at once."""
_DTYPES: dict[str, Any] = {"f32": np.float32, "s32": np.int32}


class Form(NamedTuple):
    """A form of mma: types of D, A, B, C; (m, n, k); fragment maps of A, B, C, D."""

    types: tuple[str, str, str, str]
    shape: tuple[int, int, int]
    maps: tuple[Map, Map, Map, Map]
    saturate: bool


def wide_product(f: Form, single: Callable[..., None]) -> Callable[..., None]:
    """Return `fn(x, ds, a, bs, cs)`, which computes several products of one A in all lanes; `single` computes one."""
    m, n, k = f.shape
    width = WIDTH[f.types[1]]

    def wide(x: Lanes, ds: list[Any], a: Any, bs: list[Any], cs: list[Any]) -> None:
        if x.machine.numerics == "fast" or lacks_bytes(x.machine, f.types[1]):  # sums whose order depends on the width
            for d, b, c in zip(ds, bs, cs, strict=True):
                single(x, d, a, b, c)
            return
        left = values(gathered(elements(registers(x, a), width), f.maps[0], (m, k)), f.types[1])
        step = max(1, _SUMS // (left.shape[0] * m * n))
        everyone = np.ones(left.shape[0], np.bool_)
        for at in range(0, len(ds), step):
            some = slice(at, at + step)
            right = _together(x, bs[some], f.maps[1], (k, n), f.types[2])
            product = multiply(
                x.machine, left, right, _together(x, cs[some], f.maps[2], (m, n), f.types[3]), f.types, saturate=f.saturate
            )
            out = spread(product, f.maps[3], len(ds[some]))
            for d, part in zip(ds[some], np.split(out, len(ds[some])), strict=True):
                write_registers(x, d, part, everyone)

    return wide


def _together(x: Lanes, operands: list[Any], where: Map, shape: tuple[int, int], type_: str) -> NDArray[Any]:
    """Return the values `[warp, rows, columns of all]` of operands."""
    bits = np.concatenate([registers(x, o) for o in operands])
    width = WIDTH.get(type_, 32)
    matrix = gathered(elements(bits, width), where, shape, len(operands))
    return matrix.view(_DTYPES[type_]) if type_ in _DTYPES else values(matrix, type_)
