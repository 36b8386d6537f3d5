"""Device functions and their calls: arguments in registers, parameters, structures; recursion; tables of functions.

Every function takes a word, a generic address of a place of the caller's own, and the mask of the lanes that call it
together; it gives a word. What it has of its own it makes at its start (`opening`): registers from the word, local memory
from the registers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.hardware.flow.nodes import Group, Node, printed
from warpsmith.hardware.flow.writer import CELL, Function, Scope

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warpsmith.hardware.flow.writer import Writer

__all__ = ["FUNCTION_REGISTERS", "call", "declarations", "declared", "functions", "opening", "text"]

FUNCTION_REGISTERS = (6, 2, 3)
"""`%r`, `%d`, `%p` of a function."""
_KINDS = ("param", "param", "reg", "struct")
_DEPTH = 3
"""How often a function that calls itself does so at most."""


def functions(w: Writer) -> None:
    """Make two to four functions, each of which may call those before it; the first two have the same arguments, for tables."""
    for k in range(2 + w.stream.below(3)):
        kind = _KINDS[k] if k < len(_KINDS) else "param"
        recursive = kind == "param" and w.stream.chance(40)
        back = "mov.b32 %o, %acc; ret;" if kind == "reg" else "st.param.b32 [o], %acc; ret;"
        w.budget = 9
        scope = Scope(FUNCTION_REGISTERS, kernel=False, local=not recursive, leave=back)
        nodes = w.body(scope, 7)
        if recursive:
            nodes = (*nodes, _again(w, f"f{k}"), *w.body(Scope(FUNCTION_REGISTERS, kernel=False, local=False), 2))
        w.functions.append(Function(f"f{k}", kind, recursive, nodes))


def _again(w: Writer, name: str) -> Group:
    """Return a call of the function by itself, by the lanes whose depth has not run out."""
    over = w.label()
    head = "sub.u32 %depth, %depth, 1; setp.ge.s32 %q0, %depth, 0; vote.sync.ballot.b32 %m1, %q0, %m0;"
    where = "st.param.b64 [c1], %gl;" if w.stream.chance(50) else "st.param.b64 [c1], %given;"
    passed = f"st.param.b32 [c0], %r0; {where} st.param.b32 [c2], %m1; st.param.b32 [c3], %depth;"
    return Group((
        f"{head} @!%q0 bra {over};",
        "{ .param .b32 c0; .param .b64 c1; .param .b32 c2; .param .b32 c3; .param .b32 back;",
        f"{passed} call (back), {name}, (c0, c1, c2, c3); ld.param.b32 %r1, [back]; }}",
        f"{over}:",
    ))  # fmt: skip


def call(w: Writer, scope: Scope) -> Node | None:
    """Return a call of a function: by name, or through the table, where the lanes of each function find each other."""
    if not w.functions or (scope.loops >= 2) or scope.level >= 5:
        return None
    place = w.stream.choice(("%gl", "%gs", "%gg") if scope.kernel else ("%gl", "%gs"))
    if w.stream.chance(30) and len([f for f in w.functions if f.kind == "param"]) >= 2:
        return _through_table(w, scope, place)
    f = w.stream.choice(w.functions)
    arguments = (w.r(scope), place, scope.mask)
    given = w.r(scope)
    uniform = ".uni" if scope.warp and w.stream.chance(50) else ""
    made = _call(w, f, arguments, given, uniform)
    return Group((*made, w.seen(given)))


def _depth(w: Writer, word: str) -> str:
    return f"and.b32 %t0, {word}, {_DEPTH};"


def _call(w: Writer, f: Function, arguments: tuple[str, str, str], given: str, uniform: str) -> Iterator[str]:
    a, place, mask = arguments
    if f.kind == "reg":
        yield f"call{uniform} ({given}), {f.name}, ({a}, {place}, {mask});"
        return
    if f.kind == "param":
        yield "{ .param .b32 c0; .param .b64 c1; .param .b32 c2; .param .b32 c3; .param .b32 back;"
        yield f"{_depth(w, a)} st.param.b32 [c0], {a}; st.param.b64 [c1], {place};"
        yield f"st.param.b32 [c2], {mask}; st.param.b32 [c3], %t0;"
        yield f"call{uniform} (back), {f.name}, (c0, c1, c2, c3); ld.param.b32 {given}, [back]; }}"
        return
    yield "{ .param .align 16 .b8 s[32]; .param .b32 back;"
    yield f"st.param.b64 [s], {place}; st.param.v2.b32 [s+8], {{{a}, {mask}}}; st.param.b32 [s+16], %acc;"
    yield f"st.param.b16 [s+20], {a}; st.param.b8 [s+22], {a}; st.param.v2.b32 [s+24], {{%me, %ln}};"
    yield f"call{uniform} (back), {f.name}, (s); ld.param.b32 {given}, [back]; }}"


def _through_table(w: Writer, scope: Scope, place: str) -> Group:
    label = w.label()
    given = w.r(scope)
    a = w.r(scope)
    k = scope.level
    count = sum(f.kind == "param" for f in w.functions)
    inner = f"%m{k + 1}"
    pick = f"rem.u32 %i{k}, {w.r(scope)}, {count}; match.any.sync.b32 {inner}, %i{k}, {scope.mask};"
    passed = f"st.param.b32 [c0], {a}; st.param.b64 [c1], {place}; st.param.b32 [c2], {inner}; st.param.b32 [c3], %t0;"
    return Group((
        f"{pick} mov.u64 %a0, ftable; mad.wide.u32 %a0, %i{k}, 8, %a0; ld.global.u64 %a0, [%a0];",
        "{ .param .b32 c0; .param .b64 c1; .param .b32 c2; .param .b32 c3; .param .b32 back;",
        f"{label}: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b64 _, .param .b32 _, .param .b32 _);",
        f"{_depth(w, a)} {passed} call (back), %a0, (c0, c1, c2, c3), {label}; ld.param.b32 {given}, [back]; }}",
        w.seen(given),
    ))  # fmt: skip


_HEADS = {
    "param": ".func (.param .b32 o) {name} (.param .b32 a, .param .b64 at, .param .b32 lanes_of, .param .b32 left)",
    "reg": ".func (.reg .b32 %o) {name} (.reg .b32 %word, .reg .b64 %given, .reg .b32 %mask)",
    "struct": ".func (.param .b32 o) {name} (.param .align 16 .b8 s[32])",
}


def declarations(registers: tuple[int, int, int]) -> str:
    """Return the registers that functions and kernels declare."""
    r, d, p = registers
    return (
        f".reg .b32 %r<{r}>, %m<9>, %i<9>, %n<9>, %t<6>, %acc, %me, %ln, %w, %sh; .reg .b64 %d<{d}>, %a<4>, %la, %gs, %gl; "
        f".reg .pred %p<{p}>, %q<9>, %u<4>; .reg .b128 %x;"
    )


def opening(d: int, *, local: bool = True) -> Iterator[str]:
    """Yield what functions and kernels begin with, once their registers have values: names of the thread and its places."""
    if local:
        yield f".local .align 16 .b8 mem[{CELL}];"
    yield "mov.u32 %me, %tid.x; mov.u32 %ln, %laneid; shr.u32 %w, %me, 5;"
    yield f"mov.u32 %sh, area; mad.lo.u32 %sh, %me, {CELL}, %sh; cvt.u64.u32 %gs, %sh; cvta.shared.u64 %gs, %gs;"
    if not local:
        yield "mov.b64 %gl, %given;"
        return
    yield "mov.u64 %la, mem; cvta.local.u64 %gl, %la;"
    for k in range(CELL // 8):
        yield f"st.local.b64 [mem+{8 * k}], %d{k % d};"


def text(f: Function) -> str:
    """Return a function's text."""
    r, d, p = FUNCTION_REGISTERS
    given = {
        "reg": "mov.b32 %r0, %word; mov.b32 %m0, %mask;",
        "param": "ld.param.b32 %r0, [a]; ld.param.b64 %given, [at]; ld.param.b32 %m0, [lanes_of]; ld.param.b32 %depth, [left];",
        "struct": "ld.param.b64 %given, [s]; ld.param.v2.b32 {%r0, %m0}, [s+8]; ld.param.b32 %t3, [s+16]; "
        "ld.param.u16 %t4, [s+20]; ld.param.s8 %t5, [s+22];",
    }[f.kind]
    mixed = "mov.b32 %acc, %r0;" + (
        " xor.b32 %acc, %acc, %t3; add.u32 %acc, %acc, %t4; sub.u32 %acc, %acc, %t5;" * (f.kind == "struct")
    )
    own = "" if f.kind == "reg" else " .reg .b64 %given;"
    lines = [
        _HEADS[f.kind].format(name=f.name), "{", f"{declarations(FUNCTION_REGISTERS)} .reg .b32 %depth;{own}", given, mixed,
        *(f"mad.lo.u32 %r{k}, %r{k - 1}, 0x85EBCA6B, {k};" for k in range(1, r)),
        *(f"mov.b64 %d{k}, {{%r{k}, %r{k + 2}}};" for k in range(d)),
        *(f"and.b32 %t0, %r{k + 1}, 64; setp.ne.u32 %p{k}, %t0, 0;" for k in range(p)),
        *opening(d, local=not f.recursive), "ld.b32 %t0, [%given+4]; add.u32 %r1, %r1, %t0; st.b32 [%given+16], %r2;",
        *printed(f.nodes, 1), "mov.b32 %o, %acc; ret;" if f.kind == "reg" else "st.param.b32 [o], %acc; ret;", "}",
    ]  # fmt: skip
    return "\n".join(lines)


def declared(f: Function) -> str:
    """Return a function's declaration, which stands before the table."""
    return _HEADS[f.kind].format(name=f.name) + ";"
