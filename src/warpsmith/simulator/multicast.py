"""Multicast: the CTAs of a cluster that a copy goes to (PTX ISA 9.7.10.28.4.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warpsmith.simulator.async_access import Lane
    from warpsmith.simulator.lanes import Lanes

__all__ = ["destinations"]


def destinations(x: Lanes, lane: Lane, mask: Any, target: int, barrier: int) -> list[tuple[int, int]]:
    """Return (destination, barrier) as flat indices for each CTA: the given ones, or with `mask` those of its bits.

    A multicast writes the same CTA-relative offsets in every destination and signals the barrier at the same offset there.
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
    return [((first + r) * width + target % width, (first + r) * width + barrier % width) for r in ranks]
