"""Warp-wide matrix multiply-accumulate: `ptx.mma.sync`."""

from __future__ import annotations

from warpsmith.base.place import error
from warpsmith.base.ptx_types import PtxType
from warpsmith.dsl.registers import NegPred, Reg
from warpsmith.dsl.trace import current

__all__ = ["sync"]


def sync(
    *, shape: tuple[int, int, int], dtype_d: PtxType, dtype_a: PtxType, dtype_b: PtxType, dtype_c: PtxType, d: object,
    a: object,
    b: object, c: object, a_layout: str = "row", b_layout: str = "col", pred: Reg | NegPred | None = None,
) -> None:  # fmt: skip
    """Emit `mma.sync.aligned.mMnNkK.a_layout.b_layout.d.a.b.c`: d = a·b + c over the fragments of the warp."""
    if len(shape) != 3:
        raise error(f"an mma shape is (m, n, k), not {shape!r}")
    m, n, k = shape
    types = ".".join(t.name for t in (dtype_d, dtype_a, dtype_b, dtype_c))
    operands = [list(x) if hasattr(x, "__iter__") else [x] for x in (d, a, b, c)]  # type: ignore[call-overload]
    current().emit(f"mma.sync.aligned.m{m}n{n}k{k}.{a_layout}.{b_layout}.{types}", operands, pred)
