"""Statements that lanes take different ways through: arms, loops, tables of targets, leaving early."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from warpsmith.hardware.flow.data import condition
from warpsmith.hardware.flow.nodes import Group
from warpsmith.hardware.flow.writer import LEVELS

if TYPE_CHECKING:
    from warpsmith.hardware.flow.nodes import Node
    from warpsmith.hardware.flow.writer import Scope, Writer

__all__ = ["arms", "common_arms", "exit_early", "leave", "loop", "targets", "uniform_arm", "uniform_loop"]

_LOOPS = 2
"""How deep loops stand in each other."""


def _deepest(scope: Scope) -> bool:
    return scope.level + 1 >= LEVELS


def _rejoin(scope: Scope) -> str:
    """Return what the lanes do where they meet again: those that have exited leave the mask."""
    if not scope.exits:
        return ""
    return f" setp.ge.u32 %q{scope.level}, %me, 0; vote.sync.ballot.b32 {scope.mask}, %q{scope.level}, {scope.mask};"


def arms(w: Writer, scope: Scope) -> Node | None:
    """Return `if` or `if … else`."""
    if _deepest(scope) or w.budget < 3:
        return None
    k, inner = scope.level, scope.inner()
    other, join = w.label(), w.label()
    head = f"{condition(w, scope, f'%q{k}')} vote.sync.ballot.b32 {inner.mask}, %q{k}, {scope.mask};"
    first = w.body(inner, 4)
    if w.stream.chance(35):
        return Group((f"{head} @!%q{k} bra {join};", first, f"{join}:{_rejoin(scope)}"))
    rest = f"{other}: not.b32 {inner.mask}, {inner.mask}; and.b32 {inner.mask}, {inner.mask}, {scope.mask};"
    return Group((f"{head} @!%q{k} bra {other};", first, f"bra {join};", rest, w.body(inner, 4), f"{join}:{_rejoin(scope)}"))


def uniform_arm(w: Writer, scope: Scope) -> Node | None:
    """Return `if` that all lanes of a whole warp take, or none."""
    if not scope.warp or _deepest(scope) or w.budget < 3:
        return None
    k, inner = scope.level, scope.inner(warp=True)
    join = w.label()
    made = w.stream.choice((
        f"vote.sync.any.pred %q{k}, {w.p(scope)}, {scope.mask};", f"vote.sync.all.pred %q{k}, {w.p(scope)}, {scope.mask};",
        f"redux.sync.add.u32 %t0, {w.r(scope)}, {scope.mask}; and.b32 %t0, %t0, 1; setp.eq.u32 %q{k}, %t0, 1;",
    ))  # fmt: skip
    head = f"{made} mov.b32 {inner.mask}, {scope.mask}; @!%q{k} bra.uni {join};"
    return Group((head, w.body(inner, 4), f"{join}:{_rejoin(scope)}"))


def loop(w: Writer, scope: Scope) -> Node | None:
    """Return a loop whose number of rounds differs from lane to lane, with the test before or behind its body."""
    if _deepest(scope) or scope.loops >= _LOOPS or w.budget < 3:
        return None
    k = scope.level
    head, out = w.label(), w.label()
    inner = scope.inner(loops=scope.loops + 1, leave=f"bra {out};")
    rounds = w.stream.choice((7, 3)) if scope.loops == 0 and scope.kernel else 3
    start = f"and.b32 %n{k}, {w.r(scope)}, {rounds}; mov.b32 %i{k}, 0; mov.b32 {inner.mask}, {scope.mask};"
    test = f"setp.lt.u32 %q{k}, %i{k}, %n{k}; vote.sync.ballot.b32 {inner.mask}, %q{k}, {inner.mask};"
    step = f"add.u32 %i{k}, %i{k}, 1;"
    if w.stream.chance(60):
        return Group((
            start, f"{head}: {test} @!%q{k} bra {out};", w.body(inner, 4), f"{step} bra {head};", f"{out}:{_rejoin(scope)}",
        ))  # fmt: skip
    return Group((f"{start} {head}:", w.body(inner, 4), f"{step} {test} @%q{k} bra {head};", f"{out}:{_rejoin(scope)}"))


def uniform_loop(w: Writer, scope: Scope) -> Node | None:
    """Return a loop that all threads of the CTA run together, two or three times."""
    if not scope.cta or _deepest(scope) or scope.loops or w.budget < 6:
        return None
    k = scope.level
    head = w.label()
    inner = scope.inner(loops=1, warp=scope.warp, cta=True)
    start = f"mov.b32 %i{k}, {1 + w.stream.below(2)}; mov.b32 {inner.mask}, {scope.mask}; {head}:"
    end = f"sub.u32 %i{k}, %i{k}, 1; setp.ne.s32 %q{k}, %i{k}, -1; @%q{k} bra{w.stream.choice(('', '.uni'))} {head};"
    return Group((start, w.body(inner, 3), end))


def common_arms(w: Writer, scope: Scope) -> Node | None:
    """Return `if … else` whose arm all threads of the grid take together, told by a word of the kernel's parameters."""
    if not scope.cta or _deepest(scope) or w.budget < 6:
        return None
    k = scope.level
    inner = scope.inner(warp=scope.warp, cta=True)
    other, join = w.label(), w.label()
    test = f"ld.param.b32 %t0, [blob+{4 * w.stream.below(16)}]; and.b32 %t0, %t0, 1; setp.eq.u32 %q{k}, %t0, 0;"
    head = f"{test} mov.b32 {inner.mask}, {scope.mask}; @%q{k} bra{w.stream.choice(('', '.uni'))} {other};"
    return Group((head, w.body(inner, 3), f"bra.uni {join};", f"{other}:", w.body(inner, 3), f"{join}:"))


