"""Watch points: look at a thread's registers and memory when it reaches a line, without touching the kernel.

A watch point becomes an operation of its own before instructions of its line (`insert`), so that runs without any
cost nothing.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any, final

import numpy as np

from warpsmith.base.errors import InputError
from warpsmith.simulator.operand_values import values
from warpsmith.simulator.ordering import PROBE
from warpsmith.simulator.program import Block, Operation, Program, Reg
from warpsmith.simulator.python_names import registers_of_line
from warpsmith.simulator.registers import dtype_of
from warpsmith.simulator.shared_address import place_of, rank_of

if TYPE_CHECKING:
    from warpsmith.base.source import Place
    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.launch_config import LaunchConfig
    from warpsmith.simulator.scope import Register

__all__ = ["Seen", "Stop", "Watch", "check_reach", "insert"]

_MEMORY = re.compile(r"(global|shared|local|const)\[(0x[0-9a-fA-F]+|\d+|%?\w+)\]:(\w+?)(?:x(\d+))?")
_SMALL = ("f16", "bf16", "e4m3", "e5m2")


@final
class Stop:
    """One thread before an instruction."""

    def __init__(self, x: Lanes, operation: Operation, block: Block, program: Program, row: int, thread: int) -> None:
        self._x, self._operation, self._block, self._program = x, operation, block, program
        self._row, self.thread = row, thread
        self.cta: tuple[int, int, int] = x.machine.cta_of(row)

    @property
    def warp(self) -> int:
        """The thread's warp in its CTA."""
        return self.thread // 32

    @property
    def place(self) -> Place | None:
        """The user's line."""
        return self._operation.place

    @property
    def instruction(self) -> str:
        """The instruction about to run: its mnemonic."""
        return self._operation.text

    def register(self, name: str) -> Any:
        """Return a register by its PTX name (`%r1`), or by its Python name in the function of this line.

        A numpy scalar of the register's type (16-bit and packed floats: their bits); an array for a vector register. Raise
        `InputError` for an unknown name.
        """
        found = self._program.registers.get(self._block.function, {}).get(name)
        if found is not None:
            return self._value(found)
        named = registers_of_line(self._program, self._block.function, self.place)
        if name in named:
            return self._of(named[name])
        known = ", ".join(sorted(named)[:12]) or "none"
        raise InputError(f"no register `{name}` at {self.place}; Python names known there: {known}")

    def names(self) -> list[str]:
        """Return the PTX names of the registers of the instruction, in the order of its operands."""
        cells = {(r.bank, r.slot): name for name, r in self._program.registers.get(self._block.function, {}).items()}
        out: list[str] = []
        for i in range(len(self._operation.operands)):
            for bank, slots in self._operation.operand_slots(i).items():
                out += [cells[bank, slot] for slot in slots if (bank, slot) in cells]
        return list(dict.fromkeys(out))

    def memory(self, space: str, address: int, type_: str, count: int = 1) -> Any:
        """Return `count` items of a PTX type (`f32`, `u8`, `f16`, …) at an address of a space, as the thread sees it.

        A shared address of a cluster may hold the rank of a CTA from bit 24 on, as registers have it; without it is the own
        CTA's. f16, bf16, e4m3 and e5m2 come as float32 values. Raise `InputError` for addresses outside.
        """
        x, bits = self._x, {"bf16": 16, "f16": 16, "e4m3": 8, "e5m2": 8}.get(type_)
        dtype = np.dtype(f"u{bits // 8}") if bits else np.dtype(dtype_of(type_))
        m, row = x.machine, self._row
        if space == "shared" and 0 < rank_of(address) < m.cluster_size:
            row, address = int(m.cluster_first[row]) + rank_of(address), place_of(address)
        spaces: dict[str, tuple[Any, int]] = {
            "global": (m.global_, address - 0x7000_0000_0000), "shared": (m.shared, row * m.shared.row + address),
            "local": (m.local, (self._row * m.threads + self.thread) * m.local.row + address), "const": (m.const, address),
        }  # fmt: skip
        if space not in spaces:
            raise InputError(f"memory of `{space}`: the spaces are {', '.join(spaces)}")
        where, start = spaces[space]
        stop = start + count * dtype.itemsize
        last = (row + 1) * where.row if space == "shared" else where.data.size
        if start < 0 or stop > last or (where.shadow[start:stop] & 8).any():
            raise InputError(f"{space} address {address:#x}: {count} items of {type_} there are out of bounds")
        data = where.data[start:stop].copy().view(dtype)
        return values(data, type_) if type_ in _SMALL else data

    def show(self, what: str) -> Any:
        """Return what a text asks for: a register, or memory as `shared[0x400]:f32x4`, the address a number or a register."""
        found = _MEMORY.fullmatch(what)
        if found is None:
            return self.register(what)
        space, address, type_, count = found.groups()
        at = int(address, 0) if address[0].isdigit() else int(self.register(address))
        return self.memory(space, at, type_, int(count or 1))

    def _value(self, r: Register) -> Any:
        bank = self._x.machine.registers.banks[r.bank]
        items = bank[r.slot : r.slot + r.vector * r.per, self._row, self.thread].copy()
        typed = items.view(dtype_of(r.type)) if r.bits >= 16 else items
        return typed[0] if typed.size == 1 else typed

    def _of(self, r: Reg) -> Any:
        bank = self._x.machine.registers.banks[r.bank]
        items = bank[r.slot : r.slot + 1, self._row, self.thread].copy()
        return items.view(r.dtype)[r.byte // np.dtype(r.dtype).itemsize] if r.bank != "pred" else items[0]


@final
@dataclass(frozen=True, slots=True)
class Seen:
    """What a watch point saw."""

    place: Place | None
    instruction: str
    cta: tuple[int, int, int]
    thread: int
    values: dict[str, Any]

    def __str__(self) -> str:
        cta = ",".join(map(str, self.cta))
        shown = ", ".join(f"{n} = {_shown(v)}" for n, v in self.values.items())
        return f"{self.place}: cta ({cta}) thread {self.thread} before `{self.instruction}`: {shown or 'no registers'}"


@final
@dataclass(slots=True)
class Watch:
    """A watch point: look when a thread is about to run an instruction of a line.

    An instruction that waits is looked at whenever it is tried.
    """

    on: tuple[int | Sequence[int] | None, int | None, int | str | None]
    """(CTA, thread, line): a CTA by its linear number or its index (x, y, z), a linear thread, a line number or `file:line`;
    None: every one."""
    show: Sequence[str] = ()
    """Registers by PTX or Python name, memory as `shared[0x400]:f32x4`; empty: the registers of the instruction."""
    when: Callable[[Stop], bool] | None = None
    """Look only if this says so."""
    do: Callable[[Stop], object] | None = None
    """Called with what there is to see, instead of noting it in `result.watched`."""
    limit: int = 100
    """Notes kept."""
    every: bool = False
    """Look before every instruction of the line, not only before the first of those that follow each other."""
    by_warp: bool = False
    """Look once for each warp, at its first active thread."""
    seen: list[Seen] = field(default_factory=list[Seen])

    def __post_init__(self) -> None:
        if not isinstance(self.on, tuple) or len(self.on) != 3:
            raise InputError(f"watch: on={self.on!r}: give (cta, thread, line); None stands for every one")
        cta, thread, line = self.on
        index = [cta] if isinstance(cta, int) else list(cta) if isinstance(cta, list | tuple) and len(cta) == 3 else [None]
        numbers = [*([] if cta is None else index), *([] if thread is None else [thread])]
        if any(not isinstance(n, int) or n < 0 for n in numbers) or not isinstance(line, int | str | None):
            how = "a CTA is a number or (x, y, z), a thread a number, a line a number or FILE:NUMBER"
            raise InputError(f"watch: on={self.on!r}: {how}")
        if not isinstance(self.show, list | tuple) or not all(isinstance(name, str) for name in self.show):
            raise InputError(f'watch: show={self.show!r:.60}: give a list of names, e.g. show=["%r1"]')
        for name, called in (("when", self.when), ("do", self.do)):
            if called is not None and not callable(called):
                raise InputError(f"watch: {name}={called!r:.60}: give a function of a Stop")

    def wants(self, operation: Operation) -> bool:
        """Say whether an instruction is of the line."""
        line, place = self.on[2], operation.place
        if line is None or place is None:
            return line is None
        if isinstance(line, int):
            return place.line == line
        file, _, number = line.rpartition(":")
        if not file or not number.isdecimal():
            raise InputError(f"watch: line={line!r}: give a number or FILE:NUMBER")
        return place.line == int(number) and (place.file == file or place.file.endswith(f"/{file}"))

    def look(self, x: Lanes, operation: Operation, block: Block, program: Program) -> None:
        """Look at the active threads it is for."""
        for row, thread in self._threads(x):
            stop = Stop(x, operation, block, program, row, thread)
            if self.when is not None and not self.when(stop):
                continue
            if self.do is not None:
                self.do(stop)
            elif len(self.seen) < self.limit:
                found = {name: stop.show(name) for name in self.show or stop.names()}
                self.seen.append(Seen(stop.place, stop.instruction, stop.cta, stop.thread, found))

    def _threads(self, x: Lanes) -> Iterator[tuple[int, int]]:
        cta, thread, _ = self.on
        active = x.active()
        for row in x.ctas:
            if cta is not None and not _is(x, row, cta):
                continue
            lanes = active[row - x.c0]
            if thread is not None:
                if x.t0 <= thread < x.t1 and lanes[thread - x.t0]:
                    yield row, thread
                continue
            chosen = np.flatnonzero(lanes)
            if self.by_warp:
                chosen = chosen[np.unique(chosen // 32, return_index=True)[1]]
            for t in (chosen + x.t0).tolist():
                yield row, t


def _is(x: Lanes, row: int, cta: int | Sequence[int]) -> bool:
    return int(x.machine.row_cta[row]) == cta if isinstance(cta, int) else x.machine.cta_of(row) == tuple(cta)


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"[{', '.join(_shown(v) for v in value)}]"
    if isinstance(value, np.unsignedinteger) and value > 9:
        return f"{int(value)} ({int(value):#x})"
    return str(value)


def insert(program: Program, watches: Sequence[Watch]) -> None:
    """Put an operation before the instructions that watch points want. Raise `InputError` where one wants none."""
    used: set[int] = set()
    for block in program.blocks:
        out: list[Operation] = []
        last: Operation | None = getattr(block.ending, "operation", None)
        before: Operation | None = None
        for op in (*block.operations, last):
            if op is None:
                continue
            mine = [(i, w) for i, w in enumerate(watches) if w.wants(op) and (w.every or before is None or not w.wants(before))]
            if mine:
                used.update(i for i, _ in mine)
                out.append(_probe(program, block, op, [w for _, w in mine]))
            if op is not last:
                out.append(op)
            before = op
        block.operations = out
    for i, watch in enumerate(watches):
        if i not in used and watch.on[2] is not None:
            raise InputError(f"watch: no instruction of the kernel is at line {watch.on[2]}{_near(program, watch.on[2])}")


def check_reach(watches: Sequence[Watch], config: LaunchConfig) -> None:
    """Raise `InputError` for a watch point of a CTA or a thread that the launch has not."""
    (x, y, z), threads = config.grid, prod(config.block)
    for cta, thread, _ in (w.on for w in watches):
        if thread is not None and thread >= threads:
            raise InputError(f"watch: thread {thread}: a CTA of this launch has {threads}, numbered from 0")
        outside = cta >= x * y * z if isinstance(cta, int) else cta is not None and any(map(operator.ge, cta, config.grid))
        if outside:
            raise InputError(f"watch: CTA {cta}: the grid is {config.grid}, and its CTAs are numbered from 0")


def _near(program: Program, line: int | str | None) -> str:
    """Say which lines of the kernel do have instructions: the last before and the first behind, and the file."""
    every = [op for b in program.blocks for op in (*b.operations, getattr(b.ending, "operation", None)) if op is not None]
    places = sorted({(op.place.file, op.place.line) for op in every if op.place is not None}, key=lambda p: (p[1], p[0]))
    number = int(str(line).rpartition(":")[2])
    nearest = [*[p for p in places if p[1] < number][-1:], *[p for p in places if p[1] > number][:1]]
    named = " and ".join(f"{file}:{at}" for file, at in nearest)
    return f"; the nearest {'is' if len(nearest) == 1 else 'are'} {named}" if nearest else ""


def _probe(program: Program, block: Block, op: Operation, watches: list[Watch]) -> Operation:
    def look(x: Lanes) -> None:
        for w in watches:
            w.look(x, op, block, program)

    return Operation("machine", look, (), (), text=op.text, place=op.place, opcode=PROBE)
