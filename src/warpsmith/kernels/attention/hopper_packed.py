"""Flash attention forward for sm_90a over sequences of different lengths, one behind the other in one tensor.

The kernel is that of `hopper`; what differs is where a work item lies. `plan` says it on the host, from the lengths, in a table
of eight words an item (`_WORDS`), which the kernel reads. Only tables differ from batch to batch, not the kernel.

A tile of the last keys of a sequence reaches into the next one, whose keys it hides; a NaN or an infinity in the first rows of
V of a sequence therefore spoils the output of the one before. A table whose sequences reach past the tensors traps. Rows are
stored by TMA, 64 at a time, or one by one where a sequence ends in between.
"""

from __future__ import annotations

import heapq
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from warpsmith import Tile, kernel, ptx, reg
from warpsmith.base.errors import InputError
from warpsmith.kernels.attention.hopper import Config, check, roles
from warpsmith.kernels.attention.hopper_config import ROWS, STRIPE, SharedMap
from warpsmith.kernels.attention.hopper_item import Item
from warpsmith.kernels.attention.hopper_schedule import CACHE
from warpsmith.specs import Layout
from warpsmith.types import b32, f32, from_name, pred, u32, u64

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from numpy.typing import NDArray

    from warpsmith.kernels.attention.hopper_consumer import Consumer

__all__ = ["Config", "build", "plan"]

_WORDS = ("rows", "token", "head", "key_token", "key_count", "first_row", "low", "tiles")
"""What a table says of an item: query rows from its first on, to the end of the sequence (0: the end of the list); row of its
first query in Q; head; row of the sequence's first key in K; the sequence's keys; key at which its first query stands; first
key tile and the one behind the last."""
_OVERHEAD = 1.0
"""What an item costs besides its tiles, in tiles."""


