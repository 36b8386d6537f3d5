"""Statements of the lanes of a level together: shuffles, votes, matches, reductions, barriers of a warp."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.hardware.flow.nodes import Group

if TYPE_CHECKING:
    from warpsmith.hardware.flow.nodes import Node
    from warpsmith.hardware.flow.writer import Scope, Writer

__all__ = ["exchange_in_warp", "lanes"]


def _member(w: Writer, scope: Scope) -> str:
    """Return instructions that put a lane of the level into `%t0`: the highest not above a random one, else its own."""
    return (
        f"bmsk.clamp.b32 %t0, 0, {w.r(scope)}; and.b32 %t0, %t0, {scope.mask}; bfind.u32 %t0, %t0; "
        "setp.eq.u32 %u0, %t0, -1; selp.b32 %t0, %ln, %t0, %u0;"
    )


def lanes(w: Writer, scope: Scope) -> Node:
    """Return an instruction that the lanes of the level execute together."""
    kind = w.stream.below(14)
    if kind < 5:
        return _shuffle(w, scope)
    d, a = w.several(scope, 2)
    p, q = w.p(scope), w.p(scope)
    m = scope.mask
    seen = w.seen(d)
    if kind == 5:
        return f"vote.sync.{w.stream.choice(('all', 'any', 'uni'))}.pred {p}, {w.stream.choice(('', '!'))}{q}, {m};"
    if kind == 6:
        return f"vote.sync.ballot.b32 {d}, {w.stream.choice(('', '!'))}{q}, {m}; {seen}"
    if kind == 7:
        return f"and.b32 %t0, {a}, {w.stream.choice((3, 7, 0x80000000))}; match.any.sync.b32 {d}, %t0, {m}; {seen}"
    if kind == 8:
        return f"and.b32 %t0, {a}, {w.stream.choice((1, 0, 16))}; match.all.sync.b32 {d}|{p}, %t0, {m}; {seen}"
    if kind == 9:
        return f"match.any.sync.b64 {d}, {w.d(scope)}, {m}; {seen}"
    if kind < 12:
        operation = w.stream.choice(
            ("add.s32", "add.u32", "min.u32", "min.s32", "max.s32", "max.u32", "xor.b32", "and.b32", "or.b32")
        )
        return f"redux.sync.{operation} {d}, {a}, {m}; {seen}"
    if kind == 12:
        return f"elect.sync {d}|{p}, {m}; {seen}"
    # the answer of other lanes is not defined
    return f"activemask.b32 %t0; shr.u32 %t0, %t0, %ln; and.b32 {d}, %t0, 1; {seen}"


def _shuffle(w: Writer, scope: Scope) -> Node:
    """Return a shuffle: from a member by index, or from anywhere, its value used only if it came from a member."""
    d, a, b = w.several(scope, 3)
    p = w.p(scope)
    m = scope.mask
    if w.stream.chance(40):
        return f"{_member(w, scope)} shfl.sync.idx.b32 {d}|{p}, {a}, %t0, 31, {m}; {w.seen(d)}"
    mode = w.stream.choice(("up", "down", "bfly", "idx"))
    amount = w.stream.choice((b, str(w.stream.below(32))))
    low = 1 << w.stream.below(6)
    segment = (32 - low) & 31
    clamp = segment << 8 | (0 if mode == "up" else 31)
    # the lane it comes from, as PTX ISA 9.7.9.6 computes it
    return Group((
        f"and.b32 %t0, {amount}, 31; shfl.sync.{mode}.b32 %t1|%u0, {a}, {amount}, {clamp:#x}, {m};",
        {
            "up": "sub.u32 %t2, %ln, %t0;", "down": "add.u32 %t2, %ln, %t0;", "bfly": "xor.b32 %t2, %ln, %t0;",
            "idx": f"and.b32 %t2, %ln, {segment}; and.b32 %t3, %t0, {~segment & 31}; or.b32 %t2, %t2, %t3;",
        }[mode] + " selp.b32 %t2, %t2, %ln, %u0;",
        f"shr.u32 %t2, {m}, %t2; and.b32 %t2, %t2, 1; setp.ne.u32 %u1, %t2, 0; selp.b32 {d}, %t1, {a}, %u1;",
        f"mov.pred {p}, %u0; {w.seen(d)}",
    ))  # fmt: skip


def exchange_in_warp(w: Writer, scope: Scope) -> Node:
    """Return lines in which lanes of the level hand values over in shared memory, between two barriers of these lanes."""
    d, a = w.several(scope, 2)
    address = "mov.u32 %t1, lanes; mad.lo.u32 %t2, %me, 4, %t1;"
    return Group((
        f"{address} st.shared.b32 [%t2], {a}; bar.warp.sync {scope.mask};",
        f"{_member(w, scope)} sub.u32 %t0, %t0, %ln; mad.lo.s32 %t2, %t0, 4, %t2; ld.shared.b32 {d}, [%t2];",
        f"bar.warp.sync {scope.mask}; {w.seen(d)}",
    ))  # fmt: skip
