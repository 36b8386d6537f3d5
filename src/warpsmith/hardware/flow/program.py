"""Random programs of several warps and one to four CTAs, each made from its number alone, none with a race or a hang.

A program is straight-line code at its top, whose statements are ways through branches, loops, tables and functions, and
steps of all threads together. What threads hand to each other goes through barriers, flags or atomic operations whose order
does not matter, so that the results do not depend on the schedule. Every `.sync` instruction names the lanes that come to
it (`writer.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from warpsmith.hardware.flow import branches, calls, clusters, data, exchange, lanes, matrix, places
from warpsmith.hardware.flow.nodes import Node, printed
from warpsmith.hardware.flow.writer import CELL, WORDS, Function, Scope, Shape, Writer
from warpsmith.hardware.random_stream import RandomStream
from warpsmith.hardware.scalar_values import random_values, splitmix

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["SLOTS", "FlowProgram", "arguments", "generate", "results"]

REGISTERS = (10, 4, 4)
"""`%r`, `%d`, `%p` of a kernel."""
SLOTS = sum(REGISTERS[:2]) + 2
"""Words of 64 bits that a thread loads, and stores twice: registers, what was seen, predicates."""

_COMMON = (
    (44, data.data), (18, places.place), (6, places.table), (5, places.own_atomic), (7, places.common), (14, lanes.lanes),
    (3, lanes.exchange_in_warp), (7, branches.arms), (5, branches.loop), (3, branches.targets), (4, branches.leave),
    (5, calls.call),
)  # fmt: skip
_TOGETHER = (
    (8, exchange.exchange), (4, exchange.read_words), (3, exchange.by_halves), (3, exchange.by_flags), (4, exchange.async_copy),
    (3, exchange.bulk_copy), (6, clusters.between_ctas), (5, matrix.matrices), (6, matrix.product), (4, branches.uniform_arm),
    (4, branches.uniform_loop), (3, branches.common_arms),
)  # fmt: skip
_LAST = ((6, branches.exit_early),)


@final
@dataclass(frozen=True, slots=True)
class FlowProgram:
    """A program: its number, its launch, its functions, its statements before and behind the first store of registers."""

    number: int
    shape: Shape
    functions: tuple[Function, ...]
    first: tuple[Node, ...]
    last: tuple[Node, ...]

    def text(self, arch: str) -> str:
        """Return the module: the kernel `k(.u64 in, .u64 out, .u64 cells, .u64 counters, .u64 bulk, .b8 blob[64])`."""
        return "\n".join([*_declared(self, arch), *(calls.text(f) for f in self.functions), *_kernel(self)]) + "\n"


def generate(number: int) -> FlowProgram:
    """Return program `number`."""
    stream = RandomStream(number)
    ctas = stream.choice((1, 1, 1, 2, 2, 2, 4))
    threads = stream.choice((32, 64, 64, 64, 96, 128, 128, 40, 72))
    shape = Shape(ctas, threads, cluster=ctas > 1 and stream.chance(70))
    w = Writer(stream, shape, _COMMON)
    calls.functions(w)
    w.makers = (*_COMMON, *_TOGETHER)
    w.budget = 30 + stream.below(40)
    top = Scope(REGISTERS, warp=shape.whole, cta=True)
    first: list[Node] = []
    while w.budget > 0:
        first += w.body(top, 8)
    w.makers, w.budget = (*_COMMON, *_LAST), 10
    last = w.body(Scope(REGISTERS, exits=True), 8)
    return FlowProgram(number, shape, tuple(w.functions), tuple(first), last)


# --- text -------------------------------------------------------------------------------------------------------------


def _declared(p: FlowProgram, arch: str) -> list[str]:
    n, warps = p.shape.threads, p.shape.warps
    heads = [calls.declared(f) for f in p.functions]
    table = ", ".join(f.name for f in p.functions if f.kind == "param")
    words = ", ".join(str(x) for x in splitmix(p.number, CELL // 4, 3) >> np.uint64(32))
    return [
        f"// program {p.number}: {p.shape.ctas} CTAs of {n} threads{', one cluster' if p.shape.cluster else ''}",
        f".version 8.6\n.target {arch}\n.address_size 64",
        f".shared .align 128 .b8 area[{n * CELL}], tile[{warps * matrix.TILE}], buf[{n * 16}], dbuf[{n * 16}];",
        f".shared .align 16 .b8 lanes[{n * 4}], words[{4 * WORDS}], far[{4 * WORDS}], flags[{4 * WORDS}];",
        f".shared .align 8 .b64 bars[{exchange.BARRIERS}];",
        f".const .align 16 .b32 ctable[{CELL // 4}] = {{{words}}};",
        f".global .align 16 .b32 gtable[{CELL // 4}] = {{{words}}};",
        *heads,
        f".global .align 8 .u64 ftable[] = {{{table}}};",
    ]  # fmt: skip


def _kernel(p: FlowProgram) -> list[str]:
    cluster = f" .reqnctapercluster {p.shape.ctas}, 1, 1" if p.shape.cluster else ""
    pointers = ", ".join(f".param .u64 {x}" for x in ("in", "out", "cells", "counters", "bulk"))
    blob = f".param .align 16 .b8 blob[{CELL}]"
    meet = "barrier.cluster.arrive; barrier.cluster.wait;" if p.shape.cluster else "bar.sync 0;"
    total = p.shape.ctas * p.shape.threads
    return [
        f".visible .entry k({pointers}, {blob}){cluster}",
        "{",
        f"{calls.declarations(REGISTERS)} .reg .b64 %in, %out, %gg, %counters, %bulk; .reg .b32 %ph<5>, %epoch, %bar0;",
        *_begin(p, total), meet, *printed(p.first), meet, *_end(p, total), *_store(total, 0), *printed(p.last),
        *_store(total, SLOTS), "ret;", "}",
    ]  # fmt: skip


def _begin(p: FlowProgram, total: int) -> list[str]:
    n = p.shape.threads
    r, d, q = REGISTERS
    pointers = (("in", "%in", 8), ("out", "%out", 8), ("cells", "%gg", CELL))
    lines = [f"mov.u32 %t0, %ctaid.x; mov.u32 %t1, %tid.x; mad.lo.u32 %t1, %t0, {n}, %t1;"]
    lines += [
        f"ld.param.u64 {x}, [{name}]; cvta.to.global.u64 {x}, {x}; mad.wide.u32 {x}, %t1, {each}, {x};"
        for name, x, each in pointers
    ]
    lines += [f"ld.param.u64 %counters, [counters]; ld.param.u64 %bulk, [bulk]; mad.wide.u32 %bulk, %t0, {4 * n}, %bulk;"]
    lines += [f"ld.global.b32 %r{k}, [%in+{8 * total * k}];" for k in range(r)]
    lines += [f"ld.global.b64 %d{k}, [%in+{8 * total * (r + k)}];" for k in range(d)]
    lines += [f"ld.global.b32 %acc, [%in+{8 * total * (r + d)}]; ld.global.b32 %t0, [%in+{8 * total * (r + d + 1)}];"]
    lines += [f"and.b32 %t1, %t0, {1 << k}; setp.ne.u32 %p{k}, %t1, 0;" for k in range(q)]
    lines += list(calls.opening(d))
    lines += [f"st.shared.b64 [%sh+{8 * k}], %d{(k + 1) % d};" for k in range(CELL // 8)]
    # the lanes of the last warp need not be 32
    lines += [f"mul.lo.u32 %t0, %w, 32; sub.u32 %t0, {n}, %t0; min.u32 %t0, %t0, 32; bmsk.clamp.b32 %m0, 0, %t0;"]
    lines += [f"mov.b32 %ph{k}, 0;" for k in range(5)] + ["mov.b32 %epoch, 0; mov.b32 %bar0, 0;"]
    # every thread clears some words, the first one makes the barriers
    lines += ["mov.u32 %t1, %me;", f"CLEAR: setp.ge.u32 %u0, %t1, {WORDS}; @%u0 bra CLEARED;"]
    lines += [
        f"mov.u32 %t2, {name}; mad.lo.u32 %t2, %t1, 4, %t2; st.shared.b32 [%t2], 0;" for name in ("words", "far", "flags")
    ]
    lines += [f"add.u32 %t1, %t1, {p.shape.threads}; bra CLEAR;", "CLEARED: setp.ne.u32 %u0, %me, 0; @%u0 bra MADE;"]
    lines += [f"mbarrier.init.shared.b64 [bars+{8 * k}], {count};" for k, count in enumerate(_counts(p.shape))]
    return [*lines, "fence.mbarrier_init.release.cluster;", "MADE:"]


def _counts(shape: Shape) -> tuple[int, ...]:
    return shape.threads, 1, shape.warps, shape.threads, 1


def _end(p: FlowProgram, total: int) -> list[str]:
    """Return lines that gather what is in shared memory."""
    lines = [f"ld.shared.b32 %t0, [%sh+{4 * k}]; mad.lo.u32 %acc, %acc, 0x9E3779B1, %t0;" for k in range(CELL // 4)]
    lines.append("mov.u32 %t1, %me;")
    again = "GATHER"
    return [
        *lines, f"{again}: setp.ge.u32 %u0, %t1, {WORDS}; @%u0 bra GATHERED; mov.u32 %t2, words; mad.lo.u32 %t2, %t1, 4, %t2;",
        "ld.shared.b32 %t0, [%t2]; mad.lo.u32 %acc, %acc, 0x9E3779B1, %t0; mov.u32 %t2, far; mad.lo.u32 %t2, %t1, 4, %t2;",
        f"ld.shared.b32 %t0, [%t2]; mad.lo.u32 %acc, %acc, 0x9E3779B1, %t0; add.u32 %t1, %t1, {p.shape.threads}; bra {again};",
        "GATHERED: bar.sync 0;",
    ]  # fmt: skip


def _store(total: int, first: int) -> list[str]:
    r, d, q = REGISTERS
    at = lambda k: f"[%out+{8 * total * (first + k)}]"  # noqa: E731
    lines = [f"st.global.b32 {at(k)}, %r{k};" for k in range(r)] + [f"st.global.b64 {at(r + k)}, %d{k};" for k in range(d)]
    lines += [f"st.global.b32 {at(r + d)}, %acc; mov.b32 %t0, 0;"]
    lines += [f"selp.b32 %t1, {1 << k}, 0, %p{k}; or.b32 %t0, %t0, %t1;" for k in range(q)]
    return [*lines, f"st.global.b32 {at(r + d + 1)}, %t0;"]


# --- arguments and results --------------------------------------------------------------------------------------------


def arguments(p: FlowProgram) -> list[Any]:
    """Return `in` `[SLOTS, thread]`, `out` `[2 · SLOTS, thread]`, `cells` `[thread, 8]`, `counters`, `bulk`, the blob."""
    total = p.shape.ctas * p.shape.threads
    words = np.zeros((SLOTS, total), np.uint64)
    r, d, _ = REGISTERS
    for k in range(r + d):
        types = ("f32", "u32", "f16x2", "u32") if k < r else ("u64", "u64", "f64")
        which = splitmix(p.number * 64 + k, total, 7) >> np.uint64(40)
        values = [random_values(t, 5000 + p.number * 64 + k, total) for t in types]
        words[k] = np.choose((which % np.uint64(len(types))).astype(np.int64), values)
    words[r + d :] = splitmix(p.number * 64 + 62, 2 * total).reshape(2, total) >> np.uint64(32)
    cells = splitmix(p.number * 64 + 61, total * CELL // 8).reshape(total, CELL // 8)
    bulk = (splitmix(p.number * 64 + 60, total) >> np.uint64(32)).astype(np.uint32)
    blob = splitmix(p.number * 64 + 59, CELL // 8).tobytes()
    return [words, np.zeros((2 * SLOTS, total), np.uint64), cells, np.zeros(WORDS, np.uint32), bulk, blob]


def results(values: list[Any]) -> NDArray[np.uint64]:
    """Return what a run left in the arguments, as one array of words."""
    _, out, cells, counters, bulk, _ = values
    return np.concatenate([out.ravel(), cells.ravel(), counters.astype(np.uint64), bulk.astype(np.uint64)])
