"""Programs that copy boxes of interleaved tensors (PTX ISA 5.5.6): which slices come, in which order, and what lies outside.

Every word of a tensor is its own number, and rows, slices and images have words between them that no coordinate means: what
comes tells where it was. A load says at the end whether its barrier got the bytes that were expected.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import ml_dtypes
import numpy as np

from warpsmith.hardware.tensor_program import TensorProgram, load_program, store_program
from warpsmith.simulator.tensormap import TensorMap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["interleaved_programs"]

_LOAD = "cp.async.bulk.tensor.{}d.shared::cluster.global.{}.mbarrier::complete_tx::bytes"
_STORE = "cp.async.bulk.tensor.{}d.global.shared::cta.{}.bulk_group"
_REDUCE = "cp.reduce.async.bulk.tensor.{}d.global.shared::cta.{}.bulk_group"
_SHAPES = {3: (3, 5, 11), 4: (3, 4, 5, 11), 5: (2, 4, 3, 4, 10)}
"""Images, slices, (depth,) (height,) width."""
_UNITS = (16, 32)


class _Case(NamedTuple):
    """A tensor of slices of `unit` bytes, and a box or a column of it at `at` (W first)."""

    unit: int
    dtype: Any
    shape: tuple[int, ...]
    at: tuple[int, ...]
    options: dict[str, Any]
    size: int
    """Bytes that arrive."""

    @property
    def rank(self) -> int:
        return len(self.shape)

    def map(self, *, floats: bool = False) -> Callable[[], TensorMap]:
        """Return what makes the map of an array of numbered words, or of numbers near one."""

        def make() -> TensorMap:
            padded = (*(n + 1 for n in self.shape[:-1]), self.shape[-1] + 2, self.unit // 4)
            words = np.arange(math.prod(padded), dtype=np.uint32)
            words = (words & 63) * 0x00110013 + 0x3C003C00 if floats else words * 0x00010001 + 0x01010101
            memory = words.reshape(padded).view(self.dtype)
            inside = memory[tuple(slice(n) for n in self.shape)]
            return TensorMap(inside, memory=memory, interleave=f"{self.unit}B", **self.options)

        return make

    def name(self, what: str) -> str:
        shown = {k: v for k, v in self.options.items() if v not in ("none", "zero")}
        words = " ".join(f"{k} {v}" for k, v in shown.items())
        return f"interleave {self.unit}B {what}{np.dtype(self.dtype).name} {words} at {self.at}"


def interleaved_programs() -> Iterator[TensorProgram]:
    """Yield every program."""
    for cases, kinds in (
        (_channel_counts(), "ls"), (_places(), "l"), (_ranks(), "ls"), (_types(), "l"), (_swizzled(), "l"), (_stepped(), "l"),
        (_stored_places(), "s"), (_stored_kinds(), "s"),
    ):  # fmt: skip
        for case in cases:
            if "l" in kinds:
                yield _loaded(case)
            if "s" in kinds:
                yield _stored(case)
    yield from _reductions()
    for case in _columns():
        yield _loaded(case)
    yield from _column_stores()
    yield from _prefetches()
    yield from _multicasts()
    yield from _rewritten()


# --- boxes --------------------------------------------------------------------------------------------------------------


def _case(
    unit: int, dtype: Any, box: tuple[int, ...], at: tuple[int, ...], *, shape: tuple[int, ...] | None = None, **options: Any
) -> _Case:
    """Make a case of a box; of images, W, H, … as many as its steps leave, of slices one."""
    steps = options.get("element_strides") or (1,) * len(box)
    extents = (box[0], 1, *box[2:])
    size = unit * math.prod(-(-n // s) for n, s in zip(extents, steps, strict=True))
    return _Case(unit, dtype, shape or _SHAPES[len(box)], at, {"box": box, **options}, size)


def _per(unit: int, dtype: Any) -> int:
    return unit // np.dtype(dtype).itemsize


def _channel_counts() -> Iterator[_Case]:
    """Boxes of a channel to sixteen slices of them and more: one slice comes, whole."""
    for unit in _UNITS:
        per = _per(unit, np.uint32)
        for channels in (1, per - 1, per, per + 1, 2 * per, 2 * per + 1, 3 * per, 16 * per, 255, 256):
            yield _case(unit, np.uint32, (2, channels, 4), (4, 1, 0))
        yield _case(unit, np.uint64, (2, 256, 2), (2, 1, 0))
        yield _case(unit, np.uint8, (2, 256, 16), (0, 1, 0), shape=(3, 5, 17))


def _places() -> Iterator[_Case]:
    """Boxes before, around, and past every edge."""
    for unit in _UNITS:
        box = (2, 2 * _per(unit, np.uint32) + 1, 4)
        for at in (
            (0, 0, 0), (3, 1, 1), (-1, 0, 0), (-3, -1, -1), (-4, 0, 0), (8, 3, 2), (9, 4, 2), (11, 0, 0), (0, 5, 0), (0, 0, 3),
            (4, 1, 1),
            (0, -3, 0), (0, -2, 0), (0, 0, -1), (0, 0, -2), (7, 2, 1),
        ):  # fmt: skip
            yield _case(unit, np.uint32, box, at)


def _ranks() -> Iterator[_Case]:
    """Boxes of rank 4 and 5, inside and across edges."""
    for unit in _UNITS:
        per = _per(unit, np.uint16)
        for at in ((0, 1, 1, 1), (8, 3, 2, 2), (5, 4, 3, 0)):
            yield _case(unit, np.uint16, (2, 2 * per, 2, 8), at)
        for at in ((0, 1, 1, 1, 0), (8, 2, 1, 2, 1), (3, 3, 2, 3, 0)):
            yield _case(unit, np.uint16, (2, 2 * per + 1, 2, 2, 8), at)
        yield _case(unit, np.uint16, (2, 3 * per, 2, 8), (-1, -1, -1, -1))
        yield _case(unit, np.uint16, (1, 3 * per, 2, 2, 8), (-2, -1, -1, -1, 0))
        yield _case(unit, np.uint16, (1, 3 * per, 2, 2, 8), (-2, 0, -1, 0, 1))


def _types() -> Iterator[_Case]:
    """Every element type, across an edge, with both fills where there are two."""
    plain: tuple[Any, ...] = (np.uint8, np.int32, np.uint64, np.int64)
    floats: tuple[Any, ...] = (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)
    for unit in _UNITS:
        for dtype in (*plain, *floats):
            width = 16 // np.dtype(dtype).itemsize
            box, shape = (1, 2 * _per(unit, dtype) + 1, width), (3, 5, width + width // 2)
            for fill in ("zero", "nan") if dtype in floats else ("zero",):
                yield _case(unit, dtype, box, (width, 3, 1), shape=shape, fill=fill)
            yield _case(unit, dtype, box, (-1, -1, 1), shape=shape)
        for element in ("tf32", "f32_ftz", "tf32_ftz"):
            yield _case(unit, np.float32, (1, 2 * _per(unit, np.float32), 4), (4, 1, 1), element=element)


def _swizzled() -> Iterator[_Case]:
    """Rows narrower and wider than the swizzle."""
    for unit in _UNITS:
        for swizzle in ("32B", "64B", "128B"):
            for dtype, width in ((np.uint64, 2), (np.uint32, 4), (np.uint32, 8), (np.uint16, 16), (np.uint64, 6)):
                box = (2, 2 * _per(unit, dtype) + 1, width)
                first = 16 // np.dtype(dtype).itemsize if width % 4 else -1
                yield _case(unit, dtype, box, (first, 1, 1), swizzle=swizzle, shape=(3, 5, 20))
            yield _case(unit, np.uint32, (1, 2 * _per(unit, np.uint32), 8), (4, 1, 1), swizzle=swizzle)
        yield _case(unit, np.uint16, (2, 2 * _per(unit, np.uint16), 3, 8), (4, 2, 1, 1), swizzle="128B")


def _stepped() -> Iterator[_Case]:
    """Element strides along each dimension."""
    for unit in _UNITS:
        per = _per(unit, np.uint16)
        box, shape = (3, 4 * per, 3, 8), (3, 4, 5, 19)
        for steps in ((1, 1, 1, 2), (1, 1, 1, 3), (1, 1, 1, 8), (1, 1, 2, 1), (1, 2, 1, 1), (1, 3, 1, 1), (2, 1, 1, 1)):
            yield _case(unit, np.uint16, box, (8, 1, 0, 0), shape=shape, element_strides=steps)
        for steps, at in (
            ((2, 2, 2, 2), (-8, -1, -1, -1)), ((2, 2, 2, 2), (-1, -1, -1, -1)), ((2, 3, 2, 3), (-2, 2, 1, 1)),
            ((1, 1, 1, 5), (4, 0, 0, 0)),
            ((1, 4, 1, 1), (0, 0, 1, 1)), ((1, 5, 3, 2), (0, 0, 0, 0)), ((1, 8, 1, 1), (0, 0, 0, 0)),
        ):  # fmt: skip
            yield _case(unit, np.uint16, box, at, element_strides=steps)
        yield _case(unit, np.uint16, (2, 3 * per + 1, 1, 8), (0, 0, 0, 0), element_strides=(1, 2, 1, 1))
        yield _case(unit, np.uint16, (2, per + 1, 1, 8), (0, 0, 0, 0), element_strides=(1, 7, 1, 1))


def _stored_places() -> Iterator[_Case]:
    """Stores across the far edges and before the near ones."""
    for unit in _UNITS:
        box = (2, 2 * _per(unit, np.uint32) + 1, 4)
        for at in (
            (3, 1, 1), (8, 3, 2), (9, 4, 2), (11, 0, 0), (0, 5, 0), (0, 0, 3), (-4, 0, 0), (0, -1, 0), (0, 0, -1), (-4, -3, -2),
        ):  # fmt: skip
            yield _case(unit, np.uint32, box, at)


def _stored_kinds() -> Iterator[_Case]:
    for unit in _UNITS:
        for dtype in (np.uint8, np.float64):
            yield _case(unit, dtype, (1, _per(unit, dtype) + 1, 16 // np.dtype(dtype).itemsize), (0, 1, 1))
        for swizzle, width in (("32B", 4), ("128B", 4), ("128B", 16)):
            yield _case(unit, np.uint32, (2, 2 * _per(unit, np.uint32), width), (4, 1, 1), swizzle=swizzle, shape=(3, 5, 20))
        box = (2, 2 * _per(unit, np.uint16), 3, 8)
        for steps in ((1, 1, 1, 2), (1, 2, 2, 1), (2, 1, 1, 3)):
            yield _case(unit, np.uint16, box, (0, 1, 0, 0), element_strides=steps)


# --- columns of pixels --------------------------------------------------------------------------------------------------


def _column(
    unit: int, at: tuple[int, ...], *, channels: int, pixels: int, lower: tuple[int, ...], upper: tuple[int, ...],
    dtype: Any = np.uint16, shape: tuple[int, ...] | None = None, **options: Any,
) -> _Case:  # fmt: skip
    size = pixels * unit
    held = {"channels": channels, "pixels": pixels, "lower": lower, "upper": upper, **options}
    return _Case(unit, dtype, shape or _SHAPES[len(at)], at, held, size)


def _columns() -> Iterator[_Case]:
    """Columns of few and of many channels; coordinates W, H, D, slice, image."""
    for unit in _UNITS:
        for channels in (8, 16, 24, 32, 48):
            yield _column(unit, (0, 0, 0, 0), channels=channels, pixels=24, lower=(-1, -1), upper=(-1, -1))
        for at in ((3, 2, 1, 1), (-1, -1, 0, 0), (0, 0, -1, 0), (0, 0, 3, 1), (0, 0, 4, 2), (2, 3, 0, 2), (0, 0, 0, -1)):
            yield _column(unit, at, channels=2 * _per(unit, np.uint16), pixels=30, lower=(-1, -1), upper=(-1, -1))
        for lower, upper in (((0, 0), (1, 2)), ((-2, 1), (1, -1)), ((0, 0), (0, 0)), ((-1, -2), (2, 0))):
            at = (lower[1], lower[0], 1, 0)
            yield _column(unit, at, channels=2 * _per(unit, np.uint16), pixels=100, lower=lower, upper=upper)
        yield _column(unit, (-1, 1, 1), channels=24, pixels=40, lower=(-1,), upper=(0,))
        yield _column(unit, (3, 1, 0), channels=32, pixels=20, lower=(0,), upper=(1,), dtype=np.float16, fill="nan")
        for corners in (((-1, -1, -1), (-1, -1, -1)), ((0, -1, 0), (1, 0, -1))):
            yield _column(unit, (0, 0, 0, 1, 0), channels=32, pixels=60, lower=corners[0], upper=corners[1])
        for at in ((0, 0, 0, 2, 0), (1, 1, -1, 2, 0), (2, 1, 0, 3, 1), (-1, -1, -1, 0, 1)):
            yield _column(unit, at, channels=8, pixels=70, lower=(-1, -1, -1), upper=(-1, 0, -1))
        yield _column(
            unit, (1, 1, -1, 1, 0), channels=8, pixels=50, lower=(-1, 0, 1), upper=(-1, -1, 0), element_strides=(1, 1, 2, 2, 3)
        )
        for steps in ((1, 1, 1, 2), (1, 1, 2, 1), (1, 1, 2, 3), (1, 2, 1, 1), (2, 1, 1, 1)):
            held = {"lower": (-1, -1), "upper": (-1, -1), "element_strides": steps}
            yield _column(unit, (-1, -1, 0, 0), channels=48, pixels=24, **held)
        for swizzle in ("32B", "64B", "128B"):
            yield _column(unit, (0, 1, 0, 0), channels=32, pixels=21, lower=(-1, -1), upper=(-1, -1), swizzle=swizzle)
        yield _column(unit, (1, 1, 1, 0), channels=256, pixels=40, lower=(0, 0), upper=(0, 0))
        yield _column(unit, (0, 1, 0, 0), channels=2 * unit // 4, pixels=12, lower=(0, 0), upper=(0, 0), dtype=np.float32)
        yield _column(unit, (0, 1, 0, 0), channels=2 * unit, pixels=12, lower=(0, 0), upper=(0, 0), dtype=np.uint8)


def _column_stores() -> Iterator[TensorProgram]:
    for unit in _UNITS:
        for channels, at, pixels in (
            (16, (0, 1, 0, 0), 30), (32, (0, 0, 0, 2), 60), (48, (2, 3, 3, 1), 30), (16, (10, 3, 0, 0), 30),
            (24, (0, 0, 2, 0), 20), (16, (0, 0, -1, 0), 8), (16, (0, -1, 0, 0), 8),
        ):  # fmt: skip
            yield _stored(_column(unit, at, channels=channels, pixels=pixels, lower=(0, 0), upper=(0, 0)))
        yield _stored(_column(unit, (0, 1, 0, 0), channels=16, pixels=8, lower=(0, 0), upper=(0, -1)))
        yield _stored(_column(unit, (0, 1, 0, 0), channels=16, pixels=8, lower=(0, 0), upper=(0, 1)))
        yield _stored(_column(unit, (0, 1, 0, 0), channels=16, pixels=8, lower=(-1, 0), upper=(0, 0)))
        case = _column(unit, (1, 1, 1, 0), channels=32, pixels=24, lower=(0, 0), upper=(0, 0))
        yield _stored(case._replace(dtype=np.float16), op="add", floats=True)


# --- programs -----------------------------------------------------------------------------------------------------------


def _loaded(case: _Case, mnemonic: str = "", tail: str = "") -> TensorProgram:
    columns = "pixels" in case.options
    offsets: Sequence[int] = range(1, case.rank - 1) if columns and sum(case.at) % 2 else (0,) * (case.rank - 2)
    if columns:
        tail = f", {{{', '.join(map(str, offsets))}}}{tail}"
    copy = mnemonic or _LOAD.format(case.rank, "im2col" if columns else "tile")
    kept = 2 * case.size
    name = case.name("multicast " if mnemonic else "") + (f" offsets {tuple(offsets)}" if columns else "")
    return load_program(name, case.map(), list(case.at), kept, copy, tail=tail, sent=case.size, told=True)


def _stored(case: _Case, op: str = "", *, floats: bool = False) -> TensorProgram:
    mode = "im2col_no_offs" if "pixels" in case.options else "tile"
    copy = _REDUCE.format(case.rank, f"{op}.{mode}") if op else _STORE.format(case.rank, mode)
    made = case.map(floats=floats)
    return store_program(case.name(f"{op} " if op else ""), made, list(case.at), 2 * case.size, copy, narrow=floats)


def _reductions() -> Iterator[TensorProgram]:
    for i, (op, dtype) in enumerate((
        ("add", np.uint32), ("add", np.float16), ("add", ml_dtypes.bfloat16), ("add", np.float32), ("min", np.int32),
        ("max", np.uint64), ("max", np.float16), ("xor", np.uint64), ("and", np.uint32), ("inc", np.uint32),
    )):  # fmt: skip
        unit = _UNITS[i % 2]
        box = (2, 2 * _per(unit, dtype) + 1, 16 // np.dtype(dtype).itemsize)
        at = (7, 3, 2) if i % 3 else (8, 3, 2)
        yield _stored(_case(unit, dtype, box, at), op, floats=np.dtype(dtype).kind not in "iu")


def _prefetches() -> Iterator[TensorProgram]:
    """Hints without a result, which must not fault."""
    for unit in _UNITS:
        for at in ((4, 1, 1), (1, 1, 1), (-1, -1, -1)):
            case = _case(unit, np.uint32, (2, 2 * _per(unit, np.uint32), 4), at)
            where = ", ".join(map(str, at))
            line = f"cp.async.bulk.prefetch.tensor.3d.L2.global.tile [%rd1, {{{where}}}];"
            yield store_program(case.name("prefetch "), case.map(), list(at), case.size, "", line=line)


def _multicasts() -> Iterator[TensorProgram]:
    """Loads that name the CTAs they go to, here the one of the cluster."""
    word = "mbarrier::complete_tx::bytes"
    for unit in _UNITS:
        case = _case(unit, np.float16, (2, 3 * _per(unit, np.float16), 2, 8), (5, 1, 1, 1), swizzle="64B")
        yield _loaded(case, _LOAD.format(4, "tile").replace(word, f"{word}.multicast::cluster"), ", 1")
        case = _column(unit, (2, 1, 1, 0), channels=16, pixels=33, lower=(-1, -1), upper=(0, 0))
        yield _loaded(case, _LOAD.format(4, "im2col").replace(word, f"{word}.multicast::cluster"), ", 1")


def _rewritten() -> Iterator[TensorProgram]:
    """Boxes that the driver encodes no map for: widths whose elements' bytes are no multiple of 16."""
    for unit in _UNITS:
        for dtype, box, at in (
            (np.uint8, (2, 2 * unit, 3), (1, 1, 0)), (np.uint16, (2, unit // 2 + 1, 5), (-1, 1, 0)),
            (np.uint32, (2, unit // 2, 1), (4, 1, 1)), (np.uint16, (3, unit, 7), (8, 3, 1)),
        ):  # fmt: skip
            whole = _case(unit, dtype, (*box[:2], 16), at)
            case = whole._replace(size=whole.size // 16 * box[2])
            program = load_program(
                f"{case.name('rewritten ')} of width {box[2]}", case.map(), list(at), 2 * case.size, _LOAD.format(3, "tile"),
                sent=case.size, told=True, before=_REWRITE.format(width=box[2]),
            )  # fmt: skip
            yield _with_scratch(program)


_REWRITE = """ mov.u32 %r20, 0; ld.param.u64 %rd20, [scratch];
 MOVE: cvt.u64.u32 %rd21, %r20; add.u64 %rd22, %rd1, %rd21; ld.b32 %r21, [%rd22]; add.u64 %rd22, %rd20, %rd21;
 st.global.b32 [%rd22], %r21; add.u32 %r20, %r20, 4; setp.lt.u32 %p5, %r20, 128; @%p5 bra MOVE;
 tensormap.replace.tile.box_dim.global.b1024.b32 [%rd20], 0, {width};
 fence.proxy.tensormap::generic.release.gpu; fence.proxy.tensormap::generic.acquire.gpu [%rd20], 128; mov.u64 %rd1, %rd20;"""


def _with_scratch(p: TensorProgram) -> TensorProgram:
    text = p.text.replace(".param .align 64 .b8 map[128]", ".param .align 64 .b8 map[128], .param .u64 scratch")
    return TensorProgram(p.name, text, lambda: [*p.arguments(), np.zeros(128, np.uint8)], p.block)
