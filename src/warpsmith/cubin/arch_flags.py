"""Where a cubin says which architecture it is for.

`e_flags` holds the number: in bits 7:0 under OSABI 0x33, in bits 15:8 under 0x41. The letter of sm_90a or sm_100f is bit 11
(0x33) or bit 3 (0x41) with some tools; ptxas 13 leaves it out there and writes it into `.nv.compat` (CUDA_ACCELERATOR_TARGET,
for `a`) and into the command line of `.note.nv.tkinfo` (all letters).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from warpsmith.cubin.info import InfoTable
from warpsmith.cubin.notes import NoteTable

if TYPE_CHECKING:
    from warpsmith.cubin.elf import FileHeader
    from warpsmith.cubin.section import Sections

__all__ = ["arch_number", "arch_of", "flags_for"]

_LETTER = {0x33: 0x800, 0x41: 0x8}


def arch_number(header: FileHeader) -> int:
    """Return the number in `e_flags`, 90 for sm_90a."""
    return header.flags & 0xFF if header.osabi == 0x33 else header.flags >> 8 & 0xFF


def arch_of(header: FileHeader, sections: Sections) -> str:
    """Return the architecture, such as `sm_90a`."""
    number = arch_number(header)
    return f"sm_{number}{_letter(header, sections, number)}"


def _letter(header: FileHeader, sections: Sections, number: int) -> str:
    if header.flags & _LETTER.get(header.osabi, 0):
        return "a"
    for section in sections:
        if isinstance(section.content, NoteTable):
            for note in section.content:
                if (tool := note.tool()) and (m := re.search(rf"\bsm_{number}([af])\b", tool.arguments)):
                    return m[1]
        if (
            isinstance(section.content, InfoTable)
            and (mark := section.content.get("CUDA_ACCELERATOR_TARGET"))
            and mark.payload[0]
        ):
            return "a"
    return ""


def flags_for(number: int) -> int:
    """Return the `e_flags` that ptxas 13 writes for an architecture."""
    return 0x6000000 | number << 8 | (0x02 if number >= 100 else 0x04)
