"""The order of tcgen05 operations: products and copies in flight, and commits behind them (PTX ISA 9.7.18.6, 9.7.18.12).

The operations that one CTA issues (of a pair: both its CTAs) form one queue: hardware runs them in order. What the manual
guarantees is less; `check.tensor_memory` looks for programs that rely on more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, final

import numpy as np

from warpsmith.base.findings import Related
from warpsmith.simulator.asynchronous import AsyncOperation, Extent
from warpsmith.simulator.check.columns import ORDINAL
from warpsmith.simulator.check.tensor_memory import tensor_check
from warpsmith.simulator.check.transit import Issuer, Mark
from warpsmith.simulator.memory import PENDING_WRITE
from warpsmith.simulator.operand_tiles import Operand, decode, items, span
from warpsmith.simulator.tensor_memory import Cells, tensor_memory_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.simulator.async_access import Lane
    from warpsmith.simulator.lanes import Lanes

__all__ = ["Cells", "Source", "group_of", "issue", "queue_of"]


@final
class Source(NamedTuple):
    """An operand in the shared memory of a CTA."""

    row: int
    bits: int
    operand: Operand


def queue_of(rows: tuple[int, ...]) -> tuple[str, int]:
    """Return the queue of operations of a CTA or pair."""
    return "tcgen05", rows[0]


def issue(
    x: Lanes, lane: Lane, op: AsyncOperation, rows: tuple[int, ...], sources: list[Source], cells: list[Cells]
) -> None:  # fmt: skip
    """Put a product or copy in flight; report operands and cells that it may not touch."""
    m = x.machine
    tm = tensor_memory_of(m)
    op.queue = queue_of(rows)
    for source in sources:
        if not _extent(x, lane, op, source):
            return
    for c in cells:
        held = c.stop <= 512 and tm.held_columns(c.row)[c.first : c.stop].all()
        if not held and not tensor_check(m).outside(x, c.row, c.first, c.stop, lane.mask):
            return
    op.exact = lambda start, stop: any(_meets(items(m, *s), start, stop) for s in sources)
    if m.checking:
        _check_sources(x, lane, op, sources)
        tensor_check(m).issued(x, lane, op, cells, group_of(x, lane)[1] if m.races is not None else 0)
    if m.races is not None:
        issuer = Issuer(lane.mask, lane.row, (x.t0 + lane.t,))
        column, number = group_of(x, lane)
        mark = Mark(lane.row * m.races.columns.count + column, number)
        for name, s in zip("BA" if len(sources) <= 2 else "BBAA", sources, strict=False):
            at = items(m, *s).reshape(-1)
            if s.operand.type_ != "bytes":
                m.races.tags.judge(x, at, decode(s.bits).swizzle, name, lane.mask)
            m.races.transit.reads(x, issuer, m.shared, m.races.shared.cells(at * 16, 16).reshape(-1), [mark])
    x.issue(op)


def group_of(x: Lanes, lane: Lane) -> tuple[int, int]:
    """Return the column of the operations of a thread's warp, and the number that stands for those up to its next commit."""
    assert x.machine.races is not None
    warp = (x.t0 + lane.t) // 32
    number = int(tensor_memory_of(x.machine).commits[lane.row, warp])
    return x.machine.races.columns.group("tcgen05", warp), ORDINAL + number + 1


def _extent(x: Lanes, lane: Lane, op: AsyncOperation, source: Source) -> bool:
    """Add what an operand reads to the operation; say whether it lies within the CTA's shared memory."""
    m = x.machine
    first, last = span(source.bits, source.operand)
    if first < m.reserved_shared or last > m.reserved_shared + m.shared_bytes:
        x.finding(
            "out-of-bounds",
            f"a matrix descriptor of `{x.op.text}` reaches shared addresses {first:#x} to {last:#x}; "
            f"the CTA has {m.reserved_shared:#x} to {m.reserved_shared + m.shared_bytes:#x}",
            lanes=lane.mask,
            stop=True,
            repair="Check the start address (bits 13:0 hold address >> 4) and the two byte offsets of the descriptor.",
        )
        return False
    base = source.row * m.shared.row
    op.reads.append(Extent(m.shared, base + first, base + last))
    return True


def _meets(at: NDArray[np.int64], start: int, stop: int) -> bool:
    return bool(((at >= start >> 4) & (at <= (stop - 1) >> 4)).any())


def _check_sources(x: Lanes, lane: Lane, op: AsyncOperation, sources: list[Source]) -> None:
    """Report operand bytes that a copy in flight has yet to write."""
    for e, source in zip(op.reads, sources, strict=True):
        if not (e.space.shadow[e.start : e.stop] & PENDING_WRITE).any():
            continue
        at = items(x.machine, *source)
        if not (e.space.shadows[16].take(at).view(np.uint8) & PENDING_WRITE).any():
            continue
        writers = x.machine.asynchronous.touching(e.space, e.start, e.stop, write_only=True)
        if writers:
            x.finding(
                "async-read-before-complete",
                f"`{op.kind}` reads shared memory from {e.start % e.space.row:#x} on, which "
                f"`{writers[0].kind}` in flight still writes",
                lanes=lane.mask,
                related=[Related(f"`{w.kind}` issued by {w.threads}", w.place) for w in writers[:2]],
                repair="Wait for the phase of the copy's mbarrier before the product that reads the tile.",
            )
