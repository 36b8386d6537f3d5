"""Cases of barriers, fences, addresses, matrix moves and the stack, from the declarations."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING

from warpsmith.assembly.ptx.isa import rows
from warpsmith.hardware.machine_case import Case, executable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warpsmith.assembly.ptx.isa import Match

__all__ = ["lane_cases"]

_ARCH = "sm_90a"
_FLAG = ".reg .pred %q; setp.lt.s64 %q, %x0, 0;"


def _barriers() -> Iterator[Case]:
    number = 0
    for opcode in ("bar", "barrier"):
        for row in rows(opcode):
            for m in executable(row, _ARCH):
                words = m.mnemonic.split(".")
                if "cluster" in words:
                    continue
                number += 1
                yield _barrier(m, words, number)


def _barrier(m: Match, words: list[str], number: int) -> Case:
    names = [s.name for s in m.operands]
    if words[1] == "warp":
        exchange = ["st.shared.b64 [%s], %x3;", f"{m.mnemonic} -1;", f"xor.b32 %g, %s, 64; {'ld.shared.b64 %at, [%g];'}"]
        return Case((m.mnemonic,), exchange, [("%at", 64)])
    count = ", 64" if "b" in names else ""
    if "arrive" in words:
        lines = [
            ".reg .pred %w; setp.ge.u32 %w, %n, 32; mov.b64 %at, 0; @!%w st.shared.b64 [%s], %x3;",
            f"@%w bra WAIT{number}; {m.mnemonic} 2, 64; bra DONE{number};",
            f"WAIT{number}: barrier.sync 2, 64; sub.u32 %g, %s, 2048; ld.shared.b64 %at, [%g];",
            f"DONE{number}: bar.sync 0;",
        ]
        return Case((m.mnemonic,), lines, [("%at", 64)])
    if "red" not in words:
        lines = ["st.shared.b64 [%s], %x5;", f"{m.mnemonic} 1{count};", "xor.b32 %g, %n, 63; mad.lo.u32 %g, %g, 64, %base;"]
        return Case((m.mnemonic,), [*lines, "ld.shared.b64 %at, [%g]; bar.sync 0;"], [("%at", 64)])
    negated = "!" if number % 2 else ""
    if "popc" in words:
        return Case((m.mnemonic,), [_FLAG, ".reg .b32 %d;", f"{m.mnemonic} %d, 1{count}, {negated}%q;"], [("%d", 32)])
    lines = [_FLAG, ".reg .b32 %d; .reg .pred %w;", f"{m.mnemonic} %w, 1{count}, {negated}%q;", "selp.b32 %d, 1, 0, %w;"]
    return Case((m.mnemonic,), lines, [("%d", 32)])


def _cluster_barriers() -> Iterator[Case]:
    found = [m.mnemonic for row in rows("barrier") for m in executable(row, _ARCH) if "cluster" in m.mnemonic]
    arrives, waits = ([x for x in found if f".{w}" in x] for w in ("arrive", "wait"))
    for k in range(max(len(arrives), len(waits))):
        arrive, wait = arrives[k % len(arrives)], waits[k % len(waits)]
        ordered = "relaxed" not in arrive
        lines = [
            ".reg .b32 %rank, %far; mov.u32 %rank, %cluster_ctarank; xor.b32 %rank, %rank, 1; st.shared.b64 [%s], %x2;",
            f"{arrive}; {wait}; mapa.shared::cluster.u32 %far, %s, %rank;",
            "ld.shared::cluster.b64 %at, [%far];" if ordered else "ld.shared.b64 %at, [%s];",
            "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;",
        ]
        yield Case((arrive, wait), lines, [("%at", 64)], cluster=True)


def _fences() -> Iterator[Case]:
    for opcode in ("membar", "fence"):
        for row in rows(opcode):
            for m in executable(row, _ARCH):
                where = " [%at], 128" if m.operands else ""
                lines = ["st.global.b64 [%cell], %x4;", "ld.param.u64 %at, [cells];", f"{m.mnemonic}{where};"]
                alone = m.mnemonic == "membar.proxy.async"  # ptxas 13.0 rejects it, 13.5 does not
                yield Case((m.mnemonic,), [*lines, "ld.global.b64 %at, [%cell];"], [("%at", 64)], alone=alone)


def _addresses() -> Iterator[Case]:
    bases = [
        ("%a0", "mov.b64 %a0, %cell;"),
        ("%a1", "mov.b64 %a1, %sg;"),
        ("%a2", "mov.b64 %a2, mine; cvta.local.u64 %a2, %a2;"),
    ]
    bases += [("%a3", "mov.b64 %a3, table; cvta.const.u64 %a3, %a3;"), ("%a4", "mov.b64 %a4, blob; cvta.param.u64 %a4, %a4;")]
    for row in rows("isspacep"):
        for m in executable(row, _ARCH):
            if m.operands[1].type is not None and m.operands[1].type.bits == 32:
                continue  # addresses have 64 bits
            lines = [".reg .b64 %a<5>; .reg .b32 %d<5>; .reg .pred %q;", *(line for _, line in bases)]
            lines += [f"{m.mnemonic} %q, {a}; selp.b32 %d{k}, 1, 0, %q;" for k, (a, _) in enumerate(bases)]
            yield Case((m.mnemonic,), lines, [(f"%d{k}", 32) for k in range(5)])
    where = {"local": "mine", "const": "table", "param": "blob", "param::entry": "blob"}
    for row in rows("cvta"):
        for m in executable(row, _ARCH):
            yield _conversion(m, where)
    for opcode in ("mapa", "getctarank"):
        for row in rows(opcode):
            for m in executable(row, _ARCH):
                if m.mnemonic.endswith("u64") or "shared::cluster" in m.mnemonic:  # generic addresses have 64 bits
                    yield _cluster_address(m)


def _conversion(m: Match, where: dict[str, str]) -> Case:
    """From a space to generic and a generic load; or from generic to the space and a load there."""
    words = m.mnemonic.split(".")
    space = next(w for w in words if w in (*where, "global", "shared", "shared::cta", "shared::cluster"))
    if space in where:
        start = f"mov.b64 %at, {where[space]};"
    else:
        start = "mov.b64 %at, %cell;" if space == "global" else "cvt.u64.u32 %at, %s;"
    if "to" not in words:
        return Case((m.mnemonic,), [f".reg .b64 %w; {start} {m.mnemonic} %at, %at; ld.b64 %w, [%at];"], [("%w", 64)])
    there = "" if space == "global" else f"cvta.{space}.u64 %at, %at;"
    kind = "shared" if space.startswith("shared") else "param" if space == "param::entry" else space
    lines = [f".reg .b64 %w; {start} {there} {m.mnemonic} %at, %at; ld.{kind}.b64 %w, [%at];"]
    return Case((m.mnemonic,), lines, [("%w", 64)])


def _cluster_address(m: Match) -> Case:
    words = m.mnemonic.split(".")
    wide, shared = words[-1] == "u64", "shared::cluster" in words
    source = ("%at" if wide else "%s") if shared else "%sg"
    widen = "cvt.u64.u32 %at, %s;" if wide else ""
    start = f".reg .b32 %rank, %d; .reg .b64 %w; mov.u32 %rank, %cluster_ctarank; xor.b32 %rank, %rank, 1; {widen}"
    ends = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
    if m.row.opcode == "getctarank":
        return Case((m.mnemonic,), [start, f"{m.mnemonic} %d, {source};"], [("%d", 32)], cluster=True)
    far = "%w" if wide else "%g"
    load = f"ld.{'shared::cluster.' if shared else ''}b64 %w, [{far}];"
    return Case((m.mnemonic,), [start, ends, f"{m.mnemonic} {far}, {source}, %rank; {load}", ends], [("%w", 64)], cluster=True)


def _matrices() -> Iterator[Case]:
    for row in (*rows("ldmatrix"), *rows("stmatrix"), *rows("movmatrix")):
        for m in executable(row, _ARCH):
            count = next((int(w[1:]) for w in m.mnemonic.split(".") if w in ("x1", "x2", "x4")), 1)
            names = [f"%d{k}" for k in range(count)]
            group = "{" + ", ".join(names) + "}"
            first = f".reg .b32 %d<{count}>;"
            cell = "%s" if ".shared" in m.mnemonic else "%sg"
            if row.opcode == "ldmatrix":
                yield Case((m.mnemonic,), [first, f"{m.mnemonic} {group}, [{cell}+16];"], [(n, 32) for n in names])
            elif row.opcode == "stmatrix":
                sources = " ".join(f"cvt.u32.u64 {n}, %x{2 * k};" for k, n in enumerate(names))
                lines = [first, sources, f"{m.mnemonic} [{cell}+16], {group};", "bar.warp.sync -1; ld.shared.b64 %at, [%s+16];"]
                yield Case((m.mnemonic,), [*lines, ".reg .b64 %w; ld.shared.b64 %w, [%s+24];"], [("%at", 64), ("%w", 64)])
            else:
                yield Case((m.mnemonic,), [first, "cvt.u32.u64 %g, %x3;", f"{m.mnemonic} %d0, %g;"], [("%d0", 32)])


def _stack() -> Iterator[Case]:
    saves, restores, allocations = (
        [m.mnemonic for row in rows(o) for m in executable(row, _ARCH)] for o in ("stacksave", "stackrestore", "alloca")
    )
    for save, restore, allocate in zip(saves, restores, allocations, strict=True):
        wide = save.endswith("u64")
        kind = "b64" if wide else "b32"
        lines = [
            f".reg .{kind} %before, %block, %again, %size; {save} %before; mov.{kind} %size, 32;",
            f"{allocate} %block, %size, 16; st.local.b64 [%block+8], %x6; ld.local.b64 %at, [%block+8];",
            f"{restore} %before; {save} %again; sub.u{kind[1:]} %again, %again, %before;",
        ]
        yield Case((save, restore, allocate), lines, [("%at", 64), ("%again", int(kind[1:]))])


def _others() -> Iterator[Case]:
    numbers = cycle((1, 3, 15))
    for opcode in ("nanosleep", "pmevent", "activemask", "griddepcontrol"):
        for row in rows(opcode):
            for m in executable(row, _ARCH):
                if opcode == "activemask":
                    yield Case((m.mnemonic,), [".reg .b32 %d;", f"{m.mnemonic} %d;"], [("%d", 32)])
                else:
                    operand = "" if opcode == "griddepcontrol" else f" {next(numbers)}"
                    yield Case((m.mnemonic,), [f"{m.mnemonic}{operand};"], [("%x0", 64)])


def lane_cases() -> list[Case]:
    """Return every case of this module."""
    return [*_barriers(), *_cluster_barriers(), *_fences(), *_addresses(), *_matrices(), *_stack(), *_others()]
