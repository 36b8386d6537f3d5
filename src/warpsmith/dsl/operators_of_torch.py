"""Kernels as operators of torch, for torch.compile and for autograd: one operator for each kernel and set of constants."""

from __future__ import annotations

import sys
from itertools import count
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from warpsmith.base.errors import InputError
from warpsmith.base.layout import Layout
from warpsmith.dsl.binding import environment, frozen, split_keywords
from warpsmith.dsl.elements import check_element, element_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warpsmith.dsl.binding import Callee

__all__ = ["call_operator", "is_compiling", "remember"]

_numbers = count()
_kernels: WeakValueDictionary[int, Callee] = WeakValueDictionary()


def is_compiling() -> bool:
    """Say whether torch.compile traces this call. torch.compile reads this function; it is as it can be read."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.compiler.is_dynamo_compiling()


def remember(kernel: Callee) -> int:
    """Return a number for a kernel: torch.compile takes numbers for constants, and no kernels."""
    number = next(_numbers)
    _kernels[number] = kernel
    return number


def call_operator(kernel: Callee, tensors: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Call the kernel's operator.

    Numbers for raw parameters and dimensions are arguments of the operator, other keywords belong to it.
    """
    from warpsmith.launch import torch_op  # noqa: PLC0415  (torch.compile traces an import statement, but no import_module)

    numbers = [n for n, v in keywords.items() if isinstance(v, (int, float)) and n not in kernel.constants]
    kinds = tuple((n, "float" if isinstance(keywords[n], float) else "SymInt") for n in numbers)
    constants = tuple((n, v) for n, v in keywords.items() if n not in numbers)
    name = torch_op.constant(_operator, kernel.number, len(tensors), kinds, constants)
    result = torch_op.call_operator(name, (*tensors, *[keywords[n] for n in numbers]))
    if result is not None:
        return tuple(result) if isinstance(result, list) else result
    outputs = tensors[kernel.input_count :]
    return outputs[0] if len(outputs) == 1 else outputs


def _operator(number: int, given: int, kinds: tuple[tuple[str, str], ...], constants: tuple[tuple[str, Any], ...]) -> str:
    """Return the name of the operator for these keywords, defined once."""
    kernel = _kernels[number]
    key = "operator", given, kinds, frozen(dict(constants))
    if key not in kernel.operators:
        kernel.operators[key] = _define(kernel, given, kinds, dict(constants))
    return kernel.operators[key]


def _define(kernel: Callee, given: int, kinds: tuple[tuple[str, str], ...], constants: dict[str, Any]) -> str:
    c = kernel.configuration
    kernel.check_count(given)
    outputs = len(c.out_specs)
    written = given > len(c.in_specs)
    for n, v in constants.items():
        if hasattr(v, "__dlpack__") or n == "stream":
            raise InputError(f"{kernel.__name__}: {n}={v!r:.60} under torch.compile: pass tensors by position, and no stream=")

    def split(arguments: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return arguments[:given], {**constants, **dict(zip([n for n, _ in kinds], arguments[given:], strict=True))}

    def execute(*arguments: Any) -> Any:
        result = kernel.run(*split(arguments))
        return None if written else result

    def shapes(*arguments: Any) -> list[Any]:
        return _outputs(kernel, *split(arguments))

    from warpsmith.launch import torch_op  # noqa: PLC0415  (as above)

    identity = (
        f"{kernel.fn.__module__}.{kernel.fn.__qualname__} {kernel.fn.__code__.co_firstlineno} {c} {given} {kinds} {constants}"
    )
    names = kernel.tensor_names[:given]
    return torch_op.operator(kernel.__name__, identity, names, kinds, outputs, written, execute, shapes)


def _outputs(kernel: Callee, tensors: Sequence[Any], keywords: dict[str, Any]) -> list[Any]:
    """Return shape, type and order of the outputs for tensors that have a shape and a type but no data."""
    from warpsmith.launch import torch_arrays, torch_op  # noqa: PLC0415  (as above)

    c = kernel.configuration
    tiles = (*c.in_specs, *c.out_specs)
    for name, t, tile in zip(kernel.tensor_names, tensors, tiles, strict=False):
        check_element(kernel.__name__, name, torch_arrays.name_of(t.dtype), t.element_size(), tile.dtype)
    env = environment(kernel, kernel.tensor_names, [t.shape for t in tensors], tiles)
    env = split_keywords(kernel, env, keywords)[0]
    return [torch_op.Outputs(t.resolve_shape(env), element_name(t.dtype), t.layout is Layout.COL) for t in c.out_specs]
