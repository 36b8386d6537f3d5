"""Statements that load and store: places of a thread's own, tables, every width, generic addresses; atomic operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.hardware.flow.nodes import Group
from warpsmith.hardware.flow.writer import CELL, WORDS

if TYPE_CHECKING:
    from warpsmith.hardware.flow.nodes import Node
    from warpsmith.hardware.flow.writer import Scope, Writer

__all__ = ["COMMUTING", "common", "own_atomic", "place", "table"]

COMMUTING = ("add.u32", "min.s32", "max.u32", "and.b32", "or.b32", "xor.b32", "inc.u32", "max.s32")
"""Operations whose order does not matter, each on eight words of its own."""
_BOUND = "0xfffe"
"""What `inc` wraps at: the same for all."""


def _offset(w: Writer, scope: Scope, size: int) -> str:
    """Return an instruction that makes an offset of `size` bytes' alignment in `%t0`, from data."""
    return f"and.b32 %t0, {w.r(scope)}, {CELL - size};"


def _address(w: Writer, scope: Scope, size: int) -> tuple[str, str, str]:
    """Return instructions that make an address of a place of the thread's own, the space, and the operand in brackets."""
    kind = w.stream.below(12) if scope.local else 4 + w.stream.below(8)
    generic = ["%gl", "%gs"] + (["%gg"] if scope.kernel else [])
    if kind < 2:
        return "", ".local", f"[mem+{size * w.stream.below(CELL // size)}]"
    if kind < 4:
        return f"{_offset(w, scope, size)} cvt.u64.u32 %a0, %t0; add.u64 %a0, %a0, %la;", ".local", "[%a0]"
    if kind < 5:
        return "", ".shared", f"[%sh+{size * w.stream.below(CELL // size)}]"
    if kind < 7:
        return (
            f"{_offset(w, scope, size)} add.u32 %t0, %t0, %sh;",
            ".shared" if w.stream.chance(50) else ".shared::cta",
            "[%t0]",
        )
    offset = f"{_offset(w, scope, size)} cvt.u64.u32 %a0, %t0;"
    if kind < 9 and scope.kernel:
        return f"{offset} add.u64 %a0, %a0, %gg;", ".global", "[%a0]"
    one, two = w.stream.choice(generic), w.stream.choice(generic)
    if w.stream.chance(70):
        return f"{offset} selp.b64 %a1, {one}, {two}, {w.p(scope)}; add.u64 %a0, %a0, %a1;", "", "[%a0]"
    kind_of = w.stream.choice(("global", "local", "shared", "shared::cta", "const"))
    asked = f"selp.b64 %a1, {one}, {two}, {w.p(scope)}; isspacep.{kind_of} {w.p(scope)}, %a1;"
    return f"{offset} {asked} add.u64 %a0, %a0, %a1;", "", "[%a0]"


def _transfer(w: Writer, scope: Scope, *, load: bool) -> tuple[int, str, str]:
    """Return how many bytes a load or store moves, its type, and its registers."""
    kind = w.stream.below(11)
    r = w.several(scope, 4)
    if kind < 3:
        return 4, w.stream.choice(("b32", "u32", "f32")), r[0]
    if kind == 3:
        return 1, w.stream.choice(("u8", "s8", "b8")), r[0]
    if kind == 4:
        return 2, w.stream.choice(("u16", "s16")), r[0]
    if kind == 5:
        return 8, "v2.b32", f"{{{r[0]}, {r[1]}}}"
    if kind == 6:
        return 16, "v4.u32", f"{{{', '.join(r)}}}"
    if kind == 7:
        return 8, w.stream.choice(("b64", "u64")), w.d(scope)
    if kind == 8:
        one = w.stream.below(scope.registers[1])
        return 16, "v2.b64", f"{{%d{one}, %d{(one + 1) % scope.registers[1]}}}"
    if kind == 9:
        return (4, "v4.u8", f"{{{', '.join(r)}}}") if w.stream.chance(50) else (4, "v2.s16", f"{{{r[2]}, {r[0]}}}")
    return 16, "b128", "%x"


def _access(w: Writer, scope: Scope, address: tuple[str, str, str], moved: tuple[str, str], *, load: bool) -> str:
    """Return a load or a store; `%x` is made of, or becomes, two 64-bit registers."""
    before, space, where = address
    type_, value = moved
    one = w.stream.below(scope.registers[1])
    halves = f"{{%d{one}, %d{(one + 1) % scope.registers[1]}}}"
    vector, _, element = type_.rpartition(".")
    spelled = f"{'.' + vector if vector else ''}.{element}"
    if load:
        after = f" mov.b128 {halves}, %x;" if value == "%x" else ""
        guard = "" if value == "%x" else w.guard(scope)
        seen = w.seen(value) if value.startswith("%r") else ""
        return f"{before} {guard}ld{space}{spelled} {value}, {where};{after} {seen}".strip()
    made = f"mov.b128 %x, {halves}; " if value == "%x" else ""
    return f"{before} {made}{w.guard(scope)}st{space}{spelled} {where}, {value};".strip()


def place(w: Writer, scope: Scope) -> Node:
    """Return a load from, or a store to, a place of the thread's own."""
    load = w.stream.chance(50)
    size, type_, value = _transfer(w, scope, load=load)
    return _access(w, scope, _address(w, scope, size), (type_, value), load=load)


