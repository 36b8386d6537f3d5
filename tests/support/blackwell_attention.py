"""Run the Blackwell attention kernels on the simulator beside attention in float64."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from warpsmith.kernels.attention.blackwell import one_cta
from warpsmith.kernels.attention.reference import attention

__all__ = ["findings_and_error", "inputs", "simulated"]


def inputs(config: Any, growth: float = 0.0) -> list[Any]:
    """Return q, k and v of a problem; keys grow by `growth` along the sequence, so that row maxima come late."""
    random = np.random.default_rng(0)
    dtype = ml_dtypes.bfloat16 if config.dtype == "bf16" else np.float16
    shape = (config.heads, config.sequence, config.dim)
    q, k, v = (random.standard_normal(shape) * scale for scale in (0.5, 0.5, 1.0))
    k = k * (1 + growth * np.arange(config.sequence)[:, None] / config.sequence)
    return [x.astype(dtype) for x in (q, k, v)]


def simulated(
    how: dict[str, Any], growth: float = 0.0, module: Any = one_cta, **options: Any
) -> tuple[Any, float, float]:  # fmt: skip
    """Return the result, and the largest differences of the output and of the log-sum-exp (0 where there is none)."""
    config = module.Config(**{"heads": 1, "dim": 128, "dtype": "bf16", **how})
    q, k, v = arrays = inputs(config, growth)
    given = [x.reshape(-1, config.dim) for x in arrays] if config.flat else arrays
    result = module.build(config).simulate(*given, **{"check": True, **options})
    expected, lse = attention(*(x.astype(np.float64) for x in (q, k, v)), causal=config.causal, scale=config.scale)
    output = np.asarray(result.outputs[0]).astype(np.float64).reshape(expected.shape)
    late = float(np.abs(result.outputs[1] - lse).max()) if config.lse else 0.0
    return result, float(np.abs(output - expected).max()), late


def findings_and_error(
    how: dict[str, Any], growth: float = 0.0, module: Any = one_cta, **options: Any
) -> tuple[list[str], float]:
    """Return the findings of a checked run, and the largest difference of the output; the log-sum-exp is within 5e-3."""
    result, error, late = simulated(how, growth, module, **options)
    found = [f"{f.kind}: {f.message}" for f in result.findings]
    if not result.completed:
        found.append("not completed")
    if not late < (5e-3 if how.get("half_scores") else 2e-4):
        found.append(f"log-sum-exp differs by {late}")
    return found, error
