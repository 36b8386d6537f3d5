"""Ids of `.nv.info` and `.nv.compat` attributes: the rows of `attributes.txt`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import final

from warpsmith.base.errors import CubinError, DeclarationError

__all__ = ["COMPAT", "INFO", "Row", "attribute_id", "attribute_name", "attribute_rows", "known_id", "read_rows"]

INFO, COMPAT = "info", "compat"
LAYOUTS = frozenset(
    (
        "-",
        "offsets",
        "pairs",
        "barriers",
        "branches",
        "annotations",
        "unknown_offsets",
        "symbol_value",
        "symbols",
        "kparam",
        "words",
        "value",
    )
)
"""What the column of layouts may say."""
EVIDENCE = frozenset(("seen", "name", "public"))


@final
@dataclass(frozen=True, slots=True)
class Row:
    """One id: `name` without its prefix, and what its payload is."""

    table: str
    id: int
    name: str
    layout: str
    evidence: str


@cache
def attribute_rows() -> dict[tuple[str, int], Row]:
    """Return (table, id) -> row of `attributes.txt`."""
    return read_rows(resources.files("warpsmith.cubin").joinpath("attributes.txt").read_text("utf-8"))


def read_rows(text: str) -> dict[tuple[str, int], Row]:
    """Read a table of attributes; raise `DeclarationError` where a row contradicts the legend or another row."""
    rows: dict[tuple[str, int], Row] = {}
    names: set[tuple[str, str]] = set()
    for number, line in enumerate(text.splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        try:
            table, code, name, layout, evidence = line.split()
            row = Row(table, int(code, 16), name, layout, evidence)
        except ValueError:
            raise DeclarationError(
                f"attributes.txt:{number}: five columns are needed: table, id, name, layout, evidence"
            ) from None
        if table not in (INFO, COMPAT) or layout not in LAYOUTS or evidence not in EVIDENCE or not 0 <= row.id < 256:
            raise DeclarationError(
                f"attributes.txt:{number}: the legend does not know the table, id, layout or evidence of {name}"
            )
        if (table, row.id) in rows or (table, name) in names:
            raise DeclarationError(f"attributes.txt:{number}: {name} repeats an id or a name")
        rows[table, row.id] = row
        names.add((table, name))
    return rows


@cache
def _numbers() -> dict[tuple[str, str], int]:
    return {(row.table, row.name): row.id for row in attribute_rows().values()}


def attribute_name(table: str, number: int) -> str:
    """Return the name of an id, or the number as `0x5f`."""
    row = attribute_rows().get((table, number))
    return row.name if row else f"{number:#04x}"


@cache
def known_id(table: str, name: str) -> int | None:
    """Return the id of a name, or of a number written `0x5f`; None for a name that the table does not know."""
    if (found := _numbers().get((table, name))) is not None:
        return found
    return int(name, 16) if re.fullmatch(r"0x[0-9a-f]{1,2}", name) else None


def attribute_id(table: str, name: str) -> int:
    """Return the id of a name, or of a number written `0x5f`; raise `CubinError` for a name that the table does not know."""
    if (found := known_id(table, name)) is not None:
        return found
    raise CubinError(
        f"there is no attribute {name!r}; `cubin/attributes.txt` lists those that have a name, others are written 0x5f"
    )
