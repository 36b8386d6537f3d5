"""What every attention kernel is asked to compute."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["Problem"]


@dataclass(frozen=True, slots=True)
class Problem:
    """Shape of one attention launch; `heads` is batch times heads."""

    heads: int
    sequence: int
    dim: int = 64
    dtype: str = "f16"
    causal: bool = False
    scale: float | None = None
    """Factor of the scores; None for 1/√dim."""

    @property
    def scale_log2(self) -> float:
        """Factor that turns raw scores into exponents of two."""
        return (self.dim**-0.5 if self.scale is None else self.scale) * math.log2(math.e)
