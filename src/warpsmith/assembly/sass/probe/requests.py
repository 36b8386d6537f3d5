"""What a learner asks for: it is a generator that yields requests and is sent the answers, so that many share one call."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Literal, TypeVar

__all__ = ["Asking", "Request"]

Request = tuple[Literal["texts", "classes"], list[int]]
"""`texts` is answered by `Oracle.texts`, `classes` by `Oracle.classes`, item for item."""

T = TypeVar("T")
Asking = Generator[Request, list[Any], T]
"""A computation that asks the disassembler and returns a T."""
