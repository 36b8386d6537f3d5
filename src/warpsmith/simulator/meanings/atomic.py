"""Atomic operations on memory (PTX ISA 9.7.15: atom, red).

Lanes that meet at one address go one after the other, in lane order. What a cohort does happens at once as far as other
cohorts can see.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from warpsmith.base.ptx_types import TYPES
from warpsmith.simulator.access import Located, read, write
from warpsmith.simulator.meanings.arithmetic import build_form
from warpsmith.simulator.meanings.double import nan_result
from warpsmith.simulator.meanings.forms import Form, form_of
from warpsmith.simulator.meanings.registry import Refused, refuse, sync
from warpsmith.simulator.outcome import DONE, Outcome
from warpsmith.simulator.registers import dtype_of

if TYPE_CHECKING:
    from warpsmith.assembly.ptx.isa import Match
    from warpsmith.simulator.lanes import Lanes

__all__ = ["copied_step", "one_after_the_other", "step_of"]

Array = NDArray[Any]
Step = Callable[..., Array]
"""(old values, operands …) -> new values, elementwise."""


def _elementwise(mnemonic: str) -> Step:
    fn = build_form(Form.parse(mnemonic))
    assert not isinstance(fn, Refused)

    def step(old: Array, b: Array) -> Array:
        out = np.empty_like(old)
        if isinstance(fn, np.ufunc):
            fn(old, b, out)
        else:
            fn(out, old, b)
        return out

    return step


def _increment(old: Array, b: Array) -> Array:
    return np.where(old >= b, old.dtype.type(0), old + old.dtype.type(1))


def _decrement(old: Array, b: Array) -> Array:
    return np.where((old == 0) | (old > b), b, old - old.dtype.type(1))


def _exchange(old: Array, b: Array) -> Array:
    return b


def _compare_and_swap(old: Array, b: Array, c: Array) -> Array:
    return np.where(old == b, c, old)


_STEPS: dict[str, Step] = {"inc": _increment, "dec": _decrement, "exch": _exchange, "cas": _compare_and_swap}
_OPERATIONS = ("and", "or", "xor", "add", "inc", "dec", "min", "max", "exch", "cas")


def _add_in_global_memory(old: Array, b: Array) -> Array:
    """Add f64 as the L2 cache does: a NaN operand comes out as it is, the second before the first."""
    total = np.add(old, b)
    return np.where(np.isnan(b), b, np.where(np.isnan(old), old, nan_result(total)))


def step_of(op: str, type_: str, in_global: bool) -> Step:
    """Return the step of an operation; floating-point addition in global memory has its own treatment of subnormals and NaN."""
    if op in _STEPS:
        return _STEPS[op]
    if type_ == "f32":
        return _elementwise("add.rn.ftz.f32" if in_global else "add.rn.f32")
    if type_ == "f64":
        if in_global:
            return _add_in_global_memory
        add = _elementwise("add.rn.f64")
        return lambda old, b: add(b, old)
    rounding = "rn." if op == "add" and type_[0] in "fb" and type_[1] != "3" and not type_[1:].isdigit() else ""
    return _elementwise(f"{op}.{rounding}{type_}")


def copied_step(op: str, type_: str) -> Step | None:
    """Return the step of a reducing copy of floats (subnormals stay, as they do in shared memory); None: that of numpy."""
    if type_ not in ("f16", "bf16", "f32", "f64"):
        return None
    step = step_of(op, type_, type_ == "f64")
    if type_ in ("f32", "f64"):
        return step
    return lambda old, b: step(old.view(np.uint16), b.view(np.uint16)).view(old.dtype)


def _by_rank(group: Array) -> tuple[Array, Array, Array]:
    """Return (order, start of each lane's group in that order, rank in its group) for group numbers."""
    order = np.argsort(group, kind="stable")
    ordered = group[order]
    first = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    start = np.repeat(first, np.diff(np.r_[first, len(ordered)]))
    return order, start, np.arange(len(ordered)) - start


def _running_sums(start_values: Array, b: Array, group: Array) -> tuple[Array, Array]:
    """Integer addition in closed form: (old values, final values)."""
    order, start, _ = _by_rank(group)
    total = np.cumsum(b[order], dtype=b.dtype)
    before = total - b[order]
    before = before - before[start]
    old = np.empty_like(start_values)
    old[order] = start_values[order] + before
    sums = np.zeros(int(group.max()) + 1, b.dtype)
    np.add.at(sums, group, b)
    return old, start_values + sums[group]


def one_after_the_other(keys: Array, values: Array, step: Step, operands: tuple[Array, ...]) -> tuple[Array, Array]:
    """Apply `step` lane by lane. `keys` name the places, `values` what they hold at first.

    Returns (what each lane found, what its place holds in the end).
    """
    unique, group = np.unique(keys, return_inverse=True)
    if len(unique) == len(keys):
        return values, step(values, *operands)
    order, _, rank = _by_rank(group)
    current = np.empty(len(unique), values.dtype)
    current[group] = values
    old = np.empty_like(values)
    by_round = order[np.argsort(rank, kind="stable")]
    bounds = np.searchsorted(np.sort(rank), np.arange(int(rank.max()) + 2))
    for begin, end in pairwise(bounds.tolist()):
        lanes = by_round[begin:end]
        places = group[lanes]
        found = old[lanes] = current[places]
        current[places] = step(found, *(o[lanes] for o in operands))
    return old, current[group]


class _Atomic:
    """One atomic operation on items of a type."""

    def __init__(self, op: str, type_: str, noftz: bool) -> None:
        self.op, self.dtype = op, np.dtype(dtype_of(TYPES[type_]))
        self.plain = step_of(op, type_, False)
        self.in_global = step_of(op, type_, not noftz)
        self.sums = op == "add" and self.dtype.kind in "iu" and TYPES[type_].kind in ("signed", "unsigned")

    def apply(self, x: Lanes, space: str | None, address: Array, operands: tuple[Array, ...], undefined: Array | None) -> Array:
        """Do it in all active lanes; return the old values `[C, T]`. In the lanes `undefined` nobody wrote an operand."""
        n = self.dtype.itemsize
        result = np.zeros(x.shape, self.dtype)
        operands = tuple(np.broadcast_to(np.asarray(o, self.dtype), x.shape) for o in operands)
        for at in x.locate(space, np.broadcast_to(address, x.shape), n):
            self._one_space(x, at, n, operands, undefined, result)
        return result

    def _one_space(
        self, x: Lanes, at: Located, n: int, operands: tuple[Array, ...], undefined: Array | None, result: Array
    ) -> None:
        lanes = x.everyone() if at.mask is None else at.mask
        if not lanes.any():
            return
        data, unwritten = read(x, at, n)
        _judge(x, self.op, lanes, unwritten)
        keys, values = at.index[lanes], data[lanes].view(self.dtype)
        chosen = tuple(o[lanes] for o in operands)
        if self.sums:
            old, final = _running_sums(values, chosen[0], np.unique(keys, return_inverse=True)[1])
        else:
            step = self.in_global if at.space.name == "global" else self.plain
            with np.errstate(all="ignore"):
                old, final = one_after_the_other(keys, values, step, chosen)
        result[lanes] = old
        whole = np.zeros(x.shape, data.dtype)
        whole[lanes] = np.ascontiguousarray(final).view(data.dtype)
        changed = not np.array_equal(whole[lanes], data[lanes])
        write(x, Located(at.space, at.index, lanes), n, whole, undefined, changed=changed)


def _judge(x: Lanes, op: str, lanes: Array, unwritten: Array | None) -> None:
    """Report operands in memory that nobody wrote; `exch` looks at none."""
    if unwritten is not None and op != "exch" and (bad := unwritten.any(axis=-1) & lanes).any():
        x.machine.check.report_undefined(x, bad, "an operand")


def _wide(x: Lanes, op: str, space: str | None, address: Array, operands: tuple[Array, ...], undefined: Array | None) -> Array:
    """Do exch or cas of 16 bytes; values are `[2, C, T]`."""
    old = np.zeros((2, *x.shape), np.uint64)
    operands = tuple(np.broadcast_to(o, old.shape) for o in operands)
    for at in x.locate(space, np.broadcast_to(address, x.shape), 16):
        lanes = x.everyone() if at.mask is None else at.mask
        if not lanes.any():
            continue
        data, unwritten = read(x, at, 16)
        _judge(x, op, lanes, unwritten)
        items = np.ascontiguousarray(data).view(np.uint64).reshape(*x.shape, 2)
        memory: dict[int, tuple[int, int]] = {}
        final = items.copy()
        places = list(zip(*np.nonzero(lanes), strict=True))
        for c, t in places:
            key = int(at.index[c, t])
            held = memory.setdefault(key, (int(items[c, t, 0]), int(items[c, t, 1])))
            old[:, c, t] = held
            if op == "exch" or held == (int(operands[0][0, c, t]), int(operands[0][1, c, t])):
                memory[key] = (int(operands[-1][0, c, t]), int(operands[-1][1, c, t]))
        for c, t in places:
            final[c, t] = memory[int(at.index[c, t])]
        write(x, Located(at.space, at.index, lanes), 16, final.view(data.dtype)[..., 0], undefined)
    return old


def _describe(m: Match) -> tuple[Form, str, str | None]:
    form = form_of(m)
    op = next(w for w in form.words if w in _OPERATIONS)
    space = next(s.space for s in m.operands if s.kind == "address")
    return form, op, space


def _effect(m: Match) -> Callable[..., Any]:
    """Return `fn(x, address, operands) -> old values`, for vectors a list of them."""
    form, op, space = _describe(m)
    behind = next(i for i, s in enumerate(m.operands) if s.kind == "address") + 1
    values = range(behind, behind + _taken(m))
    if form.type == "b128":
        return lambda x, address, operands: _wide(x, op, space, address, operands, _undefined(x, values))
    atomic = _Atomic(op, form.type, "noftz" in form)
    if not any(w in ("v2", "v4", "v8") for w in form.words):
        return lambda x, address, operands: atomic.apply(x, space, address, operands, _undefined(x, values))

    def vector(x: Lanes, address: Array, operands: tuple[Any, ...]) -> list[Array]:
        size = atomic.dtype.itemsize
        unwritten = _undefined(x, values)
        places = [np.asarray(address) + size * i for i in range(len(operands[0]))]
        return [atomic.apply(x, space, at, (b,), unwritten) for at, b in zip(places, operands[0], strict=True)]

    return vector


def _undefined(x: Lanes, operands: range) -> Array | None:
    """Return the lanes where nobody wrote a register of these operands; None: nowhere."""
    found = [flags for i in operands if (flags := x.undefined(i)) is not None]
    return np.logical_or.reduce(found) if found else None


def _taken(m: Match) -> int:
    """Number of value operands behind the address, the cache policy not counted."""
    return 2 if "cas" in form_of(m).words else 1


@sync("atom")
def atom(m: Match) -> Any:
    """Build atom: `fn(x, d, address, b[, c][, policy])`."""
    effect, count = _effect(m), _taken(m)

    def fn(x: Lanes, d: Any, address: Array, *operands: Any) -> Outcome:
        old = effect(x, address, operands[:count])
        if d is None:  # the result of a vector dropped with `_`
            return DONE
        if isinstance(old, list):
            for dest, value in zip(d, old, strict=True):
                x.put(dest, value)
        else:
            x.put(d, old)
        return DONE

    return fn


@sync("red")
def red(m: Match) -> Any:
    """Build red: atom without a result."""
    if "async" in form_of(m).words:
        return refuse("red.async belongs to the asynchronous operations")
    effect, count = _effect(m), _taken(m)

    def fn(x: Lanes, address: Array, *operands: Any) -> Outcome:
        effect(x, address, operands[:count])
        return DONE

    return fn
