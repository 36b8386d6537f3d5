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
    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.program import Call
    from warpsmith.simulator.scope import Signature

__all__ = ["carry_in", "carry_out"]


def carry_in(x: Lanes, call: Call, signature: Signature) -> None:
    """Copy the arguments of a call to the callee's parameters in the active lanes."""
    if len(call.arguments) != len(signature.parameters):
        n, k = len(call.arguments), len(signature.parameters)
        raise CapabilityError(f"simulator: call of `{signature.name}` with {n} arguments where it takes {k} is not modelled")
    for argument, (formal, where) in zip(call.arguments, signature.parameters, strict=True):
        _copy(x, argument, where, size_of(formal))


def carry_out(x: Lanes, call: Call, signature: Signature) -> None:
    """Copy the results of the callee to the caller's variables in the active lanes."""
    for result, (formal, where) in zip(call.results, signature.returns, strict=False):
        _copy(x, where, result, size_of(formal))


def _memory(x: Lanes, symbol: Symbol, size: int) -> Any:
    m = x.machine
    window = m.call_params.data.reshape(m.rows, m.threads, m.call_params.row)
    at = symbol.address - FUNCTION_PARAM
    return window[x.c0 : x.c1, x.t0 : x.t1, at : at + size]


def _register(x: Lanes, r: Register | Reg) -> Any:
    count = r.per if isinstance(r, Register) else r.count
    return x.machine.registers.view(r.bank, r.slot, count, x.machine.registers.banks[r.bank].dtype, x.rect)


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
        width = to.dtype.itemsize
        raw = np.ascontiguousarray(_memory(x, source, size))
        padded = np.zeros((*x.shape, width * to.shape[0]), np.uint8)
        padded[..., :size] = raw
        value = np.moveaxis(padded.view(to.dtype), -1, 0)
    elif isinstance(source, Const):
        value = np.asarray(source.value).view(f"u{np.asarray(source.value).itemsize}")
    else:
        value = _register(x, source)
    np.copyto(to, value, where=x.active(), casting="unsafe")
