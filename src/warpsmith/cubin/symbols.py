"""Symbol tables (ELF-64 `Elf64_Sym`), with NVIDIA's bits of `st_other`."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from warpsmith.base.errors import CubinError
from warpsmith.cubin.binary import unpack_all

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warpsmith.cubin.strings import StringTable

__all__ = ["STO_ENTRY", "STT_FUNC", "STT_OBJECT", "STT_SECTION", "Symbol", "SymbolTable"]

_SYMBOL = struct.Struct("<IBBHQQ")
STT_OBJECT, STT_FUNC, STT_SECTION = 1, 2, 3
STO_ENTRY = 0x10
"""`st_other` of a kernel, as against a device function."""


@final
@dataclass(slots=True, eq=False)
class Symbol:
    """One symbol."""

    name: str
    name_offset: int
    info: int
    other: int
    section: int
    """Its section's number; 0: undefined, from 0xff00 on: reserved meanings."""
    value: int
    """Offset in its section, in bytes."""
    size: int

    @property
    def type(self) -> int:
        """STT_OBJECT, STT_FUNC, STT_SECTION, …"""
        return self.info & 15

    @property
    def binding(self) -> int:
        """0 local, 1 global, 2 weak."""
        return self.info >> 4

    @property
    def is_entry(self) -> bool:
        """Whether it is a kernel."""
        return self.type == STT_FUNC and bool(self.other & STO_ENTRY)


@final
class SymbolTable:
    """The symbols of a section, in order; `strings` holds their names."""

    __slots__ = ("section", "strings", "symbols")

    def __init__(self, symbols: list[Symbol], strings: StringTable, section: str) -> None:
        self.symbols, self.strings, self.section = symbols, strings, section

    @classmethod
    def decode(cls, data: bytes, strings: StringTable, section: str) -> SymbolTable:
        """Read a symbol table."""
        rows = unpack_all(_SYMBOL, data, "the symbol table", section)
        what = "the name of a symbol"
        return cls([Symbol(strings.at(name, what), name, *rest) for name, *rest in rows], strings, section)

    def encode(self) -> bytes:
        """Return the table's bytes."""
        return b"".join(_SYMBOL.pack(s.name_offset, s.info, s.other, s.section, s.value, s.size) for s in self.symbols)

    def __len__(self) -> int:
        return len(self.symbols)

    def __iter__(self) -> Iterator[Symbol]:
        return iter(self.symbols)

    def __getitem__(self, key: int | str) -> Symbol:
        if isinstance(key, int):
            if not 0 <= key < len(self.symbols):
                raise CubinError(f"symbol {key} does not exist; there are {len(self.symbols)}", section=self.section)
            return self.symbols[key]
        if (found := next((s for s in self.symbols if s.name == key), None)) is None:
            raise CubinError(f"there is no symbol {key!r}", section=self.section)
        return found

    def index(self, symbol: Symbol) -> int:
        """Return the symbol's number."""
        return next(i for i, s in enumerate(self.symbols) if s is symbol)
