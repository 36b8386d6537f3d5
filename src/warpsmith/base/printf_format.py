"""The conversions of a printf format: what the simulator prints by and what the kernel language checks values against."""

from __future__ import annotations

import re

__all__ = ["SIZES", "SPEC"]

SPEC = re.compile(r"%([-+ #0]*)(\*|\d+)?(?:\.(\*|\d*))?(hh|h|ll|l|z|j|t|L)?([diouxXcsfFeEgGaAp%])")
"""flags, width, precision, length, conversion"""
SIZES = {"l": 8, "ll": 8, "z": 8, "j": 8, "t": 8}
"""Length modifier of an integer → bytes of the argument; 4 for the others."""
