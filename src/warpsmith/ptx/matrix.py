"""Matrix loads and stores between shared memory and warp fragments: `ldmatrix`, `stmatrix`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from warpsmith.base.place import error
from warpsmith.base.ptx_types import TYPES
from warpsmith.dsl.address import Address, address, in_register
from warpsmith.dsl.registers import NegPred, Reg
from warpsmith.dsl.trace import current

__all__ = ["ldmatrix", "stmatrix", "stmatrix_x4_trans_f32_bf16"]

Pred = Reg | NegPred | None

_LOAD_SHAPES = {"m8n8": "b16", "m16n16": "b8", "m8n16": "b8x16"}
_STORE_SHAPES = {"m8n8": "b16", "m16n8": "b8"}


def _words(what: str, layout: str, trans: bool, shape: str, shapes: dict[str, str]) -> tuple[str, int, bool, list[str]]:
    """Split a layout such as `x4`, `m8n8.x4`, `x2.trans`: (shape, matrices, transposed, types)."""
    count, types = 0, []
    if not isinstance(layout, str) or not isinstance(shape, str):
        raise error(f"{what}: layout and shape are text, not {layout!r} and {shape!r}", 'write layout="x4"')
    for word in layout.split("."):
        if word in shapes:
            shape = word
        elif word in ("x1", "x2", "x4"):
            count = int(word[1])
        elif word == "trans":
            trans = True
        elif word in ("b16", "b8", "b8x16", "b6x16_p32", "b4x16_p64"):
            types.append(word)
        else:
            raise error(f"{what}: unknown word {word!r} in layout {layout!r}", "write x1, x2 or x4, with a shape or .trans")
    if not count:
        raise error(f"{what}: the layout {layout!r} does not say how many matrices", "write x1, x2 or x4")
    if shape not in shapes:
        raise error(f"{what}: unknown shape {shape!r}", f"write {', '.join(shapes)}")
    return shape, count, trans, types or [shapes[shape]]


def _registers(value: object) -> list[Reg]:
    return list(value) if isinstance(value, Iterable) else [value]  # type: ignore[list-item]


def ldmatrix(*, dst: Iterable[Reg] | Reg, src: object, layout: str = "x4", trans: bool = False, pred: Pred = None) -> None:
    """Load 8x8 matrices of 16-bit elements into a warp's fragments (`layout` x1, x2, x4; `.trans` transposes).

    `m16n16.x1.b8` (always transposed) and `m8n16.x2.b8x16.b6x16_p32` load 8-bit and packed 6- and 4-bit elements.
    """
    shape, count, trans, types = _words("ptx.ldmatrix", layout, trans, "m8n8", _LOAD_SHAPES)
    if shape == "m8n16" and len(types) == 1 and types[0] == "b8x16":
        raise error("ptx.ldmatrix: m8n16 needs the packed source type", "write m8n16.x1.b8x16.b6x16_p32 or b4x16_p64")
    if shape == "m16n16":
        trans = True
    mods = f"{shape}.x{count}{'.trans' if trans else ''}.shared.{'.'.join(types)}"
    current().emit(f"ldmatrix.sync.aligned.{mods}", (_registers(dst), address(src)), pred)


def stmatrix(
    *, smem: object, regs: Iterable[Reg] | Reg, layout: str = "x4", trans: bool = False, shape: str = "m8n8", pred: Pred = None
) -> None:
    """Store a warp's fragments as 8x8 matrices of 16-bit elements (`shape="m16n8"`: 8-bit, always transposed)."""
    shape, count, trans, types = _words("ptx.stmatrix", layout, trans, shape, _STORE_SHAPES)
    if shape == "m16n8":
        trans = True
    mods = f"{shape}.x{count}{'.trans' if trans else ''}.shared.{'.'.join(types)}"
    current().emit(f"stmatrix.sync.aligned.{mods}", (address(smem), _registers(regs)), pred)


def stmatrix_x4_trans_f32_bf16(
    *, frag: Sequence[Reg], smem_base: object, lane: Reg, row_stride: int, tmp_bf16: Sequence[Reg] | None = None,
    tmp_pack: Sequence[Reg] | None = None,
) -> None:  # fmt: skip
    """Round the f32 accumulators of a wgmma m64nN to bf16 and store them transposed: N rows of 64 values, `row_stride`
    elements apart.

    `frag` is in wgmma's order, `lane` the thread of the warpgroup (0 to 127). `tmp_pack` (4 b32 registers) holds the packed
    values; with `tmp_bf16` (8 16-bit registers) values are rounded one by one before they are packed.
    """
    registers = list(frag)
    if not registers or len(registers) % 8:
        raise error(f"a wgmma accumulator of m64nN has a multiple of 8 registers for 16 columns, and this has {len(registers)}")
    if not isinstance(row_stride, int) or row_stride < 64 or row_stride % 8:
        raise error(f"row_stride is a multiple of 8 elements, at least 64, not {row_stride!r}")
    for what, given, size in (("tmp_bf16", tmp_bf16, 8), ("tmp_pack", tmp_pack, 4)):
        if given is not None and len(given) != size:
            raise error(f"{what} is {size} registers, and this has {len(given)}")
    trace = current()
    where = _fragment_address(smem_base, lane, row_stride)
    packed = list(tmp_pack) if tmp_pack is not None else [trace.new(TYPES["b32"]) for _ in range(4)]
    for start in range(0, len(registers), 8):
        part = registers[start : start + 8]
        if tmp_bf16 is not None:
            for half, value in zip(tmp_bf16, part, strict=True):
                trace.emit("cvt.rn.bf16.f32", (half, value))
        for i, register in enumerate(packed):
            if tmp_bf16 is not None:
                trace.emit("mov.b32", (register, [tmp_bf16[2 * i], tmp_bf16[2 * i + 1]]))
            else:
                trace.emit("cvt.rn.bf16x2.f32", (register, part[2 * i + 1], part[2 * i]))
        stmatrix(smem=Address(where, start * 2 * row_stride * 2), regs=packed, layout="x4", trans=True)


def _fragment_address(smem_base: object, lane: Reg, row_stride: int) -> Reg:
    """Address of the row that this lane points stmatrix at, for the first 16 columns."""
    trace = current()
    column = (lane & 7) * row_stride
    column += ((lane >> 4) & 1) * (8 * row_stride)
    column += lane & 8
    column += (lane >> 5) << 4
    return in_register(trace, smem_base) + (column << 1)
