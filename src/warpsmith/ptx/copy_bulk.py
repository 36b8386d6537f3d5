"""`ptx.cp.async_.bulk`: bulk tensor copies (TMA, PTX ISA 9.7.9.27.1.2).

    tensor_2d(dst=, src=, coord=, mbar=)          global → shared memory, bytes complete on the mbarrier
    tensor_2d.store(dst=, src=, coord=)           shared → global memory, in the thread's bulk group
    tensor.im2col_4d(…, offsets=)                 tensor.gather4_2d, tensor.scatter4_2d

`coord` lists element coordinates, innermost first: ints or 32-bit registers. A load's `src` and a store's `dst` is
`tensor.tma_desc()`.
"""

from __future__ import annotations

from typing import final

from warpsmith.base.place import error
from warpsmith.base.ptx_types import TYPES
from warpsmith.dsl.address import TensorAddress, address, locate
from warpsmith.dsl.registers import NegPred, Reg
from warpsmith.dsl.tensor import TensorSpec, TmaDescriptorHandle
from warpsmith.dsl.trace import current

__all__ = ["Bulk"]

Pred = Reg | NegPred | None
Coordinates = tuple[int | Reg, ...] | list[int | Reg]


def tensor_address(tensor: object, coord: Coordinates | int | Reg, rank: int, extra: int = 0) -> TensorAddress:
    """Return `[descriptor, {coordinates}]`; check the number of coordinates (`rank + extra`) and the descriptor's rank."""
    if isinstance(tensor, TensorSpec):
        tensor = tensor.tma_desc()
    if isinstance(tensor, TmaDescriptorHandle) and tensor.tensor.tile.tma_rank != rank:
        of = tensor.tensor
        raise error(
            f"the TMA descriptor of {of.name} has {of.tile.tma_rank} dimensions, and this copies {rank}",
            f"write tensor_{of.tile.tma_rank}d, or give the Tile tma_rank={rank}",
        )
    if not isinstance(coord, (int, Reg, tuple, list)):
        raise error(f"coord is a tuple of ints and registers, not {type(coord).__name__}", "innermost dimension first")
    coords = [coord] if isinstance(coord, (int, Reg)) else list(coord)
    if len(coords) != rank + extra:
        raise error(f"{len(coords)} coordinates where {rank + extra} are needed", "innermost dimension first")
    for c in coords:
        if isinstance(c, Reg) and (c.dtype.bits != 32 or c.dtype.kind in ("float", "packed")):
            raise error(f"a coordinate is a 32-bit integer register, and {c.name} is {c.dtype}")
        if not isinstance(c, (int, Reg)):
            raise error(f"a coordinate is an int or a register, not {type(c).__name__}")
    base, offset = locate(tensor)
    if isinstance(base, Reg) and base.dtype.bits != 64:
        raise error(f"a TMA descriptor's address has 64 bits, and {base.name} is {base.dtype}", "write tensor.tma_desc()")
    return TensorAddress(base, offset, tuple(coords))


def mask_operand(mask: int | Reg) -> int | Reg:
    """Return a 16-bit CTA mask: a 32-bit register is converted first."""
    if isinstance(mask, Reg):
        if mask.dtype.bits == 16:
            return mask
        narrow = current().new(TYPES["u16"])
        current().emit("cvt.u16.u32", (narrow, mask))
        return narrow
    if not isinstance(mask, int) or not 0 < mask < 1 << 16:
        raise error(f"a multicast mask has bits 0 to 15 and at least one of them, not {mask!r}")
    narrow = current().new(TYPES["u16"])
    current().emit("mov.u16", (narrow, mask))
    return narrow


def _group(cta_group: int) -> str:
    if cta_group not in (1, 2):
        raise error(f"cta_group is 1 or 2, not {cta_group!r}")
    return ".cta_group::2" if cta_group == 2 else ""


def load(
    space: str, mode: str, rank: int, dst: object, source: TensorAddress, mbar: object, cta_group: int = 1,
    mask: int | Reg | None = None, offsets: Coordinates | None = None, pred: Pred = None,
) -> None:  # fmt: skip
    """Emit a bulk tensor load."""
    words = f"{rank}d.{space}.global.{mode}.mbarrier::complete_tx::bytes"
    operands: list[object] = [address(dst), source, address(mbar)]
    if offsets is not None:
        operands.append([_offset(o) for o in offsets])
    if mask is not None:
        words += ".multicast::cluster"
        operands.append(mask_operand(mask))
    current().emit(f"cp.async.bulk.tensor.{words}{_group(cta_group)}", operands, pred)


def _offset(value: int | Reg) -> Reg:
    """An im2col offset is a 16-bit register."""
    if isinstance(value, Reg):
        return value
    narrow = current().new(TYPES["u16"])
    current().emit("mov.u16", (narrow, value))
    return narrow


