"""The PTX of the shipped kernels: our reader, printer and checker agree with what our kernel language writes."""

from __future__ import annotations

import pytest

from warpsmith.assembly.ptx import parse
from warpsmith.assembly.ptx.check import check
from warpsmith.kernels import gemm, rms_norm
from warpsmith.kernels.attention import ampere, hopper

SHAPE = {"heads": 2, "sequence": 127, "dim": 64, "dtype": "bf16", "causal": True}
KERNELS = [
    (ampere, ampere.Config(**SHAPE)),
    (hopper, hopper.Config(**SHAPE)),
    (rms_norm, rms_norm.Config(4, 5000, "f16")),
    (gemm, gemm.Config(200, 136, 72, "f16", "nt")),
]


@pytest.mark.parametrize(("module", "config"), KERNELS, ids=lambda x: getattr(x, "__name__", ""))
def test_shipped_kernels(module, config) -> None:
    text = module.build(config).ptx()
    tree = parse(text)
    assert [str(p) for p in check(tree)] == []
    assert parse(str(tree)).items == tree.items
