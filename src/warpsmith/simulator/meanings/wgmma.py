"""Warpgroup matrix products and their order (PTX ISA 9.7.15)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from warpsmith.base.findings import Related
from warpsmith.simulator.asynchronous import AsyncOperation, Extent
from warpsmith.simulator.check.product_reads import ProductReads
from warpsmith.simulator.check.transit import Issuer
from warpsmith.simulator.findings import warps_text
from warpsmith.simulator.matrix_descriptor import decode
from warpsmith.simulator.meanings.registry import machine, sync
from warpsmith.simulator.memory import PENDING_WRITE
from warpsmith.simulator.operand_places import Places, Tile, items, places, span
from warpsmith.simulator.outcome import Outcome
from warpsmith.simulator.sparse import Sparsity
from warpsmith.simulator.units import units_of
from warpsmith.simulator.wgmma import Product, from_registers, run

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.assembly.ptx.isa import Match
    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.machine import Machine
    from warpsmith.simulator.meanings.registry import Function

__all__: list[str] = []

_SHAPE = re.compile(r"\.m64n(\d+)k(\d+)\.")
_TYPES = ("f16", "bf16", "tf32", "e4m3", "e5m2", "u8", "s8", "b1", "f32", "s32")

_PENDING_WRITES = int.from_bytes(bytes([PENDING_WRITE] * 8), "little")
"""The flag in each of eight bytes of shadow."""


@machine("wgmma.mma_async")
def mma_async(m: Match) -> Function:
    """Put D = A·B (+ D) in flight, one product for each warpgroup of each CTA; with `.sp`, A is stored by half."""
    shape = _SHAPE.search(m.mnemonic)
    assert shape is not None
    n, k = int(shape[1]), int(shape[2])
    d_type, a_type, b_type = [w for w in m.mnemonic.split(".") if w in _TYPES][:3]
    names = tuple(slot.name for slot in m.operands)
    in_registers = next(slot for slot in m.operands if slot.name == "a").count is not None
    types = (d_type, a_type, b_type, d_type)
    saturate = "satfinite" in m.mnemonic
    sparsity = Sparsity(a_type, k) if ".sp." in m.mnemonic else None
    stored = k // 2 if sparsity else k

    def issue(x: Lanes, *operands: Any) -> None:
        v = dict(zip(names, operands, strict=False))
        tile_a = Tile(a_type, 64, stored, bool(v.get("ta")))
        tile_b = Tile(b_type, n, k, bool(v.get("tb")))
        negate = (v.get("sa") == -1) != (v.get("sb") == -1)
        b = np.broadcast_to(np.asarray(v["b"]), x.shape)
        scale = np.broadcast_to(np.asarray(v["scale"]), x.shape)
        a = _fragment(v["a"], x) if in_registers else np.broadcast_to(np.asarray(v["a"]), x.shape)
        groups = _warpgroups(x)
        _agree(x, groups, b, "the descriptor of B")
        if not in_registers:
            _agree(x, groups, a, "the descriptor of A")
        lefts: Any = _fragments(a, groups, a_type, stored) if in_registers else [int(a[c, t]) for c, t in groups]
        products = [
            Product(
                row=x.c0 + c, types=types, n=n, a=left, b=int(b[c, t]), tile_a=tile_a, tile_b=tile_b,
                accumulators=_accumulators(v["d"], c, t), scale_d=bool(scale[c, t]), negate=negate, saturate=saturate,
                slots=x.op.operand_slots(0), first=x.t0 + t, columns=_columns(x, c, t, sparsity, v),
            )
            for (c, t), left in zip(groups, lefts, strict=True)
        ]  # fmt: skip
        _issue(x, groups, products)

    return issue


def _warpgroups(x: Lanes) -> list[tuple[int, int]]:
    """Return the place in `[C, T]` of the first thread of every warpgroup that is here whole."""
    first = -x.t0 % 128
    count = (x.shape[1] - first) // 128
    if x.mask is None:
        return [(c, first + 128 * g) for c in range(x.shape[0]) for g in range(count)]
    whole = x.mask[:, first : first + 128 * count].reshape(x.shape[0], count, 128).all(axis=-1)
    return [(c, first + 128 * g) for c, g in np.argwhere(whole).tolist()]


def _columns(x: Lanes, c: int, t: int, sparsity: Sparsity | None, v: dict[str, Any]) -> NDArray[np.intp] | None:
    """Return the column of each stored element `[64, k / 2]` from the metadata of a warpgroup's threads; None: A is dense."""
    if sparsity is None:
        return None
    e = np.broadcast_to(np.asarray(v["e"]), x.shape)[c, t : t + 128].astype(np.uint32).reshape(4, 32)
    return sparsity.columns(x.machine, e, int(v["f"])).reshape(64, -1)


