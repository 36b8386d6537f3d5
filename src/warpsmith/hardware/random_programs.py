"""Random straight-line PTX programs from the declarations: scalar forms, predicates, local memory, shuffles.

A program computes on four banks of registers (`BANKS`), which it loads before and stores after its lines, and on 64 bytes
of local memory:

    add.rn.f32 %r3, %r0, 0f3f800000;    @%p1 cvt.rzi.s64.f32 %d0, %r3;    st.local.b16 [mem+6], %h2;

Lines never branch. A carry is set right before it is taken and read right after it is given. What a program computes is fixed
by its text and by its number, which chooses the inputs (`program_inputs`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, final

import numpy as np

from warpsmith.base.ptx_types import TYPES
from warpsmith.hardware.random_stream import RandomStream
from warpsmith.hardware.scalar_forms import ScalarForm, scalar_forms
from warpsmith.hardware.scalar_values import random_values, splitmix

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.assembly.ptx.isa import Match, OperandSlot

__all__ = ["BANKS", "SLOTS", "THREADS", "RandomProgram", "generate", "module_text", "program_inputs"]

THREADS = 64
"""Threads that run a program: one CTA of two warps."""
BANKS = {"h": 4, "r": 6, "d": 4, "p": 4}
"""Registers of 16, 32 and 64 bits and predicates."""
SLOTS = sum(BANKS.values()) - BANKS["p"] + 1
"""Words of 64 bits that a thread loads and stores: one a register, one for all predicates."""
_LOCAL = 64
_WIDTH = {"h": 16, "r": 32, "d": 64}
_SMALL_CONSTANTS = ("bfe", "bfi")
"""Opcodes whose positions ptxas limits to 255 when they are constants."""
_UNGUARDED = ("testp", "set", "setp", "abs", "neg")
"""Opcodes that are never guarded: ptxas drops the guard of some, and gives NaNs of others another payload under one."""
_UNSEEDED = ("fns",)
"""Opcodes left out: `fns` compiles to a loop of a thousand instructions."""


@final
@dataclass(frozen=True, slots=True)
class RandomProgram:
    """A program by its number and its lines."""

    number: int
    lines: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of its kernel."""
        return f"p{self.number}"

    def text(self, *, keep: bool = False) -> str:
        """Return its kernel `(.u64 in, .u64 out)`; `keep` stores all registers after every line, not after the last alone."""
        body = [*_load()]
        for k, line in enumerate(self.lines):
            body += [line, *(_store(k * SLOTS) if keep else ())]
        body += () if keep else _store(0)
        registers = " ".join(f".reg .{'pred' if b == 'p' else f'b{_WIDTH[b]}'} %{b}<{n}>;" for b, n in BANKS.items())
        return "\n".join([
            f".visible .entry {self.name}(.param .u64 in, .param .u64 out)", "{",
            f"{registers} .reg .b64 %in, %out; .reg .b32 %t, %c; .reg .pred %q; .local .align 16 .b8 mem[{_LOCAL}];",
            *body, "ret;", "}",
        ])  # fmt: skip


def module_text(programs: list[RandomProgram], arch: str, *, keep: bool = False) -> str:
    """Return a module of the programs' kernels."""
    return "\n".join([f".version 9.0\n.target {arch}\n.address_size 64", *(p.text(keep=keep) for p in programs)]) + "\n"


