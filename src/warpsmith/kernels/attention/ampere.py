"""Flash attention forward for sm_80: mma.sync, cp.async and ldmatrix, after FlashAttention-2 (Dao 2023, algorithm 1).

A CTA of four warps owns 64 query rows of one head, 16 a warp; keys come in tiles of 64, last tile first. Within a
tile the copy of V overlaps S = Q Kᵀ, and the copy of the next K overlaps the softmax and O += P V; two CTA barriers a
tile separate them.

Shared rows are `2·dim` bytes; the 16-byte chunk of a row is XORed with (row mod 8), so that the eight rows of an ldmatrix
fall on different banks. Chunk numbers split into an even constant and one lane-dependent low bit, which makes the address
`row base + (constant·16 XOR twist)` with one `twist` register for each operand.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, final

from warpsmith import Tile, kernel, ptx, reg, smem
from warpsmith.kernels.attention.ampere_lanes import KEYS, ROWS, THREADS, Config, Copier, Lanes, u32_register
from warpsmith.kernels.attention.softmax import (
    RowState,
    mask_scores,
    pack_probabilities,
    quad_reduce,
    rescale,
    softmax_step,
)
from warpsmith.specs import Layout
from warpsmith.types import b32, b64, f32, from_name, pred, u32, u64

__all__ = ["Config", "build"]


def _mma(c: Config, d: Any, a: Any, b: Any) -> None:
    name = c.dtype
    ptx.mma.sync(
        shape=(16, 8, 16), dtype_d=f32, dtype_a=from_name(name), dtype_b=from_name(name), dtype_c=f32,
        d=d, a=a, b=b, c=d, a_layout="row", b_layout="col",
    )  # fmt: skip


def _load_queries(c: Config, lanes: Lanes) -> list[Any]:
    """Load this warp's 16 query rows as A fragments, one of four registers a k16 step."""
    fragments = []
    for step in range(c.dim // 16):
        fragment = reg.array(b32, 4)
        ptx.inst.ldmatrix.sync.aligned.m8n8.x4.shared.b16(fragment, ptx.addr(lanes.at(lanes.q_rows, lanes.q_twist, 2 * step)))
        fragments.append(fragment)
    return fragments


def _scores(c: Config, lanes: Lanes, queries: list[Any], scores: Any) -> None:
    """S = Q Kᵀ of the tile in shared memory."""
    for value in scores:
        ptx.inst.mov.f32(value, 0.0)
    for step in range(c.dim // 16):
        at = lanes.at(lanes.k_rows, lanes.k_twist, 2 * step)
        for pair in range(KEYS // 16):
            b = reg.array(b32, 4)
            ptx.inst.ldmatrix.sync.aligned.m8n8.x4.shared.b16(b, ptx.addr(at, pair * 16 * c.pitch))
            for half in range(2):
                block = 4 * (2 * pair + half)
                _mma(c, scores[block : block + 4], queries[step], b[2 * half : 2 * half + 2])


def _output(c: Config, lanes: Lanes, packed: Any, output: Any) -> None:
    """O += P V of the tile in shared memory."""
    for pair in range(c.dim // 16):
        at = lanes.at(lanes.v_rows, lanes.v_twist, 2 * pair)
        for step in range(KEYS // 16):
            b = reg.array(b32, 4)
            ptx.inst.ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16(b, ptx.addr(at, step * 16 * c.pitch))
            for half in range(2):
                block = 4 * (2 * pair + half)
                _mma(c, output[block : block + 4], packed[4 * step : 4 * step + 4], b[2 * half : 2 * half + 2])


def _limits(c: Config, lanes: Lanes, first_row: Any) -> Any:
    """First key each of the thread's two rows may not see."""
    limits = reg.array(u32, 2)
    for half in range(2):
        if c.causal:
            row = u32_register()
            ptx.inst.add.u32(row, first_row, lanes.warp_row)
            ptx.inst.add.u32(row, row, lanes.row)
            ptx.inst.add.u32(row, row, 8 * half + 1)
            ptx.inst.min.u32(limits[half], row, c.sequence)
        else:
            ptx.inst.mov.u32(limits[half], c.sequence)
    return limits


def _finish(
    c: Config, lanes: Lanes, state: RowState, output: Any, first_row: Any, head: Any, o: Any, lse: Any, base: Any
) -> None:
    """Normalise; stage each warp's rows in its own rows of Q; store 16 bytes a lane; store the log-sum-exp."""
    inverse = reg.array(f32, 2)
    for half in range(2):
        quad_reduce(state.total[half], "add")
        ptx.inst.rcp.approx.ftz.f32(inverse[half], state.total[half])
        _store_lse(c, lanes, state, half, first_row, head, lse)
    for i, value in enumerate(output):
        ptx.inst.mul.rn.f32(value, value, inverse[(i // 2) % 2])
    row, row7 = u32_register(), u32_register()
    ptx.inst.add.u32(row, lanes.warp_row, lanes.row)
    ptx.inst.and_.b32(row7, row, 7)
    ptx.inst.shl.b32(row7, row7, 4)
    to = u32_register()
    ptx.inst.mad.lo.u32(to, row, c.pitch, base)
    word = u32_register()
    ptx.inst.shl.b32(word, lanes.column, 1)
    to += word
    ptx.inst.bar.warp.sync(0xFFFFFFFF)
    for block in range(c.dim // 8):
        words = reg.array(b32, 2)
        pack_probabilities(words, output[4 * block : 4 * block + 4], from_name(c.dtype))
        chunk = u32_register()
        ptx.inst.xor.b32(chunk, row7, block * 16)
        chunk += to
        ptx.inst.st.shared.b32(ptx.addr(chunk), words[0])
        ptx.inst.st.shared.b32(ptx.addr(chunk, 8 * c.pitch), words[1])
    ptx.inst.bar.warp.sync(0xFFFFFFFF)
    _store_rows(c, lanes, first_row, o, base)


def _store_rows(c: Config, lanes: Lanes, first_row: Any, o: Any, base: Any) -> None:
    chunks = c.dim // 8
    row, chunk, bits = u32_register(), u32_register(), chunks.bit_length() - 1
    ptx.inst.shr.u32(row, lanes.lane, bits)
    ptx.inst.add.u32(row, row, lanes.warp_row)
    ptx.inst.and_.b32(chunk, lanes.lane, chunks - 1)
    for _ in range(16 * chunks // 32):
        source, where, inside = u32_register(), u32_register(), reg.scalar(pred)
        ptx.inst.and_.b32(source, row, 7)
        ptx.inst.xor.b32(source, source, chunk)
        ptx.inst.shl.b32(source, source, 4)
        ptx.inst.mad.lo.u32(source, row, c.pitch, source)
        source += base
        words = reg.array(b32, 4)
        ptx.inst.ld.shared.v4.b32(words, ptx.addr(source))
        ptx.inst.add.u32(where, first_row, row)
        ptx.inst.setp.lt.u32(inside, where, c.sequence)
        column, to, wide = u32_register(), reg.scalar(b64), reg.scalar(u64)
        ptx.inst.shl.b32(column, chunk, 4)
        ptx.inst.mad.wide.u32(to, where, c.pitch, o)
        ptx.inst.cvt.u64.u32(wide, column)
        ptx.inst.add.s64(to, to, wide)
        ptx.inst.st.global_.v4.b32(ptx.addr(to), words, pred=inside)
        row += 32 // chunks


def _store_lse(c: Config, lanes: Lanes, state: RowState, half: int, first_row: Any, head: Any, lse: Any) -> None:
    row = u32_register()
    ptx.inst.add.u32(row, first_row, lanes.warp_row)
    ptx.inst.add.u32(row, row, lanes.row)
    ptx.inst.add.u32(row, row, 8 * half)
    owner, writes = reg.scalar(pred), reg.scalar(pred)
    ptx.inst.setp.eq.u32(owner, lanes.column, 0)
    ptx.inst.setp.lt.and_.u32(writes, row, c.sequence, owner)
    value, top = reg.scalar(f32), reg.scalar(f32)
    ptx.inst.lg2.approx.ftz.f32(value, state.total[half])
    ptx.inst.mul.rn.f32(top, state.maximum[half], c.scale_log2)
    ptx.inst.add.rn.f32(value, value, top)
    ptx.inst.mul.rn.f32(value, value, math.log(2))
    index, to = u32_register(), reg.scalar(b64)
    ptx.inst.mad.lo.u32(index, head, c.sequence, row)
    ptx.inst.mad.wide.u32(to, index, 4, lse)
    ptx.inst.st.global_.f32(ptx.addr(to), value, pred=writes)


def _head_pointers(c: Config, head: Any, tensors: tuple[Any, ...]) -> list[Any]:
    """Return where the head's rows of each tensor begin."""
    out = []
    for pointer in ptx.global_ptrs(*tensors):
        at = reg.scalar(u64)
        offset = reg.scalar(u64)
        ptx.inst.mul.wide.u32(offset, head, c.sequence * c.pitch)
        ptx.inst.add.s64(at, pointer, offset)
        out.append(at)
    return out


def _last_tile(c: Config, first_row: Any) -> Any:
    """Return the first key of the last tile that the block needs; the loop runs down from there."""
    column = u32_register()
    if c.causal:
        ptx.inst.add.u32(column, first_row, ROWS)
        ptx.inst.min.u32(column, column, c.sequence)
        ptx.inst.sub.u32(column, column, 1)
        ptx.inst.and_.b32(column, column, 0xFFFFFFFF - (KEYS - 1))
    else:
        ptx.inst.mov.u32(column, (c.sequence - 1) // KEYS * KEYS)
    return column


def _body(c: Config, q: Any, k: Any, v: Any, o: Any, lse: Any) -> None:
    base = smem.base()
    lanes = Lanes(c, base)
    head = u32_register(ptx.special.ctaid.y())
    block, first_row = u32_register(ptx.special.ctaid.x()), u32_register()
    if c.causal:  # longest first
        ptx.inst.sub.u32(block, -(-c.sequence // ROWS) - 1, block)
    ptx.inst.mul.lo.u32(first_row, block, ROWS)
    queries_at, keys_at, values_at, output_at = _head_pointers(c, head, (q, k, v, o))
    (lse_address,) = ptx.global_ptrs(lse)
    copier = Copier(c, lanes.thread)
    column = _last_tile(c, first_row)
    tiles = KeyTiles(c, lanes, copier, column, keys_at, values_at, base)
    copier.load(base, queries_at, first_row)
    tiles.load_keys()

    output, scores, packed = reg.array(f32, c.dim // 2), reg.array(f32, KEYS // 2), reg.array(b32, KEYS // 4)
    for value in output:
        ptx.inst.mov.f32(value, 0.0)
    state = RowState.declare()
    state.reset()
    limits = _limits(c, lanes, first_row)
    ptx.cp.async_.wait_group(0)
    ptx.bar.sync(0)
    tiles.attend(_load_queries(c, lanes), limits, state, (output, scores, packed))
    _finish(c, lanes, state, output, first_row, head, output_at, lse_address, base)


@final
class KeyTiles:
    """The loop over tiles of keys and values, from the last down; a tile of each is in shared memory or on its way there."""

    def __init__(self, c: Config, lanes: Lanes, copier: Copier, column: Any, keys_at: Any, values_at: Any, base: Any) -> None:
        self.c = c
        self.lanes = lanes
        self.copier = copier
        self.column = column
        """First key of the current tile."""
        self.keys_at, self.values_at = keys_at, values_at
        self.k_base, self.v_base = base + c.tile_bytes, base + 2 * c.tile_bytes

    def load_keys(self) -> None:
        """Start copying the keys of the current tile."""
        self.copier.load(self.k_base, self.keys_at, self.column)

    def attend(self, queries: Any, limits: Any, state: RowState, registers: tuple[Any, Any, Any]) -> None:
        """Add every tile's probabilities times values to the first of `registers`; the others hold scores and packed ones."""
        c, column = self.c, self.column
        output, scores, packed = registers
        first = reg.scalar(pred)
        ptx.inst.setp.eq.u32(first, 0, 0)
        more = reg.scalar(pred)
        with ptx.loop("key_tiles", pred=more):
            self.copier.load(self.v_base, self.values_at, column)
            _scores(c, self.lanes, queries, scores)
            if c.causal or c.sequence % KEYS:
                with ptx.if_(first):
                    mask_scores(scores, column, limits, self.lanes.column)
            ptx.inst.setp.ne.u32(first, 0, 0)
            ptx.inst.setp.ne.u32(more, column, 0)
            ptx.cp.async_.wait_group(0)
            ptx.bar.sync(0)  # V is there, and every warp is done with K
            column += -KEYS & 0xFFFFFFFF
            with ptx.if_(more):
                self.load_keys()
            softmax_step(scores, state, c.scale_log2)
            rescale(output, state)
            pack_probabilities(packed, scores, from_name(c.dtype))
            _output(c, self.lanes, packed, output)
            ptx.cp.async_.wait_group(0)
            ptx.bar.sync(0)  # the next K is there, and every warp is done with V


@cache
def build(config: Config) -> Any:
    """Return the kernel for `config`: (q, k, v) → (o, lse).

    q, k, v and o are `[heads, sequence, dim]` of the config's dtype, lse is `[heads, sequence]` f32 (natural logarithm).
    """
    c = config
    c.check()
    tile = Tile(c.heads, c.sequence, c.dim, from_name(c.dtype), Layout.ROW)

    @kernel(
        arch=c.arch,
        in_specs=(tile, tile, tile),
        out_specs=(tile, Tile(c.heads, c.sequence, f32, Layout.ROW)),
        grid=(-(-c.sequence // ROWS), c.heads, 1),
        block=(THREADS, 1, 1),
        smem=3 * c.tile_bytes,
        extern_smem=True,
        reqntid=(THREADS, 1, 1),
    )
    def attention_forward(q: Any, k: Any, v: Any, o: Any, lse: Any) -> None:
        _body(c, q, k, v, o, lse)

    return attention_forward
