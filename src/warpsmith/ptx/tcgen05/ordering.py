"""Order and completion of tcgen05 operations (PTX ISA 9.7.18.11, 9.7.18.12)."""

from __future__ import annotations

from warpsmith.base.place import error
from warpsmith.dsl.address import address
from warpsmith.dsl.registers import Reg
from warpsmith.dsl.trace import current
from warpsmith.ptx.copy_bulk import mask_operand
from warpsmith.ptx.tcgen05.arguments import Pred, group_word

__all__ = ["commit", "fence_after_thread_sync", "fence_before_thread_sync"]


def commit(
    mbar: object, *, cta_group: int = 1, multicast: bool = False, multicast_mask: int | Reg | None = None,
    space: str = "cluster", pred: Pred = None,
) -> None:  # fmt: skip
    """Arrive once at `mbar` when every tcgen05 operation that this thread has issued so far is complete.

    With `multicast`, at the same offset in every CTA whose rank's bit is set in `multicast_mask` (16 bits). `space` is
    "cluster" (a 32-bit shared address) or "generic" (64 bits).
    """
    if space not in ("cluster", "generic"):
        raise error(f'tcgen05.commit: space is "cluster" or "generic", not {space!r}')
    if multicast and multicast_mask is None:
        raise error("tcgen05.commit: multicast needs the CTAs", "give multicast_mask, a bit for each rank")
    if multicast_mask is not None and not multicast:
        raise error("tcgen05.commit: multicast_mask without multicast has no effect", "write multicast=True, or leave it out")
    operands: list[object] = [address(mbar)]
    words = f"{group_word(cta_group)}.mbarrier::arrive::one"
    words += ".shared::cluster" if space == "cluster" else ""
    if multicast_mask is not None:
        words += ".multicast::cluster"
        operands.append(mask_operand(multicast_mask))
    current().emit(f"tcgen05.commit.{words}.b64", operands, pred)


def fence_before_thread_sync(*, pred: Pred = None) -> None:
    """Order this thread's earlier tcgen05 operations before the arrive, barrier or store that tells others of them."""
    current().emit("tcgen05.fence::before_thread_sync", (), pred)


def fence_after_thread_sync(*, pred: Pred = None) -> None:
    """Order this thread's later tcgen05 operations after the wait that others' operations were announced by."""
    current().emit("tcgen05.fence::after_thread_sync", (), pred)
