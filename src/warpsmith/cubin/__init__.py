"""Cubins and fat binaries: read, edit, build, find. Reads and writes the files itself, with the standard library alone.

`open` takes a cubin apart, `Cubin.new` begins one, `find` lists what libraries, objects, archives and wheels hold.
docs/rooms/cubin.md is the guide, docs/design/cubin.md the model.
"""

from __future__ import annotations

from pathlib import Path

from warpsmith.base.errors import CubinError
from warpsmith.base.whole_file import read_whole
from warpsmith.cubin.elf import EM_CUDA
from warpsmith.cubin.fatbin import MAGIC
from warpsmith.cubin.find import Found, find
from warpsmith.cubin.function import CapsuleWarning, Function
from warpsmith.cubin.info import Attribute, InfoTable
from warpsmith.cubin.lines import Line
from warpsmith.cubin.model import Cubin, read_cubin
from warpsmith.cubin.moves import shifted
from warpsmith.cubin.notes import Tool
from warpsmith.cubin.parameters import Parameter
from warpsmith.cubin.payloads import BarrierUse, Branch, decode_payload
from warpsmith.cubin.relocations import Relocation, RelocationTable
from warpsmith.cubin.section import Section
from warpsmith.cubin.symbols import Symbol, SymbolTable

__all__ = [
    "EM_CUDA", "MAGIC", "Attribute", "BarrierUse", "Branch", "CapsuleWarning", "Cubin", "CubinError", "Found", "Function",
    "InfoTable", "Line", "Parameter", "Relocation", "RelocationTable", "Section", "Symbol", "SymbolTable", "Tool",
    "decode_payload", "find", "open", "shifted",
]  # fmt: skip


def open(source: str | Path | bytes | bytearray | memoryview) -> Cubin:
    """Take a cubin apart: a path, or its bytes. `open(x).write()` gives the same bytes again.

    Raises `CubinError`, with the byte and the section, for what is no cubin or contradicts itself; a file that holds cubins
    (a fat binary, a library) is for `find`.
    """
    file = None if isinstance(source, (bytes, bytearray, memoryview)) else str(source)
    data = source if isinstance(source, (bytes, bytearray, memoryview)) else read_whole(source)
    try:
        return read_cubin(data)
    except CubinError as error:
        message = error.message
        if bytes(data[:4]) == MAGIC.to_bytes(4, "little"):
            message = "a fat binary, not a cubin; ws.cubin.find() lists what it holds"
        raise CubinError(message, offset=error.offset, section=error.section, file=file) from None
