"""Multicast: the CTAs of a cluster that a copy goes to (PTX ISA 9.7.10.28.4.1), or an operation on a barrier (9.7.15.16)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from warpsmith.simulator.async_access import Lane
    from warpsmith.simulator.lanes import Lanes

    Mask = NDArray[np.bool_]

__all__ = ["destinations", "same_offset"]


def same_offset(x: Lanes, objects: Iterable[tuple[int, Mask]], mask: Any) -> Iterator[tuple[int, Mask]]:
    """Yield (flat index, lanes) for the object at the offset of each of `objects` in every CTA that a lane's mask names.

    Bit r of a mask stands for the CTA of rank r in the cluster. Without a mask (None) the objects stay as they are.
    """
    if mask is None:
        yield from objects
        return
    m, width = x.machine, x.machine.shared.row
    masks = np.broadcast_to(np.asarray(mask).astype(np.int64) & 0xFFFFFFFF, x.shape)
    for index, lanes in objects:
        for bits in np.unique(masks[lanes]).tolist():
            mine = lanes & (masks == bits)
            row = x.c0 + int(np.nonzero(mine.any(axis=1))[0][0])
            first, size = int(m.cluster_first[row]), m.cluster_size
            _check(x, mine, bits, size)
            ranks = [r for r in range(size) if bits >> r & 1]
            if m.peers is not None:
                for r in ranks:
                    m.peers.access(x, np.full((1, 1), first + r), mine)
            for r in ranks:
                yield (first + r) * width + index % width, mine


def _check(x: Lanes, lanes: Mask, bits: int, size: int) -> None:
    if bits >> size or not bits:
        x.finding(
            "out-of-bounds",
            f"multicast mask {bits:#x} names CTAs that the cluster of {size} does not have",
            lanes=lanes,
            repair="Set one bit per destination CTA, by its rank in the cluster.",
        )


def destinations(
    x: Lanes, lane: Lane, mask: Any, target: int, barrier: int, *, paired: bool = False, bits: int = 16
) -> list[tuple[int, int]]:
    """Return (destination, barrier) as flat indices for each CTA: the given ones, or with `mask` those of its bits.

    A multicast writes the same CTA-relative offsets in every destination and signals the barrier at the same offset there.
    When `paired` (`.cta_group::2`), the signal goes to the even or the odd CTA of each destination's pair, whichever
    parity the rank of the given barrier has. The mask has `bits` bits (`.multicast::cluster::16b`, `::32b`).
    """
    if mask is None:
        return [(target, barrier)]
    m = x.machine
    bits, size, width = lane.at(mask) & (1 << bits) - 1, m.cluster_size, m.shared.row
    _check(x, lane.mask, bits, size)
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
