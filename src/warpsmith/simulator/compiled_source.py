"""Code objects of generated source, kept: a kernel that is simulated again writes the same source for its blocks."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import CodeType

__all__ = ["compiled_source"]


@lru_cache(maxsize=512)
def compiled_source(text: str, name: str) -> CodeType:
    """Compile source that is called `name` in tracebacks."""
    return compile(text, name, "exec")
