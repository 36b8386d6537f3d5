"""Cases of loads, stores, atomics, prefetches and cache policies, from the declarations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.assembly.ptx.isa import rows
from warpsmith.base.ptx_types import TYPES
from warpsmith.hardware.machine_case import Case, executable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warpsmith.assembly.ptx.isa import Match

__all__ = ["memory_cases"]

_WHERE = {
    "local": "[mine{}]", "shared": "[%s{}]", "shared::cta": "[%s{}]", "shared::cluster": "[%s{}]", "const": "[table{}]",
    "param": "[blob{}]", "param::entry": "[blob{}]", "global": "[%cell{}]", "": "[%cell{}]",
}  # fmt: skip


def _space(m: Match) -> str:
    words = set(m.mnemonic.split("."))
    return next((s for s in _WHERE if s and s in words), "")


def _type(m: Match) -> str:
    return next(w for w in reversed(m.mnemonic.split(".")) if w in TYPES)


def _count(m: Match) -> int:
    return next((int(w[1:]) for w in m.mnemonic.split(".") if w in ("v2", "v4", "v8")), 1)


def _registers(type_: str, count: int, name: str) -> tuple[str, list[str]]:
    """Return a declaration and the names; bytes and halves in loads and stores lie in 32-bit registers."""
    bits = max(32, TYPES[type_].bits) if type_ != "b128" else 128
    return f".reg .b{bits} %{name}<{count}>;", [f"%{name}{k}" for k in range(count)]


def _braced(names: list[str]) -> str:
    return names[0] if len(names) == 1 else "{" + ", ".join(names) + "}"


def _hint(m: Match) -> str:
    return ", %policy" if "L2::cache_hint" in m.mnemonic else ""


def _loads() -> Iterator[Case]:
    for row in (*rows("ld"), *rows("ldu")):
        for m in executable(row, "sm_90a"):
            words = m.mnemonic.split(".")
            if "param::func" in words:
                continue
            type_, count, space = _type(m), _count(m), _space(m)
            where = "[%fixed+16]" if "nc" in words or m.row.opcode == "ldu" else _WHERE[space].format("+16")
            declare, names = _registers(type_, count, "d")
            lines = [declare, f"{m.mnemonic} {_braced(names)}, {where}{_hint(m)};"]
            if type_ == "b128":
                lines += [".reg .b64 %l<2>;", f"mov.b128 {{%l0, %l1}}, {names[0]};"]
                yield Case((m.mnemonic,), lines, [("%l0", 64), ("%l1", 64)])
            else:
                yield Case((m.mnemonic,), lines, [(n, max(32, TYPES[type_].bits)) for n in names])


def _after(space: str, words: int) -> tuple[list[str], list[tuple[str, int]]]:
    """Return lines that load the first words of the cell of a space back, and where they are."""
    where = _WHERE[space]
    kind = {"": "global", "shared::cta": "shared", "shared::cluster": "shared"}.get(space, space)
    lines = [f".reg .b64 %w<{words}>;", *(f"ld.{kind}.b64 %w{k}, {where.format(f'+{8 * k}')};" for k in range(words))]
    return lines, [(f"%w{k}", 64) for k in range(words)]


def _sources(type_: str, count: int) -> list[str]:
    """Return lines that give %v0, … the words of `fixed`, in the type's width."""
    if type_ == "b128":
        return [".reg .b128 %v<1>;", "mov.b128 %v0, {%x1, %x6};"]
    declare, names = _registers(type_, count, "v")
    if TYPES[type_].bits == 64:
        return [declare, *(f"mov.b64 {n}, %x{(3 * k + 1) % 8};" for k, n in enumerate(names))]
    return [declare, *(f"cvt.u32.u64 {n}, %x{(3 * k + 1) % 8};" for k, n in enumerate(names))]


def _stores() -> Iterator[Case]:
    for row in rows("st"):
        for m in executable(row, "sm_90a"):
            words = m.mnemonic.split(".")
            if "param" in words or "param::func" in words or words[1] in ("async", "bulk") or "v8" in words:
                continue
            type_, count, space = _type(m), _count(m), _space(m)
            sources = _sources(type_, count)
            after, puts = _after(space, 4)
            names = [f"%v{k}" for k in range(count)]
            store = f"{m.mnemonic} {_WHERE[space].format('')}, {_braced(names)}{_hint(m)};"
            yield Case((m.mnemonic,), [*sources, store, *after], puts)


def _passed() -> Iterator[Case]:
    """Stores into parameters of a call, loads of what it returns."""
    spaces = [".param .align 16 .b8 given[64]; .param .align 16 .b8 back[64];"]
    whole = [f"st.param.b64 [given+{8 * k}], %x{k};" for k in range(8)]
    call = "call.uni (back), echo, (given);"
    for row in (*rows("st"), *rows("ld")):
        for m in executable(row, "sm_90a"):
            words = m.mnemonic.split(".")
            stores = row.opcode == "st"
            if "param::func" not in words and not (stores and "param" in words):
                continue
            if (stores and "v8" in words) or (not stores and words[-1] == "b128"):
                continue  # ptxas stores one element, and loads no upper half (hardware-capture.md)
            type_, count = _type(m), _count(m)
            if stores:
                yield _passed_store(m, [*spaces, *_sources(type_, count)], call, type_, count)
                continue
            declare, names = _registers(type_, count, "d")
            lines = [*spaces, *whole, declare, call, f"{m.mnemonic} {_braced(names)}, [back+16];"]
            yield Case((m.mnemonic,), lines, [(n, max(32, TYPES[type_].bits)) for n in names])


