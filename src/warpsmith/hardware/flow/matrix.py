"""Steps of a whole warp: matrices in shared memory, loaded, multiplied, transposed, stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.hardware.flow.nodes import Group

if TYPE_CHECKING:
    from warpsmith.hardware.flow.nodes import Node
    from warpsmith.hardware.flow.writer import Scope, Writer

__all__ = ["TILE", "matrices", "product"]

TILE = 1024
"""Bytes of a warp's tile in shared memory."""
_PRODUCTS = """
m16n8k16.row.col.f32.f16.f16.f32 4 2 4
m16n8k16.row.col.f16.f16.f16.f16 4 2 2
m16n8k8.row.col.f32.bf16.bf16.f32 2 1 4
m16n8k16.row.col.f32.bf16.bf16.f32 4 2 4
m16n8k8.row.col.f32.tf32.tf32.f32 4 2 4
m16n8k4.row.col.f32.tf32.tf32.f32 2 1 4
m16n8k8.row.col.f32.f16.f16.f32 2 1 4
m16n8k32.row.col.s32.s8.s8.s32 4 2 4
m16n8k32.row.col.satfinite.s32.u8.s8.s32 4 2 4
m16n8k16.row.col.s32.u8.u8.s32 2 1 4
m8n8k16.row.col.s32.s8.u8.s32 1 1 2
m16n8k256.row.col.s32.b1.b1.s32.and.popc 4 2 4
m16n8k64.row.col.s32.s4.s4.s32 4 2 4
m8n8k32.row.col.s32.u4.s4.s32 1 1 2
m16n8k32.row.col.f32.e4m3.e5m2.f32 4 2 4
"""
"""`mma.sync.aligned` words, then how many registers A, B and C have."""


def _row(text: str) -> tuple[str, int, int, int]:
    name, *counts = text.split()
    a, b, c = map(int, counts)
    return name, a, b, c


_ROWS = [_row(part) for part in _PRODUCTS.strip().split("\n")]


def _list(registers: list[str]) -> str:
    return f"{{{', '.join(registers)}}}"


def product(w: Writer, scope: Scope) -> Node | None:
    """Return a product of registers."""
    if not scope.warp:
        return None
    name, a, b, c = w.stream.choice(_ROWS)
    into = w.several(scope, c)
    # ptxas overwrites C too early where it builds a product of 8-bit floats and D holds some other element of C
    others = [f"%r{k}" for k in range(scope.registers[0]) if "e4m3" not in name or f"%r{k}" not in into]
    operands = [*(_list([w.r(scope) for _ in range(n)]) for n in (a, b)), _list([w.stream.choice(others) for _ in range(c)])]
    return f"mma.sync.aligned.{name} {_list(into)}, {', '.join(operands)}; {w.seen(into[0])}"


def matrices(w: Writer, scope: Scope) -> Node | None:
    """Return lines that write a tile, load matrices from it, and store some back or transpose them in registers."""
    if not scope.warp:
        return None
    n = w.stream.choice((1, 2, 4))
    got = w.several(scope, n)
    tile = f"mov.u32 %t5, tile; mad.lo.u32 %t5, %w, {TILE}, %t5;"
    fill = w.several(scope, 4)
    row = f"mad.lo.u32 %t1, %ln, {1 + 2 * w.stream.below(31)}, {w.stream.below(64)};"
    row += " and.b32 %t1, %t1, 63; mad.lo.u32 %t1, %t1, 16, %t5;"
    trans = w.stream.choice(("", ".trans"))
    lines = [
        f"{tile} mad.lo.u32 %t1, %ln, 32, %t5; st.shared.v4.b32 [%t1], {_list(fill)};",
        f"st.shared.v4.b32 [%t1+16], {_list(fill[::-1])}; bar.warp.sync -1;",
        f"{row} ldmatrix.sync.aligned.m8n8.x{n}{trans}.shared.b16 {_list(got)}, [%t1]; {w.seen(got[-1])}",
    ]
    if w.stream.chance(40):
        x, y = w.several(scope, 2)
        lines.append(f"movmatrix.sync.aligned.m8n8.trans.b16 {x}, {y}; {w.seen(x)}")
    if w.stream.chance(50):
        k = w.stream.choice((1, 2, 4))
        where = f"mad.lo.u32 %t1, %ln, 16, %t5; add.u32 %t1, %t1, {512 * w.stream.below(2)};"
        d = w.r(scope)
        some = w.stream.choice(("", ".trans"))
        lines += [
            f"bar.warp.sync -1; {where} stmatrix.sync.aligned.m8n8.x{k}{some}.shared.b16 [%t1], {_list(w.several(scope, k))};",
            f"bar.warp.sync -1; and.b32 %t1, {w.r(scope)}, {TILE - 4}; add.u32 %t1, %t1, %t5;",
            f"ld.shared.b32 {d}, [%t1]; {w.seen(d)}",
        ]
    return Group((*lines, "bar.warp.sync -1;"))
