"""Flash attention forward for sm_90a with Q, K and V in e4m3; the output is bf16 or f16.

The kernel is that of `hopper`, with products of bytes (wgmma .e4m3, twice the rate of 16 bits). What differs:

* each head of keys has three factors, of Q, K and V: what the bytes stand for is the factor times their value. Those of Q and K
  go into the exponents' scale, that of V into the normalisation of the output.
* wgmma reads bytes only with neighbouring keys side by side (PTX ISA 9.7.15.5.1), so V is transposed: by three warps beside
  the producer (`hopper_transpose`), or by whoever wrote it (`columns=1`).
* P is rounded to e4m3: 3 bits behind the leading one, so each probability is off by at most 2⁻⁴ of itself (2⁻¹⁰ where it is
  below 2⁻⁶, of 2⁸ that stands for 1). Row sums are taken in f32 before the rounding, as in FlashAttention-3.
* the tensor cores keep 13 bits behind the leading one when they add products of bytes, so a long sum O loses up to 2⁻¹³ of its
  largest part every 32 keys, always towards zero.

`error_bound` adds that up. An output is off by no more, and by much less on average: roundings of P are independent.
"""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from warpsmith import Tile, kernel, ptx
from warpsmith.base.errors import InputError
from warpsmith.kernels.attention.hopper import check, roles
from warpsmith.kernels.attention.hopper_choice import choose
from warpsmith.kernels.attention.hopper_config import ROWS, STRIPE, Config, SharedMap
from warpsmith.kernels.attention.hopper_fp8_consumer import Fp8Consumer
from warpsmith.kernels.attention.hopper_item import Item, declare_table
from warpsmith.kernels.attention.hopper_transpose import transposer
from warpsmith.specs import Layout
from warpsmith.types import e4m3, f32, from_name

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Config", "build", "choose", "error_bound"]

_LAYOUTS = {128: Layout.TMA_128B, 64: Layout.TMA_64B}


def _check(c: Config) -> None:
    if not c.eight:
        raise InputError(f"attention: hopper_fp8 takes e4m3, not {c.dtype!r}; hopper.build takes 'f16' and 'bf16'")
    if c.output not in ("", "bf16", "f16"):
        raise InputError(f"attention: output {c.output!r} is not supported; use 'bf16' or 'f16'")
    if c.packed:
        raise InputError("attention: packed sequences in e4m3 are not supported; use 'f16' or 'bf16'")
    if not 0 <= c.threshold <= 8:
        raise InputError(f"attention: threshold {c.threshold} is not supported with e4m3; use 0 to 8")
    if c.keys % 32:
        raise InputError(f"attention: {c.keys} keys a tile; wgmma of bytes takes multiples of 32")
    if c.columns and c.key_count % 16:
        raise InputError(
            f"attention: V by columns has rows of {c.key_count} bytes, and TMA wants multiples of 16; use columns=0"
        )
    check(c)


def _tiles(c: Config) -> tuple[Tile, Tile, Tile, Tile]:
    """Return the tiles of q, k, v and o."""
    rows, three = _LAYOUTS[c.span], partial(Tile, tma_rank=3)
    q = three(c.heads, c.sequence, c.dim, e4m3, rows, tma_box=(1, ROWS, c.span))
    if c.columns:
        k = Tile(c.key_heads, c.key_count // 4, 4, c.dim, e4m3, rows, tma_box=(1, c.keys // 4, 2, c.span))
        v = three(c.key_heads, c.width, c.key_count, e4m3, _LAYOUTS[c.value_span], tma_box=(1, c.width, c.value_span))
    else:
        k = three(c.key_heads, c.key_count, c.dim, e4m3, rows, tma_box=(1, c.keys, c.span))
        v = three(c.key_heads, c.key_count, c.width, e4m3, _LAYOUTS[c.value_span], tma_box=(1, c.keys, c.value_span))
    o = three(c.heads, c.sequence, c.width, from_name(c.output_dtype), Layout.TMA_128B, tma_box=(1, ROWS, STRIPE))
    return q, k, v, o


@cache
def build(config: Config) -> Any:
    """Return the kernel for `config`: (q, k, v, q_descale, k_descale, v_descale) → (o, lse).

    q is `[heads, sequence, dim]` of e4m3, k `[key_heads, key_count, dim]`, v `[key_heads, key_count, width]`, each descale
    `[key_heads]` f32, positive: what a byte's value is multiplied by. o is `[heads, sequence, width]` of bf16 (or `output`),
    lse `[heads, sequence]` f32 (natural logarithm). A query that sees no key has output 0 and log-sum-exp -inf.

    With `columns=1` v is `[key_heads, width, key_count]`, and k is given in fours of keys, `[key_heads, key_count / 4, 4,
    dim]`: the same bytes.
    """
    c = config
    _check(c)
    at = SharedMap(c)
    q_tile, k_tile, v_tile, o_tile = _tiles(c)
    factors = Tile(c.key_heads, f32)

    @kernel(
        arch="sm_90a",
        in_specs=(q_tile, k_tile, v_tile, factors, factors, factors),
        out_specs=(o_tile, Tile(c.heads, c.sequence, f32, Layout.ROW)),
        grid=(min(c.items, c.multiprocessors), 1, 1),
        block=(c.threads, 1, 1),
        smem=at.size,
        extern_smem=True,
        raw_directives=[("reqntid", (c.threads, 1, 1)), ("minnctapersm", (1,))],
    )
    def fp8_attention_forward(q: Any, k: Any, v: Any, q_descale: Any, k_descale: Any, v_descale: Any, o: Any, lse: Any) -> None:
        declare_table(c)

        def consumer(*places: Any) -> Fp8Consumer:
            q_factors, k_factors, v_factors = ptx.global_ptrs(q_descale, k_descale, v_descale)
            return Fp8Consumer(c, at, places, (q_factors, k_factors, v_factors))

        helper = transposer if c.transposes else None
        roles(c, at, lambda: Item(c), (q, k, v), (o, lse), new_consumer=consumer, helper=helper)

    return fp8_attention_forward


def error_bound(weights: NDArray[Any], values: NDArray[Any], *, threshold: float = 0.0) -> NDArray[np.float64]:
    """Return by how much each output may differ from exact attention on the same bytes.

    `weights` are the exact probabilities `[…, queries, keys]`, `values` V times its factor `[…, keys, width]`; the result is
    `[…, queries, width]`. In units of the row's sum: rounding of P (2⁻⁴ of each, or 2⁻¹⁰ of 2^(8 - threshold) times the
    row's largest); of the sums in the tensor cores, 2⁻¹³ of the largest part for each step of 32 keys; of exponents, scores
    and the output, 2⁻⁷ in all.
    """
    size = np.abs(values)
    largest = weights.max(axis=-1, keepdims=True)
    mean = weights @ size
    steps = weights.shape[-1] // 32 + 1
    small = 2.0 ** (threshold - 18) * largest * size.sum(axis=-2, keepdims=True)
    return (2.0**-4 + 2.0**-7 + steps * 2.0**-13) * mean + small
