"""What an instruction says in the place of its tensor map (PTX ISA 9.7.10.28.5.2): the address, and dimensions with strides."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from warpsmith.base.errors import InputError
from warpsmith.base.tensormap import check
from warpsmith.simulator.memory import GLOBAL_BASE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warpsmith.base.tensormap import TensorMapFields
    from warpsmith.simulator.async_access import Lane
    from warpsmith.simulator.lanes import Lanes

__all__ = ["overridden"]

REACH = 128 * 1024
"""Bytes from the address on that must be allocated."""


def overridden(
    x: Lanes, lane: Lane, f: TensorMapFields, operands: Sequence[Any], coordinates: Sequence[Any]
) -> TensorMapFields | None:
    """Return the fields with `operands` in their place; None when it was reported.

    They are the address; then perhaps the dimensions; with more than one of these the lower 32 bits of each stride, and the
    upper four bits of all in a register.
    """
    address, *attributes = operands
    sizes, strides = attributes[: f.rank], attributes[f.rank :]
    start = lane.at(address) & (1 << 64) - 1
    if start % 16:
        return _report(x, lane, f"the address {start:#x} in the place of the tensor map's is no multiple of 16")
    found, distance = x.machine.global_.allocation_near(start - GLOBAL_BASE)
    if found is None or distance or start - GLOBAL_BASE + REACH > found.start + found.size:
        return _report(x, lane, f"from the address {start:#x} in the place of the tensor map's on 128 KiB must be allocated")
    changes: dict[str, Any] = {"address": start}
    if sizes:
        if any(lane.at(c) for c in coordinates):
            return _report(x, lane, "a copy whose dimensions stand in the place of the tensor map's must start at zero")
        changes["dims"] = tuple(lane.at(n) & 0xFF for n in sizes)
    if strides:
        *lower, upper = strides
        high = lane.at(upper)
        changes["strides"] = tuple(
            (lane.at(low) & 0xFFFFFFFF) + ((high >> 4 * i & 15) << 32) << 4 for i, low in enumerate(lower)
        )
    changed = replace(f, **changes)
    try:
        check(changed)
    except InputError as error:
        return _report(x, lane, f"what stands in the place of the tensor map's fields is none: {error}")
    return changed


def _report(x: Lanes, lane: Lane, message: str) -> None:
    x.finding("out-of-bounds", message, lanes=lane.mask, stop=True, repair="Give what the tensor map of the tensor would hold.")
