"""Programs of instructions that touch memory, lanes or barriers: the harness that all cases share.

A case is a few lines that put values into result slots. A program runs cases one after the other on CTAs of 64 threads, in
clusters of two where a case asks for them:

    k(.u64 out, .u64 fixed, .u64 cells, .b8 blob[64])

`fixed` and `cells` give each thread 64 bytes; the former is only read. At the start the same 64 bytes lie in shared and in
local memory. Names that a case may use:

    %x0 … %x7   the eight words of `fixed`            %fixed, %cell   addresses of the thread's 64 bytes
    %s          shared address of the thread's cell   mine            local memory, 64 bytes
    %sg         the same, generic                     %bar            shared address of an mbarrier of the thread's own
    %n, %lane                                       %policy         a cache policy
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

import numpy as np

from warpsmith.assembly.ptx.isa import match
from warpsmith.assembly.ptx.isa.generate import mnemonics
from warpsmith.base.arch import parse_arch
from warpsmith.hardware.scalar_values import random_values, splitmix
from warpsmith.simulator.meanings import registry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from warpsmith.assembly.ptx.isa import Match, Row

__all__ = ["CELL", "CTAS", "NEWEST", "THREADS", "VERSION", "Case", "MachineProgram", "arguments", "executable", "grouped"]

THREADS, CELL, CTAS = 64, 64, 2
"""Threads of a CTA, bytes of a cell, CTAs of a program (one cluster where cases ask for it)."""
VERSION = (9, 0)
"""PTX version of the programs; forms that are newer stand in programs of their own, of the version that brought them."""
NEWEST = (9, 5)
"""The newest version whose forms are captured; ptxas 13.5 reads it."""
_PER_PROGRAM = 16


@final
@dataclass(slots=True)
class Case:
    """Lines that execute a form, then the registers of `bits` bits whose values are the results."""

    covers: tuple[str, ...]
    """Mnemonics that it is there to execute."""
    lines: list[str]
    puts: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    cluster: bool = False
    alone: bool = False
    """Whether it has a program of its own."""

    @property
    def version(self) -> tuple[int, int]:
        """PTX version that knows every form it covers."""
        return max([VERSION, *(min(map(_version, match(name)), default=VERSION) for name in self.covers)])


def _version(m: Match) -> tuple[int, int]:
    return max((n.ptx or VERSION for n in m.needs), default=VERSION)


@final
@dataclass(frozen=True, slots=True)
class MachineProgram:
    """A kernel `k` made of cases."""

    name: str
    cases: tuple[Case, ...]

    @property
    def cluster(self) -> bool:
        """Whether its CTAs are one cluster."""
        return self.cases[0].cluster

    @property
    def slots(self) -> int:
        """Result slots of 64 bits."""
        return sum(len(c.puts) for c in self.cases)

    def text(self, arch: str) -> str:
        """Return the PTX."""
        return _text(self, arch)


def arguments(slots: int) -> list[Any]:
    """Return results `[slot, thread]` (zeros), `fixed` and `cells` `[thread, 8]`, and the blob."""
    n = THREADS * CTAS
    return [np.zeros((max(1, slots), n), np.uint64), _words(n, 1), _words(n, 2), _words(1, 3).tobytes()]


def _words(threads: int, stream: int) -> NDArray[np.uint64]:
    """Return `[thread, 8]` words: integers, f32 and f16 pairs, f64, by thread."""
    n = threads * 8
    kinds = [
        splitmix(500 + stream, n), random_values("f64", 600 + stream, n),
        random_values("f32", 700 + stream, n) | random_values("f32", 800 + stream, n) << np.uint64(32),
        random_values("f16x2", 900 + stream, n) | random_values("bf16x2", 950 + stream, n) << np.uint64(32),
    ]  # fmt: skip
    return np.choose((np.arange(n) // 8) % len(kinds), kinds).reshape(threads, 8)


_ECHO = f""".func (.param .align 16 .b8 back[{CELL}]) echo (.param .align 16 .b8 given[{CELL}])
{{
.reg .b64 %p<8>;
{" ".join(f"ld.param.b64 %p{k}, [given+{8 * k}]; st.param.b64 [back+{8 * k}], %p{k};" for k in range(8))}
ret;
}}
"""
"""A function that returns what it is given."""


def _text(p: MachineProgram, arch: str) -> str:
    body: list[str] = []
    slot = 0
    n = THREADS * CTAS
    for case in p.cases:
        body += ["{", *case.lines]
        for register, bits in case.puts:
            body.append(f"st.global.{'b8' if bits == 8 else f'b{bits}'} [%o+{8 * n * slot}], {register};")
            slot += 1
        body.append("}")
    shared = [f"st.shared.b64 [%s+{8 * k}], %x{k}; st.local.b64 [mine+{8 * k}], %x{k};" for k in range(8)]
    copy = "\n".join([*(f"ld.global.b64 %x{k}, [%fixed+{8 * k}];" for k in range(8)), *shared])
    cluster = ".reqnctapercluster 2, 1, 1" if p.cluster else ""
    constants = ", ".join(str(17 * i % 256) for i in range(CELL))
    version = max(c.version for c in p.cases)
    head = f".version {version[0]}.{version[1]}\n.target {arch}\n.address_size 64\n"
    lines = "\n".join(body)
    function = _ECHO if any("echo" in line for c in p.cases for line in c.lines) else ""
    return f"""{head}{function}.const .align 16 .b8 table[{CELL}] = {{{constants}}};
