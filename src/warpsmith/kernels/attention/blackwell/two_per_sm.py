"""Flash attention forward for sm_100a and later: two CTAs an SM, 128 query rows and 384 threads each, a work item a CTA.

    warps 0-3   softmax              warp 8   products; allocates
    warps 4-7   correction           warp 10  loads

While one CTA's softmax runs, the other's products do: each keeps to half of tensor memory (S and P in columns 0-127, O in
128-255), less than half of shared memory, and 80 registers a thread. One tile of keys and one of values are in flight.
Roles and barriers are those of `one_cta`, with one stage.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from warpsmith.kernels.attention.blackwell import config as shared
from warpsmith.kernels.attention.blackwell.program import make

__all__ = ["Config", "build"]


@dataclass(frozen=True, slots=True)
class Config(shared.Config):
    """A problem for two CTAs a multiprocessor."""

    @property
    def stages(self) -> int:
        """One block of 128 query rows."""
        return 1

    @property
    def depth(self) -> int:
        """One tile of keys and one of values in flight."""
        return 1

    @property
    def piece(self) -> int:
        """Columns in registers at a time."""
        return 16

    @property
    def rolled(self) -> bool:
        """The softmax goes through a tile in a loop over its parts."""
        return True

    @property
    def registers(self) -> int | None:
        """Registers of every thread."""
        return 80

    @property
    def ctas(self) -> int:
        """A CTA for each work item."""
        return self.items


@cache
def build(config: Config) -> Any:
    """Return the kernel for `config`: (q, k, v) → (o, log-sum-exp).

    The four are `[heads, sequence, dim]` of the config's dtype, the log-sum-exp (natural) f32 `[heads, sequence]`.
    Without `lse` o comes alone; a wait map's record comes last. `.roles` of the kernel names its threads.
    Raise `InputError` for what it does not compute.
    """
    return make(config)
