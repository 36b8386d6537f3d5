"""Which CTA computes which causal item: decided when the kernel is built, kept in a table in global memory.

Causal items differ in length. Longest first to the CTA that is free first keeps all multiprocessors busy to the end (Graham
1969); heads go in groups whose keys and values fit in the level-2 cache together, or every item of a long launch would read
them from memory again.
"""

from __future__ import annotations

import heapq
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from warpsmith.kernels.attention.hopper_config import Config

__all__ = ["CACHE", "END", "LARGEST", "plan", "table"]

END = 0xFFFFFFFF
"""What follows the last item of a CTA."""
LARGEST = 1 << 15
"""Most items a table is made for; larger launches go to and fro by formula."""
CACHE = 24 << 20
"""Bytes of keys and values that a group of heads may have: half of the level-2 cache of an H100 or H200."""
_OVERHEAD = 1.0
"""What an item costs besides its tiles, in tiles."""


def plan(c: Config) -> list[list[tuple[int, int]]]:
    """Return the (head, block of rows) of each CTA, in order.

    Heads come in groups, but the shortest third of the blocks of all heads comes last: small items even out what the last
    group leaves uneven, and they read few keys.
    """
    queries = c.heads // c.key_heads
    group = c.group or queries * max(1, CACHE // (c.element * c.key_count * (c.dim + c.width)))
    short = c.blocks // 3
    order = [
        (head, block)
        for first in range(0, c.heads, group)
        for block in reversed(range(short, c.blocks))
        for head in range(first, min(first + group, c.heads))
    ]
    order += [(head, block) for block in reversed(range(short)) for head in range(c.heads)]
    free = [(0.0, cta) for cta in range(min(c.items, c.multiprocessors))]
    out: list[list[tuple[int, int]]] = [[] for _ in free]
    for head, block in order:
        busy, cta = free[0]
        out[cta].append((head, block))
        heapq.heapreplace(free, (busy + c.tiles_of(block) + _OVERHEAD, cta))
    return out


@cache
def table(c: Config) -> tuple[int, list[int]]:
    """Return (words of a row, words): a row a CTA, `head << 16 | block` of each item, then at least two of `END`."""
    rows = [[head << 16 | block for head, block in items] for items in plan(c)]
    width = max(map(len, rows)) + 2
    return width, [word for row in rows for word in row + [END] * (width - len(row))]
