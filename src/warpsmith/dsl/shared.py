"""Handles to shared memory: allocations, slices of them, barriers. All know their address as (base, byte offset)."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, final

from warpsmith.base.place import error
from warpsmith.base.ptx_types import PtxType
from warpsmith.dsl.address import Address, symbol_register
from warpsmith.dsl.registers import Reg, move
from warpsmith.dsl.trace import current

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warpsmith.base.matrix_layout import GmmaLayout

__all__ = ["SWIZZLES", "MbarrierArray", "MbarrierRef", "SharedAlloc", "SharedSlice", "apply_swizzle", "memory_type"]

SWIZZLES = {"128B": 7, "64B": 3, "32B": 1}
"""swizzle -> which of the address bits 7… are XORed into the bits 4…."""

Index = int | Reg


def normal_swizzle(swizzle: str | None) -> str | None:
    """Return `swizzle` as `128B`, `64B`, `32B` or None; raise `KernelError` on anything else."""
    if swizzle is None or swizzle == "NONE":
        return None
    if swizzle not in SWIZZLES:
        raise error(f"unknown swizzle {swizzle!r}", 'write "128B", "64B", "32B" or None')
    return swizzle


def apply_swizzle(offset: Reg, swizzle: str | None) -> Reg:
    """Return where the byte at logical `offset` of a swizzled tile lies: 16-byte chunks XORed by the row (3 instructions)."""
    swizzle = normal_swizzle(swizzle)
    if swizzle is None:
        return offset
    return offset ^ ((offset & (SWIZZLES[swizzle] << 7)) >> 3)


def memory_type(dtype: PtxType) -> str:
    """Return the type that ld and st use for values of `dtype`: floats of 16 bits and less and packed types are bits."""
    if not isinstance(dtype, PtxType) or dtype.name == "pred":
        raise error(f"shared memory needs a type of warpsmith.types, not {dtype!r}", "write e.g. smem.load(f32, address)")
    return dtype.name if dtype.name in ("f32", "f64") or dtype.kind in ("unsigned", "signed") else f"b{dtype.bits}"


def _element_bytes(dtype: PtxType, count: int) -> int:
    return dtype.bits * count // 8


def scaled_offset(base: Reg | str, offset: int, index: Index, stride: int) -> tuple[Reg | str, int]:
    """Return (base, offset) moved on by `index * stride` bytes, with instructions when `index` is a register."""
    if isinstance(index, Reg):
        if isinstance(base, str):
            base = symbol_register(index.scope.trace, base)
        if stride & (stride - 1) == 0 and stride > 1:
            return base + (index << stride.bit_length() - 1), offset
        return base + index * stride, offset
    return base, offset + index * stride


class _Tile:
    """What an allocation and its slices share: shape, element type, location, element access."""

    __slots__ = ("_base", "_offset", "dtype", "shape", "swizzle")

    def __init__(self, dtype: PtxType, shape: tuple[int, ...], swizzle: str | None, base: Reg | str, offset: int) -> None:
        self.dtype = dtype
        self.shape = shape
        self.swizzle = swizzle
        self._base = base
        self._offset = offset

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return _element_bytes(self.dtype, prod(self.shape))

    def location(self) -> tuple[Reg | str, int]:
        """Return (base, byte offset)."""
        return self._base, self._offset

    def _slice(self, index: Index) -> SharedSlice:
        if len(self.shape) < 2:
            raise error(f"a tile of shape {self.shape} has no slices", "use ptx.addr(tile, byte_offset)")
        if isinstance(index, int):
            if not -self.shape[0] <= index < self.shape[0]:
                raise error(f"slice {index} is outside the first dimension of {self.shape}")
            index %= self.shape[0]
        elif not isinstance(index, Reg):
            raise error(f"a slice index is an int or a register, not {type(index).__name__}")
        stride = _element_bytes(self.dtype, prod(self.shape[1:]))
        base, offset = scaled_offset(self._base, self._offset, index, stride)
        return SharedSlice(self, index, base, offset)

    def _element(self, indices: tuple[Index, ...]) -> Address:
        if len(indices) != len(self.shape):
            raise error(f"{len(indices)} indices for a tile of shape {self.shape}", "give one index for each dimension")
        fixed, moving = 0, None
        stride = _element_bytes(self.dtype, prod(self.shape))
        width = _element_bytes(self.dtype, self.shape[-1])
        if self.swizzle is not None and width > int(self.swizzle[:-1]):
            raise error(
                f"rows of {width} bytes are stored in stripes of {self.swizzle}, which [row, col] does not address",
                "compute the address: stripe offset + smem.apply_swizzle(row * 128 + byte)",
            )
        if self.dtype.bits < 8:
            raise error(f"elements of type {self.dtype} are smaller than a byte and have no address")
        for extent, index in zip(self.shape, indices, strict=True):
            stride //= extent
            if isinstance(index, Reg):
                moving = index * stride if moving is None else moving + index * stride
            elif isinstance(index, int) and 0 <= index < extent:
                fixed += index * stride
            else:
                raise error(f"index {index!r} is outside a dimension of {extent} (shape {self.shape})")
        return self._swizzled(fixed, moving)

    def _swizzled(self, fixed: int, moving: Reg | None) -> Address:
        if self.swizzle is not None:
            if moving is None:
                fixed ^= (fixed >> 7 & SWIZZLES[self.swizzle]) << 4
            else:
                moving, fixed = apply_swizzle(moving + fixed if fixed else moving, self.swizzle), 0
        if moving is None:
            return Address(self._base, self._offset + fixed)
        base = symbol_register(current(), self._base) if isinstance(self._base, str) else self._base
        return Address(base + moving, self._offset + fixed)

    def __getitem__(self, index: Index | tuple[Index, ...]) -> SharedSlice | Reg:
        """`tile[stage]` is a slice (its address includes the stage's offset); `tile[row, col]` loads an element."""
        if isinstance(index, tuple):
            if len(index) < len(self.shape):
                part: _Tile = self
                for i in index:
                    part = part._slice(i)
                return part  # type: ignore[return-value]
            where = self._element(index)
            trace = current()
            result = trace.new(self.dtype)
            trace.emit(f"ld.shared.{memory_type(self.dtype)}", (result, where))
            return result
        if len(self.shape) == 1:
            return self[(index,)]
        return self._slice(index)

    def __setitem__(self, index: Index | tuple[Index, ...], value: object) -> None:
        """Store an element: `tile[row, col] = reg`."""
        indices = index if isinstance(index, tuple) else (index,)
        where = self._element(indices)
        trace = current()
        if not isinstance(value, Reg):
            register = trace.new(self.dtype)
            move(register, value)
            value = register
        trace.emit(f"st.shared.{memory_type(self.dtype)}", (where, value))


@final
class SharedAlloc(_Tile):
    """A shared-memory allocation."""

    __slots__ = ("align", "gmma_layout", "gmma_major", "name")

    def __init__(
        self, name: str, dtype: PtxType, shape: tuple[int, ...], swizzle: str | None, symbol: str, offset: int, align: int,
        gmma_layout: GmmaLayout | None = None, gmma_major: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(dtype, shape, swizzle, symbol, offset)
        self.name = name
        self.align = align
        self.gmma_layout = gmma_layout
        self.gmma_major = gmma_major

    @property
    def byte_offset(self) -> int:
        """Offset in the dynamic shared memory; 0 for a static variable."""
        return self._offset

    def __repr__(self) -> str:
        return f"SharedAlloc({self.name}, {self.dtype}, {self.shape})"


@final
class SharedSlice(_Tile):
    """A part of an allocation along its first dimension: `alloc[stage]`."""

    __slots__ = ("alloc", "stage")

    def __init__(self, whole: _Tile, stage: Index, base: Reg | str, offset: int) -> None:
        super().__init__(whole.dtype, whole.shape[1:], whole.swizzle, base, offset)
        self.alloc: SharedAlloc = whole.alloc if isinstance(whole, SharedSlice) else whole  # type: ignore[assignment]
        self.stage = stage

    @property
    def name(self) -> str:
        """Name of the allocation."""
        return self.alloc.name

    @property
    def gmma_layout(self) -> GmmaLayout | None:
        """Layout of the allocation for wgmma, if it was made for it."""
        return self.alloc.gmma_layout

    @property
    def gmma_major(self) -> str | None:
        """`K` or `MN`, if the allocation was made for wgmma."""
        return self.alloc.gmma_major


@final
class MbarrierArray:
    """`count` mbarriers of 8 bytes in shared memory."""

    __slots__ = ("_base", "_offset", "count", "name")

    def __init__(self, name: str, count: int, base: Reg | str, offset: int) -> None:
        self.name = name
        self.count = count
        self._base = base
        self._offset = offset

    @property
    def byte_offset(self) -> int:
        """Offset in the dynamic shared memory; 0 for a static variable."""
        return self._offset

    def location(self) -> tuple[Reg | str, int]:
        """Return (base, byte offset) of the first barrier."""
        return self._base, self._offset

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[MbarrierRef]:
        return (self[i] for i in range(self.count))

    def __getitem__(self, index: Index) -> MbarrierRef:
        if isinstance(index, int):
            if not -self.count <= index < self.count:
                raise error(f"barrier {index} is outside {self.name} with its {self.count} barriers")
            index %= self.count
        elif not isinstance(index, Reg):
            raise error(f"a barrier's index is an int or a register, not {type(index).__name__}")
        return MbarrierRef(self, index, *scaled_offset(self._base, self._offset, index, 8))


@final
class MbarrierRef:
    """One mbarrier."""

    __slots__ = ("_base", "_offset", "array", "idx")

    def __init__(self, array: MbarrierArray, index: Index, base: Reg | str, offset: int) -> None:
        self.array = array
        self.idx = index
        self._base = base
        self._offset = offset

    @property
    def name(self) -> str:
        """Name of the array."""
        return self.array.name

    @property
    def byte_offset(self) -> int:
        """Byte offset from the array's base symbol."""
        return self._offset

    def location(self) -> tuple[Reg | str, int]:
        """Return (base, byte offset)."""
        return self._base, self._offset
