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

    def check(self, dims: tuple[int, ...] = (64, 128)) -> None:
        """Raise `InputError` for a problem that a kernel for head dimensions `dims` does not compute."""
        if self.dim not in dims:
            known = f"{', '.join(map(str, dims[:-1]))} or {dims[-1]}"
            raise InputError(f"attention: head dimension {self.dim} is not supported; use {known}")
        self.check_numbers()

    def check_numbers(self, *also: str) -> None:
        """Raise `InputError` for a type that is none of f16, bf16 and `also`, and for no heads or no rows."""
        if self.dtype not in (*also, "f16", "bf16"):
            raise InputError(f"attention: dtype {self.dtype!r} is not supported; use 'f16' or 'bf16'")
        if self.sequence < 1 or self.heads < 1:
            raise InputError(f"attention: heads={self.heads} and sequence={self.sequence} must be at least 1")
