"""From an address to bytes: which space an address means, bounds, alignment, and the shadow of what is touched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from warpsmith.simulator.memory import GLOBAL_BASE, OUTSIDE, SAFE, Space
from warpsmith.simulator.shared_address import place_of, rank_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.simulator.lanes import Lanes

__all__ = ["Located", "inside", "locate", "quick", "read", "write"]

FUNCTION_PARAM = 1 << 24
"""First address of the parameters of device functions; below are the kernel's."""


@final
@dataclass(frozen=True, slots=True)
class Located:
    """Lanes whose addresses fall in one space: flat byte indices, valid for every lane; `mask` says which count."""

    space: Space
    index: NDArray[np.int64]
    mask: NDArray[np.bool_] | None


def locate(x: Lanes, space: str | None, addresses: NDArray[np.int64], n: int) -> list[Located]:
    """Find the bytes of n-byte accesses; lanes out of bounds or misaligned are reported and left out."""
    name = (space or "").partition("::")
    if name[0] in ("shared", "local") and int(np.bitwise_or.reduce(addresses, axis=None)) >> 32:
        addresses = _of_32_bits(addresses)
    if name[0] == "shared":
        return [(_cluster if name[2] == "cluster" else _own)(x, addresses, n)]
    if name[0] == "global":
        return [_flat(x, x.machine.global_, addresses - GLOBAL_BASE, n, addresses)]
    if name[0] in ("", "generic"):
        return _generic(x, addresses, n)
    if name[0] == "local":
        return [_rows(x, x.machine.local, x.local_base, addresses, n)]
    if name[0] == "const":
        return [_flat(x, x.machine.const, addresses, n, addresses)]
    return _parameters(x, addresses, n)


