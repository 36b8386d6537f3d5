"""What a mnemonic is: its class, a line that describes it, and what it does with names that are no registers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import final

from warpsmith.base.errors import DeclarationError

__all__ = ["CLASSES", "Mnemonic", "mnemonic", "mnemonics"]

CLASSES = (
    "integer", "float", "half", "double", "convert", "move", "predicate", "special", "warp", "tensor", "tensor-memory",
    "memory.global", "memory.shared", "memory.local", "memory.constant", "memory.generic", "memory.bulk",
    "texture", "surface", "control", "barrier", "uniform", "graphics", "system",
)  # fmt: skip
"""All instruction classes; what the uniform datapath computes or loads is `uniform`, whatever the type."""

_FILE = Path(__file__).with_name("mnemonics.txt")


@final
@dataclass(frozen=True, slots=True)
class Mnemonic:
    """A row of `mnemonics.txt`."""

    name: str
    kind: str
    """One of `CLASSES`."""
    names: dict[str, str]
    """`B`, `PR`, `UPR`, `SB`, `GSB` -> `r`, `w`, `rw`, or `wr`: the first operand is written, others are read."""
    description: str


@cache
def mnemonics() -> dict[str, Mnemonic]:
    """Return all mnemonics by name; raises `DeclarationError` where the file contradicts its legend."""
    out: dict[str, Mnemonic] = {}
    for number, line in enumerate(_FILE.read_text(encoding="utf-8").splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        columns = line.split("\t")
        if len(columns) != 4 or columns[1] not in CLASSES or columns[0] in out:
            raise DeclarationError(f"{_FILE.name}:{number}: not a new mnemonic, a class, names and a description: {line!r}")
        names = dict(part.split("=") for part in columns[2].split()) if columns[2] != "-" else {}
        out[columns[0]] = Mnemonic(columns[0], columns[1], names, columns[3])
    return out


def mnemonic(name: str) -> Mnemonic | None:
    """Return what a mnemonic without modifiers is, e.g. `IMAD`; None for one that is not listed."""
    return mnemonics().get(name)
