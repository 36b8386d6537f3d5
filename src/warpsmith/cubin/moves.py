"""Where instructions went when code was rewritten: a map of old byte offsets to new ones."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, final

from warpsmith.base.errors import CubinError

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["Moved", "Moves", "Place", "shifted"]

Moved: TypeAlias = Mapping[int, int | None] | Callable[[int], int | None] | None
"""What says where the instruction at an old offset stands now; None for an instruction that is gone.

None alone: nothing moved.
"""


def shifted(
    inserted: Mapping[int, int] | None = None, removed: Collection[int] = (), width: int = 16
) -> Callable[[int], int | None]:
    """Return the map for code with bytes inserted and instructions removed.

    `inserted` maps an old offset to the number of bytes put before the instruction there; `removed` lists old offsets of
    instructions taken out, of `width` bytes each. The instruction before which something was inserted moves with what follows
    it.

    >>> at = shifted({0x20: 32}, removed=[0x40])
    >>> at(0x10), at(0x20), at(0x40), at(0x50)
    (16, 64, None, 96)
    """
    grown = sorted((inserted or {}).items())
    places = [at for at, _ in grown]
    totals = [0]
    for _, count in grown:
        totals.append(totals[-1] + count)
    gone = sorted(set(removed))

    def at(offset: int) -> int | None:
        i = bisect_left(gone, offset)
        if i < len(gone) and gone[i] == offset:
            return None
        return offset + totals[bisect_right(places, offset)] - i * width

    return at


@final
class Moves:
    """The map as the edit needs it: every offset that something refers to must have an answer that lies in the new code."""

    __slots__ = ("function", "moved", "new_size", "old_size", "width")

    def __init__(self, function: str, moved: Moved, old_size: int, new_size: int, width: int) -> None:
        if moved is None and old_size != new_size:
            raise CubinError(
                f"the code of {function!r} changes from {old_size} to {new_size} bytes and `moved` does not say "
                "where instructions went; write replace(code, moved={old offset: new offset, …})"
            )
        self.function, self.moved, self.old_size, self.new_size, self.width = function, moved, old_size, new_size, width

    def at(self, old: int, what: str) -> int | None:
        """Return the new offset of the instruction at `old`, which `what` refers to; None: it is gone."""
        if self.moved is None:
            return old
        if callable(self.moved):
            new = self.moved(old)
        elif old in self.moved:
            new = self.moved[old]
        else:
            raise CubinError(
                f"{what} refers to the instruction at {old:#x} of {self.function!r}, and `moved` has no entry for it"
            )
        if new is not None and not 0 <= new < self.new_size:
            raise CubinError(
                f"{what}: `moved` sends {old:#x} to {new:#x}, outside the {self.new_size} bytes of the new code "
                f"of {self.function!r}"
            )
        return new

    def kept(self, old: int, what: str) -> int:
        """Return the new offset of an instruction that may not be gone."""
        if (new := self.at(old, what)) is None:
            raise CubinError(f"{what} refers to the instruction at {old:#x} of {self.function!r}, which `moved` says is gone")
        return new

    def end(self, old: int, what: str) -> int:
        """Return the new offset of an end: that of the code stays the end of the code."""
        return self.new_size if old >= self.old_size else self.kept(old, what)

    def after(self, old: int) -> int:
        """Return the new offset of the first instruction from `old` on that is not gone, or the end of the code."""
        while old < self.old_size:
            if (new := self.at(old, "the line table")) is not None:
                return new
            old += self.width
        return self.new_size


@final
@dataclass(frozen=True, slots=True)
class Place:
    """What a relocated place refers to: offset `old` of the function's code, counted from a symbol that stood at `base`."""

    old: int
    base: int
    implicit: bool
    """Whether the place itself holds the distance from the symbol, not the relocation."""

    def patched(self, data: bytes, at: int, moves: Moves) -> bytes:
        """Return `data` with the 8-byte distance at `at` moved, where the place holds it."""
        if not self.implicit or self.old == self.base:
            return data
        distance = moves.kept(self.old, "a relocated place") - moves.kept(self.base, "a symbol")
        return data[:at] + distance.to_bytes(8, "little") + data[at + 8 :]
