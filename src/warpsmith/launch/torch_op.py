"""Kernels as operators of torch, `torch.ops.warpsmith.kernel_<handle>`, which torch.compile and autograd see as one call."""

# The package is optional, and its types with it.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportUnknownParameterType=false
# pyright: reportUntypedBaseClass=false, reportUntypedFunctionDecorator=false

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from warpsmith.launch.torch_arrays import dtype_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Outputs", "call_operator", "constant", "differentiate", "operator"]

_taken: dict[str, int] = {}


class Outputs(NamedTuple):
    """Shape, numpy name of the element type, and whether it is column-major, of one output."""

    shape: tuple[Any, ...]
    dtype: str
    column_major: bool


def _handle(name: str, identity: str) -> str:
    """Return a name that is the same in every process, and another one for another kernel of the same text."""
    digest = hashlib.sha256(identity.encode()).hexdigest()[:12]
    base = f"kernel_{re.sub(r'[^A-Za-z0-9_]', '_', name)}_{digest}"
    _taken[base] = _taken.get(base, 0) + 1
    return base if _taken[base] == 1 else f"{base}_{_taken[base]}"


def operator(
    name: str, identity: str, tensors: Sequence[str], numbers: Sequence[tuple[str, str]], outputs: int, given: bool,
    run: Callable[..., Any], shapes: Callable[..., Sequence[Outputs]],
) -> str:  # fmt: skip
    """Define an operator of `torch.ops.warpsmith` and return its name.

    `tensors` are the names of its tensor arguments, the last `outputs` of which are written when `given`; `numbers` are
    (name, "SymInt" or "float") of further ones. `run(*arguments)` runs the kernel, `shapes(*arguments)` says what it returns.
    """
    written = set(tensors[len(tensors) - outputs :]) if given else set[str]()
    parts = [f"Tensor({chr(97 + i)}!) t{i}_{n}" if n in written else f"Tensor t{i}_{n}" for i, n in enumerate(tensors)]
    parts += [f"{kind} n_{n}" for n, kind in numbers]
    returned = "()" if given else ", ".join(["Tensor"] * outputs) if outputs == 1 else f"({', '.join(['Tensor'] * outputs)})"
    handle = _handle(name, identity)
    changed = tuple(f"t{i}_{n}" for i, n in enumerate(tensors) if n in written)
    op = torch.library.custom_op(
        f"warpsmith::{handle}", run, mutates_args=changed, schema=f"({', '.join(parts)}) -> {returned}"
    )

    def fake(*arguments: Any) -> Any:
        if given:
            return None
        device = arguments[0].device
        made = [_empty(o, device) for o in shapes(*arguments)]
        return made[0] if outputs == 1 else tuple(made)

    op.register_fake(fake)
    return handle


def _empty(o: Outputs, device: Any) -> Any:
    dtype = dtype_of(o.dtype)
    if not o.column_major:
        return torch.empty(o.shape, dtype=dtype, device=device)
    strides: list[Any] = []
    step: Any = 1
    for extent in o.shape:
        strides.append(step)
        step = step * extent
    return torch.empty_strided(o.shape, strides, dtype=dtype, device=device)


@torch.compiler.assume_constant_result
def constant(function: Callable[..., str], *arguments: Any) -> str:
    """Call `function`; torch.compile does so while it traces, and takes the result for a constant."""
    return function(*arguments)


def call_operator(name: str, arguments: Sequence[Any]) -> Any:
    """Call an operator that `operator` defined."""
    return getattr(torch.ops.warpsmith, name)(*arguments)


class _Pair(torch.autograd.Function):
    """A forward kernel with its backward kernel; the first argument is what `differentiable_kernel` returned."""

    @staticmethod
    def forward(ctx: Any, pair: Any, *inputs: Any) -> Any:
        outputs = pair.forward_kernel(*inputs)
        every = (*inputs, *(outputs if isinstance(outputs, tuple) else (outputs,)))
        ctx.save_for_backward(*(inputs if pair.save is None else [every[i] for i in pair.save]))
        ctx.pair, ctx.inputs = pair, len(inputs)
        return outputs

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        found = ctx.pair.backward_kernel(*ctx.saved_tensors, *[g.contiguous() for g in gradients])
        return (None, *ctx.pair.gradients(found, ctx.inputs))


def differentiate(pair: Any, *tensors: Any) -> Any:
    """Call what `differentiable_kernel` returned, recorded by autograd."""
    return _Pair.apply(pair, *tensors)
