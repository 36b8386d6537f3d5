"""ptxas takes the Blackwell attention kernels for each architecture with tensor memory, without spills."""

from __future__ import annotations

import pytest

from warpsmith.kernels.attention.blackwell import one_cta, two_per_sm

CASES = [
    {}, {"causal": True}, {"dtype": "f16"}, {"dim": 64, "causal": True, "dtype": "f16"}, {"emulated_pairs": ()},
    {"emulated_pairs": tuple(range(16)), "causal": True}, {"lockstep": True, "epilogue_gate": "mma"},
]  # fmt: skip
ONE_CTA = [*CASES, {"fresh_maximum": True}, {"dtype": "f16", "half_scores": True}, {"scoreboard_loads": True}]


def used(module, arch, how, **more):
    values = {"heads": 2, "sequence": 1000, "dim": 128, "dtype": "bf16", "multiprocessors": 2, "arch": arch, **how, **more}
    return module.build(module.Config(**values))


@pytest.mark.parametrize(
    ("arch", "how"), [*(("sm_100a", how) for how in ONE_CTA), ("sm_103a", {}), ("sm_103a", CASES[3]), ("sm_110a", CASES[2])]
)
def test_one_cta_has_no_spills(arch, how):
    resources = used(one_cta, arch, how).resources()
    assert (resources.spill_stores, resources.spill_loads, resources.stack) == (0, 0, 0)
    assert resources.registers == 128


@pytest.mark.parametrize(("arch", "how"), [*(("sm_100a", how) for how in CASES), ("sm_103a", {}), ("sm_103a", CASES[3])])
def test_two_ctas_fit_a_multiprocessor_without_spills(arch, how):
    kernel = used(two_per_sm, arch, how)
    resources = kernel.resources()
    assert (resources.spill_stores, resources.spill_loads, resources.stack) == (0, 0, 0)
    assert resources.registers * kernel.block[0] * 2 <= 65536
    assert 2 * (kernel.smem + 1024) <= 228 * 1024


@pytest.mark.parametrize("module", [one_cta, two_per_sm])
def test_with_a_wait_map_the_counters_spill(module):
    """The page on the room of kernels gives the numbers of this version of ptxas."""
    assert used(module, "sm_100a", {}, waitmap=True).resources().spill_stores > 0
