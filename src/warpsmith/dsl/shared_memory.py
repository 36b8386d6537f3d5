"""How a kernel's shared memory is laid out.

Static: a variable per allocation. When they exceed 48 KB together the body runs again with all of them in the dynamic
shared memory, at fixed offsets of one `extern .shared` array.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

__all__ = ["STATIC_LIMIT", "SharedMemory", "shared_limit"]

STATIC_LIMIT = 48 * 1024

_LIMITS = {75: 64, 80: 163, 86: 99, 87: 163, 88: 99, 89: 99, 90: 227, 100: 227, 101: 227, 103: 227, 110: 227, 120: 99, 121: 99}
"""SM number -> KB of shared memory a CTA may have (CUDA C++ Programming Guide, technical specifications)."""


def shared_limit(sm: int) -> int:
    """Return the bytes of shared memory one CTA may use on `sm_<sm>`; 48 KB before sm_75."""
    return _LIMITS.get(sm, 48) * 1024


@final
@dataclass(slots=True)
class SharedMemory:
    """What has been allocated so far."""

    static_bytes: int = 0
    """End of the last static variable, were they laid out in order."""
    dynamic_bytes: int = 0
    """End of the last allocation in the dynamic array, counted from its start."""
    dynamic_name: str = ""
    """Name of the `extern .shared` array, '' until something needs it."""
    dynamic_alignment: int = 16
    base_used: bool = False
    """`smem.base()` was called: the kernel lays out the first `smem=` bytes itself."""
    allocations: list[str] = field(default_factory=list)

    def place_static(self, size: int, align: int) -> None:
        """Count a static variable."""
        self.static_bytes = -(-self.static_bytes // align) * align + size

    def place_dynamic(self, size: int, align: int, reserved: int) -> int:
        """Return the offset of an allocation in the dynamic array."""
        start = max(self.dynamic_bytes, reserved)
        offset = -(-start // align) * align
        self.dynamic_bytes = offset + size
        self.dynamic_alignment = max(self.dynamic_alignment, align)
        return offset
