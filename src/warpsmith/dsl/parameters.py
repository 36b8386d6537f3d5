"""Kernel parameters in PTX: tensors as pointers and descriptors, and `raw_params` type strings.

"u32"                         .param .u32 n
"u64.ptr.global.palign1"      .param .u64 .ptr .global .align 1 n
"b8.align64.array128"         .param .align 64 .b8 n[128]
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from warpsmith.assembly.ptx.tree import Parameter
from warpsmith.base.errors import InputError
from warpsmith.base.ptx_types import TYPES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warpsmith.dsl.tensor import TensorSpec

__all__ = ["raw_parameter", "tensor_parameters"]

_SPACES = ("global", "shared", "const", "local", "generic", "param")


def raw_parameter(kind: str, name: str) -> Parameter:
    """Parse one entry of `raw_params`; `InputError` for a part that is not known."""
    first, *rest = kind.lstrip(".").split(".")
    if first not in TYPES or TYPES[first].bits < 8:
        raise InputError(f"raw_params: unknown type {kind!r} of {name!r}; write e.g. 'u32', 'u64.ptr.global.palign16'")
    p = Parameter("param", first, name)
    pointer, space, pointer_align = False, "", None
    for word in rest:
        m = re.fullmatch(r"(align|array|palign)(\d+)", word)
        if word == "ptr":
            pointer = True
        elif word in _SPACES:
            space = word
        elif m and m[1] == "align":
            p.align = int(m[2])
        elif m and m[1] == "array":
            p.shape = [int(m[2])]
        elif m:
            pointer_align = int(m[2])
        else:
            raise InputError(f"raw_params: {word!r} in {kind!r} is not known; write ptr, a space, alignN, palignN or arrayN")
    if pointer:
        p.pointer = ("" if space == "generic" else space, pointer_align)
    elif space or pointer_align is not None:
        raise InputError(f"raw_params: {kind!r} names a space or palign without ptr")
    return p


def tensor_parameters(tensors: Sequence[TensorSpec]) -> list[Parameter]:
    """Return the parameters of tensors: a pointer unless only the descriptor is used, and the descriptor where it is."""
    out: list[Parameter] = []
    for t in tensors:
        if t.pointer_used or not t.descriptor_name:
            out.append(Parameter("param", "u64", t.name, pointer=None))
        if t.descriptor_name:
            out.append(Parameter("param", "b8", t.descriptor_name, [128], 64))
    return out
