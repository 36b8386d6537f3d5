"""wgmma: the product of one warpgroup (PTX ISA 9.7.15), from shared memory and registers into accumulators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from warpsmith.simulator.fragments import wgmma_a, wgmma_accumulator
from warpsmith.simulator.memory import UNDEFINED
from warpsmith.simulator.multiply import multiply
from warpsmith.simulator.operand_places import Tile, places
from warpsmith.simulator.operand_values import WIDTH, values
from warpsmith.simulator.sparse import sparse_product

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import NDArray

    from warpsmith.simulator.machine import Machine

__all__ = ["Product", "from_registers", "run"]

_TOGETHER = 16
"""Products multiplied at once."""
_UNDEFINED = int.from_bytes(bytes([UNDEFINED] * 8), "little")
"""The flag in each of eight bytes of shadow."""


def _read(machine: Machine, where: NDArray[np.int64], tile: Tile) -> NDArray[Any]:
    """Return the values `[i, mn, k]` of operands in shared memory."""
    data = machine.shared.views[16].take(where, mode="clip")
    if WIDTH[tile.type_] < 8:
        return np.unpackbits(data.view(np.uint8), axis=-1, bitorder="little")
    elements = values(data.view(f"u{WIDTH[tile.type_] // 8}"), tile.type_)
    return elements.swapaxes(1, 2) if tile.mn_major else elements


def _undefined(machine: Machine, where: NDArray[np.int64], tile: Tile) -> NDArray[np.bool_] | None:
    """Return which rows (of A) or columns (of B) `[i, mn]` have undefined bytes; None: none."""
    flags = machine.shared.shadows[16].take(where, mode="clip")
    if not int(np.bitwise_or.reduce(flags.view(np.uint64), axis=None)) & _UNDEFINED:
        return None
    flags = flags.view(np.uint8) & UNDEFINED
    if tile.mn_major:
        return np.logical_or.reduce(flags.reshape(len(where), tile.k, tile.mn, -1), axis=(1, 3))
    return np.logical_or.reduce(flags.reshape(len(where), tile.mn, -1), axis=2)


def from_registers(registers: NDArray[np.uint32], type_: str, k: int) -> NDArray[Any]:
    """Return A `[i, 64, k]` from fragments: unsigned registers `[i, n, 128]`."""
    width = WIDTH[type_]
    row, column = wgmma_a(k, width)
    parts = np.ascontiguousarray(registers)[..., None]
    if width < 8:
        elements = np.unpackbits(parts.view(np.uint8), axis=-1, bitorder="little")
    else:
        elements = parts.view(f"u{width // 8}")
    out = np.empty((len(registers), 64, k), elements.dtype)
    out[:, row, column] = elements
    return out if width < 8 else values(out, type_)


@final
@dataclass(slots=True)
class Product:
    """One product in flight."""

    row: int
    types: tuple[str, str, str, str]
    """Of D, A, B, C."""
    n: int
    a: int | NDArray[Any]
    """Descriptor, or values `[64, k]` (of a sparse product `[64, k / 2]`: what is stored)."""
    b: int
    tile_a: Tile
    tile_b: Tile
    accumulators: list[NDArray[Any]]
    """Live views of the 128 threads' registers, one `[128]` each; or one view `[n, 128]`."""
    scale_d: bool
    negate: bool
    saturate: bool
    slots: dict[str, tuple[int, ...]]
    """The accumulators' registers by bank, and the first of the 128 threads."""
    first: int
    columns: NDArray[np.intp] | None = None
    """Of a sparse product: the column of each stored element of A, `[64, k / 2]`."""

    def operands(self) -> list[tuple[int, Tile]]:
        """Return (descriptor, tile) of the operands in shared memory."""
        b = (self.b, self.tile_b)
        return [b] if isinstance(self.a, np.ndarray) else [b, (self.a, self.tile_a)]

    def block(self) -> NDArray[Any]:
        """Return the accumulators' registers `[r, 128]`: a live view, or a copy."""
        return self.accumulators[0] if len(self.accumulators) == 1 else np.stack(self.accumulators)

    def put(self, registers: NDArray[Any]) -> None:
        """Write registers `[r, 128]`."""
        if len(self.accumulators) == 1:
            view = self.accumulators[0]
            view[...] = registers.view(view.dtype)
            return
        for view, values_ in zip(self.accumulators, registers, strict=True):
            view[...] = values_.view(view.dtype)


@final
class Sums:
    """The sums of the products that were carried out last, as matrices: where the next ones add to them, they need not be read.

    They hold as long as no code has run and nothing else has completed since, so that nobody can have written a register.
    """

    def __init__(self) -> None:
        self._valid = (-1, -1)
        """The execution of a block and the completion for which they hold."""
        self._of: dict[Hashable, NDArray[Any]] = {}
        self._next: dict[Hashable, NDArray[Any]] = {}

    def turn(self, machine: Machine) -> None:
        """Begin the products of a completion: what the one before has kept can be taken."""
        now = machine.execution, machine.asynchronous.batches
        self._of, self._next = self._next if self._valid == now else {}, {}
        self._valid = now[0], now[1] + 1

    def take(self, products: list[Product]) -> NDArray[Any] | None:
        """Return the matrices `[i, 64, n]` in the accumulators of products, if they are known."""
        return self._of.get(_accumulators(products))

    def keep(self, products: list[Product], d: NDArray[Any]) -> None:
        """Keep what products have written to their accumulators, bit for bit."""
        if d.dtype == (np.int32 if products[0].types[0] == "s32" else np.float32) and products[0].types[0] != "f16":
            self._next[_accumulators(products)] = d


