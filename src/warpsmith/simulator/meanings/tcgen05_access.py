"""Between registers and tensor memory: tcgen05.ld, st, wait (PTX ISA 9.7.18.8), and the fences (9.7.18.11).

A load reads when it is issued, and its registers may be used at once: hardware respects true register dependencies
(9.7.18.6.4.5). What it reads stays claimed until the warp has executed `wait::ld`. A store takes its registers when it is
issued and writes when the schedule says so. Loads and stores of the same lanes, whatever their warps, follow each other:
CUTLASS (example 77) hands maxima of rows from warp to warp without a wait. The check says that the manual asks for one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from warpsmith.simulator.asynchronous import AsyncOperation
from warpsmith.simulator.check.tensor_memory import tensor_check
from warpsmith.simulator.findings import warps_text
from warpsmith.simulator.meanings.registry import machine, refuse, sync
from warpsmith.simulator.outcome import DONE, Outcome, Wait
from warpsmith.simulator.tensor_memory import COLUMNS, tensor_memory_of, touched
from warpsmith.simulator.tensor_shapes import SHAPES, fragment

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.assembly.ptx.isa import Match
    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.machine import Machine
    from warpsmith.simulator.meanings.registry import Function, Refused
    from warpsmith.simulator.tensor_memory import TensorMemory

    Mask = NDArray[np.bool_]
    Index = NDArray[np.int64]

__all__ = ["Access", "Warps"]

_NUMBER = re.compile(r"\.x(\d+)\.")


@final
class Access(NamedTuple):
    """The form of a load or store."""

    shape: str
    repetitions: int
    halves: bool

    @classmethod
    def of(cls, m: Match) -> Access:
        """Read it off the mnemonic."""
        shape = next(w for w in m.mnemonic.split(".") if w in SHAPES)
        found = _NUMBER.search(m.mnemonic)
        assert found is not None
        return cls(shape, int(found[1]), "pack::16b" in m.mnemonic)

    def cells(self, split: int) -> tuple[Index, Index]:
        """Return (lane, column) `[register, 32]`, relative to the address."""
        return fragment(self.shape, self.repetitions, split, halves=self.halves)


@final
class Warps(NamedTuple):
    """The warps that access tensor memory, one a row of each array."""

    c: Index
    """Their place in `[C, W]`."""
    w: Index
    rows: Index
    warps: Index
    lane: Index
    """Of the address."""
    column: Index


def _find(x: Lanes, tm: TensorMemory, address: Any, form: Access, split: int) -> Warps | None:
    """Return the warps that execute, with their addresses; None where an access is not allowed (reported)."""
    where = np.argwhere(x.warps(x.active()).any(-1))
    c, w = where[:, 0], where[:, 1]
    given = x.warps(np.broadcast_to(np.asarray(address).astype(np.int64), x.shape))
    active = x.warps(x.active())
    first = active[c, w].argmax(axis=-1)
    base = given[c, w, first]
    unlike = active[c, w] & (given[c, w] != base[:, None])
    if unlike.any():
        text = f"the address of `{x.op.text}` differs between the lanes of a warp"
        i = int(np.flatnonzero(unlike.any(axis=1))[0])
        lanes = _lanes(x, int(c[i]), int(w[i]))
        x.finding("divergent-collective", text, lanes=lanes, repair="Give all 32 lanes the same address.", stop=True)
        return None
    found = Warps(c, w, c + x.c0, w + x.t0 // 32, base >> 16 & 0xFFFF, base & 0xFFFF)
    height = SHAPES[form.shape][0]
    own = 32 * (found.warps % 4)
    foreign = (found.lane < own) | (found.lane + height > own + 32) | (found.lane % height != 0)
    if foreign.any():
        _foreign(x, found, int(np.flatnonzero(foreign)[0]), height)
        return None
    _, column = form.cells(split)
    last = int(column.max()) + (2 if form.halves else 1)
    spans = [(0, last)] if form.shape != "16x32bx2" else [(0, last - split), (split, last)]
    for start, stop in spans:
        outside = _outside(tm, found, start, stop)
        if outside.any():
            check = tensor_check(x.machine)
            for i in np.flatnonzero(outside).tolist():
                lanes, at = _lanes(x, int(c[i]), int(w[i])), int(found.column[i])
                if not check.outside(x, int(found.rows[i]), at + start, at + stop, lanes):
                    return None
    return found


def _outside(tm: TensorMemory, found: Warps, start: int, stop: int) -> Mask:
    """Say which warps leave the columns of their CTA."""
    out = found.column + stop > COLUMNS
    for row in np.unique(found.rows).tolist():
        held = np.concatenate([[0], np.cumsum(tm.held_columns(row))])
        some = (found.rows == row) & ~out
        out[some] = held[found.column[some] + stop] - held[found.column[some] + start] != stop - start
    return out


def _foreign(x: Lanes, found: Warps, i: int, height: int) -> None:
    warp, lane = int(found.warps[i]), int(found.lane[i])
    own = 32 * (warp % 4)
    text = f"warp {warp} accesses lanes {lane} to {lane + height - 1} of tensor memory; it may access lanes {own} to {own + 31}"
    if own <= lane and lane + height <= own + 32:
        text = f"`{x.op.text}` begins at lane {lane}, which is no multiple of {height}"
    repair = (
        "Put 32 times the number of the warp within its warpgroup in bits 31 to 16 of the address (plus 16 for an upper half)."
    )
    x.finding("out-of-bounds", text, lanes=_lanes(x, int(found.c[i]), int(found.w[i])), repair=repair, stop=True)


def _lanes(x: Lanes, c: int, w: int) -> Mask:
    lanes = np.zeros(x.shape, np.bool_)
    lanes[c, 32 * w : 32 * w + 32] = True
    return lanes & x.active()


def _index(tm: TensorMemory, found: Warps, form: Access, split: int) -> Index:
    """Return flat indices of words `[register, warp, 32]`."""
    lane, column = form.cells(split)
    base = (found.rows % tm.machine.device.multiprocessors * 128 + found.lane) * COLUMNS + found.column
    return (lane * COLUMNS + column)[:, None, :] + base[None, :, None]


# --- loads ------------------------------------------------------------------------------------------------------------


@machine("tcgen05.ld")
def load(m: Match) -> Function | Refused:
    """Load registers from tensor memory; with .red also the minimum or maximum of a thread's values."""
    if "spcompress" in m.mnemonic:
        return refuse("`.spcompress` of tcgen05.ld is not modelled")
    form = Access.of(m)
    words = m.mnemonic.split(".")
    reduction = _Reduction(words) if "red" in words else None
    if reduction is not None and form.shape != "32x32b":
        return refuse(
            "`.red` of tcgen05.ld with .16x32bx2 is not modelled: it reduces `in each lane` for `the corresponding thread` "
            "(9.7.18.8.3), and here two threads load a lane"
        )

    def run(x: Lanes, d: Any, *rest: Any) -> None:
        red = rest[0] if reduction is not None else None
        address, split = rest[1 if reduction is not None else 0], int(rest[-1]) if form.shape == "16x32bx2" else 0
        tm = tensor_memory_of(x.machine)
        found = _find(x, tm, address, form, split)
        if found is None:
            return
        _settle(tm, found, form, split)
        index = _index(tm, found, form, split)
        if x.machine.checking:
            tensor_check(x.machine).load(x, found, form, split)
        flat = tm.words.reshape(-1)
        values = flat.take(index)
        if form.halves:
            values = values & np.uint32(0xFFFF) | flat.take(index + 1) << np.uint32(16)
        _put(x, d if isinstance(d, list) else [d], _spread(x, found, values))
        flags = _undefined(tm, index, form)
        if flags is not None:
            for dest, bad in zip(d if isinstance(d, list) else [d], _spread(x, found, flags), strict=True):
                x.put_undefined(dest, bad)
        if reduction is not None:
            x.put(red, _spread(x, found, reduction.of(values)[None])[0])

    return run