def _fragment(a: Any, x: Lanes) -> NDArray[np.uint32]:
    if isinstance(a, np.ndarray) and a.ndim == 3:
        return a.view(np.uint32)
    return np.stack([np.broadcast_to(np.asarray(r), x.shape) for r in a]).view(np.uint32)


def _fragments(a: NDArray[np.uint32], groups: list[tuple[int, int]], type_: str, k: int) -> NDArray[Any]:
    """Return A `[i, 64, k]` of warpgroups from registers `[n, C, T]`."""
    if not groups:
        return np.empty((0, 64, k))
    return from_registers(np.stack([a[:, c, t : t + 128] for c, t in groups]), type_, k)


def _accumulators(d: Any, c: int, t: int) -> list[NDArray[Any]]:
    if getattr(d, "array", None) is not None:
        return [d.array[:, c, t : t + 128]]
    return [dest.array[c, t : t + 128] for dest in d]


def _agree(x: Lanes, groups: list[tuple[int, int]], value: NDArray[Any], what: str) -> None:
    """Report lanes of a warpgroup that give different descriptors."""
    first = -x.t0 % 128
    count = (x.shape[1] - first) // 128
    each = value[:, first : first + 128 * count].reshape(x.shape[0], count, 128)
    if (each == each[..., :1]).all():
        return
    for c, t in groups:
        mine = value[c, t : t + 128]
        if (mine == mine[0]).all():
            continue
        lanes = np.zeros(x.shape, np.bool_)
        lanes[c, t : t + 128] = mine != mine[0]
        x.finding(
            "divergent-collective",
            f"{what} differs between the threads of a warpgroup ({int(mine[0]):#x} in its first thread)",
            lanes=lanes,
            repair="Compute the descriptor from values that are the same in all 128 threads.",
        )


def _issue(x: Lanes, groups: list[tuple[int, int]], products: list[Product]) -> None:
    """Put the products of warpgroups in flight, as one member of their groups."""
    m = x.machine
    ops: list[AsyncOperation] = []
    owner = np.full(x.shape, -1, np.int16)
    one_by_one = m.races is not None and not _follow_all(x, products)
    extents = _extents(x, products)
    for i, ((c, t), product) in enumerate(zip(groups, products, strict=True)):
        op = _operation(x, c, t, product, None if extents is None else extents[i])
        if op is not None:
            owner[c, t : t + 128] = len(ops)
            ops.append(op)
            if one_by_one:
                _follow(x, c, t, product)
            x.issue(op)
    if ops:
        units_of(m).wgmma.add_each(x, ops, owner)


def _where(m: Machine, products: list[Product]) -> list[Places]:
    """Return where the operands of the products of an instruction lie in shared memory."""
    rows = tuple(p.row for p in products)
    operands = zip(*(p.operands() for p in products), strict=True)
    return [places(m, rows, tuple(b for b, _ in of_each), of_each[0][1]) for of_each in operands]


def _extents(x: Lanes, products: list[Product]) -> list[list[Extent]] | None:
    """Return the bytes that each product reads; None where one is at fault, or may be."""
    m = x.machine
    shared = m.shared
    operands = _where(m, products)
    for o in operands:
        if not o.inside:
            return None
        if m.checking and int(np.bitwise_or.reduce(shared.shadows[16].take(o.at).view(np.uint64), axis=None)) & _PENDING_WRITES:
            return None
    bounds = [zip(o.starts.tolist(), o.stops.tolist(), strict=True) for o in operands]
    return [[Extent(shared, start, stop) for start, stop in of_each] for of_each in zip(*bounds, strict=True)]


