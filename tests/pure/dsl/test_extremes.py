"""`Reg.max` and `Reg.min`: integers by sign, floating point without modifiers; what has no such instruction is named."""

from __future__ import annotations

import pytest

from warpsmith import kernel, ptx, reg
from warpsmith.base.errors import KernelError
from warpsmith.types import PtxType, bf16x2, f16, f32, f64, pred, s32, u64


@pytest.mark.parametrize(("dtype", "other"), [(s32, 3), (u64, 3), (f32, 1.5), (f64, 0.25), (f16, None), (bf16x2, None)])
def test_the_instruction_follows_the_type(dtype: PtxType, other: float | None):
    @kernel
    def k() -> None:
        a, b = reg.scalar(dtype), reg.scalar(dtype)
        assert a.max(b if other is None else other).dtype is dtype
        a.min(b)
        ptx.ret()

    text = k.ptx()
    assert f"max.{dtype}" in text
    assert f"min.{dtype}" in text


def test_predicates_have_no_maximum():
    @kernel
    def k() -> None:
        p = reg.scalar(pred)
        p.max(p)

    with pytest.raises(KernelError, match="`max` is not defined for %p0 of type pred"):
        k.ptx()