def _settle(tm: TensorMemory, found: Warps, form: Access, split: int) -> None:
    """Let the stores before an access to the same cells take effect."""
    for i in range(len(found.c)) if tm.stores else ():
        tm.settle(int(found.rows[i]), touched(found, i, form, split))


def _undefined(tm: TensorMemory, index: Index, form: Access) -> Any:
    if tm.undefined is None:
        return None
    flat = tm.undefined.reshape(-1)
    flags = flat.take(index)
    if form.halves:
        flags |= flat.take(index + 1)
    return flags if flags.any() else None


def _spread(x: Lanes, found: Warps, values: NDArray[Any]) -> NDArray[Any]:
    """Return values `[n, warp, 32]` as `[n, C, T]`."""
    n = values.shape[0]
    if len(found.c) == x.shape[0] * x.shape[1] // 32:
        return values.reshape(n, *x.shape)
    out = np.zeros((n, x.shape[0], x.shape[1] // 32, 32), values.dtype)
    out[:, found.c, found.w] = values
    return out.reshape(n, *x.shape)


def _put(x: Lanes, dests: Any, values: NDArray[np.uint32]) -> None:
    array = getattr(dests, "array", None)
    if array is not None and x.machine.registers.undefined is None:
        if x.mask is None:
            array[...] = values.view(array.dtype)
        else:
            np.copyto(array, values.view(array.dtype), where=x.mask)
        return
    for dest, value in zip(dests, values, strict=True):
        x.put(dest, value)


@final
class _Reduction:
    """`.red`: the minimum or maximum over a thread's registers."""

    def __init__(self, words: list[str]) -> None:
        self.largest = "max" in words
        self.type = next(w for w in words if w in ("f32", "u32", "s32"))
        self.absolute, self.nan = "abs" in words, "NaN" in words

    def of(self, values: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Return the result `[warp, 32]` of registers `[n, warp, 32]`."""
        if self.type == "u32":
            return values.max(axis=0) if self.largest else values.min(axis=0)
        if self.type == "s32":
            v = values.view(np.int32)
            return (v.max(axis=0) if self.largest else v.min(axis=0)).view(np.uint32)
        f = np.abs(values.view(np.float32)) if self.absolute else values.view(np.float32)
        # zeros of both signs: -0 counts as the smaller one, as for min and max
        key = np.where(np.isnan(f), np.int64(-1 << 40 if self.largest else 1 << 40), _order(f))
        at = key.argmax(axis=0) if self.largest else key.argmin(axis=0)
        out = np.take_along_axis(f, at[None], axis=0)[0].view(np.uint32)
        bad = np.isnan(f).any(axis=0) if self.nan else np.isnan(f).all(axis=0)
        return np.where(bad, np.uint32(0x7FFFFFFF), out)


def _order(f: NDArray[np.float32]) -> NDArray[np.int64]:
    bits = f.view(np.int32).astype(np.int64)
    return np.where(bits < 0, -(bits & 0x7FFFFFFF) - 1, bits)


# --- stores -----------------------------------------------------------------------------------------------------------


@machine("tcgen05.st")
def store(m: Match) -> Function:
    """Store registers to tensor memory, asynchronously."""
    form = Access.of(m)
    form = Access(form.shape, form.repetitions, "unpack::16b" in m.mnemonic)

    def run(x: Lanes, address: Any, *rest: Any) -> None:
        split, source = (int(rest[0]), rest[1]) if form.shape == "16x32bx2" else (0, rest[0])
        tm = tensor_memory_of(x.machine)
        found = _find(x, tm, address, form, split)
        if found is None:
            return
        if x.machine.checking:
            tensor_check(x.machine).store(x, found, form, split)
        items = list(source) if not isinstance(source, np.ndarray) or source.ndim == 3 else [source]
        values = np.stack([x.warps(np.broadcast_to(np.asarray(v), x.shape)) for v in items]).view(np.uint32)
        flags = _undefined_source(x, len(items))
        index = _index(tm, found, form, split)
        active = x.warps(x.active())
        _settle(tm, found, form, split)
        for i in range(len(found.c)):
            c, w = int(found.c[i]), int(found.w[i])
            bad = None if flags is None else flags[:, c, w].copy()
            piece = _Piece(tm, index[:, i], values[:, c, w].copy(), active[c, w].copy(), bad, form.halves)
            op = AsyncOperation("tcgen05.st", piece.complete, int(found.rows[i]), x.place)
            op.queue, op.payload = ("tcgen05.st", op.row, int(found.warps[i])), touched(found, i, form, split)
            op.threads = warps_text(x.machine, op.row, int(found.warps[i]), 1)
            tm.stores.setdefault((op.row, int(found.warps[i])), []).append(op)
            x.issue(op)

    return run


def _undefined_source(x: Lanes, count: int) -> NDArray[np.bool_] | None:
    """Return which registers of the source are undefined `[n, C, W, 32]`; None: none."""
    registers = x.machine.registers
    if registers.undefined is None:
        return None
    slots = x.op.operand_slots(len(x.op.operands) - 1).get("b32", ())
    if len(slots) != count:
        return None
    flags = np.stack([x.warps(registers.undefined_view("b32", s, None, x.rect) != 0) for s in slots])
    return flags if flags.any() else None


@final
class _Piece(NamedTuple):
    """What one warp stores."""

    memory: TensorMemory
    where: Index
    values: NDArray[np.uint32]
    active: Mask
    undefined: Mask | None
    halves: bool

    def complete(self, machine: Machine) -> None:
        """Write the words."""
        del machine
        flat = self.memory.words.reshape(-1)
        parts = [(self.where, self.values)]
        if self.halves:
            parts = [(self.where, self.values & np.uint32(0xFFFF)), (self.where + 1, self.values >> np.uint32(16))]
        for index, values in parts:
            flat[index[:, self.active]] = values[:, self.active]
            if self.memory.undefined is not None:
                bad = False if self.undefined is None else self.undefined[:, self.active]
                self.memory.undefined.reshape(-1)[index[:, self.active]] = bad


# --- waits and fences -------------------------------------------------------------------------------------------------


@final
class _Stored:
    """The condition of warps that wait for their stores."""

    timed = False

    def __init__(self, x: Lanes, pending: list[tuple[int, int, list[AsyncOperation]]]) -> None:
        self.shape, self.pending = x.shape, pending

    def ready(self) -> Mask:
        """Return the lanes whose stores have completed."""
        out = np.ones(self.shape, np.bool_)
        for c, w, ops in self.pending:
            if not all(op.done for op in ops):
                out[c, 32 * w : 32 * w + 32] = False
        return out

    def describe(self) -> str:
        """Say what is in flight."""
        return f"{sum(not op.done for _, _, ops in self.pending for op in ops)} tcgen05.st in flight"


@sync("tcgen05")
def wait_or_fence(m: Match) -> Function | Refused:
    """Build wait::ld, wait::st, and the fences around synchronisation of threads."""
    if "fence::" in m.mnemonic:
        before = "before_thread_sync" in m.mnemonic

        def fence(x: Lanes) -> Outcome:
            if x.machine.checking:
                tensor_check(x.machine).fence(x, before=before)
            return DONE

        return fence
    if "wait::" not in m.mnemonic:
        return refuse("it is not modelled")
    loads = "wait::ld" in m.mnemonic

    def wait(x: Lanes) -> Outcome:
        tm = tensor_memory_of(x.machine)
        where = np.argwhere(x.warps(x.active()).any(-1)).tolist()
        pending: list[tuple[int, int, list[AsyncOperation]]] = []
        for c, w in where:
            key = (x.c0 + c, x.t0 // 32 + w)
            if not loads and (mine := [op for op in tm.stores.pop(key, []) if not op.done]):
                tm.stores[key] = mine
                pending.append((c, w, mine))
        if pending:
            condition = _Stored(x, pending)
            ready = condition.ready()
            return Wait(condition, None if not ready.any() else _done(x, ready, loads), retry=True)
        if x.machine.checking:
            tensor_check(x.machine).waited(x, x.active(), loads=loads)
        return DONE

    return wait


def _done(x: Lanes, ready: Mask, loads: bool) -> Mask:
    lanes = ready & x.active()
    if x.machine.checking and lanes.any():
        tensor_check(x.machine).waited(x, lanes, loads=loads)
    return lanes
