"""`descriptor-mismatch`: the swizzle a matrix descriptor names is not the one a tensor copy has stored the tile with.

Each 16 bytes of shared memory keep the mode of the tensor copy that stored them. Bytes that something else has written since
are not judged: threads may lay out a tile as they like. Whoever wrote last is known from the shadow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import numpy as np

from warpsmith.base.findings import Related
from warpsmith.simulator.check.entries import agents_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.simulator.check.races import RaceWatch
    from warpsmith.simulator.lanes import Lanes

__all__ = ["SwizzleTags"]

_REPAIR = "Give the descriptor and the tensor map of the tile the same swizzle mode."


@final
class SwizzleTags:
    """The mode that each 16-byte piece of shared memory was stored with."""

    def __init__(self, races: RaceWatch) -> None:
        self.races = races
        self.modes: list[str] = [""]
        self.tags: NDArray[np.uint8] = np.zeros(races.machine.shared.data.size >> 4, np.uint8)

    def note(self, start: int, size: int, mode: str) -> None:
        """Note that a tensor copy stores bytes in a mode."""
        if mode not in self.modes:
            self.modes.append(mode)
        self.tags[start >> 4 : (start + size) >> 4] = self.modes.index(mode)

    def alike(self, pieces: NDArray[np.int64], mode: str) -> bool:
        """Say whether `judge` would find nothing at 16-byte pieces of any shape."""
        return self._misread(pieces.reshape(-1), mode) is None

    def _misread(self, pieces: NDArray[np.int64], mode: str) -> tuple[int, str, int] | None:
        """Return the first piece that a tensor copy stored in another mode: its number, the mode, the entry of the copy."""
        found = self.tags.take(pieces)
        unlike = (found != 0) & (found != (self.modes.index(mode) if mode in self.modes else len(self.modes)))
        if not unlike.any():
            return None
        columns, shadow = self.races.columns, self.races.shared
        entries = shadow.writes[(pieces[unlike] << 4) >> shadow.shift]
        stored = agents_of(entries) % columns.count >= columns.threads + columns.groups
        if not stored.any():
            return None
        i = int(np.flatnonzero(stored)[0])
        return int(pieces[unlike][i]), self.modes[int(found[unlike][i])], int(entries[i])

    def judge(self, x: Lanes, pieces: NDArray[np.int64], mode: str, operand: str, lanes: NDArray[np.bool_]) -> None:
        """Judge an operand that lies in 16-byte pieces and is read in a mode."""
        misread = self._misread(pieces, mode)
        if misread is None:
            return
        piece, theirs, copy = misread
        other, _ = self.races.party(copy)
        at = (piece << 4) % x.machine.shared.row
        text = (
            f"the descriptor of {operand} names swizzle {mode}, but the tile at shared address {at:#x} was stored with "
            f"swizzle {theirs}"
        )
        related = [Related(f"{other.short} stored it", other.operation.place)] if other is not None else []
        x.finding("descriptor-mismatch", text, lanes=lanes, related=related, repair=_REPAIR)