def _load() -> list[str]:
    lines = ["ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; mov.u32 %t, %tid.x;"]
    lines += ["mad.wide.u32 %in, %t, 8, %in; mad.wide.u32 %out, %t, 8, %out;"]
    slot = 0
    for bank, width in _WIDTH.items():
        for k in range(BANKS[bank]):
            lines.append(f"ld.global.b{width} %{bank}{k}, [%in+{8 * THREADS * slot}];")
            slot += 1
    lines.append(f"ld.global.b32 %c, [%in+{8 * THREADS * slot}];")
    for k in range(BANKS["p"]):
        lines.append(f"and.b32 %t, %c, {1 << k}; setp.ne.u32 %p{k}, %t, 0;")
    for k in range(_LOCAL // 8):
        lines.append(f"st.local.b64 [mem+{8 * k}], %d{k % BANKS['d']};")
    return lines


def _store(first: int) -> list[str]:
    """Store all registers into the words from `first` on; `%t` and `%c` hold the predicates while they are packed."""
    lines: list[str] = []
    slot = first
    for bank, width in _WIDTH.items():
        for k in range(BANKS[bank]):
            lines.append(f"st.global.b{width} [%out+{8 * THREADS * slot}], %{bank}{k};")
            slot += 1
    lines.append("mov.b32 %c, 0;")
    for k in range(BANKS["p"]):
        lines.append(f"selp.b32 %t, {1 << k}, 0, %p{k}; or.b32 %c, %c, %t;")
    return [*lines, f"st.global.b32 [%out+{8 * THREADS * slot}], %c;"]


def program_inputs(number: int) -> NDArray[np.uint64]:
    """Return the words `[SLOTS, THREADS]` that program `number` loads: values of a type that changes from thread to thread."""
    words = np.zeros((SLOTS, THREADS), np.uint64)
    kinds = {"h": ("f16", "bf16", "u16"), "r": ("f32", "u32", "f16x2", "f32"), "d": ("f64", "u64")}
    slot = 0
    for bank, types in kinds.items():
        for _ in range(BANKS[bank]):
            which = splitmix(number * 64 + slot, THREADS, 7) >> np.uint64(40)
            values = [random_values(t, 1000 + number * 64 + slot, THREADS) for t in types]
            words[slot] = np.choose((which % np.uint64(len(types))).astype(np.int64), values)
            slot += 1
    words[slot] = splitmix(number * 64 + 63, THREADS) >> np.uint64(60)
    return words


# --- lines ------------------------------------------------------------------------------------------------------------


@cache
def _forms(arch: str) -> dict[str, list[ScalarForm]]:
    """The forms by opcode that a program may use."""
    out: dict[str, list[ScalarForm]] = {}
    for form in scalar_forms(arch):
        words = form.mnemonic.split(".")
        bytes_of_bf16 = {"bf16", "u8"} <= {*form.reads, *form.writes} or {"bf16", "s8"} <= {*form.reads, *form.writes}
        if words[0] in _UNSEEDED or bytes_of_bf16 or any((n.ptx or (0, 0)) > (9, 0) for n in form.match().needs):
            continue
        out.setdefault(words[0], []).append(form)
    return out


def generate(number: int, arch: str) -> RandomProgram:
    """Return program `number`: 10 to 40 lines."""
    stream = RandomStream(number)
    forms = _forms(arch)
    opcodes = sorted(forms)
    lines: list[str] = []
    for _ in range(10 + stream.below(31)):
        kind = stream.below(100)
        if kind < 6:
            lines.append(_memory(stream))
        elif kind < 10:
            lines.append(_warp(stream))
        elif kind < 14:
            lines.append(_move(stream))
        else:
            lines.append(_scalar(stream, stream.choice(forms[stream.choice(opcodes)])))
    return RandomProgram(number, tuple(lines))


def _register(stream: RandomStream, bank: str) -> str:
    return f"%{bank}{stream.below(BANKS[bank])}"


def _guard(stream: RandomStream) -> str:
    return f"@{'!' if stream.chance(50) else ''}{_register(stream, 'p')} " if stream.chance(15) else ""


def _bank(type_: str, *, written: bool = False) -> str:
    if type_ == "pred":
        return "p"
    bits = TYPES[type_].bits
    if bits <= 8:
        return "r" if written else "h"
    return {16: "h", 32: "r", 64: "d"}[bits]


_CONSTANTS: dict[str, tuple[str, ...]] = {
    "f32": ("0f3F800000", "0f80000000", "0fBF000000", "0f7F7FFFFF", "0f00000001", "0f40490FDB", "0f7F800000"),
    "f64": ("0d3FF0000000000000", "0d8000000000000000", "0dBFE0000000000000", "0d0000000000000001", "0d400921FB54442D18"),
    "16": ("0", "1", "2", "15", "255", "32767"),
    "32": ("0", "1", "2", "31", "32", "255", "65535", "2147483647", "305419896"),
    "64": ("0", "1", "3", "63", "64", "4294967295", "1311768467463790320"),
}


def _constant(stream: RandomStream, type_: str) -> str | None:
    t = TYPES[type_]
    if t.kind in ("unsigned", "signed", "bits") and t.bits >= 16:
        return stream.choice(_CONSTANTS[str(t.bits)])
    return stream.choice(_CONSTANTS[type_]) if type_ in _CONSTANTS else None


def _scalar(stream: RandomStream, form: ScalarForm) -> str:
    """An instruction of the form, with a carry set before and read after where it takes part."""
    match = form.match()
    plain = not (form.carry_in or form.carry_out or match.row.opcode in _UNGUARDED or ".oob" in form.mnemonic)
    line = f"{form.mnemonic} {', '.join(_operands(stream, match))};"
    if match.row.opcode in ("shl", "shr") and match.operands[0].type is not None and match.operands[0].type.bits == 64:
        line = _bounded_shift(stream, line)
    subtracts = form.mnemonic.startswith("sub")
    if form.carry_in:
        source = _register(stream, "r")
        line = f"{'sub' if subtracts else 'add'}.cc.u32 {_register(stream, 'r')}, {source}, {_register(stream, 'r')}; {line}"
    if form.carry_out:
        line += f" {'subc' if subtracts else 'addc'}.u32 {_register(stream, 'r')}, 5, 3;"
    return _guard(stream) + line if plain else line


def _bounded_shift(stream: RandomStream, line: str) -> str:
    """Take the amount from an integer instruction: ptxas converts one that a floating instruction made as a number."""
    head, _, amount = line.removesuffix(";").rpartition(", ")
    if not amount.startswith("%"):
        return line
    made = _register(stream, "r")
    return f"and.b32 {made}, {amount}, 127; {head}, {made};"


def _operands(stream: RandomStream, match: Match) -> list[str]:
    """Return operands: no register is read twice, and the second factor of f64 is a constant.

    ptxas simplifies what reads a register twice, and chooses which of two factors comes first, which shows in NaNs.
    """
    out: list[str] = []
    read: set[str] = set()
    double = match.row.opcode in ("mul", "mad", "fma") and match.mnemonic.endswith("f64")
    for slot in match.operands:
        if double and slot.name == "b":
            out.append(stream.choice(_CONSTANTS["f64"]))
            continue
        operand = _operand(stream, slot, match)
        while slot.direction == "read" and slot.kind == "value" and operand.partition(".")[0] in read:
            operand = _operand(stream, slot, match)
        if slot.direction == "read" and operand.startswith("%"):
            read.add(operand.partition(".")[0])
        out.append(operand)
    return out


def _operand(stream: RandomStream, slot: OperandSlot, match: Match) -> str:
    if slot.kind == "immediate":
        low, high = slot.range or (0, 255)
        return str(stream.choice(slot.choices) if slot.choices else low + stream.below(high - low + 1))
    assert slot.type is not None
    if slot.direction == "write":
        first = _register(stream, _bank(slot.type.name, written=True))
        if slot.selectors:
            # ptxas 13.0 merges a scalar result into the wrong half of h1
            usable = [s for s in slot.selectors if s != "h1" or match.row.opcode[-1] in "24"]
            return first + stream.choice(("", *(f".{s}" for s in usable)))
        if slot.pair is None or (slot.pair.optional and (match.mnemonic.endswith((".f16", ".bf16")) or stream.chance(50))):
            return first
        second = _register(stream, "p")
        while second == first:
            second = _register(stream, "p")
        return f"{first}|{second}"
    video = bool(slot.selectors)
    # ptxas computes approximate functions of constants itself, and rounds them otherwise
    folded = "approx" in match.mnemonic or ".full" in match.mnemonic
    plain = not (
        folded or video or slot.register_only or slot.untyped or slot.kind == "predicate" or match.row.opcode.startswith("v")
    )
    if plain and stream.chance(10) and (constant := _constant(stream, slot.type.name)) is not None:
        small = match.row.opcode in _SMALL_CONSTANTS and slot.type.name == "u32"
        return stream.choice(_CONSTANTS["16"][:-1]) if small else constant
    register = _register(stream, _bank(slot.type.name))
    if slot.kind == "predicate" and slot.negatable and stream.chance(30):
        return "!" + register
    return register + (stream.choice(("", *(f".{s}" for s in slot.selectors))) if video else "")


def _memory(stream: RandomStream) -> str:
    """A load from or a store to local memory, of one element or of two."""
    bank = stream.choice(("h", "r", "d"))
    size = _WIDTH[bank] // 8
    two = stream.chance(30)
    size *= 1 + two
    where = f"[mem+{size * stream.below(_LOCAL // size)}]"
    if stream.chance(50):
        value = _register(stream, bank)
        value = f"{{{value}, {_register(stream, bank)}}}" if two else value
        return f"{_guard(stream)}st.local.{'v2.' if two else ''}b{_WIDTH[bank]} {where}, {value};"
    if two:
        first = stream.below(BANKS[bank] - 1)
        return f"{_guard(stream)}ld.local.v2.b{_WIDTH[bank]} {{%{bank}{first}, %{bank}{first + 1}}}, {where};"
    small = stream.choice(("u8", "s8", "u16", "s16")) if bank == "r" and stream.chance(40) else f"b{_WIDTH[bank]}"
    return f"{_guard(stream)}ld.local.{small} {_register(stream, bank)}, {where};"


def _warp(stream: RandomStream) -> str:
    """A warp-level instruction that all lanes execute."""
    d, a, b = (_register(stream, "r") for _ in range(3))
    p, q = _register(stream, "p"), _register(stream, "p")
    return stream.choice((
        f"shfl.sync.bfly.b32 {d}, {a}, {1 + stream.below(31)}, 31, -1;",
        f"shfl.sync.idx.b32 {d}|{p}, {a}, {b}, {stream.choice(('31', '0x181f', '0x1c1f'))}, -1;",
        f"shfl.sync.up.b32 {d}|{p}, {a}, {stream.below(32)}, 0, -1;",
        f"vote.sync.{stream.choice(('all', 'any', 'uni'))}.pred {p}, {q}, -1;",
        f"vote.sync.ballot.b32 {d}, {q}, -1;",
        f"redux.sync.{stream.choice(('add.s32', 'min.u32', 'max.s32', 'xor.b32', 'and.b32'))} {d}, {a}, -1;",
        f"match.any.sync.b32 {d}, {a}, -1;",
    ))  # fmt: skip


def _move(stream: RandomStream) -> str:
    """A move, a pack or an unpack."""
    h, k = stream.below(BANKS["h"] - 1), stream.below(BANKS["r"] - 1)
    r, d, p = _register(stream, "r"), _register(stream, "d"), _register(stream, "p")
    return _guard(stream) + stream.choice((
        f"mov.b32 {r}, {{{_register(stream, 'h')}, {_register(stream, 'h')}}};",
        f"mov.b32 {{%h{h}, %h{h + 1}}}, {r};",
        f"mov.b64 {d}, {{{_register(stream, 'r')}, {_register(stream, 'r')}}};",
        f"mov.b64 {{%r{k}, %r{k + 1}}}, {d};",
        f"mov.b64 {d}, {{{', '.join(_register(stream, 'h') for _ in range(4))}}};",
        f"mov.pred {p}, {_register(stream, 'p')};",
        f"mov.b32 {r}, {_register(stream, 'r')};",
        f"mov.u32 {r}, {stream.choice(('%tid.x', '%laneid', '%lanemask_lt', '%ntid.x'))};",
    ))  # fmt: skip
