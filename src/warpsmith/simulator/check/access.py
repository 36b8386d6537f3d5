"""Faults of memory accesses: bounds and alignment, undefined bytes, bytes that operations in flight own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import numpy as np

from warpsmith.base.findings import Related
from warpsmith.simulator.memory import OUTSIDE, PENDING_READ, PENDING_WRITE, UNDEFINED
from warpsmith.simulator.shared_address import place_of, rank_of, window_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.simulator.access import Located
    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.machine import Machine
    from warpsmith.simulator.memory import Space

__all__ = ["AccessCheck"]

_ADDRESS = 0xFFFF_FFFF_FFFF_FFFF
_NOUN = {"ld": "load", "ldu": "load", "st": "store", "atom": "atomic operation", "red": "reduction"}


@final
class AccessCheck:
    """Judges accesses that the fast path would not vouch for."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    # --- bounds and alignment -------------------------------------------------------------------------------------

    def outside(self, x: Lanes, space: Space, addresses: NDArray[Any], n: int, lanes: NDArray[np.bool_]) -> None:
        """Report lanes whose address lies in no part of the space."""
        address = int(np.broadcast_to(addresses, lanes.shape)[lanes][0])
        self._outside(x, space, address, n, lanes)

    def outside_at(self, x: Lanes, at: Located, n: int, lanes: NDArray[np.bool_]) -> None:
        """Report lanes whose located bytes belong to no allocation."""
        self._outside(
            x, at.space, self.address_of(x, at.space, int(np.broadcast_to(at.index, lanes.shape)[lanes][0])), n, lanes
        )

    def _outside(self, x: Lanes, space: Space, address: int, n: int, lanes: NDArray[np.bool_]) -> None:
        near = address - 0x7000_0000_0000 if space.name == "global" else address
        rank, own, window = None, 0, x.shared_window
        if space.name == "shared" and window is not None and 0 <= rank_of(address) < x.machine.cluster_size:
            rank, near = rank_of(address), place_of(address)
            own = rank_of(int(np.broadcast_to(window, lanes.shape)[lanes][0]))
        allocation, distance = space.allocation_near(near)
        noun, shown = _NOUN.get(x.op.opcode, f"`{x.op.text}`"), f"{space.name} address {address & _ADDRESS:#x}"
        what = f"{noun} of {n} byte{'s' if n > 1 else ''} at {shown}"
        repair = "bound the index by the size of the array, or guard the access with a predicate"
        if space.name == "global" and (variable := self._shared_variable(x, address)):
            where = f"lies in {variable}: an address of shared memory, not a generic one"
            repair = "write .shared, or make the address generic with cvta.shared.u64"
        elif space.name == "shared" and distance and 0 <= near < x.machine.reserved_shared:
            where = f"lies in the first {x.machine.reserved_shared} bytes, which the system reserves"
            repair = "take the address of a .shared variable; memory of the launch begins at an .extern .shared one, not at 0"
        elif address == 0 or (space.name == "global" and 0 <= address < 4096):
            where = "is a null pointer" if address == 0 else "lies next to the null pointer"
            repair = "pass an address; that of a .local or .param variable becomes generic with cvta"
        elif allocation is None:
            where = f"lies outside: the kernel has no {space.name} memory"
        elif distance == 0:
            where = f"crosses the end of {allocation.name} ({allocation.size} bytes)"
        elif distance > 1 << 32:
            where = f"lies in no allocation of {space.name} memory"
        else:
            side = "before" if near < allocation.start else "past the end of"
            distance = allocation.start - near if near < allocation.start else near - allocation.start - allocation.size
            by = f"{distance} byte{'s' if distance != 1 else ''} " if distance else "just "
            where = f"lies {by}{side} {allocation.name} ({allocation.size} bytes)"
        reaches_own = ".shared" in x.op.text and "::cluster" not in x.op.text
        if rank is not None and distance == 0 and rank != own and reaches_own:
            where = f"is in CTA {rank} of the cluster; a .shared::cta access reaches its own CTA alone"
            repair = "write .shared::cluster where the address may be another CTA's"
        elif allocation is None and space.name == "shared" and near >= x.machine.reserved_shared:
            repair = "declare shared memory, or give the launch its bytes: dynamic_shared=, on the command line --shared"
        x.finding("out-of-bounds", f"{what} {where}", lanes=lanes, repair=repair, stop=True)

    @staticmethod
    def _shared_variable(x: Lanes, address: int) -> str:
        """Return the shared variable at an address that was taken for a generic one, '' for none."""
        allocation, distance = x.machine.shared.allocation_near(place_of(address))
        inside = allocation is not None and distance == 0 and 0 <= rank_of(address) < x.machine.cluster_size
        return allocation.name if allocation is not None and inside else ""

    def misaligned(self, x: Lanes, space: Space, addresses: NDArray[Any], n: int, lanes: NDArray[np.bool_]) -> None:
        """Report lanes whose address is not a multiple of the access."""
        address = int(np.broadcast_to(addresses, lanes.shape)[lanes][0])
        noun = _NOUN.get(x.op.opcode, f"`{x.op.text}`")
        message = f"{noun} of {n} bytes at {space.name} address {address:#x}, which is no multiple of {n}"
        repair = "align the base and keep the offset a multiple of the access, or use narrower accesses"
        x.finding("out-of-bounds", message, lanes=lanes, repair=repair, stop=True)

    # --- flags ----------------------------------------------------------------------------------------------------

    @staticmethod
    def _bytes(at: Located, flags: NDArray[Any]) -> NDArray[np.uint8]:
        out = np.ascontiguousarray(flags)[..., None].view(np.uint8)
        return out if at.mask is None else np.where(at.mask[..., None], out, 0).astype(np.uint8)

    def flagged_read(self, x: Lanes, at: Located, n: int, flags: NDArray[Any]) -> NDArray[np.bool_] | None:
        """Judge a read of flagged bytes; return which bytes `[C, T, n]` are undefined, None for none."""
        each = self._bytes(at, flags)
        seen = int(np.bitwise_or.reduce(each, axis=None))
        if seen & OUTSIDE:
            self._flagged_outside(x, at, n, each)
        if seen & PENDING_WRITE and self.machine.checking:
            self._pending(x, at, n, each, PENDING_WRITE)
        if seen & UNDEFINED and self.machine.checking:
            return (each & UNDEFINED) != 0
        return None

    def flagged_write(self, x: Lanes, at: Located, n: int, flags: NDArray[Any]) -> NDArray[np.bool_] | None:
        """Judge a write of flagged bytes and make them defined; return the lanes that may write."""
        each = self._bytes(at, flags)
        seen = int(np.bitwise_or.reduce(each, axis=None))
        mask = at.mask
        if seen & OUTSIDE:
            self._flagged_outside(x, at, n, each)
            mask = x.active() & ~((each & OUTSIDE) != 0).any(axis=-1)
        if seen & (PENDING_READ | PENDING_WRITE) and self.machine.checking:
            self._pending(x, at, n, each, PENDING_READ | PENDING_WRITE)
        if seen & UNDEFINED:
            index = at.index if mask is None else at.index[mask]
            shadow = at.space.shadows[1]
            for k in range(n):
                shadow[index + k] &= 0xFF ^ UNDEFINED
        return mask

    def _flagged_outside(self, x: Lanes, at: Located, n: int, each: NDArray[np.uint8]) -> None:
        lanes = ((each & OUTSIDE) != 0).any(axis=-1)
        self.outside_at(x, at, n, lanes)

    @staticmethod
    def address_of(x: Lanes, space: Space, index: int) -> int:
        """Return the address within its space of a flat byte index."""
        if space.name == "global":
            return index + 0x7000_0000_0000
        row, address = divmod(index, space.row)
        return address | window_of(row % x.machine.cluster_size) if space.name == "shared" else address

    def _pending(self, x: Lanes, at: Located, n: int, each: NDArray[np.uint8], flag: int) -> None:
        lanes = ((each & flag) != 0).any(axis=-1)
        index = int(at.index[lanes][0])
        writing = bool(each[lanes][0].max() & PENDING_WRITE)
        ops = self.machine.asynchronous.touching(at.space, index, index + n, write_only=writing)
        if not ops:  # in a gap of what an operation reads
            return
        related = tuple(Related(f"`{op.kind}` by {op.threads or 'another thread'} is in flight", op.place) for op in ops[:2])
        address = self.address_of(x, at.space, index)
        name = f"`{ops[0].kind}`"
        noun = _NOUN.get(x.op.opcode, f"`{x.op.text}`")
        if flag == PENDING_WRITE:
            message = f"{noun} of {at.space.name} address {address:#x} before {name} that writes it has completed"
            repair = "wait for the operation (its mbarrier phase, or its group) and let every reader see that wait"
            x.finding("async-read-before-complete", message, lanes=lanes, related=related, repair=repair)
        else:
            verb = "writes" if writing else "reads"
            message = f"{noun} to {at.space.name} address {address:#x} which {name} still {verb}"
            repair = "wait until the operation has finished with the bytes before they are written again"
            x.finding("async-overwrite", message, lanes=lanes, related=related, repair=repair)

    # --- definedness ----------------------------------------------------------------------------------------------

    def undefined_stored(self, x: Lanes, at: Located, n: int, undefined: NDArray[np.bool_]) -> None:
        """Lanes store undefined values `[C, T]`, or parts of them `[C, T, parts]`.

        Bytes of shared and local memory become undefined, global memory is a fault.
        """
        parts = undefined[..., None] if undefined.ndim == 2 else undefined
        parts = parts & (x.active() if at.mask is None else at.mask)[..., None]
        if not parts.any():
            return
        if at.space.name == "global":
            self.report_undefined(x, np.logical_or.reduce(parts, axis=-1), "stored to global memory")
            return
        width = n // parts.shape[-1]
        for part in range(parts.shape[-1]):
            index = at.index[parts[..., part]] + part * width
            for k in range(width):
                at.space.shadow[index + k] |= UNDEFINED

    def undefined_use(self, x: Lanes, masks: NDArray[np.uint8], what: str) -> None:
        """Report active lanes whose undefined value, by its mask, is used as `what` (an address, a predicate)."""
        if not masks.any():
            return
        lanes = masks != 0 if x.mask is None else (masks != 0) & x.mask
        if lanes.any():
            self.report_undefined(x, lanes, f"used as {'an' if what[0] in 'aeiou' else 'a'} {what}")

    def report_undefined(self, x: Lanes, lanes: NDArray[np.bool_], how: str) -> None:
        """Report the use of a value that came from bytes or registers nobody wrote."""
        message = f"`{x.op.text}`: a value that comes from memory or registers nobody wrote is {how}"
        repair = "write the bytes before they are read (and order the write before the read), or mask the lanes off"
        x.finding("uninitialised-read", message, lanes=lanes, repair=repair)