def table(w: Writer, scope: Scope) -> Node:
    """Return a load from what nobody writes: constants, a table in global memory, the kernel's structure by value."""
    size, type_, value = _transfer(w, scope, load=True)
    spaces = ["const", "global", "generic", *(["param", "param"] if scope.kernel else [])]
    space = w.stream.choice(spaces)
    name = {"const": "ctable", "global": "gtable", "generic": "gtable", "param": "blob"}[space]
    offset = size * w.stream.below(CELL // size)
    if space == "param" and value == "%x":
        return table(w, scope)
    if w.stream.chance(40) and space != "generic":
        return _access(w, scope, ("", f".{space}", f"[{name}+{offset}]"), (type_, value), load=True)
    made = f"{_offset(w, scope, size)} cvt.u64.u32 %a0, %t0; mov.u64 %a1, {name};"
    if space == "generic":
        made += " cvta.global.u64 %a1, %a1;"
    spelled = "" if space == "generic" else f".{space}"
    return _access(w, scope, (f"{made} add.u64 %a0, %a0, %a1;", spelled, "[%a0]"), (type_, value), load=True)


_OWN = (
    "add.u32", "add.s32", "add.u64", "add.f32", "min.s32", "max.u32", "and.b32", "or.b64", "xor.b32", "exch.b32",
    "exch.b64", "cas.b32", "cas.b64", "inc.u32", "dec.u32", "min.u64", "max.s64", "add.noftz.f16x2",
)  # fmt: skip


def own_atomic(w: Writer, scope: Scope) -> Node:
    """Return an atomic operation on a place of the thread's own, whose result is therefore known."""
    operation = w.stream.choice(_OWN)
    wide = operation.endswith("64")
    _, space, where = address = _address(w, scope, 8 if wide else 4)
    while space == ".local":
        _, space, where = address = _address(w, scope, 8 if wide else 4)
    if not space:  # generic addresses may be local ones, where there are no atomic operations
        return own_atomic(w, scope)
    order = w.stream.choice(("", ".relaxed.cta", ".relaxed.gpu", ".acq_rel.cta", ".release.gpu"))
    result, *values = (w.d(scope) for _ in range(3)) if wide else w.several(scope, 3)
    operands = ", ".join(values[: 2 if operation.startswith("cas") else 1])
    seen = f" {w.seen(result)}" if not wide else ""
    return f"{address[0]} {w.guard(scope)}atom{order}{space}.{operation} {result}, {where}, {operands};{seen}".strip()


def common(w: Writer, scope: Scope) -> Node | None:
    """Return an atomic operation on words that all threads change, whose order does not matter and whose result is not used."""
    spaces = ["shared", "shared", *(["global"] if scope.kernel else []), *(["far"] if scope.kernel and w.shape.cluster else [])]
    space = w.stream.choice(spaces) if not scope.exits else "shared"
    k = w.stream.below(len(COMMUTING))
    value = _BOUND if COMMUTING[k].startswith("inc") else w.r(scope)
    made, where, spelled = _common_address(w, scope, space, k)
    if w.stream.chance(15) and COMMUTING[k] in ("add.u32", "xor.b32", "max.u32"):
        return _cas_loop(w, made, where, spelled, COMMUTING[k], value)
    if w.stream.chance(60):
        order = w.stream.choice(("", ".relaxed.cta" if space == "shared" else ".relaxed.gpu"))
        return f"{made} {w.guard(scope)}red{order}.{spelled}.{COMMUTING[k]} {where}, {value};"
    return f"{made} {w.guard(scope)}atom.{spelled}.{COMMUTING[k]} %t1, {where}, {value};"


def _common_address(w: Writer, scope: Scope, space: str, k: int) -> tuple[str, str, str]:
    made = f"and.b32 %t0, {w.r(scope)}, 28; add.u32 %t0, %t0, {k * 4 * WORDS // len(COMMUTING)};"
    if space == "global":
        return f"{made} cvt.u64.u32 %a0, %t0; add.u64 %a0, %a0, %counters;", "[%a0]", "global"
    if space == "shared":
        return f"{made} mov.u32 %t1, words; add.u32 %t0, %t0, %t1;", "[%t0]", "shared"
    rank = f"and.b32 %t1, {w.r(scope)}, {w.shape.ctas - 1};"
    made += f" mov.u32 %t2, far; add.u32 %t0, %t0, %t2; {rank} mapa.shared::cluster.u32 %t0, %t0, %t1;"
    return made, "[%t0]", "shared::cluster"


def _cas_loop(w: Writer, made: str, where: str, space: str, operation: str, value: str) -> Group:
    """Return a loop that does the operation by compare and swap: its order does not matter either."""
    loop = w.label()
    return Group((
        f"{made} atom.{space}.or.b32 %t1, {where}, 0;",
        f"{loop}: {operation} %t2, %t1, {value}; atom.{space}.cas.b32 %t3, {where}, %t1, %t2;",
        f"setp.ne.u32 %u0, %t3, %t1; mov.b32 %t1, %t3; @%u0 bra {loop};",
    ))  # fmt: skip
