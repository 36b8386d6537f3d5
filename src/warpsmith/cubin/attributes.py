"""Ids of `.nv.info` and `.nv.compat` attributes: the rows of `attributes.txt`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import final

from warpsmith.base.errors import CubinError, DeclarationError

__all__ = ["COMPAT", "INFO", "Row", "attribute_id", "attribute_name", "attribute_rows"]

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
"""What the last column of the table may say."""


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
    """Return (table, id) -> row; raise `DeclarationError` where a row contradicts another."""
    rows: dict[tuple[str, int], Row] = {}
    names: set[tuple[str, str]] = set()
    for line in resources.files("warpsmith.cubin").joinpath("attributes.txt").read_text("utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        table, number, name, layout, evidence = line.split()
        row = Row(table, int(number, 16), name, layout, evidence)
        if (table, row.id) in rows or (table, name) in names or layout not in LAYOUTS or table not in (INFO, COMPAT):
            raise DeclarationError(f"attributes.txt: {line!r} repeats an id or a name, or has an unknown layout")
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


def attribute_id(table: str, name: str) -> int:
    """Return the id of a name, or of a number written `0x5f`."""
    if (found := _numbers().get((table, name))) is not None:
        return found
    if name.startswith("0x"):
        return int(name, 16)
    raise CubinError(
        f"there is no attribute {name!r}; `cubin/attributes.txt` lists those that have a name, others are written 0x5f"
    )
