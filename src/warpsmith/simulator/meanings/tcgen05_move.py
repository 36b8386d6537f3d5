"""tcgen05.cp, from shared to tensor memory (PTX ISA 9.7.18.9), and tcgen05.commit (9.7.18.12.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from warpsmith.simulator.async_access import Lane, lanes_of, within
from warpsmith.simulator.asynchronous import AsyncOperation
from warpsmith.simulator.barrier_access import arrive, find, groups, note_arrivers
from warpsmith.simulator.check.leftover import signals_late
from warpsmith.simulator.check.order import Telling
from warpsmith.simulator.check.tensor_memory import tensor_check
from warpsmith.simulator.findings import threads_text
from warpsmith.simulator.meanings.mbarrier import space_of
from warpsmith.simulator.meanings.registry import machine, refuse
from warpsmith.simulator.meanings.tcgen05_mma import ctas
from warpsmith.simulator.operand_tiles import Operand, decompressed, items, rows_of_bytes
from warpsmith.simulator.tensor_memory import Cells, tensor_memory_of
from warpsmith.simulator.tensor_pipe import Source, group_of, issue, queue_of
from warpsmith.simulator.units import units_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.assembly.ptx.isa import Match
    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.machine import Machine
    from warpsmith.simulator.mbarrier import MBarrier
    from warpsmith.simulator.meanings.registry import Function, Refused
    from warpsmith.simulator.tensor_memory import TensorMemory

__all__: list[str] = []

_LANES: dict[str, list[NDArray[np.intp]]] = {
    "128x256b": [np.arange(128)],
    "128x128b": [np.arange(128)],
    "4x256b": [32 * np.arange(4)],
    "warpx2::02_13": [np.arange(64), 64 + np.arange(64)],
    "warpx2::01_23": [np.arange(64) // 32 * 64 + np.arange(64) % 32, np.arange(64) // 32 * 64 + np.arange(64) % 32 + 32],
    "warpx4": [32 * q + np.arange(32) for q in range(4)],
}
"""Form -> where its rows go, each list a copy of all of them."""
_PACKED = {"b6x16_p32": 6, "b4x16_p64": 4}


@final
class _Copy(NamedTuple):
    """A copy in flight."""

    memory: TensorMemory
    rows: tuple[int, ...]
    form: str
    bits: int
    """Bits of an element in shared memory; 8: as it is."""
    address: int
    descriptor: int
    operand: Operand

    def lanes(self) -> list[NDArray[np.intp]]:
        """Return the lanes of each copy of the rows."""
        return [at + (self.address >> 16) for at in _LANES[self.form]]

    def complete(self, machine: Machine) -> None:
        """Read the rows of each CTA and write them to its lanes."""
        column = self.address & 0xFFFF
        width = self.operand.k // 4
        for row in self.rows:
            data, flags = rows_of_bytes(machine, items(machine, row, self.descriptor, self.operand))
            if self.bits < 8:
                data = decompressed(data, self.bits)
            words = np.ascontiguousarray(data).view(np.uint32)
            bad = False if flags is None else flags.reshape(len(data), width, 4).any(axis=2)
            sm = self.memory.multiprocessor(row)
            for lanes in self.lanes():
                self.memory.words[sm, lanes, column : column + width] = words
                if self.memory.undefined is not None:
                    self.memory.undefined[sm, lanes, column : column + width] = bad


@machine("tcgen05.cp")
def cp(m: Match) -> Function | Refused:
    """Put a copy of rows of 16 or 32 bytes in flight, multicast to warps where the form says so."""
    words = m.mnemonic.split(".")
    shape = next(w for w in words if w.endswith("b") and w[0].isdigit())
    form = next(w for w in (*words, shape) if w in _LANES)
    bits = next((_PACKED[w] for w in words if w in _PACKED), 8)
    height, width = (int(n) for n in shape[:-1].split("x"))
    operand = Operand("bytes", height, width // 8)
    pair = "cta_group::2" in words

    def run(x: Lanes, address: Any, descriptor: Any) -> None:
        tm = tensor_memory_of(x.machine)
        for lane in lanes_of(x):
            rows = ctas(x, lane, pair)
            copy = _Copy(tm, rows, form, bits, lane.at(address), lane.at(descriptor), operand)
            if max(int(at.max()) for at in copy.lanes()) > 127:
                text = f"`{x.op.text}` at lane {copy.address >> 16} leaves the 128 lanes of tensor memory"
                x.finding("out-of-bounds", text, lanes=lane.mask, repair="Begin at lane 0.", stop=True)
                return
            op = AsyncOperation("tcgen05.cp", copy.complete, lane.row, x.place, threads_text(x, lane.mask))
            column = copy.address & 0xFFFF
            cells = [
                Cells(row, int(at[0]), int(at[-1]) + 1, column, column + operand.k // 4, written=True)
                for row in rows for at in copy.lanes()
            ]  # fmt: skip
            issue(x, lane, op, rows, [Source(row, copy.descriptor, operand) for row in rows], cells)

    return run


@machine("tcgen05.commit")
def commit(m: Match) -> Function | Refused:
    """Let barriers be arrived at when the thread's products and copies so far have completed."""
    if "sync_restrict" in m.mnemonic or "32b" in m.mnemonic:
        return refuse("commits of sm_107 are not modelled")
    pair, space = "cta_group::2" in m.mnemonic, space_of(m)

    def run(x: Lanes, address: NDArray[np.int64], mask: Any = None) -> None:
        for lane in lanes_of(x):
            with within(x, lane.mask):
                for index, _ in groups(x, space, address):
                    _commit(x, lane, _barriers(x, lane, index, mask), ctas(x, lane, pair, reads=False))

    return run


