"""What registers and scopes need to know of the trace they belong to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from warpsmith.base.ptx_types import PtxType

__all__ = ["RegView", "ScopeView", "TraceView"]


class TraceView(Protocol):
    """The trace as seen from below."""

    @property
    def prefix(self) -> str:
        """Put before automatic names."""
        ...

    def new(self, dtype: PtxType) -> Any:
        """Declare a register with a name of our own in the open scope."""
        ...

    def emit(self, mnemonic: str, operands: Sequence[object], pred: Any = None) -> object:
        """Append one instruction."""
        ...

    def space_of(self, name: str) -> str:
        """Return the state space of a variable, '' when unknown."""
        ...

    def find(self, name: str) -> object | None:
        """Return the register called `name`, or the space of the variable or parameter; None when undeclared."""
        ...

    def check_name(self, name: str) -> None:
        """Raise for a name that means nothing here."""
        ...


class ScopeView(Protocol):
    """A scope as a register knows it."""

    open: bool
    number: int

    @property
    def trace(self) -> TraceView:
        """The trace it belongs to."""
        ...


class RegView(Protocol):
    """A register as the operators know it."""

    name: str
    dtype: PtxType
    scope: ScopeView
    type: str
    """Name of the type it is declared with."""
