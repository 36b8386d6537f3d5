"""Changing tensor maps on the device (PTX ISA 9.7.10.29, 9.7.15.17), bit for bit as ptxas expands it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from warpsmith.base import tensormap_bits as bits
from warpsmith.simulator.async_access import Lane, lanes_of, span_of
from warpsmith.simulator.meanings.mbarrier import space_of
from warpsmith.simulator.meanings.registry import machine

if TYPE_CHECKING:
    from warpsmith.assembly.ptx.isa import Match
    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.meanings.registry import Function

__all__: list[str] = []

_CODES = {11: (7, 1), 12: (8, 1), 13: (11, None), 14: (12, None), 15: (13, None)}
"""elemtype operand -> (code, tf32 bit); the others are their own code and leave the tf32 bit alone."""


@machine("tensormap.replace")
def replace(m: Match) -> Function:
    """Replace a field of the 1024-bit object."""
    names = tuple(slot.name for slot in m.operands)
    space = space_of(m)
    words = m.mnemonic.split(".")
    field = words[3]

    def run(x: Lanes, *operands: Any) -> None:
        v = dict(zip(names, operands, strict=False))
        for lane in lanes_of(x):
            span = span_of(x, lane, space, lane.at(v["a"]), 128)
            if span is None:
                continue
            memory, index = span
            memory.note_read(index, 128)
            data = bytearray(memory.data[index : index + 128].tobytes())
            _put(data, field, int(v.get("ord") or 0), lane.at(v["value"]))
            memory.data[index : index + 128] = np.frombuffer(bytes(data), np.uint8)
            memory.shadow[index : index + 128] &= 0xFE
        x.machine.progress()

    return run


def _put(data: bytearray, field: str, ordinal: int, value: int) -> None:
    if field == "global_address":
        data[0:8] = (value & (1 << 64) - 1).to_bytes(8, "little")
        bits.put(data, bits.Bits(0x08, 21, 1), 0)
    elif field == "rank":
        bits.put(data, bits.RANK, value)
    elif field == "global_stride":
        bits.put(data, bits.STRIDE_LOW[ordinal], value >> 4)
        bits.put(data, bits.STRIDE_HIGH[ordinal], value >> 36)
    elif field in ("box_dim", "global_dim", "element_stride"):
        table = {"box_dim": bits.BOX, "global_dim": bits.DIM, "element_stride": bits.ELEMENT_STRIDE}[field]
        bits.put(data, table[ordinal], value - 1)
    elif field == "elemtype":
        code, tf32 = _CODES.get(value, (value, None))
        bits.put(data, bits.ELEMENT, code)
        if tf32 is not None:
            bits.put(data, bits.TF32, tf32)
    elif field == "swizzle_mode":
        bits.put(data, bits.SWIZZLE, value)
        bits.put(data, bits.Bits(0x08, 22, 1), 0)
    else:
        at = {"interleave_layout": bits.INTERLEAVE, "swizzle_atomicity": bits.ATOM, "fill_mode": bits.NAN}[field]
        bits.put(data, at, value)


@machine("tensormap.cp_fenceproxy")
def cp_fenceproxy(m: Match) -> Function:
    """Copy a tensor map from shared to global memory; the whole warp executes it."""
    names = tuple(slot.name for slot in m.operands)

    def run(x: Lanes, *operands: Any) -> None:
        v = dict(zip(names, operands, strict=False))
        seen: set[tuple[int, int]] = set()
        for lane in lanes_of(x):
            key = (lane.row, lane.t // 32)
            if key in seen:
                continue
            seen.add(key)
            _copy(x, lane, v)
        x.machine.progress()

    return run


def _copy(x: Lanes, lane: Lane, v: dict[str, Any]) -> None:
    source = span_of(x, lane, "shared::cta", lane.at(v["a"]), 128)
    target = span_of(x, lane, "global", lane.at(v["d"]), 128)
    if source is not None and target is not None:
        (a, i), (b, j) = source, target
        b.data[j : j + 128] = a.data[i : i + 128]
        b.shadow[j : j + 128] = a.shadow[i : i + 128] & 1
