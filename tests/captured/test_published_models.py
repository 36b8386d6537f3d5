"""The sums of architectures no hardware of ours has, against the published model's on adversarial operands, bit for bit."""

from pathlib import Path

import numpy as np
import pytest

import published_models as models
from warpsmith.hardware.scalar_store import block_hashes

KEPT = dict(np.load(Path(__file__).parent / "data" / "published-models.npz"))
CASES = [(number, *case) for number, case in enumerate(models.cases())]


@pytest.mark.parametrize(("number", "capability", "shape"), CASES, ids=[f"sm_{c}-{s}" for _, c, s in CASES])
def test_sums_agree_bit_for_bit(number, capability, shape):
    mine = models.ours(capability, shape, number).reshape(-1)
    assert (mine[: models.HEAD] == KEPT[f"{capability}/{shape}"]).all()
    assert (block_hashes(mine) == KEPT[f"{capability}/{shape}#"]).all()


def test_operands_hold_what_strains_sums():
    a, _, c = models.operands("m16n8k16.f32.f16.f16.f32", 2)
    exponents = a >> 10 & 31
    assert {0, 30, 31} <= set(exponents.reshape(-1).tolist())
    assert (a[64:, 8:] == a[64:, :8] ^ 0x8000).all()
    assert np.isnan(c.view(np.float32)).any()
