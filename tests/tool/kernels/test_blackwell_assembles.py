"""ptxas takes the Blackwell attention kernels for each architecture with tensor memory; the one for one CTA without spills."""

from __future__ import annotations

import pytest

from warpsmith.kernels.attention.blackwell import one_cta, two_per_sm

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


@pytest.mark.parametrize(("arch", "how"), [("sm_100a", {}), ("sm_103a", {"causal": True, "dim": 64, "dtype": "f16"})])
def test_two_ctas_fit_a_multiprocessor(arch, how):
    config = two_per_sm.Config(**{"heads": 2, "sequence": 1000, "dim": 128, "dtype": "bf16", "arch": arch, **how})
    kernel = two_per_sm.build(config)
    assert kernel.resources().registers * kernel.block[0] * 2 <= 65536
    assert 2 * (kernel.smem + 1024) <= 228 * 1024
