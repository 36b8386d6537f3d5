"""Run the Blackwell attention kernel on the simulator beside attention in float64."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from warpsmith.kernels.attention.blackwell import one_cta
from warpsmith.kernels.attention.reference import attention

__all__ = ["findings_and_error"]


def findings_and_error(
    how: dict[str, Any], growth: float = 0.0, module: Any = one_cta, **options: Any
) -> tuple[list[str], float]:
    """Return the findings of a checked run, and the largest difference; keys grow by `growth` along the sequence."""
    values: dict[str, Any] = {"heads": 1, "dim": 128, "dtype": "bf16", **how}
    config = module.Config(**values)
    random = np.random.default_rng(0)
    dtype = ml_dtypes.bfloat16 if config.dtype == "bf16" else np.float16
    shape = (config.heads, config.sequence, config.dim)
    q, k, v = (random.standard_normal(shape) * scale for scale in (0.5, 0.5, 1.0))
    k = k * (1 + growth * np.arange(config.sequence)[:, None] / config.sequence)
    q, k, v = (x.astype(dtype) for x in (q, k, v))
    result = module.build(config).simulate(q, k, v, check=True, **options)
    expected, _ = attention(*(x.astype(np.float64) for x in (q, k, v)), causal=config.causal)
    error = np.abs(np.asarray(result.outputs[0]).astype(np.float64) - expected).max()
    found = [f"{f.kind}: {f.message}" for f in result.findings]
    return found + ([] if result.completed else ["not completed"]), float(error)
