"""Shape, tiling and shared memory of the Hopper attention kernel."""

from __future__ import annotations

import math
from dataclasses import dataclass

from warpsmith.kernels.attention.problem import Problem

__all__ = ["OFFSET", "REGISTERS", "ROWS", "SHARED_LIMIT", "STRIPE", "VALUES", "Config", "SharedMap"]

ROWS = 64
"""Query rows of one consumer warpgroup: the M of wgmma."""
STRIPE = 64
"""16-bit elements in one 128-byte swizzled row: a D=128 tile is two stripes, and so is a D=96 tile, its last half zeros."""
OFFSET = 8.0
"""Probabilities in e4m3 are kept times 2 to this (less the threshold): the largest is 256 of 448, and the smallest that keeps
all its bits 2⁻¹⁴."""
SHARED_LIMIT = 227 * 1024
"""Bytes of shared memory that a CTA can have."""
REGISTERS = {2: (24, 240), 3: (32, 160), 4: (24, 112)}
"""consumers → registers a thread of the (producer, consumers); the sum fits the 64 K of a multiprocessor."""
TRANSPOSING = {2: (40, 232), 3: (32, 160), 4: (32, 112)}
"""The same where warps of the producer's warpgroup transpose V."""

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
    output: str = ""
    """Type of the output where inputs are e4m3: bf16, which is also meant by nothing, or f16."""
    columns: int = 0
    """1: V is given as `[key_heads, width, keys]`, where inputs are e4m3; 0: row by row as K, and the kernel transposes it."""

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
    def eight(self) -> bool:
        """Whether inputs have 8 bits."""
        return self.dtype == "e4m3"

    @property
    def element(self) -> int:
        """Bytes of an element of Q, K and V."""
        return 1 if self.eight else 2

    @property
    def step(self) -> int:
        """Depth of one wgmma: 32 bytes."""
        return 32 // self.element

    @property
    def output_dtype(self) -> str:
        """Type of the output."""
        return (self.output or "bf16") if self.eight else self.dtype

    @property
    def registers(self) -> tuple[int, int]:
        """Registers a thread of the (producer, consumers)."""
        return (TRANSPOSING if self.transposes else REGISTERS)[self.consumers]

    @property
    def room(self) -> int:
        """Most registers that output, scores and probabilities may have; with 232 for two consumers there is less."""
        return VALUES[self.consumers] - (4 if self.transposes and self.consumers == 2 else 0)

    @property
    def offset(self) -> float:
        """Power of two that is added to the exponents of the probabilities."""
        return OFFSET - self.threshold if self.eight else 0.0

    @property
    def transposes(self) -> bool:
        """Whether warps beside the producer's transpose V: wgmma reads bytes with neighbouring keys side by side only."""
        return self.eight and not self.columns

    @property
    def rows(self) -> int:
        """Query rows of a work item."""
        return ROWS * self.consumers

    @property
    def values(self) -> int:
        """Registers of a thread that hold output, scores and probabilities."""
        return self.width // 2 + self.keys // 2 + self.keys * self.element // 8

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
    def span(self) -> int:
        """Bytes of a swizzled row of Q and K: 128, or 64 where all of it fits."""
        return swizzle_span(self.dim * self.element) if self.eight else 128

    @property
    def stripes(self) -> int:
        """Swizzled rows side by side that hold a row of Q or K."""
        return -(-self.dim * self.element // self.span)

    @property
    def value_span(self) -> int:
        """Bytes of a swizzled row of V, as it is loaded."""
        return swizzle_span(self.keys if self.columns else self.width) if self.eight else 128

    @property
    def value_stripes(self) -> int:
        """Swizzled rows side by side that hold a row of V, as it is loaded."""
        return -(-(self.keys if self.columns else self.width) * self.element // self.value_span)

    @property
    def output_stripes(self) -> int:
        """128-byte stripes of a row of the output."""
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


def swizzle_span(size: int) -> int:
    """Return the bytes of the swizzled rows for rows of `size` bytes."""
    return 64 if size <= 64 else 128


class SharedMap:
    """Byte offsets in dynamic shared memory; tiles start on 1024 bytes, as the 128-byte swizzle wants."""

    def __init__(self, c: Config) -> None:
        self.q_bytes = ROWS * c.stripes * c.span
        self.k_bytes = c.keys * c.stripes * c.span
        self.loaded_bytes = (c.width if c.columns else c.keys) * c.value_stripes * c.value_span
        """Of a tile of V as it is loaded; `v_bytes` of one as the consumers read it."""
        self.key_span = swizzle_span(c.keys)
        """Bytes of a swizzled row of a tile of V whose keys are side by side."""
        self.v_bytes = c.width * -(-c.keys // self.key_span) * self.key_span if c.transposes else self.loaded_bytes
        self.q = 0
        self.k = self.q + c.consumers * self.q_bytes
        self.v = self.k + c.k_stages * self.k_bytes
        at = self.v + c.v_stages * self.v_bytes
        self.loaded, at = (at, at + c.v_stages * self.loaded_bytes) if c.transposes else (self.v, at)
        self.o, self.o_bytes = self.q, self.q_bytes
        """Where outputs are staged, and how far those of two consumers are apart."""
        if c.staged:
            self.o_bytes = ROWS * c.output_stripes * 128
            self.o, at = at, at + c.consumers * self.o_bytes
        self.q_full = at
        self.q_free = self.q_full + 8 * c.consumers
        self.k_full = self.q_free + 8 * c.consumers
        self.k_free = self.k_full + 8 * c.k_stages
        self.v_full = self.k_free + 8 * c.k_stages
        self.v_free = self.v_full + 8 * c.v_stages
        self.size = self.v_free + 8 * c.v_stages
        self.loaded_full, self.loaded_free = self.v_full, self.v_free
        if c.transposes:
            self.loaded_full, self.loaded_free = self.size, self.size + 8 * c.v_stages
            self.size += 16 * c.v_stages
