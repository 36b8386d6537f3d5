"""Loads and stores that copy memory through registers: of which bytes nobody has written goes with the copy.

A register is undefined as a whole where a byte of it is. Compilers copy structures by words, though, with the padding between
their members: behind `ld.u64 %r, [a]; st.u64 [b], %r` the bytes of b are undefined that are undefined at a, and no others.
`mark_copies` finds, within a block, stores of what a load of equal width has left in the register; the load keeps
the bytes' flags (`keep`), the store asks for them (`undefined_bytes`). A guarded load does not count: where it is not
executed, older flags would be taken for its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from warpsmith.base.ptx_types import TYPES
from warpsmith.simulator.program import Address

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.program import Block, Operation

__all__ = ["keep", "mark_copies", "undefined_bytes"]

Cell = tuple[str, int]


def mark_copies(blocks: Iterable[Block]) -> None:
    """Note in each store which elements of its operand were loaded in its block, and not changed since."""
    for block in blocks:
        loaded: dict[Cell | None, int] = {}
        for op in block.operations:
            if op.opcode == "st":
                op.copied = tuple(loaded.get(cell) == _width(op) for cell in _elements(op))
            for cell in op.writes():
                loaded.pop(cell, None)
            if op.opcode == "ld" and op.guard is None:
                loaded.update((cell, _width(op)) for cell in _elements(op) if cell is not None)


def _width(op: Operation) -> int:
    """Bytes of an element of a load or store, 0 where the mnemonic ends with no type (`st.bulk`)."""
    found = TYPES.get(op.text.rpartition(".")[2])
    return 0 if found is None else found.bits // 8


def _elements(op: Operation) -> list[Cell | None]:
    """Return the register of each element loaded or stored, None where it is none, or two (`.b128`)."""
    value = next(i for i, operand in enumerate(op.operands) if not isinstance(operand, Address))
    return [cells[0] if len(cells) == 1 else None for cells in op.item_slots(value)]


def keep(x: Lanes, dest: Any, flags: NDArray[np.bool_]) -> None:
    """Keep which bytes `[C, T, n]` (n to 8) that the active lanes have loaded to a register were undefined."""
    c0, c1, t0, t1 = x.rect
    registers = x.machine.registers
    kept = registers.loaded.setdefault((dest.bank, dest.slot), np.zeros((registers.rows, registers.threads), np.uint8))
    bits = np.packbits(flags, axis=-1, bitorder="little")[..., 0]
    np.copyto(kept[c0:c1, t0:t1], bits, where=x.active())


def undefined_bytes(x: Lanes, operand: int, undefined: NDArray[np.bool_], width: int) -> NDArray[np.bool_]:
    """Return which bytes of a store's elements `[C, T, items * width]` are undefined, of elements `[C, T, items]` that are."""
    out = np.repeat(undefined, width, axis=-1)
    c0, c1, t0, t1 = x.rect
    for i, (cells, copied) in enumerate(zip(x.op.item_slots(operand), x.op.copied, strict=True)):
        kept = x.machine.registers.loaded.get(cells[0]) if copied else None
        if kept is not None:
            out[..., i * width : (i + 1) * width] &= (kept[c0:c1, t0:t1, None] >> np.arange(width) & 1).astype(np.bool_)
    return out