@final
class TensorCopy:
    """`tensor_{rank}d`: calling it loads, `.store` stores."""

    __slots__ = ("_rank",)

    def __init__(self, rank: int) -> None:
        self._rank = rank

    def __call__(
        self, *, dst: object, src: object, coord: Coordinates | int | Reg, mbar: object, cta_group: int = 1,
        multicast_mask: int | Reg | None = None, pred: Pred = None,
    ) -> None:  # fmt: skip
        """Load one box into shared memory (of every CTA in `multicast_mask`); its bytes complete on `mbar`."""
        source = tensor_address(src, coord, self._rank)
        load("shared::cluster", "tile", self._rank, dst, source, mbar, cta_group, multicast_mask, pred=pred)

    def shared_cta_global_tile(
        self, *, dst: object, src: object, coord: Coordinates | int | Reg, mbar: object, cta_group: int = 1, pred: Pred = None
    ) -> None:
        """Load one box into this CTA; the barrier is its own (PTX ISA 9.7.10.28.5.3: for the peer's, call `tensor_{rank}d`)."""
        load("shared::cta", "tile", self._rank, dst, tensor_address(src, coord, self._rank), mbar, cta_group, pred=pred)

    def store(self, *, dst: object, src: object, coord: Coordinates | int | Reg, pred: Pred = None) -> None:
        """Store one box from shared memory to the tensor `dst`."""
        words = f"{self._rank}d.global.shared::cta.tile.bulk_group"
        current().emit(f"cp.async.bulk.tensor.{words}", (tensor_address(dst, coord, self._rank), address(src)), pred)


@final
class TensorForms:
    """`ptx.cp.async_.bulk.tensor`: every form by name, `tile_2d`, `store_2d`, `im2col_4d`, `gather4_2d`, `scatter4_2d`."""

    __slots__ = ()

    def gather4_2d(
        self, *, dst: object, src: object, coord: Coordinates, mbar: object, cta_group: int = 1,
        multicast_mask: int | Reg | None = None, pred: Pred = None,
    ) -> None:  # fmt: skip
        """Load four rows of a 2-D tensor: `coord` is (column, row, row, row, row)."""
        source = tensor_address(src, coord, 2, extra=3)
        space = "shared::cta" if multicast_mask is None else "shared::cluster"
        load(space, "tile::gather4", 2, dst, source, mbar, cta_group, multicast_mask, pred=pred)

    def scatter4_2d(self, *, dst: object, src: object, coord: Coordinates, pred: Pred = None) -> None:
        """Store four rows of a 2-D tensor: `coord` is (column, row, row, row, row)."""
        target = tensor_address(dst, coord, 2, extra=3)
        current().emit("cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group", (target, address(src)), pred)

    def _im2col(
        self, rank: int, dst: object, src: object, coord: Coordinates, offsets: Coordinates, mbar: object, cta_group: int,
        multicast_mask: int | Reg | None, pred: Pred,
    ) -> None:  # fmt: skip
        if not isinstance(offsets, (tuple, list)) or len(offsets) != rank - 2:
            raise error(f"im2col of {rank} dimensions has {rank - 2} offsets, not {offsets!r}")
        source = tensor_address(src, coord, rank)
        load("shared::cluster", "im2col", rank, dst, source, mbar, cta_group, multicast_mask, offsets, pred)

    def im2col_3d(
        self, *, dst: object, src: object, coord: Coordinates, offsets: Coordinates, mbar: object, cta_group: int = 1,
        multicast_mask: int | Reg | None = None, pred: Pred = None,
    ) -> None:  # fmt: skip
        """Load a 3-D tensor in im2col mode with one offset."""
        self._im2col(3, dst, src, coord, offsets, mbar, cta_group, multicast_mask, pred)

    def im2col_4d(
        self, *, dst: object, src: object, coord: Coordinates, offsets: Coordinates, mbar: object, cta_group: int = 1,
        multicast_mask: int | Reg | None = None, pred: Pred = None,
    ) -> None:  # fmt: skip
        """Load a 4-D tensor in im2col mode with two offsets."""
        self._im2col(4, dst, src, coord, offsets, mbar, cta_group, multicast_mask, pred)

    def im2col_5d(
        self, *, dst: object, src: object, coord: Coordinates, offsets: Coordinates, mbar: object, cta_group: int = 1,
        multicast_mask: int | Reg | None = None, pred: Pred = None,
    ) -> None:  # fmt: skip
        """Load a 5-D tensor in im2col mode with three offsets."""
        self._im2col(5, dst, src, coord, offsets, mbar, cta_group, multicast_mask, pred)

    def im2col_store(self, rank: int, *, dst: object, src: object, coord: Coordinates, pred: Pred = None) -> None:
        """Store to a tensor of `rank` 3 to 5 in im2col mode (without offsets)."""
        if rank not in (3, 4, 5):
            raise error(f"im2col has 3 to 5 dimensions, not {rank!r}")
        target = tensor_address(dst, coord, rank)
        current().emit(
            f"cp.async.bulk.tensor.{rank}d.global.shared::cta.im2col_no_offs.bulk_group", (target, address(src)), pred
        )

    tile_1d, tile_2d, tile_3d, tile_4d, tile_5d = (TensorCopy(n) for n in range(1, 6))
    store_1d, store_2d, store_3d, store_4d, store_5d = (TensorCopy(n).store for n in range(1, 6))


@final
class Bulk:
    """`ptx.cp.async_.bulk`."""

    __slots__ = ()

    tensor = TensorForms()
    tensor_1d, tensor_2d, tensor_3d, tensor_4d, tensor_5d = (TensorCopy(n) for n in range(1, 6))

    def commit_group(self, *, pred: Pred = None) -> None:
        """Close the group of bulk stores issued so far."""
        current().emit("cp.async.bulk.commit_group", (), pred)

    def wait_group(self, n: int, *, read: bool = False, pred: Pred = None) -> None:
        """Wait until at most `n` groups are in flight; with `read`, until they have read their sources."""
        if not isinstance(n, int) or n < 0:
            raise error(f"cp.async.bulk.wait_group takes a number of groups from 0, not {n!r}")
        current().emit(f"cp.async.bulk.wait_group{'.read' if read else ''}", (n,), pred)
