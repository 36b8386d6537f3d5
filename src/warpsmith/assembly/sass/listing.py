"""Listings of code: as the disassembler prints raw code, and ours, which `assemble` reads back to the same bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warpsmith.assembly.sass.program import Instruction, Program

__all__ = ["COLUMNS", "labels_of", "line_of", "listing_lines", "raw_line", "with_labels"]

COLUMNS = "//       wait   read write yield stall/reuse"
"""What the control columns of our listing are."""
_ISSUE = 0x1F << 105 | 0x3F << 116


def raw_line(i: Instruction) -> str:
    """Return the line that `nvdisasm --binary … -ndf -raw` prints for an instruction.

    The blank before the semicolon is missing where the instruction neither stalls nor waits. An unknown word, of which the
    disassembler prints nothing or another text, is a `.word`.
    """
    end = " ;" if i.raw & _ISSUE else ";"
    return f"        /*{i.address:04x}*/                   {i.text}{end if i.known else ''}"


def labels_of(program: Program) -> dict[int, str]:
    """Return address -> label for the places in the code that instructions of the code refer to, in ascending order."""
    found: set[int] = set()
    for i in program:
        form = i.layout
        if form is not None and form.relative:
            fields = [form.row.fields[t] for t in form.template if isinstance(t, int)]
            found.update(f.number(i.raw) + i.address for f in fields if f.kind == "r")
    end = program.base + len(program.code)
    inside = sorted(a for a in found if program.base <= a <= end and a % 16 == 0)
    return {address: f".L_{n}" for n, address in enumerate(inside)}


def with_labels(i: Instruction, labels: dict[int, str]) -> str:
    """Return the text of an instruction, its target a label where there is one."""
    form = i.layout
    if form is None or not form.relative or not labels:
        return i.text
    parts: list[str] = []
    for part in form.template:
        if isinstance(part, str):
            parts.append(part)
            continue
        f = form.row.fields[part]
        label = labels.get(f.number(i.raw) + i.address) if f.kind == "r" else None
        parts.append(f"`({label})" if label else f.text(i.raw, i.address))
    return "".join(parts)


def line_of(i: Instruction, labels: dict[int, str]) -> str:
    """Return the line of our listing: address, control bits in columns, text, and the bits that no text shows."""
    if not i.known:
        return f"/*{i.address:04x}*/ {i.text}"
    spare = i.unprinted
    note = f" /*unprinted {spare:#x}*/" if spare else ""
    return f"/*{i.address:04x}*/ {i.control!s:<26} {with_labels(i, labels)} ;{note}"


def listing_lines(program: Program) -> Iterator[str]:
    """Yield our listing of a program, labels on lines of their own."""
    labels = labels_of(program)
    for i in program:
        if i.address in labels:
            yield f"{labels[i.address]}:"
        yield line_of(i, labels)
    end = program.base + len(program.code)
    if end in labels:
        yield f"{labels[end]}:"
