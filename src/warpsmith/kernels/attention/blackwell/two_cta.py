"""Flash attention forward for sm_100a and later: clusters of two CTAs that multiply together, persistent by cluster.

A work item is 512 query rows: stage s of it rows 256·s to 256·s + 255, of which CTA r has 128 from 256·s + 128·r on, in its own
shared and tensor memory. Each CTA loads half of every tile of keys (64 of its rows) and of values (half of the columns); the
products of the lead, rank 0, read both halves (`.cta_group::2`, M 256), so that a byte of K and V is loaded and kept once for
512 rows. Roles are those of `one_cta`, in each CTA, except that one thread of the lead issues all products:

    warps 0-3, 4-7   softmax of stage 0 and 1     176 registers
    warps 8-11       correction                    80
    warp 12          products (of the lead); allocates, with its peer
    warp 14          loads of the own CTA          80

    barrier               where   arrivals                                waits
    q_full[s]             lead    lead's TMA thread, bytes of both        products
    kv_full[slot]         lead    lead's TMA thread, bytes of both        products
    kv_free[slot]         both    commit, multicast                       own TMA thread
    s_full[s]             both    commit behind S(k), multicast           own softmax
    p_full[s][half]       lead    128 softmax threads of each CTA         products
    rescaled[s]           lead    32 a warp of either CTA, as in `one_cta`products, before O += P V
    statistics_*[warp]    both    as in `one_cta`
    o_done[s]             both    commit, multicast                       own correction
    q_free                both    commit, multicast                       own TMA thread
    output_read           both    128 correction threads                  own softmax (gate "mma": lead, both's, products)

A tile of P is reported in halves: every report crosses the cluster. Before its end each TMA thread waits for the last commits
that free its slots: they are the last thing that the lead sends, and would else reach a CTA that has gone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from warpsmith.base.errors import InputError
from warpsmith.kernels.attention.blackwell import config as shared
from warpsmith.kernels.attention.blackwell.config import TILE
from warpsmith.kernels.attention.blackwell.program import make

__all__ = ["Config", "build"]


@dataclass(frozen=True, slots=True)
class Config(shared.Config):
    """A problem for pairs of CTAs."""

    value_stride: int | None = None
    """Probing hardware: the stride of V's descriptor, in bytes. None: 8 keys."""
    value_leading: int | None = None
    """Probing hardware: its leading dimension offset, which V's 64 columns (or 32) of a CTA should not need."""

    @property
    def peers(self) -> int:
        """Two CTAs share an item."""
        return 2

    @property
    def part(self) -> int:
        """Half of P is reported at a time."""
        return 64

    @property
    def value_offsets(self) -> tuple[int, int]:
        """Stride and leading dimension offset of V's descriptor."""
        stride, leading = 8 * self.value_bytes, TILE * self.value_bytes
        return (
            stride if self.value_stride is None else self.value_stride,
            leading if self.value_leading is None else self.value_leading,
        )

    @property
    def shares(self) -> tuple[int, int, int]:
        """Registers of softmax, correction and other threads."""
        return 176, 80, 80

    @property
    def ctas(self) -> int:
        """CTAs of the launch, two for each cluster."""
        return 2 * min(self.items, self.multiprocessors // 2)

    def check(self, dims: tuple[int, ...] = (64, 128)) -> None:
        """Raise `InputError` for what the kernel does not compute."""
        shared.Config.check(self, dims)
        if self.multiprocessors < 2:
            raise InputError("attention: a cluster of two CTAs needs 2 multiprocessors, not 1")
        if any(n % 16 or not 0 <= n < 1 << 18 for n in self.value_offsets):
            raise InputError(f"attention: offsets in a descriptor are multiples of 16 below 2^18, not {self.value_offsets}")


@cache
def build(config: Config) -> Any:
    """Return the kernel for `config`: (q, k, v) → (o, log-sum-exp), as `one_cta.build` does.

    Raise `InputError` for what it does not compute.
    """
    return make(config)
