"""Warp-level matrix products with block scaling (PTX ISA 9.7.14.3)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from warpsmith.simulator.block_scaled import Scaled, scaled_product
from warpsmith.simulator.fragments import accumulator, operand_a, operand_b
from warpsmith.simulator.operand_values import values
from warpsmith.simulator.packing import elements, matrices, packed, registers, write_registers
from warpsmith.simulator.scale_factors import factors

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.assembly.ptx.isa import Match
    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.meanings.registry import Function

__all__ = ["block_scaled"]


def block_scaled(m: Match) -> Function:
    """Compute D = (A · scale_A)(B · scale_B) + C for every warp; m16n8k64 packs e2m1 in 4 bits, m16n8k32 has bytes."""
    words = m.mnemonic.split(".")
    _, a_type, b_type, _, factor = words[-5:]
    depth = 64 if "m16n8k64" in words else 32
    given = re.search(r"scale_vec::(\d)X", m.mnemonic)
    count = int(given[1]) if given else depth // 32  # without a size: 1X of mxf8f6f4, 2X of mxf4
    types = Scaled(a_type, b_type, factor, packed=depth == 64)
    width = 4 if types.packed else 8
    map_a, map_b, map_c = operand_a(16, depth, width), operand_b(depth, 8, width), accumulator(16, 8, 32)

    def operand(x: Lanes, held: Any, where: Any, shape: tuple[int, int], warps: NDArray[np.bool_], type_: str) -> Any:
        bits = matrices(elements(registers(x, held), width), where, shape, warps)
        return values(bits << 2 if types.packed else bits, type_)  # e2m1 in a byte stands two bits up

    def scales(x: Lanes, held: Any, selector: Any, warps: NDArray[np.bool_], name: str) -> NDArray[np.float64]:
        chosen = registers(x, selector).reshape(2, -1, 32)[:, warps]
        return factors(registers(x, held)[0].reshape(-1, 32)[warps], chosen, count, factor, name)

    def run(x: Lanes, d: Any, a: Any, b: Any, c: Any, sa: Any, ida: Any, sb: Any, idb: Any) -> None:
        warps = x.warps(x.active()).any(-1).reshape(-1)
        left = operand(x, a, map_a, (16, depth), warps, a_type)
        right = operand(x, b, map_b, (depth, 8), warps, b_type)
        third = np.ascontiguousarray(matrices(registers(x, c)[..., None], map_c, (16, 8), warps)).view(np.float32)
        scale_a, scale_b = scales(x, sa, ida, warps, "a"), scales(x, sb, idb, warps, "b")
        product = scaled_product(x.machine, left, right, third, scale_a, scale_b, types)
        write_registers(x, d, packed(product, map_c), warps)

    return run
