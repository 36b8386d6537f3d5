"""Functions of the CUDA device runtime that programs call without bringing a body: vprintf, malloc, free, __assertfail."""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from warpsmith.base.errors import CapabilityError
from warpsmith.simulator.calls import read_argument, write_result
from warpsmith.simulator.memory import GLOBAL_BASE, OUTSIDE

if TYPE_CHECKING:
    from collections.abc import Callable

    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.program import Call

__all__ = ["runtime_function"]

_SPEC = re.compile(r"%([-+ #0]*)(\*|\d+)?(?:\.(\*|\d+))?(hh|h|ll|l|z|j|t|L)?([diouxXcsfFeEgGaAp%])")


def runtime_function(name: str, call: Call, where: str) -> Callable[[Lanes], None]:
    """Return what a call of a function without a body does; of one that is not known: refuse it, when it is executed."""
    body = _FUNCTIONS.get(name)

    def unknown(x: Lanes) -> None:
        raise CapabilityError(f"{where}simulator: `call` of `{name}` is not modelled: its body is not in this module")

    return unknown if body is None else lambda x: body(x, call)


def _string(x: Lanes, address: int) -> str:
    """Read a C string at a generic address (constants and strings live in global memory)."""
    out = bytearray()
    data = x.machine.global_.data if address >= GLOBAL_BASE else x.machine.const.data
    at = address - GLOBAL_BASE if address >= GLOBAL_BASE else address & ((1 << 40) - 1)
    while 0 <= at < data.size and data[at] and len(out) < 4096:
        out.append(int(data[at]))
        at += 1
    return out.decode("utf-8", "replace")


def _printf(x: Lanes, call: Call) -> None:
    formats, buffers = read_argument(x, call, 0, 8), read_argument(x, call, 1, 8)
    for c, t in np.argwhere(x.active()).tolist():
        x.machine.printed.append(_format(x, c, t, _string(x, int(formats[c, t])), int(buffers[c, t])))
    write_result(x, call, np.zeros(x.shape, np.int32))


def _local_bytes(x: Lanes, c: int, t: int, address: int, n: int) -> bytes:
    m = x.machine
    start = ((x.c0 + c) * m.threads + x.t0 + t) * m.local.row + (address & ((1 << 40) - 1))
    return m.local.data[start : start + n].tobytes()


def _format(x: Lanes, c: int, t: int, text: str, buffer: int) -> str:
    """Format as C does: arguments lie in the buffer one after the other, aligned to their size."""
    at = 0

    def take(size: int) -> bytes:
        nonlocal at
        at = -(-at // size) * size
        at += size
        return _local_bytes(x, c, t, buffer + at - size, size)

    def number(m: re.Match[str]) -> str:
        flags, width, precision, length, kind = m.groups()
        if kind == "%":
            return "%"
        width, precision = (str(struct.unpack("<i", take(4))[0]) if v == "*" else v for v in (width, precision))
        spec = f"%{flags}{width or ''}{'.' + precision if precision is not None else ''}"
        if kind in "fFeEgGaA":
            value = struct.unpack("<d", take(8))[0]
            return value.hex() if kind in "aA" else (spec + kind) % value
        if kind == "s":
            return (spec + "s") % _string(x, struct.unpack("<Q", take(8))[0])
        if kind == "p":
            return f"{struct.unpack('<Q', take(8))[0]:#x}"
        size = 8 if length in ("l", "ll", "z", "j", "t") else 4
        signed = kind in "di"
        value = int.from_bytes(take(size), "little", signed=signed)
        return chr(value & 0xFF) if kind == "c" else (spec + ("d" if kind == "u" else kind)) % value

    return _SPEC.sub(number, text)


def _malloc(x: Lanes, call: Call) -> None:
    sizes = read_argument(x, call, 0, 8)
    out = np.zeros(x.shape, np.uint64)
    for c, t in np.argwhere(x.active()).tolist():
        size = int(sizes[c, t])
        if 0 < size <= x.machine.heap_left:
            x.machine.heap_left -= size
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
            x.machine.heap_left += found.size


def _assertfail(x: Lanes, call: Call) -> None:
    first = tuple(int(v) for v in np.argwhere(x.active())[0])
    message, file, function = (_string(x, int(read_argument(x, call, i, 8)[first])) for i in (0, 1, 3))
    line = int(read_argument(x, call, 2, 4)[first])
    repair = "look at the condition: the kernel's own assertion does not hold for these threads"
    x.finding("trap", f"{file}:{line}: {function}: assertion `{message}` failed", repair=repair, stop=True)


_FUNCTIONS: dict[str, Callable[[Lanes, Any], None]] = {
    "vprintf": _printf,
    "malloc": _malloc,
    "free": _free,
    "__assertfail": _assertfail,
}
