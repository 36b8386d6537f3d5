"""What the payload of an attribute says, by the layout that `attributes.txt` gives its id."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, final

from warpsmith.base.errors import CubinError
from warpsmith.cubin.attributes import attribute_rows
from warpsmith.cubin.move_info import branch_records
from warpsmith.cubin.parameters import Parameter, read_parameters

if TYPE_CHECKING:
    from collections.abc import Callable

    from warpsmith.cubin.info import Attribute

__all__ = ["BarrierUse", "Branch", "Payload", "decode_payload"]

_BARRIER = struct.Struct("<IIIBBBB")
_KINDS = (
    "init", "arrive", "arrive.noComplete", "arrive_drop", "arrive_drop.noComplete", "test_wait", "test_wait.parity",
    "cp.async.arrive", "inval", "try_wait", "try_wait.parity",
)  # fmt: skip
"""By the low four bits of a record's kind, as `cuobjdump -elf` of CUDA 13.5 names them."""
_STRIDES = (4, 8, 16)


@final
@dataclass(frozen=True, slots=True)
class BarrierUse:
    """One record of MBARRIER_INSTR_OFFSETS: an instruction, and the mbarrier it works on."""

    offset: int
    """Byte offset of the instruction in the code."""
    kind: str
    """`init`, `try_wait.parity`, …, or the number of one that has no name."""
    register: int
    """The register of the address; 255 is RZ."""
    uniform_register: int
    """The uniform register that is added."""
    displacement: int
    """Bytes that are added."""
    stride: int | None
    """4, 8 or 16."""


@final
@dataclass(frozen=True, slots=True)
class Branch:
    """One record of INDIRECT_BRANCH_TARGETS: offsets of an instruction and of where it may go."""

    offset: int
    targets: tuple[int, ...]


Payload: TypeAlias = (
    bytes | int | Parameter | tuple[int, ...] | tuple[tuple[int, ...], ...] | tuple[BarrierUse, ...] | tuple[Branch, ...]
)


def decode_payload(attribute: Attribute) -> Payload:
    """Return the payload as its layout says: offsets and words as a tuple of numbers, pairs as tuples, the bytes where it is
    not known.

    Raises `CubinError` where the payload has not the layout of its id.
    """
    row = attribute_rows().get((attribute.kind, attribute.id))
    decode = _DECODERS.get(row.layout) if row else None
    return decode(attribute) if decode else attribute.payload


def _rows(layout: struct.Struct, a: Attribute) -> list[tuple[int, ...]]:
    if len(a.payload) % layout.size:
        raise CubinError(f"{a.name} has {len(a.payload)} bytes, not a multiple of {layout.size}")
    return list(layout.iter_unpack(a.payload))


_WORD, _PAIR = struct.Struct("<I"), struct.Struct("<II")


def _numbers(a: Attribute) -> tuple[int, ...]:
    return tuple(n for (n,) in _rows(_WORD, a))


def _pairs(a: Attribute) -> tuple[tuple[int, ...], ...]:
    return tuple(_rows(_PAIR, a))


def _pair(a: Attribute) -> tuple[int, ...]:
    rows = _rows(_PAIR, a)
    if len(rows) != 1:
        raise CubinError(f"{a.name} has {len(a.payload)} bytes, not {_PAIR.size}")
    return rows[0]


def _barriers(a: Attribute) -> tuple[BarrierUse, ...]:
    out: list[BarrierUse] = []
    for offset, register, displacement, kind, _, uniform, _ in _rows(_BARRIER, a):
        low, high = kind & 15, kind >> 4
        name = _KINDS[low] if low < len(_KINDS) else f"{kind:#x}"
        out.append(BarrierUse(offset, name, register, uniform, displacement, _STRIDES[high] if high < len(_STRIDES) else None))
    return tuple(out)


def _branches(a: Attribute) -> tuple[Branch, ...]:
    return tuple(Branch(offset, targets) for offset, _, targets in branch_records(a.payload, a.name))


_DECODERS: dict[str, Callable[[Attribute], Payload]] = {
    "offsets": _numbers,
    "words": _numbers,
    "symbols": _numbers,
    "pairs": _pairs,
    "annotations": _pairs,
    "symbol_value": _pair,
    "barriers": _barriers,
    "branches": _branches,
    "kparam": lambda a: read_parameters([a])[0],
    "value": lambda a: a.value,
}
