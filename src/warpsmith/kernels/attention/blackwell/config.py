"""What the Blackwell kernel is asked for, and where things lie in its memories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from warpsmith.base.errors import InputError
from warpsmith.kernels.attention.problem import Problem

__all__ = ["STRIPE", "TILE", "Config", "SharedMap"]

TILE = 128
"""Keys of a tile, and query rows of a stage."""
STRIPE = 64
"""Elements of a 128-byte row of shared memory."""


@dataclass(frozen=True, slots=True)
class Config(Problem):
    """A problem, and how the persistent kernel of one CTA solves it."""

    arch: str = "sm_100a"
    rescale_threshold: float = 8.0
    """Powers of two by which probabilities may exceed 1 before the basis of a row moves."""
    multiprocessors: int = 148
    """CTAs are not more than this."""
    emulated_pairs: tuple[int, ...] = (1, 3, 5, 7)
    """Of the 16 pairs of values in 32 columns, those whose 2^x is a polynomial on the FMA pipes."""
    fresh_maximum: bool | None = None
    """Find the maximum of a tile before its exponentials, not behind them. None: for f16, whose probabilities end at 65504."""
    lockstep: bool = False
    """Debugging: all roles meet at the end of each work item."""
    epilogue_gate: str = "softmax"
    """Who waits, at the start of an item, until the output of the one before has been read: "softmax" or "mma"."""

    @property
    def stages(self) -> int:
        """Blocks of 128 query rows of a work item, each with softmax threads of its own."""
        return 2

    @property
    def peers(self) -> int:
        """CTAs that share a work item: its rows, its products, and each tile of keys and values."""
        return 1

    @property
    def depth(self) -> int:
        """Tiles of keys, and of values, in flight."""
        return 2

    @property
    def piece(self) -> int:
        """Columns of tensor memory that a thread has in registers at a time."""
        return 32

    @property
    def part(self) -> int:
        """Columns of P that are reported together."""
        return 32

    @property
    def registers(self) -> int | None:
        """Registers of every thread; None: the roles share them out with setmaxnreg."""
        return None

    @property
    def shares(self) -> tuple[int, int, int]:
        """Registers of softmax, correction and other threads behind setmaxnreg; 256, 128 and 128 of them share 65536."""
        return 136, 96, 144

    @property
    def workers(self) -> int:
        """Softmax and correction threads; the thread behind them issues products, two warps further on is that of loads."""
        return TILE * (self.stages + 1)

    @property
    def rows(self) -> int:
        """Query rows of a work item."""
        return TILE * self.stages * self.peers

    @property
    def output(self) -> int:
        """First column of the output; S of stage s begins at column 128·s, P lies over its first half."""
        return TILE * self.stages

    @property
    def ctas(self) -> int:
        """CTAs of the launch."""
        return min(self.items, self.multiprocessors)

    @property
    def stripes(self) -> int:
        """128-byte stripes of a row."""
        return self.dim // STRIPE

    @property
    def tile_bytes(self) -> int:
        """Bytes of a tile of Q."""
        return TILE * self.dim * 2

    @property
    def slot_bytes(self) -> int:
        """Bytes of a tile of K or V that a CTA holds."""
        return self.tile_bytes // self.peers

    @property
    def value_bytes(self) -> int:
        """Bytes of a row of V in shared memory: 128, or the columns that a CTA holds if these are fewer."""
        return min(128, self.dim // self.peers * 2)

    @property
    def blocks(self) -> int:
        """Work items of one head."""
        return -(-self.sequence // self.rows)

    @property
    def tiles(self) -> int:
        """Key tiles of the whole sequence."""
        return -(-self.sequence // TILE)

    @property
    def items(self) -> int:
        """Work items of the launch."""
        return self.blocks * self.heads

    @property
    def fresh(self) -> bool:
        """Whether every tile's maximum comes before its exponentials."""
        return self.dtype == "f16" if self.fresh_maximum is None else self.fresh_maximum

    @property
    def masked_tiles(self) -> int:
        """How many of an item's last key tiles hold keys that some row may not see."""
        return self.rows // TILE if self.causal else int(self.sequence % TILE != 0)

    def check(self, dims: tuple[int, ...] = (64, 128)) -> None:
        """Raise `InputError` for what the kernel does not compute."""
        Problem.check(self, dims)
        if any(not isinstance(p, int) or not 0 <= p < 16 for p in self.emulated_pairs):
            raise InputError(f"attention: emulated_pairs are numbers from 0 to 15, not {self.emulated_pairs!r}")
        if self.epilogue_gate not in ("softmax", "mma"):
            raise InputError(
                f"attention: epilogue_gate is 'softmax' or 'mma', not {self.epilogue_gate!r}; without a gate the softmax of an "
                "item disturbs the epilogue of the one before"
            )
        if not 0 <= self.rescale_threshold <= (8 if self.dtype == "f16" else 64):
            most = 8 if self.dtype == "f16" else 64
            raise InputError(f"attention: rescale_threshold is 0 to {most} with {self.dtype}, not {self.rescale_threshold}")
        if self.dtype == "f16" and not self.fresh:
            raise InputError("attention: f16 needs fresh_maximum: probabilities behind a stale basis exceed 65504")
        if not self.scale_log2 > 0:
            raise InputError(f"attention: scale is greater than 0, not {self.scale}")
        if self.multiprocessors < 1:
            raise InputError(f"attention: multiprocessors is at least 1, not {self.multiprocessors}")


@final
class SharedMap:
    """Byte offsets in dynamic shared memory. Barriers of 8 bytes: see `one_cta` for who arrives and who waits."""

    def __init__(self, c: Config) -> None:
        self.q = 0
        self.stages, self.depth, self.peers, self.parts = c.stages, c.depth, c.peers, TILE // c.part
        self.gated_products = c.epilogue_gate == "mma"
        self.ring = c.stages * c.tile_bytes
        self.statistics = self.ring + 2 * c.depth * c.slot_bytes
        at = self.statistics + c.stages * TILE * 4
        self.q_full = at
        self.kv_full = self.q_full + 8 * c.stages
        self.kv_free = self.kv_full + 16 * c.depth
        self.s_full = self.kv_free + 16 * c.depth
        self.p_full = self.s_full + 8 * c.stages
        self.rescaled = self.p_full + 8 * self.parts * c.stages
        self.o_done = self.rescaled + 8 * c.stages
        self.statistics_full = self.o_done + 8 * c.stages
        self.statistics_free = self.statistics_full + 8 * 4 * c.stages
        self.q_free = self.statistics_free + 8 * 4 * c.stages
        self.output_read = self.q_free + 8
        self.lockstep = self.output_read + 8
        self.tensor_memory = self.lockstep + 8
        self.size = self.tensor_memory + 16

    def counts(self) -> dict[int, int]:
        """Return offset of every barrier -> arrivals of a phase."""
        ones = [
            (self.q_full, self.stages),
            (self.kv_full, 2 * self.depth),
            (self.kv_free, 2 * self.depth),
            (self.s_full, self.stages),
            (self.o_done, self.stages),
        ]
        out = {at + 8 * i: 1 for at, n in ones for i in range(n)}
        out |= {self.p_full + 8 * i: TILE * self.peers for i in range(self.parts * self.stages)}
        out |= {self.rescaled + 8 * i: TILE * self.peers for i in range(self.stages)}
        out |= {at + 8 * i: 32 for at in (self.statistics_full, self.statistics_free) for i in range(4 * self.stages)}
        gate = TILE * self.peers if self.gated_products else TILE
        return out | {self.q_free: 1, self.output_read: gate, self.lockstep: (self.stages + 1) * TILE + 2}
