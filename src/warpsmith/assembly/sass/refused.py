"""Combinations of modifiers that the disassembler refuses although each of them alone is accepted: rows of text by form.

A file `refused/<architecture>.tsv` beside the tables has a row a form: class and key as in the instruction table, then
combinations of bits with the values that do not go together, written as the `except` column writes them, several separated by
` / `. A word with one of them is no instruction: the decoder shows it as unknown, and the encoder does not make it. The file of
an architecture is complete: nothing is inherited, because what goes together differs.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from warpsmith.assembly.sass.table_text import combinations_text, key_text, parse_combinations
from warpsmith.base.errors import DeclarationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from warpsmith.assembly.sass.row import Row

__all__ = ["REFUSED_FOLDER", "Combinations", "load_refused", "refused_text", "with_refused"]

REFUSED_FOLDER = Path(__file__).with_name("tables") / "refused"

Combinations = tuple[tuple[int, int], ...]
"""(mask, value): words with these bits under the mask are refused."""


@cache
def load_refused(name: str, folder: Path = REFUSED_FOLDER) -> dict[tuple[str, str], Combinations]:
    """Return (class, key) -> combinations for a table's name; empty where there is no such file."""
    path = folder / f"{name}.tsv"
    out: dict[tuple[str, str], Combinations] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines() if path.exists() else (), 1):
        if not line or line.startswith("#"):
            continue
        columns = line.split("\t")
        try:
            if len(columns) != 3:
                raise DeclarationError(f"{len(columns)} columns instead of 3 (class, key, combinations)")
            out[columns[0], columns[1]] = parse_combinations(columns[2])
        except (DeclarationError, ValueError) as error:
            raise DeclarationError(f"{path.name}:{number}: {error}") from error
    return out


def refused_text(name: str, key: str, combinations: Combinations) -> str:
    """Return the row of a form."""
    return f"{name}\t{key}\t{combinations_text(combinations)}"


def with_refused(rows: Iterable[Row], known: Mapping[tuple[str, str], Combinations]) -> list[Row]:
    """Return the rows, each with its refused combinations.

    A combination counts only where all its bits are modifiers of the form: a table may have been learned anew since.
    """
    out: list[Row] = []
    for row in rows:
        found = known.get((row.name, key_text(row)), ()) if known else ()
        free = 0
        for s in row.selectors:
            for low, width in s.bits if not s.predicates else ():
                free |= ((1 << width) - 1) << low
        kept = tuple(c for c in found if not c[0] & ~free)
        out.append(replace(row, refused=kept) if kept else row)
    return out
