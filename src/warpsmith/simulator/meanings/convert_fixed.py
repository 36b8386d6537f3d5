"""Conversions to s2f6 (PTX ISA 5.2.4): a two's complement byte in units of 1/64, from -2.0 to 1.984375, without NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpsmith.simulator.meanings.forms import Form
from warpsmith.simulator.meanings.rounding import round_integral

__all__ = ["to_fixed"]


def to_fixed(x: NDArray[np.float64], form: Form) -> NDArray[np.uint8]:
    """Round float64 values to s2f6 codes: beyond the range its end of the same sign, NaN the positive end."""
    units: Any = np.clip(round_integral(x * 64.0, form.rounding or "rn"), -128.0, 127.0)
    if "relu" in form:
        units = np.where(units < 0, 0.0, units)
    return np.where(np.isnan(units), 127.0, units).astype(np.int8).view(np.uint8)
