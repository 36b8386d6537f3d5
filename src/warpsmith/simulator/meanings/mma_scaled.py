"""Warp-level matrix products with block scaling (PTX ISA 9.7.14.3)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from warpsmith.simulator.block_scaled import Scaled, scaled_product, sparse_scaled_product
from warpsmith.simulator.fragments import accumulator, operand_a, operand_b
from warpsmith.simulator.operand_values import values
from warpsmith.simulator.packing import elements, matrices, packed, registers, write_registers
from warpsmith.simulator.product_definedness import put_undefined_elements, undefined_elements
from warpsmith.simulator.scale_factors import factors, undefined_factors
from warpsmith.simulator.sparse import Sparsity

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.assembly.ptx.isa import Match
    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.meanings.registry import Function

__all__ = ["block_scaled"]


def block_scaled(m: Match) -> Function:
    """Compute D = (A · scale_A)(B · scale_B) + C for every warp; kind::mxf8f6f4 has bytes, the others e2m1 in 4 bits.

    With `.sp`, A is stored by half and `e` says which half; there are as many factors as without, each for twice as many
    elements of a row or column.
    """
    words = m.mnemonic.split(".")
    _, a_type, b_type, _, factor = words[-5:]
    four_bits, sparse = "kind::mxf8f6f4" not in words, "sp::ordered_metadata" in words
    depth = (64 if four_bits else 32) * (2 if sparse else 1)
    given = re.search(r"scale_vec::(\d)X", m.mnemonic)
    count = int(given[1]) if given else 2 if four_bits else 1
    types = Scaled(a_type, b_type, factor, packed=four_bits)
    width, stored = 4 if four_bits else 8, depth // 2 if sparse else depth
    sparsity = Sparsity(a_type, depth, ordered=True, packed=four_bits) if sparse else None
    map_a, map_b, map_c = operand_a(16, stored, width), operand_b(depth, 8, width), accumulator(16, 8, 32)

    def run(x: Lanes, d: Any, a: Any, b: Any, c: Any, *rest: Any) -> None:
        *metadata, sa, ida, sb, idb = rest
        warps = x.warps(x.active()).any(-1).reshape(-1)
        left = values(_aligned(matrices(elements(registers(x, a), width), map_a, (16, stored), warps), types), a_type)
        right = values(_aligned(matrices(elements(registers(x, b), width), map_b, (depth, 8), warps), types), b_type)
        third = np.ascontiguousarray(matrices(registers(x, c)[..., None], map_c, (16, 8), warps)).view(np.float32)
        of_a = _factors(x, sa, ida, warps, (count, factor, "a"))
        of_b = _factors(x, sb, idb, warps, (count, factor, "b"))
        if sparsity is None:
            product = scaled_product(x.machine, left, right, third, of_a, of_b, types)
        else:
            e, selector = metadata
            kept = sparsity.columns(x.machine, registers(x, e)[0].reshape(-1, 32)[warps], int(selector))
            product = sparse_scaled_product(x.machine, left, right, third, of_a, of_b, types, kept)
        first = 4 + len(metadata)  # of the factors among the operands
        bad = (
            _undefined_factors(x, first, ida, warps, (count, "a")),
            _undefined_factors(x, first + 2, idb, warps, (count, "b")),
        )
        maps = map_a, map_b, map_c
        undefined = undefined_elements(x, maps, warps, None if sparsity is None else 4, factors=bad)
        write_registers(x, d, packed(product, map_c), warps)
        put_undefined_elements(x, d, undefined, map_c, warps)

    run.knows_defined = True  # type: ignore[attr-defined]  # pyright: ignore[reportFunctionMemberAccess]
    return run


def _aligned(bits: Any, types: Scaled) -> Any:
    """Return the bits of elements as `values` takes them: e2m1 in a byte stands two bits up."""
    return bits << 2 if types.packed else bits


def _factors(x: Lanes, held: Any, selector: Any, warps: NDArray[np.bool_], how: tuple[int, str, str]) -> NDArray[np.float64]:
    """Return the factors of A or B; `how` is their count for a row, their type and the operand."""
    chosen = registers(x, selector).reshape(2, -1, 32)[:, warps]
    return factors(registers(x, held)[0].reshape(-1, 32)[warps], chosen, *how)


def _undefined_factors(
    x: Lanes, operand: int, selector: Any, warps: NDArray[np.bool_], how: tuple[int, str]
) -> NDArray[np.bool_] | None:  # fmt: skip
    """Return for which rows or columns a factor is undefined; None: none. `how` is their count and the operand."""
    masks = x.undefined_bytes(operand)
    if masks is None:
        return None
    chosen = registers(x, selector).reshape(2, -1, 32)[:, warps]
    return undefined_factors(masks[..., 0].reshape(-1, 32)[warps], chosen, *how)
