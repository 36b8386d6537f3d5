"""String tables: names at offsets. Positions are part of the model, because one name may be the tail of another."""

from __future__ import annotations

from typing import final

from warpsmith.cubin.binary import text_at

__all__ = ["StringTable"]


@final
class StringTable:
    """The bytes of a string table. Names are looked up by offset and added at the end."""

    __slots__ = ("_cache", "data", "section")

    def __init__(self, data: bytes, section: str | None) -> None:
        self.data, self.section = data, section
        self._cache: dict[int, str] = {}

    def at(self, offset: int, what: str) -> str:
        """Return the string at `offset`; `what` names it in an error."""
        if (found := self._cache.get(offset)) is None:
            found = self._cache[offset] = text_at(self.data, offset, what, self.section)
        return found

    def add(self, text: str) -> int:
        """Return the offset of `text`, put at the end where no string of the table ends with it."""
        coded = text.encode("utf-8", "surrogateescape") + b"\0"
        at = self.data.find(coded)
        if at < 0:
            at = len(self.data)
            self.data += coded
        return at

    def encode(self) -> bytes:
        """Return the table's bytes."""
        return self.data