def targets(w: Writer, scope: Scope) -> Node | None:
    """Return a branch through a table; the lanes of each target find each other by `match`."""
    if _deepest(scope) or w.budget < 4:
        return None
    k, inner = scope.level, scope.inner()
    names = [w.label() for _ in range(2 + w.stream.below(3))]
    table, join = w.label(), w.label()
    pick = f"rem.u32 %i{k}, {w.r(scope)}, {len(names)}; match.any.sync.b32 {inner.mask}, %i{k}, {scope.mask};"
    parts: list[str | tuple[Node, ...]] = [f"{pick} {table}: .branchtargets {', '.join(names)}; brx.idx %i{k}, {table};"]
    for name in names:
        parts += [f"{name}:", w.body(inner, 2), f"bra {join};"]
    return Group((*parts, f"{join}:{_rejoin(scope)}"))


def leave(w: Writer, scope: Scope) -> Node | None:
    """Return `if (…) { …; break; }`, or `return` in a function: what is left of the level goes on."""
    if not scope.leave or _deepest(scope) or w.budget < 2:
        return None
    k, inner = scope.level, scope.inner()
    on = w.label()
    head = f"{condition(w, scope, f'%q{k}')} vote.sync.ballot.b32 {inner.mask}, %q{k}, {scope.mask}; @!%q{k} bra {on};"
    stay = f"not.b32 {inner.mask}, {inner.mask}; and.b32 {scope.mask}, {scope.mask}, {inner.mask};"
    # lanes may have exited in the arm, whom the others do not name
    return Group((head, w.body(replace(inner, exits=False), 2), scope.leave, f"{on}: {stay}"))


def exit_early(w: Writer, scope: Scope) -> Node | None:
    """Return an exit of some lanes of the level; the others go on without them."""
    if not scope.exits or not scope.kernel:
        return None
    k = scope.level
    some = f"{condition(w, scope, f'%q{k}')} vote.sync.ballot.b32 %t0, %q{k}, {scope.mask}; not.b32 %t0, %t0;"
    return f"{some} @%q{k} {w.stream.choice(('exit', 'ret'))}; and.b32 {scope.mask}, {scope.mask}, %t0;"
