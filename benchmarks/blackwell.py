"""Seconds of processor time to simulate the Blackwell attention kernels, checked and not, each the best of several in turn.

    python benchmarks/blackwell.py [KERNEL...]

One head of 512 keys, head dimension 128, bf16, exact numerics. The promise is 20 seconds for `one_cta`, checked, with all that
a first run prepares.
"""

import sys
import time

import ml_dtypes
import numpy as np

from warpsmith.kernels.attention.blackwell import one_cta, two_cta, two_per_sm

BOUND = 20.0
ROUNDS = 3
KERNELS = {"one_cta": one_cta, "two_cta": two_cta, "two_per_sm": two_per_sm}


def seconds(kernel, arrays, check):
    """Run once; return how long it took and the result."""
    started = time.process_time()
    result = kernel.simulate(*(a.copy() for a in arrays), check=check)
    assert not result.findings, str(result)
    return time.process_time() - started, result


def main() -> None:
    """Measure every kernel, or those named."""
    random = np.random.default_rng(0)
    arrays = [random.standard_normal((1, 512, 128)).astype(ml_dtypes.bfloat16) for _ in range(3)]
    for name, module in KERNELS.items():
        if len(sys.argv) > 1 and name not in sys.argv[1:]:
            continue
        started = time.process_time()
        kernel = module.build(module.Config(heads=1, sequence=512, dim=128, dtype="bf16"))
        kernel.module()
        traced = time.process_time() - started
        first, result = seconds(kernel, arrays, True)
        best = {check: min(seconds(kernel, arrays, check)[0] for _ in range(ROUNDS)) for check in (False, True)}
        instructions = result.counters.warp_instructions
        verdict = (
            f" (at most {BOUND:g}: {'holds' if traced + first <= BOUND else 'does not hold'})" if name == "one_cta" else ""
        )
        print(f"{name} S=512 D=128, traced and checked for the first time: {traced + first:.2f} s{verdict}")
        for check, took in best.items():
            print(
                f"{name} S=512 D=128, {'checked' if check else 'unchecked'}: {took:.2f} s, "
                f"{instructions / took / 1e3:.0f} k warp instructions/s"
            )
        print(f"{name} checked over unchecked: {best[True] / best[False]:.2f}")


if __name__ == "__main__":
    main()
