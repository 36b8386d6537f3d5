"""ptxas takes the Blackwell attention kernel for each architecture with tensor memory, without spills."""

from __future__ import annotations

import pytest

from warpsmith.kernels.attention.blackwell import one_cta

CASES = [
    {}, {"causal": True}, {"dtype": "f16"}, {"dim": 64, "causal": True}, {"emulated_pairs": tuple(range(16))},
    {"lockstep": True, "epilogue_gate": "mma"},
]  # fmt: skip


@pytest.mark.parametrize(("arch", "how"), [*(("sm_100a", how) for how in CASES), ("sm_103a", {}), ("sm_110a", CASES[2])])
def test_no_spills(arch, how):
    config = one_cta.Config(**{"heads": 2, "sequence": 1000, "dim": 128, "dtype": "bf16", "arch": arch, **how})
    used = one_cta.build(config).resources()
    assert (used.spill_stores, used.spill_loads, used.stack) == (0, 0, 0)
    assert used.registers == 128
