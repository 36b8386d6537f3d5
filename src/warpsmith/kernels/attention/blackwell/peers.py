"""What changes when two CTAs share a work item: which rows a CTA has, and barriers in the CTA whose thread issues the products.

That CTA, the lead, is rank 0 of the cluster. Its products read and write tensor memory of both, so the threads of both report
to its barriers. A remote arrival has the default scope, the CTA: it publishes tensor memory only, which the
`tcgen05.fence`s on both sides order whatever the scope (PTX ISA 9.7.18.6.4.3), and `.release.cluster` costs every
thread a `MEMBAR.ALL.GPU`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from warpsmith import ptx, reg
from warpsmith.kernels.attention.blackwell.config import TILE
from warpsmith.types import pred, u32

if TYPE_CHECKING:
    from collections.abc import Callable

    from warpsmith.kernels.attention.blackwell.config import Config

__all__ = ["LEAD", "arrival", "is_lead", "lead", "rank", "row_of_stage"]

LEAD = 0
"""Rank of the lead."""


def rank() -> Any:
    """Return the CTA's rank in its cluster, in a register."""
    own = reg.scalar(u32)
    ptx.inst.mov.u32(own, ptx.sreg("%cluster_ctarank"))
    return own


def is_lead() -> Any:
    """Return the predicate: this CTA issues the products."""
    own = reg.scalar(pred)
    ptx.inst.setp.eq.u32(own, rank(), LEAD)
    return own


def lead(c: Config, base: Any) -> Any:
    """Return the address, for `arrival` and copies, of what lies at `base` in the CTA that issues the products."""
    return base if c.peers == 1 else ptx.cluster.map_shared_u32(base, LEAD)


def arrival(c: Config) -> Callable[..., Any]:
    """Return what arrives, once a thread, at a barrier behind an address that `lead` has given: `(address, pred=None)`.

    A partial function, so that the instruction stands at its caller's line.
    """
    return ptx.mbarrier.arrive if c.peers == 1 else partial(ptx.inst.mbarrier.arrive.shared__cluster.b64, "_")


def row_of_stage(c: Config, lane: Any) -> Any:
    """Return which row of a stage's block a lane of tensor memory holds: rank r has rows 128·r to 128·r + 127."""
    if c.peers == 1:
        return lane
    row = reg.scalar(u32)
    ptx.inst.mad.lo.u32(row, rank(), TILE, lane)
    return row
