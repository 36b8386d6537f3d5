"""Flash attention forward for sm_90a: one producer warpgroup, two or three consumer warpgroups, persistent tiles.

One thread of the producer loads Q (64 rows for each consumer) and a ring of K and V tiles by TMA. Each consumer keeps
64 query rows:

    S = Q Kᵀ            wgmma, both operands in shared memory
    P = softmax(S)      in registers, online (softmax.py)
    O += P V            wgmma, P from registers

The next tile's Q Kᵀ is issued before this tile's P V, so that the tensor cores work while the softmax runs. Keys go from the
last tile to the first: only the first tiles visited can cross the diagonal or the end of the sequence.

Barriers, all in shared memory; every role keeps its own stage and phase:

    q_full[c]   1 arrival and bytes   producer → consumer c    the Q rows of consumer c are there
    q_free[c]   1                     consumer c → producer    its output, staged in the same bytes, has been read;
                4 where the output is staged elsewhere         every warp is done with Q
    k_full[s]   1 and bytes           producer → consumers     the K tile of stage s is there
    k_free[s]   4 for each consumer   consumers → producer     every warp is done with it; v_full, v_free: the same for V
"""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Any

from warpsmith import Tile, kernel, ptx, reg, smem
from warpsmith.base.errors import InputError
from warpsmith.kernels.attention import hopper_pipeline as pipeline
from warpsmith.kernels.attention.hopper_choice import choose
from warpsmith.kernels.attention.hopper_config import REGISTERS, ROWS, SHARED_LIMIT, STRIPE, Config, SharedMap
from warpsmith.kernels.attention.hopper_consumer import Consumer
from warpsmith.kernels.attention.hopper_item import Item, declare_table
from warpsmith.kernels.attention.hopper_producer import producer
from warpsmith.kernels.attention.hopper_store import finish_stores, store_item
from warpsmith.kernels.attention.hopper_transpose import WARPS
from warpsmith.specs import Layout
from warpsmith.types import f32, from_name, u32

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Config", "build", "check", "choose", "roles"]


def _initialise(c: Config, at: SharedMap, base: Any, thread: Any) -> None:
    """One thread initialises every barrier; the proxy fence and the CTA barrier publish them."""
    with ptx.if_(thread == 0):
        for consumer in range(c.consumers):
            ptx.mbarrier.init(base + (at.q_full + 8 * consumer), 1)
            ptx.mbarrier.init(base + (at.q_free + 8 * consumer), 4 if c.staged else 1)
        fill = WARPS if c.transposes else 1
        rings = [
            (at.k_full, at.k_free, c.k_stages, 1, 4 * c.consumers),
            (at.v_full, at.v_free, c.v_stages, fill, 4 * c.consumers),
        ]
        if c.transposes:
            rings.append((at.loaded_full, at.loaded_free, c.v_stages, 1, WARPS))
        for full, free, stages, filled, read in rings:
            for stage in range(stages):
                ptx.mbarrier.init(base + (full + 8 * stage), filled)
                ptx.mbarrier.init(base + (free + 8 * stage), read)
        ptx.fence.proxy_async_shared_cta()
    ptx.bar.sync(0)


def check(c: Config) -> None:
    """Raise `InputError` for what the kernel does not compute, or not with this tiling."""
    c.check_numbers("e4m3")
    for name, width in (("head dimension", c.dim), ("value_dim", c.width)):
        if width % 16 or not 16 <= width <= 256:
            raise InputError(f"attention: {name} {width} is not supported; use multiples of 16 from 16 to 256")
    if not c.staged and 128 * c.output_stripes > c.span * c.stripes:
        raise InputError(f"attention: outputs of {c.width} numbers do not fit where queries of {c.dim} were; use staged=1")
    if c.heads % c.key_heads:
        raise InputError(f"attention: {c.heads} query heads do not share {c.key_heads} heads of keys evenly")
    if c.window and not c.causal:
        raise InputError("attention: a window goes with causal=True; a query sees its own key and those before it")
    if min(c.kv_heads, c.kv_sequence, c.window, c.soft_cap) < 0:
        raise InputError("attention: kv_heads, kv_sequence, window and soft_cap are not negative")
    if c.keys % 16 or not 16 <= c.keys <= 256:
        raise InputError(f"attention: {c.keys} keys a tile; wgmma takes multiples of 16 from 16 to 256")
    if c.consumers not in REGISTERS:
        raise InputError(f"attention: {c.consumers} consumer warpgroups are not supported; use 2, 3 or 4")
    if c.values > c.room:
        which = f"{c.consumers} consumers, {c.keys} keys a tile and outputs of {c.width} numbers"
        raise InputError(f"attention: {which} need more than {c.registers[1]} registers a thread; use fewer keys")
    if min(c.k_stages, c.v_stages) < 1 or SharedMap(c).size > SHARED_LIMIT:
        size, stages = SharedMap(c).size, f"k_stages={c.k_stages}, v_stages={c.v_stages}"
        raise InputError(f"attention: {size} bytes of shared memory with {stages}; stages from 1, bytes up to {SHARED_LIMIT}")


