"""Fields of a whole section at once: words grouped by form, one column for each field. Standard library only."""

from __future__ import annotations

import sys
from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from warpsmith.assembly.sass.row import Bits, gather

if TYPE_CHECKING:
    from warpsmith.assembly.sass.decode import Decoder, Form

__all__ = ["Group", "group_words"]


@final
@dataclass(frozen=True, slots=True)
class Group:
    """The instructions of one form: `indexes` counts instructions from the start of the code."""

    form: Form | None
    """None for words that the table does not know."""
    indexes: list[int]
    low: list[int]
    """Bits 0–63 of each word."""
    high: list[int]
    """Bits 64–127."""

    def column(self, bits: Bits) -> list[int]:
        """Return the value of some bits in each word of the group."""
        if len(bits) == 1:
            start, width = bits[0]
            mask = (1 << width) - 1
            if start + width <= 64:
                return [w >> start & mask for w in self.low]
            if start >= 64:
                start -= 64
                return [w >> start & mask for w in self.high]
        return [gather(low | high << 64, bits) for low, high in zip(self.low, self.high, strict=True)]

    def fields(self) -> list[list[int]]:
        """Return a column for each field of the form, in the order of `form.row.fields`."""
        return [self.column(f.bits) for f in self.form.row.fields] if self.form else []


def group_words(code: bytes, decoder: Decoder) -> list[Group]:
    """Group the instructions of code, a multiple of 16 bytes, by form, in order of first appearance."""
    halves = array("Q", code)
    if sys.byteorder == "big":
        halves.byteswap()
    groups: dict[int, Group] = {}
    forms: dict[tuple[int, int], Group] = {}
    for index, pair in enumerate(zip(halves[::2], halves[1::2], strict=True)):
        group = forms.get(pair)
        if group is None:
            form = decoder.form(pair[0] | pair[1] << 64)
            group = forms[pair] = groups.setdefault(id(form), Group(form, [], [], []))
        group.indexes.append(index)
        group.low.append(pair[0])
        group.high.append(pair[1])
    return list(groups.values())
