"""Allocation of tensor memory by columns (PTX ISA 9.7.18.7.1). Every call is made by one whole warp."""

from __future__ import annotations

from warpsmith.base.place import error
from warpsmith.dsl.address import address
from warpsmith.dsl.registers import Reg
from warpsmith.dsl.trace import current
from warpsmith.ptx.tcgen05.arguments import Pred, group_word, is_word

__all__ = ["alloc", "dealloc", "relinquish_alloc_permit"]


def _columns(ncols: object) -> None:
    if isinstance(ncols, Reg):
        if not is_word(ncols):
            raise error(f"ncols is an int or a 32-bit register, and {ncols.name} is {ncols.dtype}")
    elif isinstance(ncols, bool) or ncols not in (32, 64, 128, 256, 512):
        raise error(f"tensor memory is allocated by 32, 64, 128, 256 or 512 columns, not {ncols!r}")


def alloc(slot: object, ncols: int | Reg, *, cta_group: int = 1, pred: Pred = None) -> None:
    """Allocate `ncols` columns and write their address to the 32-bit word `slot` of shared memory; waits for room.

    With `cta_group=2` one warp of each CTA of the pair makes the call.
    """
    _columns(ncols)
    current().emit(f"tcgen05.alloc.{group_word(cta_group)}.sync.aligned.shared::cta.b32", (address(slot), ncols), pred)


def dealloc(taddr: Reg, ncols: int | Reg, *, cta_group: int = 1, pred: Pred = None) -> None:
    """Give `ncols` columns from `taddr` on back: what `alloc` allocated, before the kernel ends."""
    _columns(ncols)
    if not is_word(taddr):
        raise error(f"taddr is the 32-bit register that holds the address alloc wrote, not {_shown(taddr)}")
    current().emit(f"tcgen05.dealloc.{group_word(cta_group)}.sync.aligned.b32", (taddr, ncols), pred)


def relinquish_alloc_permit(*, cta_group: int = 1, pred: Pred = None) -> None:
    """Promise that this CTA allocates no more, so that others of the multiprocessor may."""
    current().emit(f"tcgen05.relinquish_alloc_permit.{group_word(cta_group)}.sync.aligned", (), pred)


def _shown(value: object) -> str:
    return f"{value.name}, a {value.dtype}" if isinstance(value, Reg) else type(value).__name__
