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
    lse: bool = True
    """Give the log-sum-exp of each row as the second output."""
    flat: bool = False
    """Tensors are `[heads * sequence, dim]` in place of `[heads, sequence, dim]`; the sequence is a multiple of 128 then."""
    half_scores: bool = False
    """f16 only: scores are accumulated in f16, and the softmax works on pairs of them."""
    no_exponentials: bool = False
    """Debugging, with half_scores: P is the scaled score itself, O is stored as accumulated."""
    scoreboard_loads: bool = False
    """Debugging: the softmax uses what it loads from tensor memory without `wait::ld`, one of which ends a tile."""
    lockstep: bool | str = False
    """Debugging: all roles meet at the end of each work item; "no_softmax", "no_corr", "no_mma", "no_load": all but one."""
    epilogue_gate: str = "softmax"
    """Who waits, at the start of an item, until the output of the one before has been read: "softmax" or "mma"."""
    order_probe: bool = False
    """Debugging, for the checker: the epilogue writes a word of shared memory for each row, which the next item's softmax
    reads. Nothing in tensor memory conflicts without the epilogue gate; here it does, as a race of the two."""
    waitmap: bool = False
    """Give the record of a `debugkit.WaitMap` as the last output."""

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
    def rolled(self) -> bool:
        """Whether the softmax loops over the parts of a tile: unrolled, ptxas loads so far ahead that it spills.

        With 4 to 8 of 16 pairs emulated it does not.
        """
        return not 4 <= len(self.emulated_pairs) <= 8

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
    def threads(self) -> int:
        """Threads of a CTA."""
        return self.workers + 128

    @property
    def roles(self) -> dict[str, tuple[int, int]]:
        """Name of each role -> its first thread and the one behind its last, whole warps."""
        return {
            "softmax": (0, TILE * self.stages),
            "correction": (TILE * self.stages, self.workers),
            "products": (self.workers, self.workers + 32),
            "loads": (self.workers + 64, self.workers + 96),
        }

    @property
    def persistent(self) -> bool:
        """Whether a CTA, or a cluster that shares items, has more than one."""
        return self.ctas // self.peers < self.items

    @property
    def hands_over(self) -> bool:
        """Whether an item reports to the next one of its CTA what it no longer needs."""
        return self.persistent or self.peers > 1

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
    def value_offsets(self) -> tuple[int, int]:
        """Stride and leading dimension offset of V's descriptor: bytes of 8 keys, and from 64 columns to the next."""
        return 8 * self.value_bytes, TILE * self.value_bytes

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

    def meets(self, role: str) -> bool:
        """Return whether a role ("softmax", "corr", "mma", "load") takes part in the meeting that ends an item."""
        return bool(self.lockstep) and self.lockstep != f"no_{role}"

    def check(self, dims: tuple[int, ...] = (64, 128)) -> None:
        """Raise `InputError` for what the kernel does not compute."""
        Problem.check(self, dims)
        self._check_debugging()
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
        if self.flat and self.sequence % TILE:
            raise InputError(
                f"attention: tensors of two dimensions need a sequence that is a multiple of {TILE}, not {self.sequence}: "
                "the last tile of a head would hold rows of the next; give [heads, sequence, dim]"
            )

    def _check_debugging(self) -> None:
        modes = (False, True, "no_softmax", "no_corr", "no_mma", "no_load")
        if self.lockstep not in modes:
            raise InputError(
                f"attention: lockstep is False, True, 'no_softmax', 'no_corr', 'no_mma' or 'no_load', not {self.lockstep!r}"
            )
        if self.half_scores and self.dtype != "f16":
            raise InputError(f"attention: half_scores needs f16 tensors, not {self.dtype}: products of bf16 accumulate in f32")
        if self.half_scores and self.scale_log2 > 1:
            raise InputError(
                f"attention: half_scores needs a scale of at most ln 2, not {self.scale}: scaled scores exceed 65504"
            )
        if self.no_exponentials and (not self.half_scores or self.lse):
            raise InputError("attention: no_exponentials goes with half_scores=True and lse=False: there are no sums")


@final
class SharedMap:
    """Byte offsets in dynamic shared memory. Barriers of 8 bytes: see `one_cta` for who arrives and who waits."""

    def __init__(self, c: Config) -> None:
        self.q = 0
        self.stages, self.depth, self.peers, self.parts = c.stages, c.depth, c.peers, TILE // c.part
        self.gated_products = c.epilogue_gate == "mma"
        crowd = {"softmax": TILE * c.stages, "corr": TILE, "mma": 1, "load": 1}
        self.meeting = sum(n for role, n in crowd.items() if c.meets(role))
        """Threads that meet at the end of an item."""
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
        self.probe = self.tensor_memory + 16
        self.size = self.probe + 4 * TILE * c.order_probe

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
        if self.meeting:
            out[self.lockstep] = self.meeting
        return out | {self.q_free: 1, self.output_read: gate}
