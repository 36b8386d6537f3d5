"""Shape, tiling and shared memory of the Hopper attention kernel."""

from __future__ import annotations

import math
from dataclasses import dataclass

from warpsmith.kernels.attention.problem import Problem

__all__ = ["REGISTERS", "ROWS", "SHARED_LIMIT", "STRIPE", "VALUES", "Config", "SharedMap"]

ROWS = 64
"""Query rows of one consumer warpgroup: the M of wgmma."""
STRIPE = 64
"""16-bit elements in one 128-byte swizzled row: a D=128 tile is two stripes, and so is a D=96 tile, its last half zeros."""
SHARED_LIMIT = 227 * 1024
"""Bytes of shared memory that a CTA can have."""
REGISTERS = {2: (24, 240), 3: (32, 160), 4: (24, 112)}
"""consumers → registers a thread of the (producer, consumers); the sum fits the 64 K of a multiprocessor."""

VALUES = {2: 208, 3: 128, 4: 80}
"""consumers → most of those registers that output, scores and probabilities may have; beyond, ptxas spills."""


@dataclass(frozen=True, slots=True)
class Config(Problem):
    """Problem and tiling of one attention kernel."""

    kv_heads: int = 0
    """Heads of K and V, each for `heads / kv_heads` neighbouring query heads; 0 for as many as query heads."""
    kv_sequence: int = 0
    """Keys; 0 for as many as queries. The last query of a causal problem sees the last key."""
    window: int = 0
    """A causal query sees its own key and this many before it; 0 for all."""
    value_dim: int = 0
    """Numbers of a row of V and of the output; 0 for as many as of Q and K."""
    packed: int = 0
    """1: sequences of any lengths, one behind the other (`hopper_packed`); `sequence` and `kv_sequence` say nothing then."""
    soft_cap: float = 0.0
    """Scores become cap · tanh(score / cap), by `tanh.approx`; 0 for none."""
    consumers: int = 2
    keys: int = 128
    """Key rows of a tile."""
    k_stages: int = 2
    v_stages: int = 2
    multiprocessors: int = 132
    emulated: int = 0
    """Of every 16 exponentials, how many a polynomial computes."""
    group: int = 0
    """Heads whose causal items are planned together; 0 for as many as the level-2 cache holds."""
    ordered: int = 0
    """1: consumer warpgroups issue their products in turn, so that the softmax of one runs beside the products of the next."""
    staged: int = 0
    """1: the output has shared memory of its own, so that the next Q is loaded while this item ends."""
    threshold: float = 0.0
    """Powers of two by which a score may exceed the running maximum before the output is rescaled."""

    @property
    def key_heads(self) -> int:
        """Heads of K and V."""
        return self.kv_heads or self.heads

    @property
    def key_count(self) -> int:
        """Keys of a head."""
        return self.kv_sequence or self.sequence

    @property
    def width(self) -> int:
        """Numbers of a row of V and of the output."""
        return self.value_dim or self.dim

    @property
    def ahead(self) -> int:
        """Keys before the one at the first query's place: query i of a causal problem stands at key i + ahead."""
        return self.key_count - self.sequence

    @property
    def exponent_scale(self) -> float:
        """Factor that turns what the softmax sees into exponents of two: raw scores, or scores in units of the soft cap."""
        return self.soft_cap * math.log2(math.e) if self.soft_cap else self.scale_log2

    @property
    def rows(self) -> int:
        """Query rows of a work item."""
        return ROWS * self.consumers

    @property
    def values(self) -> int:
        """Registers of a thread that hold output, scores and probabilities."""
        return self.width // 2 + self.keys // 2 + self.keys // 4

    @property
    def threads(self) -> int:
        """Threads of a CTA: the consumers, then the producer's warpgroup."""
        return 128 * (self.consumers + 1)

    @property
    def blocks(self) -> int:
        """Work items of one head."""
        return -(-self.sequence // self.rows)

    @property
    def items(self) -> int:
        """Work items of the launch."""
        return self.blocks * self.heads

    @property
    def stripes(self) -> int:
        """128-byte stripes of a row of Q or K."""
        return -(-self.dim // STRIPE)

    @property
    def value_stripes(self) -> int:
        """128-byte stripes of a row of V or of the output."""
        return -(-self.width // STRIPE)

    @property
    def masked_tiles(self) -> int:
        """How many of the first tiles a consumer visits need the mask test."""
        if not self.causal:
            return 1 if self.packed or self.key_count % self.keys else 0
        places = range(self.keys) if self.packed else {(ROWS * m + self.ahead) % self.keys for m in range(self.keys)}
        return max((place + ROWS - 1) // self.keys - (place + 1) // self.keys + 1 for place in places)

    def seen(self, first_row: int, rows: int) -> tuple[int, int]:
        """Return the first key tile that `rows` rows see and the one behind the last; at least one tile."""
        if not self.causal:
            return 0, -(-self.key_count // self.keys)
        end = max(1, min(self.key_count, first_row + rows + self.ahead))
        last = -(-end // self.keys)
        low = max(0, first_row + self.ahead - self.window) // self.keys if self.window else 0
        return min(low, last - 1), last

    def tiles_of(self, block: int) -> float:
        """Key tiles of a work item that a consumer computes, on average."""
        spans = [self.seen(block * self.rows + ROWS * i, ROWS) for i in range(self.consumers)]
        return sum(last - low for low, last in spans) / self.consumers


class SharedMap:
    """Byte offsets in dynamic shared memory; tiles start on 1024 bytes, as the 128-byte swizzle wants."""

    def __init__(self, c: Config) -> None:
        self.q_bytes = ROWS * c.stripes * 128
        self.k_bytes = c.keys * c.stripes * 128
        self.v_bytes = c.keys * c.value_stripes * 128
        self.q = 0
        self.k = self.q + c.consumers * self.q_bytes
        self.v = self.k + c.k_stages * self.k_bytes
        at = self.v + c.v_stages * self.v_bytes
        self.o, self.o_bytes = self.q, self.q_bytes
        """Where outputs are staged, and how far those of two consumers are apart."""
        if c.staged:
            self.o_bytes = ROWS * c.value_stripes * 128
            self.o, at = at, at + c.consumers * self.o_bytes
        self.q_full = at
        self.q_free = self.q_full + 8 * c.consumers
        self.k_full = self.q_free + 8 * c.consumers
        self.k_free = self.k_full + 8 * c.k_stages
        self.v_full = self.k_free + 8 * c.k_stages
        self.v_free = self.v_full + 8 * c.v_stages
        self.size = self.v_free + 8 * c.v_stages
