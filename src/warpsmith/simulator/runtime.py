"""Functions of the CUDA device runtime that programs call without bringing a body: vprintf, malloc, free, __assertfail."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from warpsmith.base.errors import CapabilityError
from warpsmith.simulator.calls import read_argument, write_result
from warpsmith.simulator.memory import GLOBAL_BASE, OUTSIDE
from warpsmith.simulator.printf import Buffer, formatted

if TYPE_CHECKING:
    from collections.abc import Callable

    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.memory import Space
    from warpsmith.simulator.program import Call

__all__ = ["runtime_function"]

_LONGEST = 1 << 16
"""Bytes of a string that are looked at for its end."""


def runtime_function(name: str, call: Call, where: str) -> Callable[[Lanes], None]:
    """Return what a call of a function without a body does; of one that is not known: refuse it, when it is executed."""
    body = _FUNCTIONS.get(name)

    def unknown(x: Lanes) -> None:
        raise CapabilityError(f"{where}simulator: `call` of `{name}` is not modelled: its body is not in this module")

    return unknown if body is None else lambda x: body(x, call)


def _string(x: Lanes, c: int, t: int, address: int) -> str:
    """Read a C string at a generic address of one thread, as far as it lies in bounds."""
    space, at = _place(x, c, t, address)
    if space is None:
        return ""
    limit = min(at + _LONGEST, (at // space.row + 1) * space.row)
    data = space.data[at:limit]
    ends = np.flatnonzero((data == 0) | (space.shadow[at:limit] & OUTSIDE != 0))
    size = int(ends[0]) if ends.size else data.size
    space.note_read(at, size)
    return data[:size].tobytes().decode("utf-8", "replace")


def _place(x: Lanes, c: int, t: int, address: int) -> tuple[Space | None, int]:
    """Return the space and the flat index that a generic address of one thread means; what is out of bounds is a finding."""
    others, x.mask = x.mask, np.zeros(x.shape, np.bool_)
    x.mask[c, t] = True
    located = x.locate(None, np.full(x.shape, address, np.uint64).view(np.int64), 1)
    x.mask = others
    for found in located:
        if found.mask is None or found.mask[c, t]:
            return found.space, int(found.index[c, t])
    return None, 0


def _printf(x: Lanes, call: Call) -> None:
    formats, buffers = read_argument(x, call, 0, 8), read_argument(x, call, 1, 8)
    taken = np.zeros(x.shape, np.int32)
    for c, t in np.argwhere(x.active()).tolist():
        buffer = Buffer(partial(_bytes, x, c, t, int(buffers[c, t])))
        text = _string(x, c, t, int(formats[c, t]))
        x.machine.printed.append(formatted(text, buffer, partial(_string, x, c, t)))
        taken[c, t] = buffer.taken
    write_result(x, call, taken)


def _bytes(x: Lanes, c: int, t: int, address: int, at: int, size: int) -> bytes:
    """Return `size` bytes at `at` of a buffer; zeros where it ends before."""
    space, start = _place(x, c, t, address + at)
    return bytes(size) if space is None else space.data[start : start + size].tobytes().ljust(size, b"\0")


def _malloc(x: Lanes, call: Call) -> None:
    sizes = read_argument(x, call, 0, 8)
    out = np.zeros(x.shape, np.uint64)
    for c, t in np.argwhere(x.active()).tolist():
        size = int(sizes[c, t])
        if 0 < size <= x.machine.heap_left:
            x.machine.heap_left -= size
            x.machine.global_.heap_calls += 1
            start = x.machine.global_.allocate("memory from malloc", size, defined=not x.machine.checking)
            out[c, t] = start + GLOBAL_BASE
    write_result(x, call, out)


def _free(x: Lanes, call: Call) -> None:
    pointers = read_argument(x, call, 0, 8)
    space = x.machine.global_
    for c, t in np.argwhere(x.active()).tolist():
        start = int(pointers[c, t]) - GLOBAL_BASE
        found = next((a for a in space.allocations if a.start == start and a.name == "memory from malloc"), None)
        if found is not None:
            space.shadow[start : start + found.size] = OUTSIDE
            found.name = "memory that was freed"
            space.heap_calls += 1
            x.machine.heap_left += found.size


def _assertfail(x: Lanes, call: Call) -> None:
    c, t = np.argwhere(x.active())[0].tolist()
    first = (int(c), int(t))
    message, file, function = (_string(x, *first, int(read_argument(x, call, i, 8)[first])) for i in (0, 1, 3))
    line = int(read_argument(x, call, 2, 4)[first])
    repair = "look at the condition: the kernel's own assertion does not hold for these threads"
    x.finding("trap", f"{file}:{line}: {function}: assertion `{message}` failed", repair=repair, stop=True)


_FUNCTIONS: dict[str, Callable[[Lanes, Any], None]] = {
    "vprintf": _printf,
    "malloc": _malloc,
    "free": _free,
    "__assertfail": _assertfail,
}