def _consumer(me: Consumer, item: Item, o: Any, lse_address: Any) -> None:
    """Compute and store the warpgroup's rows of every item of the CTA."""
    me.first_turn()
    with ptx.loop("consumer_items", pred=item.more):
        item.locate()
        pipeline.consume_item(me, item)
        store_item(me, item, o, lse_address)
        item.advance()
    me.last_turn()
    finish_stores(me)


def roles(
    c: Config,
    at: SharedMap,
    new_item: Callable[[], Item],
    inputs: tuple[Any, Any, Any],
    outputs: tuple[Any, Any],
    *,
    new_consumer: Callable[[Any, Any, Any], Consumer] | None = None,
    helper: Callable[[Config, SharedMap, Any, Any, Callable[[], Item]], None] | None = None,
) -> None:
    """The kernel's body: barriers, then producer and consumers, each with the registers of its own items.

    `new_consumer` makes another consumer from (base, index, thread); `helper` is what warps 1 to 3 of the producer's warpgroup
    do.
    """
    base = smem.base()
    thread, group = reg.scalar(u32), reg.scalar(u32)
    ptx.inst.mov.u32(thread, ptx.special.tid.x())
    ptx.inst.shr.u32(group, thread, 7)
    few, many = c.registers
    _initialise(c, at, base, thread)
    with ptx.if_(group == c.consumers):
        ptx.setmaxnreg(few, inc=False)
        with ptx.if_(thread == 128 * c.consumers), ptx.scope():
            producer(c, at, base, new_item, inputs)
        if helper is not None:
            with ptx.if_(thread >= 128 * c.consumers + 32), ptx.scope():
                helper(c, at, base, thread, new_item)
    with ptx.else_():
        ptx.setmaxnreg(many, inc=True)
        o, lse = outputs
        (lse_address,) = ptx.global_ptrs(lse)
        with ptx.scope():
            make = new_consumer or partial(Consumer, c, at)
            _consumer(make(base, group, thread), new_item(), o, lse_address)


@cache
def build(config: Config) -> Any:
    """Return the kernel for `config`: (q, k, v) → (o, lse).

    q is `[heads, sequence, dim]` of the config's dtype, k `[key_heads, key_count, dim]`, v `[key_heads, key_count, width]`,
    o `[heads, sequence, width]`, lse `[heads, sequence]` f32 (natural logarithm). A query that sees no key has output 0 and
    log-sum-exp -inf.
    """
    c = config
    check(c)
    if c.packed:
        raise InputError("attention: packed sequences are for hopper_packed.build")
    if c.eight:
        raise InputError("attention: inputs in e4m3 are for hopper_fp8.build")
    at = SharedMap(c)
    dtype = from_name(c.dtype)
    rows_tile = Tile(c.heads, c.sequence, c.dim, dtype, Layout.TMA_128B, tma_box=(1, ROWS, STRIPE), tma_rank=3)
    keys_tile = Tile(c.key_heads, c.key_count, c.dim, dtype, Layout.TMA_128B, tma_box=(1, c.keys, STRIPE), tma_rank=3)
    values_tile = Tile(c.key_heads, c.key_count, c.width, dtype, Layout.TMA_128B, tma_box=(1, c.keys, STRIPE), tma_rank=3)
    output_tile = Tile(c.heads, c.sequence, c.width, dtype, Layout.TMA_128B, tma_box=(1, ROWS, STRIPE), tma_rank=3)

    @kernel(
        arch="sm_90a",
        in_specs=(rows_tile, keys_tile, values_tile),
        out_specs=(output_tile, Tile(c.heads, c.sequence, f32, Layout.ROW)),
        grid=(min(c.items, c.multiprocessors), 1, 1),
        block=(c.threads, 1, 1),
        smem=at.size,
        extern_smem=True,
        raw_directives=[("reqntid", (c.threads, 1, 1)), ("minnctapersm", (1,))],
    )
    def attention_forward(q: Any, k: Any, v: Any, o: Any, lse: Any) -> None:
        declare_table(c)
        roles(c, at, lambda: Item(c), (q, k, v), (o, lse))

    return attention_forward
