"""Arguments and results of calls (PTX ISA 7): copied between the caller's and the callee's variables, per thread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from warpsmith.base.errors import CapabilityError
from warpsmith.simulator.access import FUNCTION_PARAM
from warpsmith.simulator.layout import size_of
from warpsmith.simulator.program import Const, Reg
from warpsmith.simulator.scope import Register, Symbol

if TYPE_CHECKING:
    from collections.abc import Callable

    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.program import Call
    from warpsmith.simulator.scope import Signature

__all__ = ["carry_in", "carry_out", "read_argument", "write_result"]


def carry_in(x: Lanes, call: Call, signature: Signature) -> None:
    """Copy the arguments of a call to the callee's parameters in the active lanes."""
    if len(call.arguments) != len(signature.parameters):
        n, k = len(call.arguments), len(signature.parameters)
        raise CapabilityError(f"simulator: call of `{signature.name}` with {n} arguments where it takes {k} is not modelled")
    for argument, (formal, where) in zip(call.arguments, signature.parameters, strict=True):
        _copy(x, argument, where, size_of(formal))


def carry_out(x: Lanes, call: Call, signature: Signature, restore: Callable[[], None]) -> None:
    """Copy the results of the callee to the caller's variables in the active lanes; `restore` is called in between."""
    values: list[Any] = []
    for formal, where in signature.returns[: len(call.results)]:
        held = _memory(x, where, size_of(formal)) if isinstance(where, Symbol) else _register(x, where)
        values.append(held.copy())
    restore()
    for result, value, (_, where) in zip(call.results, values, signature.returns, strict=False):
        if isinstance(where, Symbol) and isinstance(result, Symbol):
            np.copyto(_memory(x, result, value.shape[-1]), value, where=x.active()[..., None])
        elif isinstance(result, Reg) and not isinstance(where, Symbol):
            np.copyto(_register(x, result), value, where=x.active(), casting="unsafe")
        elif isinstance(result, Reg):
            _bytes_to_register(x, value, _register(x, result))


def read_argument(x: Lanes, call: Call, index: int, size: int) -> Any:
    """Return argument `index` of a call as unsigned integers `[C, T]` of `size` bytes."""
    argument = call.arguments[index]
    if isinstance(argument, Symbol):
        return np.ascontiguousarray(_memory(x, argument, size)).view(f"u{size}")[..., 0]
    if isinstance(argument, Const):
        return np.broadcast_to(np.asarray(argument.value).astype(f"u{size}"), x.shape)
    return _register(x, argument)[0]


def write_result(x: Lanes, call: Call, value: Any) -> None:
    """Write `[C, T]` to the result of a call, where it has one."""
    for result in call.results:
        raw = np.ascontiguousarray(value)[..., None].view(np.uint8)
        if isinstance(result, Symbol):
            np.copyto(_memory(x, result, raw.shape[-1]), raw, where=x.active()[..., None])
        elif isinstance(result, Reg):
            _bytes_to_register(x, raw, _register(x, result))


def _memory(x: Lanes, symbol: Symbol, size: int) -> Any:
    m = x.machine
    window = m.call_params.data.reshape(m.rows, m.threads, m.call_params.row)
    at = symbol.address - FUNCTION_PARAM
    return window[x.c0 : x.c1, x.t0 : x.t1, at : at + size]


def _register(x: Lanes, r: Register | Reg) -> Any:
    count = r.per if isinstance(r, Register) else r.count
    return x.machine.registers.view(r.bank, r.slot, count, x.machine.registers.banks[r.bank].dtype, x.rect)


def _bytes_to_register(x: Lanes, raw: Any, to: Any) -> None:
    """Write bytes `[C, T, n]` to a register `[parts, C, T]`, zero-extended."""
    padded = np.zeros((*x.shape, to.dtype.itemsize * to.shape[0]), np.uint8)
    padded[..., : raw.shape[-1]] = raw
    np.copyto(to, np.moveaxis(padded.view(to.dtype), -1, 0), where=x.active())


def _copy(x: Lanes, source: Any, target: Any, size: int) -> None:
    if isinstance(target, Symbol):
        if isinstance(source, Symbol):
            data = _memory(x, source, size)
        else:
            value = source.value if isinstance(source, Const) else _register(x, source)[0]
            raw = np.ascontiguousarray(np.broadcast_to(value, x.shape))[..., None].view(np.uint8)
            data = raw[..., :size]
        np.copyto(_memory(x, target, size)[..., : data.shape[-1]], data, where=x.active()[..., None])
        return
    to = _register(x, target)
    if isinstance(source, Symbol):
        _bytes_to_register(x, _memory(x, source, size), to)
        return
    if isinstance(source, Const):
        value = np.asarray(source.value).view(f"u{np.asarray(source.value).itemsize}")
    else:
        value = _register(x, source)
    np.copyto(to, value, where=x.active(), casting="unsafe")