.visible .entry k(.param .u64 out, .param .u64 fixed, .param .u64 cells, .param .align 16 .b8 blob[{CELL}]) {cluster}
{{
.reg .b64 %x<8>, %o, %fixed, %cell, %sg, %policy, %at; .reg .b32 %s, %n, %lane, %c, %g, %bar, %base;
.shared .align 1024 .b8 area[{THREADS * CELL}]; .shared .align 8 .b64 bars[{THREADS}]; .local .align 16 .b8 mine[{CELL}];
mov.u32 %n, %tid.x; mov.u32 %lane, %laneid; mov.u32 %c, %ctaid.x; mad.lo.u32 %g, %c, {THREADS}, %n;
ld.param.u64 %o, [out]; mad.wide.u32 %o, %g, 8, %o; ld.param.u64 %fixed, [fixed]; mad.wide.u32 %fixed, %g, {CELL}, %fixed;
ld.param.u64 %cell, [cells]; mad.wide.u32 %cell, %g, {CELL}, %cell;
mov.u32 %base, area; mad.lo.u32 %s, %n, {CELL}, %base; cvt.u64.u32 %at, %s; cvta.shared.u64 %sg, %at;
mov.u32 %bar, bars; mad.lo.u32 %bar, %n, 8, %bar; createpolicy.fractional.L2::evict_last.b64 %policy, 1.0;
{copy}
bar.sync 0;
{lines}
ret;
}}
"""


def executable(row: Row, arch: str) -> Iterator[Match]:
    """Yield matches of a row in which each word and each pair of words occurs, of those the architecture executes."""
    if row.refused or registry.find(row) is None:
        return
    target = parse_arch(arch)
    for name in mnemonics(row):
        for m in match(name):
            if m.row is not row:
                continue
            exists = _version(m) <= NEWEST and all(n.arch is None or n.arch.allows(target) for n in m.needs)
            if exists and not isinstance(registry.build(m), registry.Refused):
                yield m


def grouped(name: str, cases: list[Case]) -> Iterator[MachineProgram]:
    """Yield programs of a few cases each; those of clusters, and those of newer versions of PTX, apart from the others."""
    kinds = sorted({(c.version, c.cluster) for c in cases})
    for version, cluster in kinds:
        some = [c for c in cases if (c.version, c.cluster) == (version, cluster) and not c.alone]
        what = f"{name}{'' if version == VERSION else f' {version[0]}.{version[1]}'}{' cluster' if cluster else ''}"
        for at in range(0, len(some), _PER_PROGRAM):
            yield MachineProgram(f"{what} {at // _PER_PROGRAM}", tuple(some[at : at + _PER_PROGRAM]))
    for i, c in enumerate(c for c in cases if c.alone):
        yield MachineProgram(f"{name} alone {i}", (c,))