def _passed_store(m: Match, lines: list[str], call: str, type_: str, count: int) -> Case:
    """What is stored alone goes in and is read back: a parameter is written once."""
    bits = 64 if type_ == "b128" else TYPES[type_].bits
    parts = 2 if type_ == "b128" else count
    names = [f"%w{k}" for k in range(parts)]
    after = [f".reg .b{max(32, bits)} %w<{parts}>;"]
    after += [f"ld.param.b{bits} {n}, [back+{16 + bits // 8 * k}];" for k, n in enumerate(names)]
    stored = f"{m.mnemonic} [given+16], {_braced([f'%v{k}' for k in range(count)])};"
    return Case((m.mnemonic,), [*lines, stored, call, *after], [(n, max(32, bits)) for n in names])


def _atomics() -> Iterator[Case]:
    for row in (*rows("atom"), *rows("red")):
        for m in executable(row, "sm_90a"):
            words = m.mnemonic.split(".")
            if words[1] == "async":
                continue
            yield _atomic(m)


def _exact_registers(type_: str, count: int, name: str, first: int) -> list[str]:
    """Registers of exactly the type's width, filled from `fixed`.

    Those of 32 bits are loaded by themselves: from a half of a 64-bit register ptxas takes the upper half of an f16x2 or
    bf16x2 wrongly where an atomic of shared memory adds it.
    """
    bits = TYPES[type_].bits if type_ != "b128" else 128
    lines = [f".reg .b{bits} %{name}<{count}>;"]
    for k in range(count):
        source = f"%x{(first + 3 * k) % 8}"
        other = f"%x{(first + 3 * k + 1) % 8}"
        lines.append({
            16: f"cvt.u16.u64 %{name}{k}, {source};", 32: f"ld.global.b32 %{name}{k}, [%fixed+{8 * ((first + 3 * k) % 8)}];",
            64: f"mov.b64 %{name}{k}, {source};", 128: f"mov.b128 %{name}{k}, {{{source}, {other}}};",
        }[bits])  # fmt: skip
    return lines


def _atomic(m: Match) -> Case:
    type_, count, space = _type(m), _count(m), _space(m)
    hint = _hint(m)
    lines = _exact_registers(type_, count, "b", 2)
    inputs = [_braced([f"%b{k}" for k in range(count)])]
    if m.row.opcode == "atom" and "cas" in m.mnemonic.split("."):
        lines += _exact_registers(type_, 1, "v", 5)
        # the comparison succeeds in every other thread
        kind = "global" if space in ("", "global") else "shared"
        if type_ != "b128":
            old = f"ld.{kind}.b{TYPES[type_].bits} %b0, {_WHERE[space].format('')};"
            lines.append(f"and.b32 %g, %n, 1; setp.ne.u32 %q, %g, 0; @%q {old}")
        lines.insert(0, ".reg .pred %q;")
        inputs.append("%v0")
    puts: list[tuple[str, int]] = []
    target = ""
    bits = TYPES[type_].bits if type_ != "b128" else 128
    if m.row.opcode == "atom":
        lines.append(f".reg .b{bits} %d<{count}>;")
        target = _braced([f"%d{k}" for k in range(count)]) + ", "
    lines.append(f"{m.mnemonic} {target}{_WHERE[space].format('')}, {', '.join(inputs)}{hint};")
    if m.row.opcode == "atom" and bits == 128:
        lines += [".reg .b64 %l<2>;", "mov.b128 {%l0, %l1}, %d0;"]
        puts = [("%l0", 64), ("%l1", 64)]
    elif m.row.opcode == "atom":
        puts = [(f"%d{k}", bits) for k in range(count)]
    after, more = _after(space, 2)
    return Case((m.mnemonic,), [*lines, *after], [*puts, *more])


def _without_results() -> Iterator[Case]:
    """Prefetches, priorities and policies: what shows is that memory stays as it was."""
    for opcode in ("prefetch", "prefetchu", "applypriority", "createpolicy"):
        for row in rows(opcode):
            for m in executable(row, "sm_90a"):
                if "tensormap" in m.mnemonic or (row.opcode, m.mnemonic.split(".")[1]) == ("applypriority", "async"):
                    continue
                after, puts = _after("", 1)
                yield Case((m.mnemonic,), [*_no_result(m), *after], puts)


def _no_result(m: Match) -> list[str]:
    if m.row.opcode == "createpolicy":
        declared = ".reg .b64 %made;"
        if "cvt" in m.mnemonic:
            return [declared, f"{m.mnemonic} %made, %policy;", "xor.b64 %made, %made, %policy;"]
        operands = "[%fixed], 64, 128" if "range" in m.mnemonic else "1.0"
        return [declared, f"{m.mnemonic} %made, {operands};"]
    where = "[mine]" if "local" in m.mnemonic.split(".") else "[%at0]" if m.row.opcode == "applypriority" else "[%cell]"
    size = ", 128" if m.row.opcode == "applypriority" else ""
    aligned = [".reg .b64 %at0;", "ld.param.u64 %at0, [cells];"] if size else []
    return [*aligned, f"{m.mnemonic} {where}{size};"]


def memory_cases() -> list[Case]:
    """Return every case of this module."""
    return [*_loads(), *_stores(), *_atomics(), *_without_results(), *_passed()]