class PackedItem(Item):
    """Registers of the work item a role is at, from the table."""

    def __init__(self, c: Config, table: Any, output: Any) -> None:  # pyright: ignore[reportMissingSuperCall]
        self.c, self.blind, self.output = c, True, output
        words = [reg.scalar(u32) for _ in _WORDS]
        self.rows, self.token, self.head, self.key_token, self.key_count, self.first_row, self.low, self.tiles = words
        self._words = words
        self.key_head, self.more, self.cursor = reg.scalar(u32), reg.scalar(pred), reg.scalar(u64)
        self.row_count = self.rows
        (start,) = ptx.global_ptrs(table)
        width = reg.scalar(u32)
        ptx.inst.mul.lo.u32(width, ptx.param(u32, "ITEMS"), 4 * len(_WORDS))
        ptx.inst.mad.wide.u32(self.cursor, width, ptx.special.ctaid.x(), start)
        self._read()

    def _read(self) -> None:
        ptx.inst.ld.global_.nc.v4.u32(self._words[:4], ptx.addr(self.cursor))
        ptx.inst.ld.global_.nc.v4.u32(self._words[4:], ptx.addr(self.cursor, 16))

    def locate(self) -> None:
        """Compute the head of keys; the rest has been read."""
        ptx.inst.div.u32(self.key_head, self.head, self.c.heads // self.c.key_heads)

    def judge(self) -> None:
        """Trap if the item lies past the end of Q or K."""
        for first, count, total in ((self.token, self.rows, "TOKENS"), (self.key_token, self.key_count, "KEYS")):
            outside, end = reg.scalar(pred), reg.scalar(u32)
            ptx.inst.add.u32(end, first, count)
            ptx.inst.setp.gt.u32(outside, end, ptx.param(u32, total))
            ptx.inst.trap(pred=outside)

    def advance(self) -> None:
        """Read the next item; `more` says whether there is one."""
        ptx.inst.add.s64(self.cursor, self.cursor, 4 * len(_WORDS))
        self._read()
        ptx.inst.setp.ne.u32(self.more, self.rows, 0)

    def query_row(self, row: int) -> Any:
        """Return the row of Q that is row `row` of the item."""
        return self.token + row

    def query_place(self, column: int, row: Any) -> tuple[Any, Any, Any]:
        """Coordinates of an element of Q or O."""
        return (column, self.head, row)

    def key_place(self, column: int, key: Any) -> tuple[Any, Any, Any]:
        """Coordinates of an element of K or V."""
        return (column, self.key_head, self.key_token + key)

    def output_row(self, consumer: Any) -> Any:
        """Return the first row of a consumer, counted from the item's first."""
        return consumer * ROWS

    def output_place(self, first: Any) -> Any:
        """Return the row of O."""
        return self.token + first

    def write_lse_index(self, index: Any, row: Any) -> None:
        """Write which number of `[heads, tokens]` belongs to a row."""
        token = self.token + row
        ptx.inst.mad.lo.u32(index, self.head, ptx.param(u32, "TOKENS"), token)

    @contextmanager
    def whole(self, first: Any) -> Generator[None]:
        """Return the block that stores all 64 rows of a consumer, if they are there."""
        with ptx.if_(self.rows >= first + ROWS):
            yield

    def store_part(self, me: Consumer, first: Any) -> None:
        """Store the rows of a consumer one by one from where they are staged, if there are fewer than 64."""
        with ptx.if_(self.rows < first + ROWS):
            self._store_rows(me, first)
            if not me.c.staged:  # before the next Q is loaded there
                ptx.bar.sync(me.index + 1, 128)

    def _store_rows(self, me: Consumer, first: Any) -> None:
        pieces = self.c.width // 8
        (output,) = ptx.global_ptrs(self.output)
        lane, words = me.thread & 127, reg.array(b32, 4)
        for i in range(ROWS * pieces // 128):
            number = lane + 128 * i
            row, piece, source = reg.scalar(u32), reg.scalar(u32), reg.scalar(u32)
            ptx.inst.div.u32(row, number, pieces)
            ptx.inst.rem.u32(piece, number, pieces)
            ptx.inst.xor.b32(source, piece & 7, row & 7)
            ptx.inst.shl.b32(source, source, 4)
            ptx.inst.mad.lo.u32(source, row, 128, source)
            ptx.inst.mad.lo.u32(source, piece >> 3, 128 * ROWS, source)
            ptx.inst.ld.shared.v4.b32(words, ptx.addr(source + me.o_base, me.at.o))
            index, to, there = reg.scalar(u32), reg.scalar(u64), reg.scalar(pred)
            ptx.inst.mad.lo.u32(index, self.token + first + row, self.c.heads, self.head)
            ptx.inst.mad.wide.u32(to, index, 2 * self.c.width, output)
            ptx.inst.mad.wide.u32(to, piece, 16, to)
            ptx.inst.setp.lt.u32(there, first + row, self.rows)
            ptx.inst.st.global_.v4.b32(ptx.addr(to), words, pred=there)


def _check(c: Config) -> None:
    if not c.packed or c.sequence != 1 or c.kv_sequence:
        raise InputError("attention: packed sequences have the lengths of their plan; give packed=1, sequence=1, kv_sequence=0")
    check(c)


def _grid(CTAS: int) -> tuple[int]:
    return (CTAS,)


@cache
def build(config: Config) -> Any:
    """Return the kernel for `config`: (q, k, v, table) → (o, lse).

    q is `[tokens, heads, dim]` of the config's dtype, k `[keys, key_heads, dim]`, v `[keys, key_heads, width]`, o `[tokens,
    heads, width]`, lse `[heads, tokens]` f32 (natural logarithm); table is what `plan` returns. A query that sees no key has
    output 0 and log-sum-exp -inf.
    """
    c = config
    _check(c)
    at = SharedMap(c)
    dtype = from_name(c.dtype)
    rows: dict[str, Any] = {"layout": Layout.TMA_128B, "tma_rank": 3, "tma_box": (ROWS, 1, STRIPE)}
    keys: dict[str, Any] = {**rows, "tma_box": (c.keys, 1, STRIPE)}

    @kernel(
        arch="sm_90a",
        in_specs=(
            Tile("TOKENS", c.heads, c.dim, dtype, **rows),
            Tile("KEYS", c.key_heads, c.dim, dtype, **keys),
            Tile("KEYS", c.key_heads, c.width, dtype, **keys),
            Tile("CTAS", "ITEMS", len(_WORDS), u32),
        ),
        out_specs=(Tile("TOKENS", c.heads, c.width, dtype, **rows), Tile(c.heads, "TOKENS", f32)),
        raw_params=[("u32", "ITEMS"), ("u32", "TOKENS"), ("u32", "KEYS")],
        grid=_grid,
        block=(c.threads, 1, 1),
        smem=at.size,
        extern_smem=True,
        raw_directives=[("reqntid", (c.threads, 1, 1)), ("minnctapersm", (1,))],
    )
    def packed_attention_forward(q: Any, k: Any, v: Any, table: Any, o: Any, lse: Any) -> None:
        roles(c, at, lambda: PackedItem(c, table, o), (q, k, v), (o, lse))

    return packed_attention_forward


def plan(config: Config, lengths: Sequence[int], key_lengths: Sequence[int] | None = None) -> NDArray[np.uint32]:
    """Return the table `[ctas, items + 1, 8]` of a batch: sequence i has `lengths[i]` queries and `key_lengths[i]` keys.

    `key_lengths` None: as many keys as queries. The last query of a causal sequence sees its last key. Items go to the
    CTA that is free first (Graham 1969). Raise `InputError` for lengths that are negative, or none at all.
    """
    c = config
    _check(c)
    key_lengths = lengths if key_lengths is None else key_lengths
    if len(lengths) != len(key_lengths):
        raise InputError(
            f"attention: {len(lengths)} lengths of queries and {len(key_lengths)} of keys; give one each a sequence"
        )
    if min([*lengths, *key_lengths], default=0) < 0 or not sum(lengths):
        raise InputError("attention: lengths are not negative, and a batch has at least one query")
    items = _order(c, list(_items(c, lengths, key_lengths)), key_lengths)
    free = [(0.0, cta) for cta in range(min(len(items), c.multiprocessors))]
    lists: list[list[tuple[int, ...]]] = [[] for _ in free]
    for item in items:
        busy, cta = free[0]
        lists[cta].append(item.words)
        heapq.heapreplace(free, (busy + item.tiles + _OVERHEAD, cta))
    table = np.zeros((len(lists), max(map(len, lists)) + 1, len(_WORDS)), np.int64)
    for cta, some in enumerate(lists):
        table[cta, : len(some)] = some
    return (table & 0xFFFFFFFF).astype(np.uint32)


@dataclass(frozen=True, slots=True)
class _Planned:
    """An item: its key tiles, its sequence, whether its block is in the first third of that, what the table says."""

    tiles: int
    sequence: int
    short: bool
    words: tuple[int, ...]


def _order(c: Config, items: list[_Planned], key_lengths: Sequence[int]) -> list[_Planned]:
    """Return the items in the order in which they are given out.

    Longest first; if causal as `hopper_schedule.plan` does, by groups whose keys and values fit in the level-2 cache together,
    of the longest sequences first, and the first thirds of all sequences last.
    """
    if not c.causal:
        return sorted(items, key=lambda item: -item.tiles)
    before, room = dict[tuple[int, int], int](), 0
    for sequence in sorted(range(len(key_lengths)), key=lambda i: -key_lengths[i]):
        for head in range(c.key_heads):
            before[sequence, head] = room
            room += c.element * (c.dim + c.width) * key_lengths[sequence]

    def rank(item: _Planned) -> tuple[bool, int, int]:
        head = item.words[_WORDS.index("head")] // (c.heads // c.key_heads)
        return item.short, 0 if item.short else before[item.sequence, head] // CACHE, -item.tiles

    return sorted(items, key=rank)


def _items(c: Config, lengths: Sequence[int], key_lengths: Sequence[int]) -> Generator[_Planned]:
    """Yield every item."""
    token = key_token = 0
    for sequence, (length, keys) in enumerate(zip(lengths, key_lengths, strict=True)):
        blocks = -(-length // c.rows)
        for block in range(blocks):
            row = block * c.rows
            place = row + keys - length
            low, last = 0, max(1, -(-keys // c.keys))
            if c.causal:
                last = -(-max(1, min(keys, place + c.rows)) // c.keys)
                low = min(max(0, place - c.window) // c.keys, last - 1) if c.window else 0
            for head in range(c.heads):
                words = (length - row, token + row, head, key_token, keys, place, low, last)
                yield _Planned(last - low, sequence, block < blocks // 3, words)
        token, key_token = token + length, key_token + keys
