"""Sizes and addresses of variables (PTX ISA 5.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from warpsmith.assembly.ptx.tree import Function, Parameter, Variable
from warpsmith.base.ptx_types import TYPES

if TYPE_CHECKING:
    from collections.abc import Iterable


__all__ = ["Area", "align_of", "each_variable", "element_of", "parameter_offsets", "size_of"]


def _element(type_: str) -> int:
    return TYPES[type_].bits // 8 if type_ in TYPES else 8


def size_of(v: Variable | Parameter) -> int:
    """Return the bytes of a variable; 0 for one of unknown length: `[]` without an initialiser, which would tell (5.4.4)."""
    n = _element(v.type) * v.vector
    listed = v.initializer.leaves if isinstance(v, Variable) and v.initializer is not None else None
    for extent in v.shape:
        n *= len(listed or ()) if extent is None else extent
    return n


def element_of(v: Variable | Parameter) -> int:
    """Return the bytes of the fundamental type, also of arrays and vectors of it."""
    return _element(v.type)


def align_of(v: Variable | Parameter) -> int:
    """Return the alignment: as declared, else that of an element (of a whole vector)."""
    return v.align or _element(v.type) * v.vector


def each_variable(items: Iterable[object]) -> Iterable[Variable]:
    """Yield the variables among statements, further declarators and parameterised names included."""
    for item in items:
        if not isinstance(item, Variable):
            continue
        for v in (item, *item.more):
            if v.count is None:
                yield v
            else:
                for i in range(v.count):
                    yield Variable(v.space, v.type, f"{v.name}{i}", v.shape, v.vector, v.align)


@final
class Area:
    """Addresses handed out one after the other."""

    def __init__(self, start: int = 0) -> None:
        self.top = start

    def place(self, size: int, align: int) -> int:
        """Return the address of `size` bytes aligned to `align`."""
        start = -(-self.top // align) * align
        self.top = start + size
        return start


def parameter_offsets(function: Function) -> list[tuple[Parameter, int]]:
    """Return the parameters of an entry with their offsets in the parameter block."""
    area = Area()
    return [(p, area.place(size_of(p), align_of(p))) for p in function.parameters]
