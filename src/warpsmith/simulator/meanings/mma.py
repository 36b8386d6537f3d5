"""Warp-level matrix products, dense (PTX ISA 9.7.14.5) and with a sparse A (9.7.14.6)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from warpsmith.simulator.fragments import accumulator, operand_a, operand_b, volta_accumulator, volta_operand
from warpsmith.simulator.meanings.mma_double import double_product
from warpsmith.simulator.meanings.mma_emulated import bytes_as_halves, lacks_bytes, lacks_volta_shape, volta_product
from warpsmith.simulator.meanings.mma_scaled import block_scaled
from warpsmith.simulator.meanings.mma_wide import Form, wide_product
from warpsmith.simulator.meanings.registry import machine
from warpsmith.simulator.multiply import multiply
from warpsmith.simulator.operand_values import WIDTH, values
from warpsmith.simulator.packing import elements, matrices, packed, registers, write_registers
from warpsmith.simulator.product_definedness import put_undefined_elements, undefined_elements
from warpsmith.simulator.sparse import Sparsity, sparse_product

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.assembly.ptx.isa import Match
    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.meanings.registry import Function, Refused

__all__: list[str] = []

_TYPES = (*WIDTH, "f32", "s32")


@machine("mma")
def mma(m: Match) -> Function | Refused:
    """Compute D = A·B + C for every warp; with `.sp`, A is stored by half and metadata say which half."""
    if "block_scale" in m.mnemonic:
        return block_scaled(m)
    words = m.mnemonic.split(".")
    shape = re.search(r"\.m(\d+)n(\d+)k(\d+)\.", m.mnemonic)
    assert shape is not None
    rows, columns, depth = (int(g) for g in shape.groups())
    d_type, a_type, b_type, c_type = [w for w in words if w in _TYPES][:4]
    types = (d_type, a_type, b_type, c_type)
    if (rows, depth, a_type) == (8, 4, "f16"):
        return _volta(types, str(m["alayout"]), str(m["blayout"]))
    sparsity = Sparsity(a_type, depth, words[1] == "sp::ordered_metadata") if words[1].startswith("sp") else None
    stored = depth // 2 if sparsity else depth
    width = WIDTH[a_type]
    map_a, map_b = operand_a(rows, stored, width), operand_b(depth, columns, width)
    map_c, map_d = _accumulator(rows, columns, c_type), _accumulator(rows, columns, d_type)
    differing, saturate = a_type == "b1" and "xor" in words, "satfinite" in words

    def run(x: Lanes, d: Any, a: Any, b: Any, c: Any, e: Any = None, selector: Any = 0) -> None:
        warps = x.warps(x.active()).any(-1).reshape(-1)
        left = values(matrices(elements(registers(x, a), width), map_a, (rows, stored), warps), a_type)
        right = values(matrices(elements(registers(x, b), width), map_b, (depth, columns), warps), b_type)
        third = _sums(x, c, c_type, map_c, (rows, columns), warps)
        if sparsity is not None:
            held = registers(x, e)[0].reshape(-1, 32)[warps]
            kept = sparsity.columns(x.machine, held, int(selector))
            if lacks_bytes(x.machine, a_type):
                product = bytes_as_halves(x.machine, left, right, third, types, kept)
            else:
                product = sparse_product(x.machine, left, right, third, types, kept, saturate=saturate)
        elif lacks_bytes(x.machine, a_type):
            product = bytes_as_halves(x.machine, left, right, third, types, None)
        elif differing:
            product = _different_bits(left, right, third)
        elif a_type == "f64":
            product = double_product(left, right, third)
        else:
            product = multiply(x.machine, left, right, third, types, saturate=saturate)
        undefined = undefined_elements(x, (map_a, map_b, map_c), warps, None if sparsity is None else 4)
        write_registers(x, d, packed(product, map_d), warps)
        put_undefined_elements(x, d, undefined, map_d, warps)

    run.knows_defined = True  # type: ignore[attr-defined]  # pyright: ignore[reportFunctionMemberAccess]
    if sparsity is None and not differing and a_type != "f64":
        form = Form(types, (rows, columns, depth), (map_a, map_b, map_c, map_d), saturate)
        run.wide = wide_product(form, run)  # type: ignore[attr-defined]  # pyright: ignore[reportFunctionMemberAccess]
    return run


def _accumulator(rows: int, columns: int, type_: str) -> Any:
    return accumulator(rows, columns, {"f16": 16, "f64": 64}.get(type_, 32))


def _sums(x: Lanes, c: Any, type_: str, where: Any, shape: tuple[int, int], warps: NDArray[np.bool_]) -> NDArray[Any]:
    """Return C of each warp as float32, float64 or int32 values."""
    bits = registers(x, c)
    if type_ == "f16":
        return values(matrices(elements(bits, 16), where, shape, warps), "f16")
    dtype = {"f32": np.float32, "f64": np.float64, "s32": np.int32}[type_]
    return np.ascontiguousarray(matrices(bits[..., None], where, shape, warps)).view(dtype)


def _different_bits(a: NDArray[np.uint8], b: NDArray[np.uint8], c: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the number of differing bits plus C: |a| + |b| - 2·a·b per pair of rows."""
    left, right = a.astype(np.float64), b.astype(np.float64)
    count = left.sum(-1)[..., None] + right.sum(-2)[..., None, :] - 2 * np.matmul(left, right)
    return (count + c).astype(np.int64).astype(np.int32)


def _volta(types: tuple[str, str, str, str], a_layout: str, b_layout: str) -> Function:
    """Return m8n8k4 of f16: four products a warp, one for each quad-pair."""
    quads_a, map_a = volta_operand(a_layout, b=False)
    quads_b, map_b = volta_operand(b_layout, b=True)
    (quads_c, map_c), (quads_d, map_d) = (volta_accumulator(16 if t == "f16" else 32) for t in (types[3], types[0]))
    stacked = {
        name: (q * shape + m[0], m[1])
        for name, q, shape, m in (
            ("a", quads_a, 8, map_a),
            ("b", quads_b, 4, map_b),
            ("c", quads_c, 8, map_c),
            ("d", quads_d, 8, map_d),
        )
    }

    def run(x: Lanes, d: Any, a: Any, b: Any, c: Any) -> None:
        warps = x.warps(x.active()).any(-1).reshape(-1)
        left = values(matrices(elements(registers(x, a), 16), stacked["a"], (32, 4), warps), "f16").reshape(-1, 4, 8, 4)
        right = values(matrices(elements(registers(x, b), 16), stacked["b"], (16, 8), warps), "f16").reshape(-1, 4, 4, 8)
        third = _sums(x, c, types[3], stacked["c"], (32, 8), warps).reshape(-1, 4, 8, 8)
        if lacks_volta_shape(x.machine):
            product = volta_product(x.machine, left, right, third, types)
        else:
            product = multiply(x.machine, left, right, third, types, volta_shape=True)
        undefined = undefined_elements(x, (stacked["a"], stacked["b"], stacked["c"]), warps, tiles=4)
        write_registers(x, d, packed(product.reshape(-1, 32, 8), stacked["d"]), warps)
        put_undefined_elements(x, d, undefined, stacked["d"], warps)

    run.knows_defined = True  # type: ignore[attr-defined]  # pyright: ignore[reportFunctionMemberAccess]
    return run
