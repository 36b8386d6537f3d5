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
from dataclasses import dataclass
from functools import cache
from typing import Any

from warpsmith import Tile, kernel, ptx, reg, smem
from warpsmith.kernels.attention.problem import Problem
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

WARPS = 4
ROWS = 16 * WARPS
KEYS = 64
THREADS = 32 * WARPS


@dataclass(frozen=True, slots=True)
class Config(Problem):
    """Problem and target of one attention kernel."""

    arch: str = "sm_80"
    """Any architecture from sm_80 on."""

    @property
    def pitch(self) -> int:
        """Bytes of a row."""
        return 2 * self.dim

    @property
    def tile_bytes(self) -> int:
        """Bytes of a 64-row tile."""
        return KEYS * self.pitch


def _u32(value: Any = None) -> Any:
    r = reg.scalar(u32)
    if value is not None:
        ptx.inst.mov.u32(r, value)
    return r


class Lanes:
    """What depends on the thread alone: its rows, columns and swizzle bits."""

    def __init__(self, c: Config, base: Any) -> None:
        self.thread = _u32(ptx.special.tid.x())
        self.lane, self.warp = _u32(), _u32()
        ptx.inst.and_.b32(self.lane, self.thread, 31)
        ptx.inst.shr.u32(self.warp, self.thread, 5)
        row7, low, high = _u32(), _u32(), _u32()
        ptx.inst.and_.b32(row7, self.lane, 7)
        ptx.inst.shr.u32(low, self.lane, 3)
        ptx.inst.and_.b32(low, low, 1)
        ptx.inst.shr.u32(high, self.lane, 4)
        # ldmatrix.x4: lane l names row l mod 8 of matrix l div 8; low and high are the bits of the matrix number
        self.q_twist, self.k_twist = _u32(), _u32()
        ptx.inst.xor.b32(self.q_twist, row7, high)
        ptx.inst.shl.b32(self.q_twist, self.q_twist, 4)
        ptx.inst.xor.b32(self.k_twist, row7, low)
        ptx.inst.shl.b32(self.k_twist, self.k_twist, 4)
        self.v_twist = self.q_twist
        self.q_rows = self._address(c, base, row7, low, self.warp)
        self.k_rows = self._address(c, base + c.tile_bytes, row7, high, None)
        self.v_rows = self._address(c, base + 2 * c.tile_bytes, row7, low, None)
        self.column, self.row = _u32(), _u32()
        ptx.inst.and_.b32(self.column, self.lane, 3)
        ptx.inst.shl.b32(self.column, self.column, 1)
        ptx.inst.shr.u32(self.row, self.lane, 2)
        self.warp_row = _u32()
        ptx.inst.shl.b32(self.warp_row, self.warp, 4)

    @staticmethod
    def _address(c: Config, base: Any, row7: Any, block: Any, warp: Any) -> Any:
        row = _u32()
        ptx.inst.mad.lo.u32(row, block, 8, row7)
        if warp is not None:
            ptx.inst.mad.lo.u32(row, warp, 16, row)
        ptx.inst.mad.lo.u32(row, row, c.pitch, base)
        return row

    @staticmethod
    def at(rows: Any, twist: Any, chunk: int) -> Any:
        """Address register of an even chunk."""
        a = _u32()
        ptx.inst.xor.b32(a, twist, chunk * 16)
        ptx.inst.add.u32(a, a, rows)
        return a


