"""Multicast: the CTAs of a cluster that a copy goes to (PTX ISA 9.7.10.28.4.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warpsmith.simulator.async_access import Lane
    from warpsmith.simulator.lanes import Lanes

__all__ = ["destinations"]


def destinations(x: Lanes, lane: Lane, mask: Any, target: int, barrier: int, *, paired: bool = False) -> list[tuple[int, int]]:
    """Return (destination, barrier) as flat indices for each CTA: the given ones, or with `mask` those of its bits.

    A multicast writes the same CTA-relative offsets in every destination and signals the barrier at the same offset there.
    When `paired` (`.cta_group::2`), the signal goes to the even or the odd CTA of each destination's pair, whichever
    parity the rank of the given barrier has.
    """
    if mask is None:
        return [(target, barrier)]
    m = x.machine
    bits, size, width = lane.at(mask) & 0xFFFF, m.cluster_size, m.shared.row
    if bits >> size or not bits:
        x.finding(
            "out-of-bounds",
            f"multicast mask {bits:#x} names CTAs that the cluster of {size} does not have",
            lanes=lane.mask,
            repair="Set one bit per destination CTA, by its rank in the cluster.",
        )
    first = int(m.cluster_first[lane.row])
    ranks = [r for r in range(size) if bits >> r & 1]
    if m.peers is not None:
        for r in ranks:
            m.peers.touch(x, lane.row, first + r, lane.mask)
    odd = (barrier // width - first) & 1
    signalled = {r: r & ~1 | odd if paired else r for r in ranks}
    if any(s >= size for s in signalled.values()):
        x.finding(
            "out-of-bounds",
            f"multicast mask {bits:#x} with .cta_group::2 signals the peer of CTA {size - 1}, which the cluster of {size} "
            "does not have",
            lanes=lane.mask,
            stop=True,
            repair="Use a cluster of an even number of CTAs.",
        )
        return []
    return [((first + r) * width + target % width, (first + s) * width + barrier % width) for r, s in signalled.items()]
