"""A stream of random choices that depends on nothing but its number: splitmix64 over a counter, on every version of Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, final

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["RandomStream"]

_T = TypeVar("_T")
_MASK = (1 << 64) - 1


@final
class RandomStream:
    """Choices of the stream `number`."""

    def __init__(self, number: int) -> None:
        self._state = (number << 32) & _MASK

    def word(self) -> int:
        """Return 64 random bits."""
        z = self._state * 0x9E3779B97F4A7C15 & _MASK
        self._state = (self._state + 1) & _MASK
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB & _MASK
        return z ^ (z >> 31)

    def below(self, n: int) -> int:
        """Return a number from 0 to n − 1."""
        return (self.word() >> 11) % n

    def chance(self, percent: int) -> bool:
        """Return True in `percent` of 100 cases."""
        return self.below(100) < percent

    def choice(self, items: Sequence[_T]) -> _T:
        """Return one of the items."""
        return items[self.below(len(items))]