class Copier:
    """Copies 64-row tiles from global to shared memory, 16 bytes a thread and step; rows past the sequence become zeros."""

    def __init__(self, c: Config, thread: Any) -> None:
        self.c = c
        chunks = c.dim // 8
        self.rows_a_step = THREADS // chunks
        self.row, chunk, swizzled = _u32(), _u32(), _u32()
        ptx.inst.shr.u32(self.row, thread, chunks.bit_length() - 1)
        ptx.inst.and_.b32(chunk, thread, chunks - 1)
        self.column = _u32()
        ptx.inst.shl.b32(self.column, chunk, 4)
        ptx.inst.and_.b32(swizzled, self.row, 7)
        ptx.inst.xor.b32(swizzled, swizzled, chunk)
        ptx.inst.shl.b32(swizzled, swizzled, 4)
        self.target = _u32()
        ptx.inst.mad.lo.u32(self.target, self.row, c.pitch, swizzled)

    def load(self, base: Any, tensor: Any, first_row: Any) -> None:
        """Start the copy of rows `first_row` … + 63 of `tensor` (global address of the head) to shared `base`."""
        c = self.c
        row, to = _u32(), base + self.target
        ptx.inst.add.u32(row, first_row, self.row)
        for step in range(KEYS // self.rows_a_step):
            if step:
                row += self.rows_a_step
            inside, size, source_row = reg.scalar(pred), _u32(), _u32()
            ptx.inst.setp.lt.u32(inside, row, c.sequence)
            ptx.inst.selp.b32(size, 16, 0, inside)
            ptx.inst.min.u32(source_row, row, c.sequence - 1)
            source = reg.scalar(u64)
            ptx.inst.mad.wide.u32(source, source_row, c.pitch, tensor)
            wide = reg.scalar(u64)
            ptx.inst.cvt.u64.u32(wide, self.column)
            ptx.inst.add.s64(source, source, wide)
            # the swizzle repeats every 8 rows, and a step is a multiple of 8 rows
            ptx.inst.cp.async_.cg.shared.global_(ptx.addr(to, step * self.rows_a_step * c.pitch), ptx.addr(source), 16, size)
        ptx.cp.async_.commit_group()


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
            row = _u32()
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
    row, row7 = _u32(), _u32()
    ptx.inst.add.u32(row, lanes.warp_row, lanes.row)
    ptx.inst.and_.b32(row7, row, 7)
    ptx.inst.shl.b32(row7, row7, 4)
    to = _u32()
    ptx.inst.mad.lo.u32(to, row, c.pitch, base)
    word = _u32()
    ptx.inst.shl.b32(word, lanes.column, 1)
    to += word
    ptx.inst.bar.warp.sync(0xFFFFFFFF)
    for block in range(c.dim // 8):
        words = reg.array(b32, 2)
        pack_probabilities(words, output[4 * block : 4 * block + 4], from_name(c.dtype))
        chunk = _u32()
        ptx.inst.xor.b32(chunk, row7, block * 16)
        chunk += to
        ptx.inst.st.shared.b32(ptx.addr(chunk), words[0])
        ptx.inst.st.shared.b32(ptx.addr(chunk, 8 * c.pitch), words[1])
    ptx.inst.bar.warp.sync(0xFFFFFFFF)
    _store_rows(c, lanes, first_row, o, base)


def _store_rows(c: Config, lanes: Lanes, first_row: Any, o: Any, base: Any) -> None:
    chunks = c.dim // 8
    row, chunk, bits = _u32(), _u32(), chunks.bit_length() - 1
    ptx.inst.shr.u32(row, lanes.lane, bits)
    ptx.inst.add.u32(row, row, lanes.warp_row)
    ptx.inst.and_.b32(chunk, lanes.lane, chunks - 1)
    for _ in range(16 * chunks // 32):
        source, where, inside = _u32(), _u32(), reg.scalar(pred)
        ptx.inst.and_.b32(source, row, 7)
        ptx.inst.xor.b32(source, source, chunk)
        ptx.inst.shl.b32(source, source, 4)
        ptx.inst.mad.lo.u32(source, row, c.pitch, source)
        source += base
        words = reg.array(b32, 4)
        ptx.inst.ld.shared.v4.b32(words, ptx.addr(source))
        ptx.inst.add.u32(where, first_row, row)
        ptx.inst.setp.lt.u32(inside, where, c.sequence)
        column, to, wide = _u32(), reg.scalar(b64), reg.scalar(u64)
        ptx.inst.shl.b32(column, chunk, 4)
        ptx.inst.mad.wide.u32(to, where, c.pitch, o)
        ptx.inst.cvt.u64.u32(wide, column)
        ptx.inst.add.s64(to, to, wide)
        ptx.inst.st.global_.v4.b32(ptx.addr(to), words, pred=inside)
        row += 32 // chunks


def _store_lse(c: Config, lanes: Lanes, state: RowState, half: int, first_row: Any, head: Any, lse: Any) -> None:
    row = _u32()
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
    index, to = _u32(), reg.scalar(b64)
    ptx.inst.mad.lo.u32(index, head, c.sequence, row)
    ptx.inst.mad.wide.u32(to, index, 4, lse)
    ptx.inst.st.global_.f32(ptx.addr(to), value, pred=writes)


def _body(c: Config, q: Any, k: Any, v: Any, o: Any, lse: Any) -> None:
    base = smem.base()
    lanes = Lanes(c, base)
    head = _u32(ptx.special.ctaid.y())
    block, first_row = _u32(ptx.special.ctaid.x()), _u32()
    if c.causal:  # longest first
        ptx.inst.sub.u32(block, -(-c.sequence // ROWS) - 1, block)
    ptx.inst.mul.lo.u32(first_row, block, ROWS)
    tensors = []
    for pointer in ptx.global_ptrs(q, k, v, o):
        at = reg.scalar(u64)
        offset = reg.scalar(u64)
        ptx.inst.mul.wide.u32(offset, head, c.sequence * c.pitch)
        ptx.inst.add.s64(at, pointer, offset)
        tensors.append(at)
    (lse_address,) = ptx.global_ptrs(lse)
    copier = Copier(c, lanes.thread)
    column = _u32()
    if c.causal:
        ptx.inst.add.u32(column, first_row, ROWS)
        ptx.inst.min.u32(column, column, c.sequence)
        ptx.inst.sub.u32(column, column, 1)
        ptx.inst.and_.b32(column, column, 0xFFFFFFFF - (KEYS - 1))
    else:
        ptx.inst.mov.u32(column, (c.sequence - 1) // KEYS * KEYS)
    k_base, v_base = base + c.tile_bytes, base + 2 * c.tile_bytes
    copier.load(base, tensors[0], first_row)
    copier.load(k_base, tensors[1], column)

    output, scores, packed = reg.array(f32, c.dim // 2), reg.array(f32, KEYS // 2), reg.array(b32, KEYS // 4)
    for value in output:
        ptx.inst.mov.f32(value, 0.0)
    state = RowState.declare()
    state.reset()
    limits = _limits(c, lanes, first_row)
    ptx.cp.async_.wait_group(0)
    ptx.bar.sync(0)
    queries = _load_queries(c, lanes)
    first = reg.scalar(pred)
    ptx.inst.setp.eq.u32(first, 0, 0)
    more = reg.scalar(pred)
    with ptx.loop("key_tiles", pred=more):
        copier.load(v_base, tensors[2], column)
        _scores(c, lanes, queries, scores)
        if c.causal or c.sequence % KEYS:
            with ptx.if_(first):
                mask_scores(scores, column, limits, lanes.column)
        ptx.inst.setp.ne.u32(first, 0, 0)
        ptx.inst.setp.ne.u32(more, column, 0)
        ptx.cp.async_.wait_group(0)
        ptx.bar.sync(0)  # V is there, and every warp is done with K
        column += -KEYS & 0xFFFFFFFF
        with ptx.if_(more):
            copier.load(k_base, tensors[1], column)
        softmax_step(scores, state, c.scale_log2)
        rescale(output, state)
        pack_probabilities(packed, scores, from_name(c.dtype))
        _output(c, lanes, packed, output)
        ptx.cp.async_.wait_group(0)
        ptx.bar.sync(0)  # the next K is there, and every warp is done with V
    _finish(c, lanes, state, output, first_row, head, tensors[3], lse_address, base)


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
