"""ptxas takes the Blackwell attention kernel for pairs of CTAs, for each architecture with tensor memory, without spills."""

from __future__ import annotations

import pytest

from warpsmith.kernels.attention.blackwell import two_cta

CASES = [
    ("sm_100a", {}), ("sm_100a", {"causal": True, "dim": 64}), ("sm_100a", {"dtype": "f16", "epilogue_gate": "mma"}),
    ("sm_100a", {"emulated_pairs": tuple(range(16))}), ("sm_103a", {}),
    ("sm_103a", {"causal": True, "dim": 64, "dtype": "f16"}), ("sm_110a", {}),
]  # fmt: skip


@pytest.mark.parametrize(("arch", "how"), CASES)
def test_no_spills(arch, how):
    config = two_cta.Config(**{"heads": 2, "sequence": 1000, "dim": 128, "dtype": "bf16", "arch": arch, **how})
    used = two_cta.build(config).resources()
    assert (used.spill_stores, used.spill_loads, used.stack) == (0, 0, 0)
    assert used.registers == 128
