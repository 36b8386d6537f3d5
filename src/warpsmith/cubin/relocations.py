"""Relocation tables, with and without addends, and NVIDIA's names of their types (`relocations.txt`)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, final

from warpsmith.cubin.binary import unpack_all

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Relocation", "RelocationTable", "relocation_names"]

_REL, _RELA = struct.Struct("<QQ"), struct.Struct("<QQq")


@cache
def relocation_names() -> dict[int, str]:
    """Return number -> name of the relocation types."""
    lines = resources.files("warpsmith.cubin").joinpath("relocations.txt").read_text("utf-8").splitlines()
    rows = (line.split() for line in lines if line and not line.startswith("#"))
    return {int(number): name for number, name in rows}


@final
@dataclass(slots=True, eq=False)
class Relocation:
    """One relocation: what at `offset` of the section concerned depends on which symbol."""

    offset: int
    type: int
    symbol: int
    """The symbol's number."""
    addend: int | None
    """None in a table without addends, where the place itself holds it."""

    @property
    def name(self) -> str:
        """NVIDIA's name of the type, or `R_CUDA_<number>`."""
        return relocation_names().get(self.type, f"R_CUDA_{self.type}")


@final
class RelocationTable:
    """The relocations of a section, in order."""

    __slots__ = ("relocations", "with_addends")

    def __init__(self, relocations: list[Relocation], *, with_addends: bool) -> None:
        self.relocations, self.with_addends = relocations, with_addends

    @classmethod
    def decode(cls, data: bytes, section: str, *, with_addends: bool) -> RelocationTable:
        """Read a relocation table."""
        rows = unpack_all(_RELA if with_addends else _REL, data, "the relocation table", section)
        return cls(
            [Relocation(r[0], r[1] & 0xFFFFFFFF, r[1] >> 32, r[2] if with_addends else None) for r in rows],
            with_addends=with_addends,
        )

    def encode(self) -> bytes:
        """Return the table's bytes."""
        rows = ((r.offset, r.symbol << 32 | r.type, r.addend) for r in self.relocations)
        return b"".join(_RELA.pack(*row) if self.with_addends else _REL.pack(*row[:2]) for row in rows)

    def __len__(self) -> int:
        return len(self.relocations)

    def __iter__(self) -> Iterator[Relocation]:
        return iter(self.relocations)
