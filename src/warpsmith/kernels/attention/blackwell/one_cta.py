"""Flash attention forward for sm_100a and later: one CTA of 512 threads an SM, persistent, two stages of 128 query rows.

    warps 0-3, 4-7   softmax of stage 0 and 1: a thread owns a row (softmax.py)        136 registers
    warps 8-11       correction: rescale O, divide, store (correction.py)               96
    warp 12          one thread issues every product (products.py); allocates            144
    warp 14          one thread loads by TMA (loader.py)                                 144

Tensor memory: S of stage s in columns 128·s, P (two to a column) over its first half, O in columns 256 + 128·s.

Every role counts work items and key tiles for itself; the phase of each barrier follows from the counts, and waits for what
is free at the start pass by parity: no barrier needs a first arrival.

    barrier               arrivals                             waits            completions
    q_full[s]             TMA, bytes                           products         an item
    kv_full[slot]         TMA, bytes                           products         2 tiles
    kv_free[slot]         commit                               TMA              2 tiles
    s_full[s]             commit behind S(k), so O(k-1) too    softmax          a tile
    p_full[s][quarter]    128 softmax threads                  products         a tile
    rescaled[s]           32 a warp: softmax where no row of   products,        a tile; that of an item's first tile comes
                          the warp moved, else correction      before O += P V  from correction, when O has been read
    statistics_full[warp] 32 softmax threads: alpha, last l    correction       a tile
    statistics_free[warp] 32 correction threads                softmax          a tile
    o_done[s]             commit behind the last product       correction       an item
    q_free                commit behind the last S             TMA              an item
    output_read           128 correction threads               softmax          an item
"""

from __future__ import annotations

from functools import cache
from typing import Any

from warpsmith.kernels.attention.blackwell.config import Config
from warpsmith.kernels.attention.blackwell.program import make

__all__ = ["Config", "build"]


@cache
def build(config: Config) -> Any:
    """Return the kernel for `config`: (q, k, v) → (o, log-sum-exp).

    The four are `[heads, sequence, dim]` of the config's dtype, the log-sum-exp (natural) f32 `[heads, sequence]`.
    Without `lse` o comes alone; a wait map's record comes last. `.roles` of the kernel names its threads.
    Raise `InputError` for what it does not compute.
    """
    return make(config)