def _accumulators(products: list[Product]) -> Hashable:
    """Return which registers of which threads products add to."""
    first = products[0]
    slots = tuple(first.slots.items())
    return first.types[0], slots, tuple((p.row, p.first) for p in products)


def run(machine: Machine, products: list[Product]) -> None:
    """Carry out products of one instruction: read the operands, multiply, and write the accumulators."""
    sums: Sums = machine.state.setdefault("sums", Sums())
    sums.turn(machine)
    for scale_d in (False, True):
        some = [p for p in products if p.scale_d == scale_d]
        for at in range(0, len(some), _TOGETHER):
            _multiply(machine, some[at : at + _TOGETHER], sums)


def _multiply(machine: Machine, products: list[Product], sums: Sums) -> None:
    first = products[0]
    rows = tuple(p.row for p in products)
    where_b = places(machine, rows, tuple(p.b for p in products), first.tile_b).at
    where_a = None
    if not isinstance(first.a, np.ndarray):
        where_a = places(machine, rows, tuple(int(p.a) for p in products), first.tile_a).at
    a = np.stack([p.a for p in products]) if where_a is None else _read(machine, where_a, first.tile_a)
    a, b = -a if first.negate else a, _read(machine, where_b, first.tile_b)
    c = None
    if first.scale_d and (c := sums.take(products)) is None:
        c = _matrices(np.stack([p.block() for p in products]), first)
    how: Any = {"saturate": first.saturate, "wgmma": True}
    if first.columns is None:
        d = multiply(machine, a, b.swapaxes(1, 2), c, first.types, **how)
    else:
        columns = np.stack([p.columns for p in products if p.columns is not None])
        d = sparse_product(machine, a, b.swapaxes(1, 2), c, first.types, columns, **how)
    for product, registers in zip(products, _registers(d, first), strict=True):
        product.put(registers)
    sums.keep(products, d)
    if machine.checking:
        _follow_undefined(machine, products, where_a, where_b)


def _follow_undefined(
    machine: Machine, products: list[Product], where_a: NDArray[np.int64] | None, where_b: NDArray[np.int64]
) -> None:
    """Mark the accumulators that undefined bytes have reached, and unmark those that were computed afresh."""
    first = products[0]
    rows = None if where_a is None else _undefined(machine, where_a, first.tile_a)
    columns = _undefined(machine, where_b, first.tile_b)
    registers = machine.registers
    if rows is not None or columns is not None:
        registers.track()
    if registers.undefined is None:
        return
    bad = np.zeros((len(products), 64, first.n), np.bool_)
    if rows is not None:
        bad |= rows[:, :, None]
    if columns is not None:
        bad |= columns[:, None, :]
    row, column = wgmma_accumulator(first.n, 16 if first.types[0] == "f16" else 32)
    hits: Any = bad[:, row, column].any(-1)
    for product, hit in zip(products, hits, strict=True):
        for bank, slots in product.slots.items():
            flags = registers.undefined[bank]
            where = (list(slots), product.row, slice(product.first, product.first + 128))
            flags[where] = (flags[where] | hit) if product.scale_d else hit


def _matrices(block: NDArray[Any], like: Product) -> NDArray[Any]:
    """Return D `[i, 64, n]` from registers `[i, r, 128]`."""
    i, n = len(block), like.n
    if like.types[0] == "f16":
        halves = np.ascontiguousarray(block).view(np.float16).reshape(i, n // 8, 2, 4, 8, 4, 2)
        return halves.transpose(0, 3, 2, 4, 1, 5, 6).reshape(i, 64, n).astype(np.float32)
    dtype = np.int32 if like.types[0] == "s32" else np.float32
    return block.view(dtype).reshape(i, n // 8, 2, 2, 4, 8, 4).transpose(0, 4, 2, 5, 1, 6, 3).reshape(i, 64, n)


def _registers(d: NDArray[Any], like: Product) -> NDArray[Any]:
    """Return registers `[i, r, 128]` of D `[i, 64, n]`."""
    i, n = len(d), like.n
    if like.types[0] == "f16":
        halves = d.astype(np.float16).reshape(i, 4, 2, 8, n // 8, 4, 2).transpose(0, 4, 2, 1, 3, 5, 6)
        return np.ascontiguousarray(halves).view(np.uint32).reshape(i, n // 4, 128)
    return d.reshape(i, 4, 2, 8, n // 8, 4, 2).transpose(0, 4, 2, 6, 1, 3, 5).reshape(i, n // 2, 128)
