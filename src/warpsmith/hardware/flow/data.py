"""Statements that compute: integers, bits, floats whose NaNs are canonical, predicates.

A row is a mnemonic and its operands: `R D P` written, `r d p` read (32 bits, 64 bits, predicate), `c` a register or a constant,
`s` a small constant, `i` a byte. Rows leave out what is known of ptxas's faults (docs/design/hardware-capture.md): `lop3`
with a predicate, `slct` and `bfe.s32` of constants, 64-bit shifts by registers, saturated sums, f64.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from warpsmith.hardware.flow.nodes import Node
    from warpsmith.hardware.flow.writer import Scope, Writer

__all__ = ["ROWS", "condition", "data"]

_TABLE = """
add.u32 R r c          sub.s32 R r c          mul.lo.u32 R r c       mul.hi.s32 R r c       mul.hi.u32 R r c
mad.lo.s32 R r c r     mad.hi.u32 R r r r     mul24.lo.s32 R r r     mad24.lo.u32 R r r r   sad.u32 R r r r
min.s32 R r c          max.u32 R r c          abs.s32 R r            neg.s32 R r            not.b32 R r
and.b32 R r c          or.b32 R r c           xor.b32 R r c          shl.b32 R r s          shr.u32 R r r
shr.s32 R r s          shl.b32 R r r          shf.l.wrap.b32 R r r r shf.r.clamp.b32 R r r r
lop3.b32 R r r r i     prmt.b32 R r r r       prmt.b32 R r r 0x2705  prmt.b32.f4e R r r r   prmt.b32.rc16 R r r r
popc.b32 R r           clz.b32 R r            brev.b32 R r           bfind.u32 R r          bfind.shiftamt.s32 R r
bfe.u32 R r r r        bfe.s32 R r r r        bfi.b32 R r r r r      bfi.b32 R r r 3 9      bmsk.clamp.b32 R r r
szext.wrap.s32 R r r   dp4a.u32.s32 R r r r   dp4a.s32.s32 R r r r   dp2a.lo.s32.u32 R r r r dp2a.hi.u32.u32 R r r r
slct.s32.s32 R r r r   selp.b32 R r c p       selp.b32 R c r p
add.rn.f32 R r r       sub.rn.f32 R r r       mul.rn.f32 R r r       fma.rn.f32 R r r r     fma.rz.f32 R r r r
max.f32 R r r          min.NaN.f32 R r r      add.rn.f16x2 R r r     mul.rn.f16x2 R r r     fma.rn.bf16x2 R r r r
fma.rn.f16x2 R r r r   cvt.rn.f32.s32 R r     cvt.rn.f32.u32 R r     cvt.rzi.s32.f32 R r    cvt.rni.u32.f32 R r
mul.wide.u32 D r r     mul.wide.s32 D r c     mad.wide.s32 D r r d   add.s64 D d d          sub.u64 D d d
and.b64 D d d          xor.b64 D d d          shl.b64 D d s          shr.s64 D d s          shr.u64 D d s
popc.b64 R d           clz.b64 R d            brev.b64 D d           bfind.u64 R d          mul.lo.u64 D d d
mul.hi.u64 D d d       min.s64 D d d          max.u64 D d d          cvt.u64.u32 D r        cvt.s64.s32 D r
cvt.u32.u64 R d        cvt.s16.s32 R r        cvt.u8.u32 R r         selp.b64 D d d p       mov.b32 R r
setp.lt.s32 P r c      setp.ge.u32 P r r      setp.eq.s32 P r c      setp.ne.u32 P r r      setp.ltu.f32 P r r
setp.gt.and.s32 P r r p setp.hi.or.u32 P r r p setp.le.xor.s64 P d d p setp.lo.u64 P d d     setp.num.f32 P r r
and.pred P p p         xor.pred P p p         or.pred P p p          not.pred P p           selp.b32 R 1 0 p
"""


def _rows() -> tuple[tuple[str, ...], ...]:
    """Return the rows; a word with a dot begins one."""
    rows: list[list[str]] = []
    for word in _TABLE.split():
        if "." in word:
            rows.append([])
        rows[-1].append(word)
    return tuple(map(tuple, rows))


ROWS = _rows()
"""Mnemonics with operands."""
_SPECIAL = (
    "mov.b64 {D}, {{{r}, {r}}};", "mov.b64 {{{X}, {Y}}}, {d};", "add.cc.u32 {X}, {r}, {r}; addc.u32 {Y}, {r}, {r};",
    "sub.cc.u32 {X}, {r}, {r}; subc.u32 {Y}, {r}, 7;", "mov.u32 {X}, %tid.x;", "mov.u32 {X}, %laneid;",
    "mov.u32 {X}, %ctaid.x;",
    "mov.u32 {X}, %lanemask_lt;", "mov.u32 {X}, %ntid.x;", "setp.lt.u32 {p}|{P}, {r}, {r};", "mov.pred {P}, {p};",
)  # fmt: skip
_CONSTANTS = ("1", "2", "-1", "3", "31", "32", "255", "0x80000000", "0x3f800000", "0x12345678", "-7")


def data(w: Writer, scope: Scope) -> Node:
    """Return an instruction of the table, or a pair that belongs together; under a guard now and then."""
    if w.stream.chance(12):
        return _special(w, scope)
    name, *codes = w.stream.choice(ROWS)
    # a register is not read twice: ptxas simplifies that, which shows in NaNs
    fresh = w.several(scope, sum(c in "rc" for c in codes))
    return f"{w.guard(scope)}{name} {', '.join(_operand(w, scope, c, fresh) for c in codes)};"


def _special(w: Writer, scope: Scope) -> str:
    x, y = w.several(scope, 2)
    p, q = w.p(scope), w.p(scope)
    while p == q:
        q = w.p(scope)
    return w.stream.choice(_SPECIAL).format(D=w.d(scope), d=w.d(scope), r=w.r(scope), X=x, Y=y, p=p, P=q)


def _operand(w: Writer, scope: Scope, code: str, fresh: list[str]) -> str:
    if code == "c" and w.stream.chance(30):
        return w.stream.choice(_CONSTANTS)
    if code in "rc":
        return fresh.pop()
    if code in "si":
        return str(w.stream.below(32 if code == "s" else 256))
    made = {"R": w.r, "D": w.d, "d": w.d, "P": w.p, "p": w.p}.get(code)
    return made(scope) if made is not None else code


def condition(w: Writer, scope: Scope, into: str) -> str:
    """Return an instruction that makes a predicate that differs from lane to lane, in about half of them true."""
    a, b = w.several(scope, 2)
    return w.stream.choice((
        f"setp.lt.s32 {into}, {a}, {b};",
        f"and.b32 %t0, {a}, {1 << w.stream.below(32)}; setp.ne.u32 {into}, %t0, 0;",
        f"mov.pred {into}, {w.p(scope)};",
        f"and.b32 %t0, %ln, {1 << w.stream.below(5)}; setp.eq.u32 {into}, %t0, 0;",
        f"setp.gt.u32 {into}, {a}, {b};",
    ))  # fmt: skip
