"""`Tile`: shape, element type, layout and TMA box of a tensor argument of a kernel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from warpsmith.base.errors import InputError
from warpsmith.base.layout import Layout
from warpsmith.base.matrix_layout import layout_for_a, layout_for_b
from warpsmith.base.place import error
from warpsmith.base.ptx_types import TYPES, PtxType

if TYPE_CHECKING:
    from warpsmith.base.matrix_layout import GmmaLayout

__all__ = ["Box", "Dim", "Tile", "unify_envs"]

Dim = int | str


@final
@dataclass(frozen=True, slots=True)
class Box:
    """What a TMA descriptor needs, innermost dimension first: extents, strides in bytes (without the innermost), box."""

    extents: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: str | None
    dtype: PtxType

    @property
    def nbytes(self) -> int:
        """Bytes that one load writes."""
        count = 1
        for b in self.box:
            count *= b
        return count * self.dtype.bits // 8


@final
class Tile:
    """`Tile("M", "K", bf16, Layout.TMA_128B, tma_box=(64, 64))`: dimensions are ints or names shared by the kernel's tiles."""

    __slots__ = ("dims", "dtype", "layout", "tma_box", "tma_padding", "tma_rank")

    def __init__(
        self, *dims: Dim | PtxType | Layout, dtype: PtxType | None = None, layout: Layout | None = None,
        tma_box: tuple[int, ...] | None = None, tma_rank: int | None = None, tma_padding: bool = False,
    ) -> None:  # fmt: skip
        shape: list[Dim] = []
        typed = False
        for d in dims:
            if isinstance(d, PtxType) and dtype is None:
                dtype, typed = d, True
            elif isinstance(d, Layout) and layout is None:
                layout, typed = d, True
            elif isinstance(d, (int, str)) and not isinstance(d, bool) and not typed:
                shape.append(d)
            else:
                raise error(f"Tile: {d!r} is out of place; write Tile(dims…, dtype, layout)")
        if not shape or any((d < 1 if isinstance(d, int) else not d.isidentifier()) for d in shape):
            raise error(f"Tile: a dimension is a positive int or a name, got {tuple(shape)!r}")
        self.dims = tuple(shape)
        self.dtype = TYPES["f32"] if dtype is None else dtype
        self.layout = Layout.ROW if layout is None else layout
        self.tma_box = None if tma_box is None else tuple(tma_box)
        self.tma_rank = len(shape) if tma_rank is None else tma_rank
        self.tma_padding = tma_padding
        self._check_box()

    def _check_box(self) -> None:
        if self.tma_rank not in (len(self.dims), 3) or (self.tma_rank != len(self.dims) and len(self.dims) != 2):
            raise error(f"Tile: tma_rank={self.tma_rank} does not fit {len(self.dims)} dimensions; rank 3 views two as three")
        if self.tma_padding and self.tma_rank != 3:
            raise error("Tile: tma_padding=True needs tma_rank=3, whose inner box extent it widens from 64 to 72")
        box = self.tma_box
        if box is None:
            return
        if len(box) != len(self.dims):
            raise error(f"Tile: tma_box {box} has {len(box)} extents for {len(self.dims)} dimensions")
        self._check_extents(self._view_box(box))

    def _view_box(self, box: tuple[int, ...]) -> tuple[int, ...]:
        """The box innermost first, as the descriptor has it."""
        if self.tma_rank == 3 and len(self.dims) == 2:
            columns = self.group
            if box[1] % columns:
                raise error(f"Tile: with tma_rank=3 the inner box extent is a multiple of {columns}, got {box[1]}")
            return (columns + 8 if self.tma_padding else columns, box[0], box[1] // columns)
        return tuple(reversed(box)) if self.layout is not Layout.COL else tuple(box)

    @property
    def group(self) -> int:
        """Elements of a 128-byte row: the inner extent of the rank-3 view (64 for 16-bit types)."""
        return 128 * 8 // self.dtype.bits

    def _check_extents(self, box: tuple[int, ...]) -> None:
        for extent in box:
            if not 1 <= extent <= 256:
                raise error(f"Tile: a TMA box has extents from 1 to 256, got {extent} in tma_box={self.tma_box}")
        inner = box[0] * self.dtype.bits // 8
        if inner % 16:
            raise error(
                f"Tile: the inner extent of a TMA box is a multiple of 16 bytes, and {box[0]} x {self.dtype} is {inner}"
            )
        if self.layout.span and inner > self.layout.span:
            raise error(
                f"Tile: {self.layout.name} needs an inner box extent of at most {self.layout.span} bytes, and "
                f"{box[0]} x {self.dtype} is {inner}; write tma_box=(…, {self.layout.span * 8 // self.dtype.bits})"
            )

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.dims)

    @property
    def symbolic_dims(self) -> tuple[str, ...]:
        """The named dimensions, each once, in order."""
        return tuple(dict.fromkeys(d for d in self.dims if isinstance(d, str)))

    def resolve_shape(self, env: Mapping[str, int]) -> tuple[int, ...]:
        """Return the shape with names replaced by `env`; `InputError` for a name it lacks."""
        out: list[int] = []
        for d in self.dims:
            if isinstance(d, str):
                if d not in env:
                    raise InputError(f"the dimension {d!r} has no value; known: {', '.join(env) or 'none'}")
                d = env[d]
            out.append(d)
        return tuple(out)

    def matches(self, shape: Iterable[int], dtype: PtxType) -> bool:
        """Say whether a tensor of this shape and type can be the argument."""
        shape = tuple(shape)
        if dtype != self.dtype or len(shape) != len(self.dims):
            return False
        return self._env_or_none(shape) is not None

    def _env_or_none(self, shape: tuple[int, ...]) -> dict[str, int] | None:
        env: dict[str, int] = {}
        for want, got in zip(self.dims, shape, strict=True):
            if (env.setdefault(want, got) if isinstance(want, str) else want) != got:
                return None
        return env

    def extract_env(self, shape: Iterable[int]) -> dict[str, int]:
        """Return name → extent for a tensor of `shape`; `InputError` when it cannot be the argument."""
        shape = tuple(shape)
        if len(shape) != len(self.dims):
            raise InputError(f"a tensor of shape {shape} where {self} has {len(self.dims)} dimensions")
        env = self._env_or_none(shape)
        if env is None:
            raise InputError(f"a tensor of shape {shape} does not fit {self}")
        return env

    def descriptor(self, env: Mapping[str, int]) -> Box:
        """Return the TMA view of a tensor whose dimensions are named in `env`; `KernelError` for one that cannot be."""
        shape = self.resolve_shape(env)
        if self.layout is Layout.INTERLEAVED:
            raise error("Tile: Layout.INTERLEAVED has no TMA descriptor; use Layout.ROW or Layout.TMA_128B")
        size = self.dtype.bits
        if self.tma_rank == 3 and self.rank == 2:
            if shape[1] % self.group:
                raise error(f"Tile: with tma_rank=3 the inner extent is a multiple of {self.group}, got {shape[1]}")
            extents, strides = (self.group, shape[0], shape[1] // self.group), (shape[1] * size // 8, 128)
        else:
            extents = tuple(reversed(shape)) if self.layout is not Layout.COL else shape
            strides, step = [], size
            for extent in extents[:-1]:
                step *= extent
                strides.append(step // 8)
            strides = tuple(strides)
        for s in strides:
            if s % 16:
                raise error(f"Tile: TMA needs strides that are multiples of 16 bytes, and {self} has one of {s}")
        box = self._view_box(self.tma_box or self._default_box(shape))
        self._check_extents(box)
        return Box(extents, strides, box, self.layout.swizzle, self.dtype)

    def check_descriptor(self, env: Mapping[str, int]) -> None:
        """Raise `KernelError` for what is already known to be wrong with the TMA view, though names may lack a value."""
        if all(isinstance(d, int) or d in env for d in self.dims):
            self.descriptor(env)
        elif self.layout is Layout.INTERLEAVED:
            raise error("Tile: Layout.INTERLEAVED has no TMA descriptor; use Layout.ROW or Layout.TMA_128B")

    def _default_box(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The whole tensor, the inner extent cut to the swizzle."""
        inner = min(shape[-1], self.layout.span * 8 // self.dtype.bits) if self.layout.span else shape[-1]
        return (*shape[:-1], inner)

    @classmethod
    def _for_wgmma(cls, dims: tuple[Dim, Dim], dtype: PtxType, layout: GmmaLayout, box: tuple[int, int]) -> Tile:
        kind = {"NONE": Layout.ROW}.get(layout.tma_swizzle) or Layout[f"TMA_{layout.tma_swizzle}"]
        inner = min(box[1], kind.span * 8 // dtype.bits) if kind.span else box[1]
        return cls(*dims, dtype, kind, tma_box=(box[0], inner))

    @classmethod
    def wgmma_a(cls, m: Dim, k: Dim, dtype: PtxType, *, tile_m: int, tile_k: int) -> Tile:
        """Return the tile of operand A, (M, K) row-major, loaded in boxes that wgmma reads K-major."""
        return cls._for_wgmma((m, k), dtype, layout_for_a(dtype=dtype, m=tile_m, k=tile_k), (tile_m, tile_k))

    @classmethod
    def wgmma_b(cls, k: Dim, n: Dim, dtype: PtxType, *, tile_k: int, tile_n: int) -> Tile:
        """Return the tile of operand B, (K, N) row-major, loaded in boxes that wgmma reads MN-major."""
        return cls._for_wgmma((k, n), dtype, layout_for_b(dtype=dtype, k=tile_k, n=tile_n), (tile_k, tile_n))

    def _key(self) -> tuple[object, ...]:
        return self.dims, self.dtype, self.layout, self.tma_box, self.tma_rank, self.tma_padding

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tile) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        parts = [repr(d) for d in self.dims] + [self.dtype.name]
        if self.layout is not Layout.ROW:
            parts.append(f"Layout.{self.layout.name}")
        if self.tma_box is not None:
            parts.append(f"tma_box={self.tma_box}")
        return f"Tile({', '.join(parts)})"


def unify_envs(envs: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Merge the dimensions found in several tensors; `InputError` when two disagree."""
    out: dict[str, int] = {}
    for env in envs:
        for name, value in env.items():
            if out.setdefault(name, value) != value:
                raise InputError(f"the dimension {name!r} is {out[name]} in one tensor and {value} in another")
    return out
