"""Say why a text is refused, and what is near it."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from warpsmith.assembly.sass.control import NO_CONTROL
from warpsmith.assembly.sass.lex import mnemonic_of
from warpsmith.assembly.sass.match import Matcher

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from warpsmith.assembly.sass.decode import Decoder
    from warpsmith.assembly.sass.row import Row
    from warpsmith.assembly.sass.table import Table

__all__ = ["refusal"]


def refusal(text: str, table: Table, by_mnemonic: Mapping[str, Sequence[Row]], decoder: Decoder) -> str:
    """Return the message for a normal text that no form prints."""
    name = mnemonic_of(text)
    rows = by_mnemonic.get(name)
    if not rows:
        near = get_close_matches(name, [m for m in by_mnemonic if m], n=4, cutoff=0.5)
        return f"{text!r}: {table.arch} has no instruction {name!r}" + (f"; near it: {', '.join(near)}" if near else "")
    examples = dict.fromkeys(x for row in rows if (x := decoder.text(Matcher(row).default | NO_CONTROL)))
    near = get_close_matches(text, list(examples), n=4, cutoff=0.0)
    return f"{text!r}: no form of {name} of {table.arch} reads like this; the nearest are\n" + "\n".join(f"  {n}" for n in near)