def _barriers(x: Lanes, lane: Lane, index: int, mask: Any) -> list[MBarrier]:
    """Return the barriers that a commit signals: the one given, or with `mask` those at its offset in the CTAs named."""
    where = [index]
    if mask is not None:
        m = x.machine
        bits, size = lane.at(mask) & 0xFFFF, m.cluster_size
        if bits >> size or not bits:
            x.finding(
                "out-of-bounds",
                f"multicast mask {bits:#x} names CTAs that the cluster of {size} does not have",
                lanes=lane.mask,
                repair="Set one bit per destination CTA, by its rank in the cluster.",
            )
        first = int(m.cluster_first[lane.row])
        where = [(first + r) * m.shared.row + index % m.shared.row for r in range(size) if bits >> r & 1]
    out: list[MBarrier] = []
    for at in where:
        barrier = find(x, at, lane.mask, "tcgen05.commit signals")
        if barrier is None:
            continue
        note_arrivers(x, barrier, lane.mask)
        if x.machine.peers is not None:
            if barrier.row != lane.row:
                x.machine.peers.touch(x, lane.row, barrier.row, lane.mask, barrier)
            x.machine.peers.signal([lane.row], barrier)
        out.append(barrier)
    return out


def _commit(x: Lanes, lane: Lane, barriers: list[MBarrier], rows: tuple[int, ...]) -> None:
    """Put the arrivals behind the operations of the CTA or pair that are in flight."""
    m = x.machine
    if m.checking:
        tensor_check(m).committed(x, lane)
    told = None
    if m.order is not None and m.races is not None:
        told = Telling(m.races.transit.message(lane.row, [group_of(x, lane)]).joined(m.order.message(x, lane.mask)))
    tensor_memory_of(m).commits[lane.row, (x.t0 + lane.t) // 32] += 1
    rect, place, mask, instruction = x.rect, x.place, lane.mask, x.op

    def complete(machine: Machine) -> None:
        y = machine.lanes(rect)
        before = y.op, y.mask
        y.op, y.mask = instruction, mask
        for barrier in barriers:
            if barrier.row in op.signals and machine.checking and not machine.live[barrier.row].any():
                signals_late(machine, op, barrier.row)
            if units_of(machine).barriers.get(barrier.index, int(machine.row_cta[barrier.row])) is barrier:
                if machine.order is not None:
                    machine.order.tell(barrier, told)
                arrive(y, barrier, mask, np.ones(y.shape, np.int64))
        y.op, y.mask = before

    op = AsyncOperation("tcgen05.commit", complete, lane.row, place, threads_text(x, lane.mask), queue=queue_of(rows))
    op.signals = tuple(b.row for b in barriers if b.row != lane.row)
    x.issue(op)
