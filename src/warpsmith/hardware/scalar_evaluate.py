"""What the simulator's meanings say about a scalar form: the outputs for its inputs, as codes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpsmith.base.ptx_types import TYPES
from warpsmith.hardware.scalar_forms import ScalarForm
from warpsmith.hardware.scalar_kernels import stored_type
from warpsmith.hardware.scalar_values import code_dtype
from warpsmith.simulator.meanings import registry
from warpsmith.simulator.registers import dtype_of

__all__ = ["evaluate", "stored_dtype"]

Array = NDArray[Any]


def stored_dtype(name: str) -> np.dtype[Any]:
    """Return the unsigned dtype of stored results of a type."""
    return code_dtype(stored_type(name))


def _operand(codes: Array, name: str) -> Array:
    if name == "pred":
        return codes != 0
    return codes.view(dtype_of(name))


def _stored(result: Array, name: str) -> Array:
    """Return results as they are stored: extended to the register where it is wider."""
    if name == "pred":
        return result.astype(np.uint8)
    wide = stored_dtype(name)
    if result.dtype.itemsize < wide.itemsize:
        result = result.astype(np.dtype(f"{result.dtype.kind}{wide.itemsize}"))
    return result.view(wide)


def evaluate(form: ScalarForm, inputs: list[Array]) -> list[Array]:
    """Return the stored results of a form, one array per written operand."""
    built = registry.build(form.match())
    assert isinstance(built, registry.Built), form.key
    n = len(inputs[0])
    outs = [np.empty(n, dtype_of(TYPES[t])) for t in form.writes]
    operands: list[Any] = [_operand(codes, t) for codes, t in zip(inputs, form.reads, strict=True)]
    borrows = form.mnemonic.startswith("sub")  # the kernels set and read a borrow, the flag holds its complement
    if form.carry_in and borrows:
        operands[-1] = ~operands[-1]
    if form.immediate is not None:
        operands.insert(3, np.uint32(form.immediate))
    with np.errstate(all="ignore"):
        if isinstance(built.fn, np.ufunc):
            built.fn(*operands, *outs)
        else:
            built.fn(*outs, *operands)
    if form.carry_out and borrows:
        outs[-1] = np.logical_not(outs[-1])
    return [_stored(o, t) for o, t in zip(outs, form.writes, strict=True)]
