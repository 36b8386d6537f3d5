"""Instructions that the lanes of a warp execute together."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from warpsmith.simulator.program import Operation

__all__ = ["COLLECTIVES", "is_collective"]

COLLECTIVES: dict[str, int | None] = {
    "shfl": -1, "vote": -1, "match": -1, "redux": -1, "elect": -1, "bar.warp": 0,
    "ldmatrix": None, "stmatrix": None, "movmatrix": None, "mma": None, "wmma": None, "wgmma": None,
}  # fmt: skip
"""Opcodes that lanes of a warp execute together → the operand that names the members (None: all 32)."""


def is_collective(op: Operation) -> bool:
    """Say whether lanes of a warp execute the instruction together."""
    return op.opcode in COLLECTIVES or (op.opcode == "tcgen05" and ".aligned" in op.text)
