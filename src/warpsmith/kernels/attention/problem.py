"""What every attention kernel is asked to compute."""

from __future__ import annotations

import math
from dataclasses import dataclass

from warpsmith.base.errors import InputError

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

    def check(self) -> None:
        """Raise `InputError` for a problem that no kernel here computes."""
        if self.dim not in (64, 128):
            raise InputError(f"attention: head dimension {self.dim} is not supported; use 64 or 128")
        if self.dtype not in ("f16", "bf16"):
            raise InputError(f"attention: dtype {self.dtype!r} is not supported; use 'f16' or 'bf16'")
        if self.sequence < 1 or self.heads < 1:
            raise InputError(f"attention: heads={self.heads} and sequence={self.sequence} must be at least 1")