def _operation(x: Lanes, c: int, t: int, product: Product, reads: list[Extent] | None) -> AsyncOperation | None:
    """Return a product in flight that `reads` bytes (None: they must be judged); None when it was reported."""
    m = x.machine

    def complete(machine: Machine) -> None:
        run(machine, [product])

    op = AsyncOperation("wgmma.mma_async", complete, product.row, x.place, queue=("wgmma", product.row, product.first // 128))
    op.together, op.payload = _complete, product
    if reads is not None:
        op.reads = reads
    elif not _judge_bounds(x, c, t, product, op):
        return None
    op.exact = lambda start, stop: any(_meets(items(m, product.row, *o), start, stop) for o in product.operands())
    if m.checking:
        op.threads = warps_text(m, product.row, product.first // 32, 4)
        if reads is None:
            _check_operands(x, op, product, c, t)
    return op


def _judge_bounds(x: Lanes, c: int, t: int, product: Product, op: AsyncOperation) -> bool:
    """Add the bytes that a product reads to its operation; False: they are not all of its CTA, which was reported."""
    m = x.machine
    base = product.row * m.shared.row
    for bits, tile in product.operands():
        first, last = span(bits, tile)
        if first < m.reserved_shared or last > m.reserved_shared + m.shared_bytes:
            x.finding(
                "out-of-bounds",
                f"a matrix descriptor of wgmma reaches shared addresses {first:#x} to {last:#x}; "
                f"the CTA has {m.reserved_shared:#x} to {m.reserved_shared + m.shared_bytes:#x}",
                lanes=_lanes(x, c, t),
                stop=True,
                repair="Check the start address (bits 13:0 hold address >> 4) and the two byte offsets of the descriptor.",
            )
            return False
        op.reads.append(Extent(m.shared, base + first, base + last))
    return True


def _follow_all(x: Lanes, products: list[Product]) -> bool:
    """Judge and note the bytes that products read, all at once; False, and nothing noted: one may be at fault."""
    m = x.machine
    assert m.races is not None
    if not products:
        return True
    operands = _where(m, products)
    if not all(o.inside for o in operands):
        return False
    rows, first = (np.array(some, np.int64) for some in zip(*((p.row, p.first) for p in products), strict=True))
    reads = ProductReads(m.races, rows, first)
    if not reads.clear(operands):
        return False
    reads.note(x, operands, units_of(m).wgmma)
    return True


def _follow(x: Lanes, c: int, t: int, product: Product) -> None:
    """Note the bytes a product reads, for each of its warps, and judge them by what one thread of each knows."""
    races = x.machine.races
    assert races is not None
    transit, groups, first = races.transit, units_of(x.machine).wgmma, product.first
    threads = tuple(range(first, first + 128, 32))
    issuer = Issuer(_lanes(x, c, t), product.row, threads, together=True)
    marks = [transit.of_group("wgmma", groups, product.row, thread, warp=thread // 32) for thread in threads]
    for name, (bits, tile) in zip("BA", product.operands(), strict=False):
        at = items(x.machine, product.row, bits, tile)
        races.tags.judge(x, at, decode(bits).swizzle, name, issuer.lanes)
        transit.reads(x, issuer, x.machine.shared, races.shared.cells(at * 16, 16).reshape(-1), marks)


def _lanes(x: Lanes, c: int, t: int) -> NDArray[np.bool_]:
    """Return the mask of one warpgroup."""
    lanes = np.zeros(x.shape, np.bool_)
    lanes[c, t : t + 128] = True
    return lanes


def _meets(at: NDArray[np.int64], start: int, stop: int) -> bool:
    """Say whether bytes `start:stop` share one with 16-byte items."""
    return bool(((at >= start >> 4) & (at <= (stop - 1) >> 4)).any())


def _complete(machine: Machine, batch: list[AsyncOperation]) -> None:
    run(machine, [op.payload for op in batch])


def _check_operands(x: Lanes, op: AsyncOperation, product: Product, c: int, t: int) -> None:
    """Report operand bytes that a copy in flight has yet to write."""
    for e, operand in zip(op.reads, product.operands(), strict=True):
        if not int(np.bitwise_or.reduce(e.space.shadow[e.start : e.stop].view(np.uint64))) & _PENDING_WRITES:
            continue
        at = items(x.machine, product.row, *operand)
        if not (e.space.shadows[16].take(at).view(np.uint8) & PENDING_WRITE).any():
            continue
        writers = x.machine.asynchronous.touching(e.space, e.start, e.stop, write_only=True)
        if not writers:
            continue
        x.finding(
            "async-read-before-complete",
            f"wgmma reads shared memory from {e.start % e.space.row:#x} on, which `{writers[0].kind}` in flight still writes",
            lanes=_lanes(x, c, t),
            related=[_issued(w) for w in writers[:2]],
            repair="Wait for the phase of the copy's mbarrier before the product that reads the tile.",
        )


def _issued(op: AsyncOperation) -> Any:
    return Related(f"`{op.kind}` issued by {op.threads}", op.place)


@machine("wgmma.fence")
def fence(m: Match) -> Function:
    """Order register accesses before the products that follow; `register-before-wait` looks for it."""

    def run(x: Lanes) -> None:
        return None

    return run


@machine("wgmma.commit_group")
def commit(m: Match) -> Function:
    """Close the open group of products."""

    def run(x: Lanes) -> None:
        units_of(x.machine).wgmma.commit(x)

    return run


@sync("wgmma.wait_group")
def wait(m: Match) -> Function:
    """Wait for all but the latest n groups."""

    def run(x: Lanes, n: Any) -> Outcome:
        groups = units_of(x.machine).wgmma
        if x.machine.races is not None:
            x.machine.races.transit.waited(x, ("wgmma",), groups, int(n))
        return groups.wait(x, int(n))

    return run
