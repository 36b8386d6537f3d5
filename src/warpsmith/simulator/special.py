"""Special registers (PTX ISA chapter 10)."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from warpsmith.simulator.cooperative import grid_workspace, group_scratch

if TYPE_CHECKING:
    from collections.abc import Callable

    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.machine import Machine

__all__ = [
    "FRAME_ADDRESS",
    "SHARED_ADDRESS",
    "is_moving",
    "is_special",
    "special_constant",
    "special_fixed",
    "special_now",
    "special_vector",
    "wall_time",
]

SHARED_ADDRESS = "shared+"
"""Name, with an offset behind it, of what is not a register of PTX: that offset as each CTA of a cluster addresses it."""
FRAME_ADDRESS = "frame+"
"""Name, with the number of a recursive function and an offset behind it: that offset in the frame of its innermost call."""
_AXES = "xyz"
_VECTORS = {
    "%tid", "%ntid", "%ctaid", "%nctaid", "%clusterid", "%nclusterid", "%cluster_ctaid", "%cluster_nctaid",
}  # fmt: skip
_CONSTANTS: dict[str, Callable[[Machine], int]] = {
    **{f"%ntid.{a}": (lambda m, i=i: m.block[i]) for i, a in enumerate(_AXES)},
    **{f"%nctaid.{a}": (lambda m, i=i: m.grid[i]) for i, a in enumerate(_AXES)},
    **{f"%cluster_nctaid.{a}": (lambda m, i=i: m.cluster[i]) for i, a in enumerate(_AXES)},
    **{f"%nclusterid.{a}": (lambda m, i=i: m.grid[i] // m.cluster[i]) for i, a in enumerate(_AXES)},
    "WARP_SZ": lambda _: 32,
    "%nwarpid": lambda m: m.device.threads_per_multiprocessor // 32,
    "%nsmid": lambda m: m.device.multiprocessors,
    "%gridid": lambda m: m.grid_serial,
    "%is_explicit_cluster": lambda m: int(m.explicit_cluster),
    "%cluster_nctarank": lambda m: m.cluster_size,
    "%dynamic_smem_size": lambda m: m.dynamic_shared,
    "%reserved_smem_offset_begin": lambda _: 0,
    "%reserved_smem_offset_end": lambda m: m.reserved_shared,
    "%reserved_smem_offset_cap": lambda m: m.reserved_shared,
    "%reserved_smem_offset_0": lambda _: 0,
    "%reserved_smem_offset_1": group_scratch,
    "%envreg1": lambda m: grid_workspace(m) >> 32,
    "%envreg2": lambda m: grid_workspace(m) & 0xFFFFFFFF,
    "%current_graph_exec": lambda _: 0,
}
_FIXED = {"%laneid", "%warpid", "%smid", "%cluster_ctarank", "%total_smem_size", "%aggr_smem_size"}
_SHARED_UNIT = 128
"""Bytes of which shared memory is allocated in multiples, since sm_80 (PTX ISA 10.30)."""
_MASKS = {"%lanemask_eq", "%lanemask_le", "%lanemask_lt", "%lanemask_ge", "%lanemask_gt"}
_NOW = {"%clock", "%clock_hi", "%clock64", "%globaltimer", "%globaltimer_lo", "%globaltimer_hi"}
_COUNTERS = re.compile(r"%pm\d(_64)?$|%envreg\d+$")


def is_special(name: str) -> bool:
    """Say whether `name` is a special register (a vector one without a member included)."""
    base, dot, axis = name.partition(".")
    if base in _VECTORS:
        return not dot or axis in _AXES
    return name in _CONSTANTS or name in _FIXED or name in _MASKS or name in _NOW or bool(_COUNTERS.match(name))


def special_vector(name: str) -> list[str] | None:
    """Return the elements of a vector special register written without member (`%tid`), the fourth being 0."""
    return [f"{name}.{a}" for a in _AXES] if name in _VECTORS else None


def special_constant(name: str, machine: Machine) -> int | None:
    """Return the value of a special register that is the same for all threads of the launch, else None."""
    if name in _CONSTANTS:
        return _CONSTANTS[name](machine)
    return 0 if _COUNTERS.match(name) else None


def special_fixed(name: str, x: Lanes) -> Any:
    """Return a live `[C, T]` view of a special register that does not change while a CTA is resident, else None."""
    m = x.machine
    base, _, axis = name.partition(".")
    if base == "%tid":
        one = m.tid[_AXES.index(axis)][None, x.t0 : x.t1]
    elif base in ("%ctaid", "%clusterid", "%cluster_ctaid"):
        one = m.cta_numbers[base][_AXES.index(axis), x.c0 : x.c1, None]
    elif name in ("%smid", "%cluster_ctarank"):
        one = m.cta_numbers[name][0, x.c0 : x.c1, None]
    elif name == "%laneid":
        one = (np.arange(x.t0, x.t1, dtype=np.uint32) & 31)[None]
    elif name == "%warpid":
        one = (np.arange(x.t0, x.t1, dtype=np.uint32) >> 5)[None]
    elif name.startswith(SHARED_ADDRESS):
        assert x.shared_window is not None
        one = x.shared_window + int(name.removeprefix(SHARED_ADDRESS))
    elif name in ("%total_smem_size", "%aggr_smem_size"):
        own = -(-m.shared_bytes // _SHARED_UNIT) * _SHARED_UNIT
        one = np.full((1, 1), own + (m.reserved_shared if name == "%aggr_smem_size" else 0), np.uint32)
    elif name in _MASKS:
        one = _lane_mask(name, np.arange(x.t0, x.t1, dtype=np.uint32) & 31)[None]
    else:
        return None
    return np.broadcast_to(one, x.shape)


def _lane_mask(name: str, lane: Any) -> Any:
    bit = np.left_shift(np.uint32(1), lane)
    below = bit - np.uint32(1)
    which = name.removeprefix("%lanemask_")
    return {"eq": bit, "lt": below, "le": below | bit, "ge": ~below, "gt": ~(below | bit)}[which]


def special_now(name: str, x: Lanes) -> Any:
    """Return a special register that moves with time: clocks count the instructions executed so far."""
    if name.startswith(FRAME_ADDRESS):
        frame, _, offset = name.removeprefix(FRAME_ADDRESS).partition("+")
        return x.machine.frames[int(frame), x.c0 : x.c1, x.t0 : x.t1] + int(offset)
    cycles = x.machine.now()
    nanoseconds = x.machine.start_time + cycles
    value = {
        "%clock": cycles & 0xFFFFFFFF,
        "%clock_hi": cycles >> 32,
        "%clock64": cycles,
        "%globaltimer": nanoseconds,
        "%globaltimer_lo": nanoseconds & 0xFFFFFFFF,
        "%globaltimer_hi": nanoseconds >> 32,
    }[name]
    wide = name in ("%clock64", "%globaltimer")
    return np.full(x.shape, value, np.uint64 if wide else np.uint32)


def wall_time() -> int:
    """Return nanoseconds since the epoch, for `%globaltimer` at launch."""
    return time.time_ns()


def is_moving(name: str) -> bool:
    """Say whether the register changes while a thread runs."""
    return name in _NOW or name.startswith(FRAME_ADDRESS)
