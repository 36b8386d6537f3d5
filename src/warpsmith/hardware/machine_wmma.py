"""Cases of wmma: fragments loaded from memory, multiplied and stored, every form of each at least once."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from warpsmith.assembly.ptx.isa import match, rows
from warpsmith.base.arch import parse_arch
from warpsmith.hardware.machine_case import VERSION, Case
from warpsmith.hardware.scalar_forms import mnemonics
from warpsmith.simulator.meanings import registry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warpsmith.assembly.ptx.isa import Match

__all__ = ["wmma_cases"]

_ARCH = "sm_90a"
_TYPES = ("f16", "bf16", "tf32", "f32", "f64", "u8", "s8", "u4", "s4", "b1", "s32")
_BITS = {"f64": 64}


def _forms(kind: str) -> Iterator[Match]:
    target = parse_arch(_ARCH)
    for row in rows("wmma"):
        if row.refused or not row.pattern.startswith(f"wmma.{kind}"):
            continue
        for name in mnemonics(row):
            for m in match(name):
                exists = all((n.arch is None or n.arch.allows(target)) and (n.ptx or (0, 0)) <= VERSION for n in m.needs)
                if m.row is row and exists and not isinstance(registry.build(m), registry.Refused):
                    yield m


def _shape(mnemonic: str) -> str:
    found = re.search(r"\.(m\d+n\d+k\d+)", mnemonic)
    assert found is not None
    return found[1]


def _types(mnemonic: str) -> tuple[str, str, str, str]:
    """D, A, B, C of a product."""
    found = [w for w in mnemonic.split(".") if w in _TYPES]
    return (found[0], "f16", "f16", found[1]) if len(found) == 2 else (found[0], found[1], found[2], found[3])


def _extent(matrix: str, shape: str) -> tuple[int, int]:
    m, n, k = (int(x) for x in re.findall(r"\d+", shape))
    return {"a": (m, k), "b": (k, n)}.get(matrix, (m, n))


def _layout(mnemonic: str) -> str:
    return next(w for w in mnemonic.split(".") if w in ("row", "col"))


def _place(mnemonic: str, *, stored: bool = False) -> str:
    if ".global" in mnemonic:
        return "[%gd]" if stored else "[%gs]"
    if ".shared" in mnemonic:
        return "[%ss]"
    return "[%gd]" if stored else "[%gs]"  # generic


def _step(matrix: str, shape: str, layout: str) -> int:
    """Elements between rows (columns): as many as one has."""
    rows_, columns = _extent(matrix, shape)
    return columns if layout == "row" else rows_


def wmma_cases() -> list[Case]:
    """Return cases with every product, every load and every store: loads and stores not seen yet come first."""
    loads: dict[tuple[str, str, str, str], list[Match]] = {}
    stores: dict[tuple[str, str], list[Match]] = {}
    for m in _forms("load"):
        matrix = next(w for w in m.mnemonic.split(".") if w in ("a", "b", "c"))
        key = (matrix, _shape(m.mnemonic), m.mnemonic.split(".")[-1], _layout(m.mnemonic) if matrix != "c" else "")
        loads.setdefault(key, []).append(m)
    for m in _forms("store"):
        stores.setdefault((_shape(m.mnemonic), m.mnemonic.split(".")[-1]), []).append(m)
    every = {m.mnemonic for some in (*loads.values(), *stores.values()) for m in some}
    seen: set[str] = set()
    products, out = list(_forms("mma")), list[Case]()
    while not out or every - seen:
        before = len(seen)
        for m in products:
            chosen, stored = _operands(m, loads, stores, seen)
            names = {x.mnemonic for x in (*chosen, stored)}
            if names - seen or m.mnemonic not in seen:
                out.append(_case(m, chosen, stored))
                seen |= {*names, m.mnemonic}
        if len(seen) == before:
            break
    return out


def _operands(
    m: Match, loads: dict[tuple[str, str, str, str], list[Match]], stores: dict[tuple[str, str], list[Match]], seen: set[str]
) -> tuple[list[Match], Match]:
    """Return loads of A, B and C and a store of D for a product."""
    shape, (d, a, b, c) = _shape(m.mnemonic), _types(m.mnemonic)
    layouts = [w for w in m.mnemonic.split(".") if w in ("row", "col")]
    keys = (("a", shape, a, layouts[0]), ("b", shape, b, layouts[1]), ("c", shape, c, ""))

    def first(some: list[Match]) -> Match:
        return next((x for x in some if x.mnemonic not in seen), some[len(seen) % len(some)])

    return [first(loads[k]) for k in keys], first(stores[shape, d])


def _registers(m: Match, name: str, operand: str) -> tuple[str, str]:
    """Declare the registers of an operand; return the declaration and the brace list."""
    slot = next(s for s in m.operands if s.name == operand)
    assert slot.type is not None
    count, bits = slot.count or 1, max(32, slot.type.bits)
    kind = f"f{bits}" if slot.type.name in ("f32", "f64") else f"b{bits}"
    return f".reg .{kind} %{name}<{count}>;", "{" + ", ".join(f"%{name}{k}" for k in range(count)) + "}"


def _case(product: Match, loads: list[Match], store: Match) -> Case:
    shape = _shape(product.mnemonic)
    lines = [
        ".reg .b64 %gs, %gd; .reg .b32 %ss, %w; shr.u32 %w, %n, 5; shl.b32 %w, %w, 11; and.b32 %ss, %w, 2048;",
        "add.u32 %ss, %ss, %base;",
        "ld.param.u64 %gs, [fixed]; ld.param.u64 %gd, [cells]; mad.lo.u32 %w, %c, 4096, %w; cvt.u64.u32 %at, %w; "
        "add.u64 %gs, %gs, %at; add.u64 %gd, %gd, %at;",
    ]
    groups: dict[str, str] = {}
    for matrix, m in zip("abc", loads, strict=True):
        declare, groups[matrix] = _registers(m, f"f{matrix}", "d")
        step = _step(matrix, shape, _layout(m.mnemonic))
        lines += [declare, f"{m.mnemonic} {groups[matrix]}, {_place(m.mnemonic)}, {step};"]
    declare, d = _registers(product, "fd", "d")
    lines += [declare, f"{product.mnemonic} {d}, {groups['a']}, {groups['b']}, {groups['c']};", "bar.sync 0;"]
    lines.append(f"{store.mnemonic} {_place(store.mnemonic, stored=True)}, {d}, {_step('d', shape, _layout(store.mnemonic))};")
    where = "%s" if ".shared" in store.mnemonic else "%cell"
    kind = "shared" if ".shared" in store.mnemonic else "global"
    lines += ["bar.sync 0;", ".reg .b64 %r<8>;", *(f"ld.{kind}.b64 %r{k}, [{where}+{8 * k}];" for k in range(8)), "bar.sync 0;"]
    covers = (product.mnemonic, *(m.mnemonic for m in loads), store.mnemonic)
    return Case(covers, lines, [(f"%r{k}", 64) for k in range(8)])