def _of_32_bits(addresses: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return shared or local addresses with those that a sum of 32 bits has carried or borrowed out of cut to 32 bits.

    Registers of such addresses have 32 bits, and so has their sum with the offset. What lies further off is another address.
    """
    high = addresses >> 32
    return np.where((high == 1) | (high == -1), addresses & 0xFFFFFFFF, addresses)


def _parameters(
    x: Lanes, address: NDArray[np.int64], n: int, mask: Any = None, shown: NDArray[np.int64] | None = None
) -> list[Located]:
    """Find parameters, those of device functions and the kernel's; lanes that do not take part may hold any address."""
    mask = x.mask if mask is None else mask
    shown = address if shown is None else shown
    callee = address >= FUNCTION_PARAM
    of_functions = callee if mask is None else callee & mask
    if not of_functions.any():
        return [_flat(x, x.machine.params, address, n, shown, mask)]
    everyone = bool(of_functions.all())
    found = [
        _rows(
            x, x.machine.call_params, x.call_param_base, address - FUNCTION_PARAM, n, None if everyone else of_functions, shown
        )
    ]
    of_kernel = ~callee if mask is None else ~callee & mask
    if of_kernel.any():
        found.append(_flat(x, x.machine.params, address, n, shown, of_kernel))
    return found


def _flat(x: Lanes, space: Space, index: NDArray[np.int64], n: int, addresses: NDArray[np.int64], mask: Any = None) -> Located:
    mask = x.mask if mask is None else mask
    safe = space.data.size - SAFE
    if mask is not None:
        index = np.where(mask, index, safe)
    if _rejected(index, safe, space.reject[n], mask):
        mask = _bad(x, space, index, n, addresses, mask)
        index = np.where(mask, index, safe)
    return Located(space, index, mask)


def _rows(
    x: Lanes, space: Space, base: NDArray[np.int64], address: NDArray[np.int64], n: int, mask: Any = None, shown: Any = None
) -> Located:
    """`address` counts from the start of a row of the space, which lies at `base`; reports show `shown` in its place."""
    mask = x.mask if mask is None else mask
    safe = space.row - SAFE
    if shown is None:
        shown = address
    if mask is not None:
        address = np.where(mask, address, safe)
    if _rejected(address, safe, space.reject[n], mask):
        mask = _bad(x, space, address, n, shown, mask)
        address = np.where(mask, address, safe)
    return Located(space, address + base, mask)


def _rejected(index: NDArray[np.int64], safe: int, reject: int, mask: Any) -> bool:
    """Say whether a lane of `mask` is misaligned, outside of the row, or in the bytes from `safe` on, where the others are."""
    union = int(np.bitwise_or.reduce(index, axis=None))
    if union & reject:
        return True
    if union < safe:  # no lane is beyond the bits of all of them
        return False
    idle = 0 if mask is None else (mask.size - np.count_nonzero(mask)) * (index.size // mask.size)
    return np.count_nonzero(index >= safe) != idle


def _bad(x: Lanes, space: Space, index: NDArray[Any], n: int, addresses: NDArray[Any], mask: Any) -> NDArray[np.bool_]:
    outside = (index < 0) | (index >= space.row - SAFE)
    misaligned = ~outside & ((index & (n - 1)) != 0)
    active = x.everyone() if mask is None else mask
    if (hit := outside & active).any():
        x.machine.check.outside(x, space, addresses, n, hit)
    if (hit := misaligned & active).any():
        x.machine.check.misaligned(x, space, addresses, n, hit)
    return active & ~(outside | misaligned)


def _own(x: Lanes, addresses: NDArray[np.int64], n: int) -> Located:
    """`shared::cta`: in a cluster only addresses with the CTA's own rank are good; an H200 faults on any other."""
    if x.shared_window is None:
        return _rows(x, x.machine.shared, x.shared_base, addresses, n)
    return _rows(x, x.machine.shared, x.shared_base, addresses - x.shared_window, n, shown=addresses)


def _cluster(x: Lanes, addresses: NDArray[np.int64], n: int, mask: Any = None) -> Located:
    """`shared::cluster`: the rank of the CTA from bit 24 on, as hardware has it and programs that mask it rely on."""
    mask = x.mask if mask is None else mask
    rank = rank_of(addresses)
    if x.shared_window is None and not rank.any():
        return _rows(x, x.machine.shared, x.shared_base, addresses, n, mask)
    own = np.arange(x.c0, x.c1)[:, None]
    first, size = x.machine.cluster_first[x.c0 : x.c1, None], x.machine.cluster_size
    row = first + rank
    wrong = (rank < 0) | (rank >= size)
    if wrong.any():
        active = x.everyone() if mask is None else mask
        if (hit := wrong & active).any():
            x.machine.check.outside(x, x.machine.shared, addresses, n, hit)
        mask = active & ~wrong
        row = np.where(wrong, own, row)
    if x.machine.peers is not None:
        x.machine.peers.access(x, row, mask)
    return _rows(x, x.machine.shared, row * x.machine.shared.row, place_of(addresses), n, mask, shown=addresses)


def _generic(x: Lanes, addresses: NDArray[np.int64], n: int) -> list[Located]:
    high = addresses >> 40
    active = x.mask
    chosen = high if active is None else high[active]
    if chosen.size == 0:
        return []
    first = int(chosen.flat[0])
    if (chosen == first).all():
        return _window(x, first, addresses, n, None)
    windows: list[int] = np.unique(chosen).tolist()
    everyone = x.active()
    return [found for w in windows for found in _window(x, w, addresses, n, everyone & (high == w))]


def _window(x: Lanes, window: int, addresses: NDArray[np.int64], n: int, mask: Any) -> list[Located]:
    low = addresses & ((1 << 40) - 1)
    m = x.machine
    if window == 1:
        return [_cluster(x, low, n, mask)]
    if window == 2:
        return [_rows(x, m.local, x.local_base, low, n, mask)]
    if window == 3:
        return [_flat(x, m.const, low, n, addresses, mask)]
    if window == 4:
        return _parameters(x, low, n, mask, addresses)
    return [_flat(x, m.global_, addresses - GLOBAL_BASE, n, addresses, mask)]


def quick(x: Lanes, space: str | None, addresses: NDArray[np.int64], n: int) -> tuple[Space, NDArray[np.int64]] | None:
    """Return (space, flat indices) when all addresses (`[…, C, T]`) are good and in one space; None: ask `locate`."""
    m = x.machine
    base: Any = 0
    name = space or "generic"
    if name in ("shared", "shared::cta"):
        where, base = m.shared, x.shared_base
        if x.shared_window is not None:
            addresses = addresses - x.shared_window
    elif name in ("global", "generic"):
        where = m.global_
        addresses = addresses - GLOBAL_BASE
    elif name == "local":
        where, base = m.local, x.local_base
    else:
        return None
    safe = where.row - SAFE
    if x.mask is not None:
        addresses = np.where(x.mask, addresses, safe)
    if _rejected(addresses, safe, where.reject[n], x.mask):
        return None
    return where, addresses if where is m.global_ else addresses + base


def inside(x: Lanes, at: Located, n: int) -> Located:
    """Report the lanes of n-byte accesses (at most 16) that touch bytes of no allocation, and leave them out."""
    ends = at.space.shadow.take(at.index, mode="clip") | at.space.shadow.take(at.index + (n - 1), mode="clip")
    if not (ends & OUTSIDE).any():
        return at
    lanes = np.broadcast_to(x.active() if at.mask is None else at.mask, x.shape)
    bad = ((ends & OUTSIDE) != 0) & lanes
    if bad.any():
        x.machine.check.outside_at(x, at, n, bad)
    return Located(at.space, at.index, lanes & ~bad)


def read(x: Lanes, at: Located, n: int) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    """Return items of n bytes (1, 2, 4, 8, 16), and which lanes took an undefined byte (None: none)."""
    data = at.space.read(at.index, n)
    flags = at.space.flags(at.index, n)
    if x.machine.races is not None:
        x.machine.races.read(x, at, n)
    if x.machine.traffic is not None:
        x.machine.traffic.access(x, at.space, at.index, n, at.mask)
    if flags.any():
        return data, x.machine.check.flagged_read(x, at, n, flags)
    return data, None


def write(
    x: Lanes, at: Located, n: int, values: NDArray[Any], undefined: NDArray[np.bool_] | None = None, *, changed: bool = True
) -> None:
    """Store items of n bytes; what is `undefined`, lanes `[C, T]` or their parts `[C, T, parts]`, becomes undefined again.

    `changed=False`: the values are those of before, so that nobody who waits for memory to change need look.
    """
    flags = at.space.flags(at.index, n)
    mask = at.mask
    if flags.any():
        mask = x.machine.check.flagged_write(x, at, n, flags)
        at = Located(at.space, at.index, mask)
    if x.machine.races is not None:
        x.machine.races.store(x, at, n, values)
    if x.machine.traffic is not None:
        x.machine.traffic.store(x, at.space, at.index, n, mask)
    if x.machine.writers is not None:
        x.machine.writers.stored(x, at, n)
    if mask is None:
        at.space.write(at.index, n, values)
    else:
        at.space.write(at.index[mask], n, np.broadcast_to(values, mask.shape)[mask])
    if undefined is not None and undefined.any():
        x.machine.check.undefined_stored(x, at, n, undefined)
    x.machine.memory_version += changed
