"""`Lanes`: what a machine meaning is given — a rectangle of threads, a mask, and the machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import numpy as np

from warpsmith.simulator.access import Located, locate, read, write
from warpsmith.simulator.asynchronous import AsyncOperation
from warpsmith.simulator.findings import ranges_text
from warpsmith.simulator.operands import Dest
from warpsmith.simulator.shared_address import window_of
from warpsmith.simulator.traffic import as_one

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from numpy.typing import NDArray

    from warpsmith.base.findings import Related, Severity
    from warpsmith.base.source import Place
    from warpsmith.simulator.lower import Operation
    from warpsmith.simulator.machine import Machine
    from warpsmith.simulator.registers import Rectangle

__all__ = ["Lanes"]

_KEPT = 512
"""Answers about masks that a rectangle keeps."""


@final
class Lanes:
    """Threads `t0:t1` of the resident CTAs `c0:c1`, of which `mask` (`[C, T]`; None: all) execute.

    Shapes: C = c1 - c0 CTAs, T = t1 - t0 threads, a multiple of 32 that starts at a warp. Threads that pad the last warp of
    a CTA are never active.
    """

    __slots__ = (
        "_everyone", "c0", "c1", "call_param_base", "local_base", "machine", "mask", "met", "op", "released", "shape",
        "shared_base", "shared_window", "t0", "t1", "timed_out", "yields",
    )  # fmt: skip

    def __init__(self, machine: Machine, rect: Rectangle) -> None:
        self.machine = machine
        self.c0, self.c1, self.t0, self.t1 = rect
        self.shape = (self.c1 - self.c0, self.t1 - self.t0)
        self.mask: NDArray[np.bool_] | None = None
        self.op: Operation = machine.no_operation
        """The instruction being executed."""
        self.timed_out = False
        """The cohort was woken because nothing else can happen: a wait with a time limit gives up."""
        self.yields = False
        """Set by a meaning: other cohorts should go first."""
        self.released = False
        """The cohort goes on although lanes that a collective names are missing."""
        rows = np.arange(self.c0, self.c1, dtype=np.int64)[:, None]
        thread = rows * machine.threads + np.arange(self.t0, self.t1, dtype=np.int64)
        self.shared_base = rows * machine.shared.row
        """Flat index of each CTA's shared memory `[C, 1]`."""
        self.shared_window: NDArray[np.int64] | None = None
        """Of the CTAs of clusters: first address of each CTA's shared memory `[C, 1]`."""
        if machine.cluster_size > 1:
            self.shared_window = window_of(rows % machine.cluster_size)
        self.local_base = thread * machine.local.row
        self.call_param_base = thread * machine.call_params.row
        self._everyone: NDArray[np.bool_] | None = None
        self.met: dict[Hashable, Any] = {}
        """What is kept of masks that have been met, by `kept`."""

    # --- who ------------------------------------------------------------------------------------------------------

    @property
    def ctas(self) -> range:
        """Resident rows of the rectangle."""
        return range(self.c0, self.c1)

    @property
    def threads(self) -> range:
        """Linear threads of the rectangle."""
        return range(self.t0, self.t1)

    @property
    def rect(self) -> Rectangle:
        """(c0, c1, t0, t1)."""
        return self.c0, self.c1, self.t0, self.t1

    def everyone(self) -> NDArray[np.bool_]:
        """Return an all-true mask `[C, T]` (shared; do not write)."""
        if self._everyone is None:
            self._everyone = np.ones(self.shape, np.bool_)
        return self._everyone

    def active(self) -> NDArray[np.bool_]:
        """Return the mask of executing lanes `[C, T]` (do not write)."""
        return self.everyone() if self.mask is None else self.mask

    def kept(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return what `make` gives, made once for a key that holds all it depends on but the rectangle."""
        if key not in self.met:
            if len(self.met) >= _KEPT:
                self.met.clear()
            self.met[key] = make()
        return self.met[key]

    def warps(self, a: NDArray[Any]) -> NDArray[Any]:
        """Return `a` of shape `[…, C, T]` as `[…, C, W, 32]`; a view where possible."""
        if a.shape[-2:] != self.shape:
            a = np.broadcast_to(a, (*a.shape[:-2], *self.shape))
        return a.reshape(*a.shape[:-1], a.shape[-1] // 32, 32)

    def threads_of(self, a: NDArray[Any]) -> NDArray[Any]:
        """Undo `warps`: `[…, C, W, 32]` as `[…, C, T]`; a last axis of 1 is spread over the warp."""
        if a.shape[-1] != 32:
            a = np.broadcast_to(a, (*a.shape[:-1], 32))
        return a.reshape(*a.shape[:-2], a.shape[-2] * 32)

    @staticmethod
    def lane_bits(mask: NDArray[np.bool_]) -> NDArray[np.uint32]:
        """Return a row of threads `[T]` as 32-bit masks `[W]`."""
        return np.packbits(mask, bitorder="little").view(np.uint32)

    def lane_masks(self) -> NDArray[np.uint32]:
        """Return the active lanes of each warp as 32-bit masks `[C, W]`."""
        packed = np.packbits(self.warps(self.active()), axis=-1, bitorder="little")
        return np.ascontiguousarray(packed).view(np.uint32)[..., 0]

    def count(self) -> int:
        """Return the number of executing lanes."""
        return self.shape[0] * self.shape[1] if self.mask is None else int(np.count_nonzero(self.mask))

    # --- where ----------------------------------------------------------------------------------------------------

    @property
    def place(self) -> Place | None:
        """The user's line of the instruction being executed."""
        return self.op.place

    def finding(
        self,
        kind: str,
        message: str,
        *,
        lanes: NDArray[np.bool_] | None = None,
        severity: Severity = "error",
        related: Sequence[Related] = (),
        repair: str = "",
        stop: bool = False,
    ) -> None:
        """Report a fault of the active lanes, or of `lanes` `[C, T]`. With `stop` the launch ends after this block."""
        self.machine.findings.add(
            self, kind, message, lanes=lanes, severity=severity, related=related, repair=repair, stop=stop
        )

    # --- registers ------------------------------------------------------------------------------------------------

    def put(self, dest: Dest | None, value: Any) -> None:
        """Write `value` (`[C, T]` or what broadcasts to it) to a register in the active lanes; None is the sink `_`.

        A value of the operand's width is taken by its bits, whatever its dtype; a register wider than the operand gets it
        extended by the operand's sign.
        """
        if dest is None:
            return
        array = dest.array
        if isinstance(value, np.ndarray) and value.dtype != dest.dtype:
            value = value.view(dest.dtype) if value.dtype.itemsize == dest.dtype.itemsize else value.astype(dest.dtype)
        elif not isinstance(value, np.ndarray):
            value = np.asarray(value).astype(dest.dtype)
        if self.mask is None:
            np.copyto(array, value, casting="unsafe")
        else:
            np.copyto(array, value, where=self.mask, casting="unsafe")
        if dest.undefined is not None:
            np.copyto(dest.undefined, 0, where=self.active())

    def fill(self, dest: Dest, value: Any) -> None:
        """Write one scalar of the operand's dtype to a register in the active lanes."""
        if self.mask is None:
            dest.array[...] = value
        else:
            np.copyto(dest.array, value, where=self.mask, casting="unsafe")
        if dest.undefined is not None:
            np.copyto(dest.undefined, 0, where=self.active())

    def same_register(self, dest: Dest) -> Dest:
        """Return the register of `dest`, which another rectangle bound, in this one."""
        view = self.machine.registers.view(dest.bank, dest.slot, None, dest.array.dtype, self.rect)
        return Dest(view, dest.dtype, dest.bank, dest.slot)

    def put_undefined(self, dest: Dest | None, lanes: NDArray[np.bool_] | NDArray[np.uint8]) -> None:
        """Mark the register as undefined in `lanes` `[C, T]` of the active ones, or bytes of it by masks, after `put`."""
        if dest is None or not self.machine.checking:
            return
        registers = self.machine.registers
        if registers.undefined is None:
            if not (lanes.astype(np.bool_) & self.active()).any():
                return
            registers.track()
            self.machine.tracking_began = True
        masks = np.negative(lanes.view(np.uint8)) if lanes.dtype == np.bool_ else lanes
        np.copyto(registers.undefined_view(dest.bank, dest.slot, None, self.rect), masks, where=self.active())

    def undefined(self, operand: int) -> NDArray[np.bool_] | None:
        """Return the lanes where a register of the instruction's operand `operand` is undefined; None: nowhere."""
        masks = self.undefined_bytes(operand)
        return None if masks is None else np.bitwise_or.reduce(masks, axis=-1) != 0

    def undefined_bytes(self, operand: int) -> NDArray[np.uint8] | None:
        """Return the masks `[C, T, items]` of undefined bytes of each register of an operand; None: nowhere."""
        registers = self.machine.registers
        if registers.undefined is None:
            return None
        items = self.op.item_slots(operand)
        out = np.zeros((*self.shape, len(items)), np.uint8)
        for i, cells in enumerate(items):
            for bank, slot in cells:
                out[..., i] |= registers.undefined_view(bank, slot, None, self.rect)
        return out if out.any() else None

    # --- convergence ----------------------------------------------------------------------------------------------

    def missing(self, members: Any) -> NDArray[np.uint32]:
        """Return, per warp `[C, W]` with an active lane, the live lanes that `members` name and that are not here."""
        active = self.lane_masks()
        wanted = np.bitwise_or.reduce(np.where(self.warps(self.active()), self.warps(np.asarray(members)), 0), axis=-1)
        live = np.packbits(self.warps(self.machine.live[self.c0 : self.c1, self.t0 : self.t1]), axis=-1, bitorder="little")
        return np.where(active != 0, wanted.astype(np.uint32) & live.view(np.uint32)[..., 0] & ~active, 0).astype(np.uint32)

    def short(self, members: Any) -> bool:
        """Say whether a collective should wait for lanes of its warps; report it when they cannot come."""
        if self.mask is None and self.t0 % 128 == 0 and self.t1 % 128 == 0:
            return False
        missing = self.missing(members)
        if not missing.any() and not (self.op.opcode == "wgmma" and self._part_of_warpgroup()):
            return False
        if not self.released:
            return True
        self.released = False
        if not missing.any():
            message = f"`{self.op.text}` is executed by a part of a warpgroup"
            repair = "execute it with all four warps of the warpgroup (threads 128·i to 128·i+127)"
            self.finding("divergent-collective", message, repair=repair)
            return False
        absent = int(missing[missing != 0][0])
        lanes = ranges_text([i for i in range(32) if absent >> i & 1])
        message = f"`{self.op.text}` is executed without lanes {lanes} of the warp, which its member mask names"
        who = self.threads_of((missing != 0)[..., None])
        repair = "execute it with all the lanes of its mask (move it out of the branch), or name only the lanes that reach it"
        self.finding("divergent-collective", message, lanes=who, repair=repair)
        return False

    def names_itself(self, members: Any) -> None:
        """Report lanes that execute a warp synchronisation without being named in its mask."""
        lane = (np.arange(self.t0, self.t1, dtype=np.uint32) & 31)[None]
        absent = self.active() & ((np.asarray(members).astype(np.uint32) >> lane) & 1 == 0)
        if absent.any():
            message = f"`{self.op.text}` is executed by lanes that its member mask does not name"
            self.finding("divergent-collective", message, lanes=absent, repair="name every lane that executes it in the mask")

    def _part_of_warpgroup(self) -> bool:
        """Say whether a warpgroup with an active lane has a live warp that is not here, or is cut short by the CTA's end."""
        first, stop = self.t0 // 128 * 128, min(-(-self.t1 // 128) * 128, self.machine.threads)
        live = self.machine.live[self.c0 : self.c1, first:stop]
        here = np.zeros(live.shape, np.bool_)
        here[:, self.t0 - first : self.t1 - first] = self.active()
        for at in range(0, stop - first, 128):
            group = here[:, at : at + 128]
            if first + at + 128 > self.machine.threads_per_cta and group.any():
                return True
            if (group.any(axis=1) & (live[:, at : at + 128] & ~group).any(axis=1)).any():
                return True
        return False

    # --- memory ---------------------------------------------------------------------------------------------------

    def locate(self, space: str | None, addresses: NDArray[np.int64], n: int) -> list[Located]:
        """Return the bytes that n-byte accesses touch, by space; see `access.locate`."""
        return locate(self, space, addresses, n)

    def load(self, space: str | None, addresses: NDArray[np.int64], n: int) -> NDArray[np.uint8]:
        """Return n bytes (1, 2, 4, 8, 16, or 32) of each lane as uint8 `[C, T, n]`; zeros outside the mask or bounds.

        `space`: `global`, `shared`, `shared::cta`, `shared::cluster`, `local`, `const`, `param`; None is generic.
        """
        return self.load_items(space, addresses, n)[0]

    def load_items(self, space: str | None, addresses: NDArray[np.int64], n: int) -> tuple[NDArray[np.uint8], Any]:
        """Return the bytes `[C, T, n]` and which of them are undefined (None: none)."""
        addresses = np.broadcast_to(addresses, self.shape)
        located = locate(self, space, addresses, n)
        return self.gather(located, n)

    def gather(self, located: list[Located], n: int) -> tuple[NDArray[np.uint8], Any]:
        """Return the bytes `[C, T, n]` at places found by `locate`, and which of them are undefined (None: none)."""
        if n == 32:
            halves = [[Located(at.space, at.index + k, at.mask) for at in located] for k in (0, 16)]
            with as_one(self, located, 32):
                parts = [self.gather(h, 16) for h in halves]
            flags = [np.zeros((*self.shape, 16), np.bool_) if p[1] is None else p[1] for p in parts]
            undefined = None if all(p[1] is None for p in parts) else np.concatenate(flags, axis=-1)
            return np.concatenate([p[0] for p in parts], axis=-1), undefined
        if len(located) == 1:
            data, undefined = read(self, located[0], n)
            return np.ascontiguousarray(data)[..., None].view(np.uint8), undefined
        out = np.zeros((*self.shape, n), np.uint8)
        undefined = None
        for at in located:
            data, flagged = read(self, at, n)
            out[at.mask] = data[..., None].view(np.uint8)[at.mask]
            if flagged is not None:
                undefined = flagged if undefined is None else undefined | flagged
        return out, undefined

    def store(self, space: str | None, addresses: NDArray[np.int64], data: NDArray[np.uint8], undefined: Any = None) -> None:
        """Store the bytes `[C, T, n]` (n of 1, 2, 4, 8, 16, 32) of the active lanes; `undefined` lanes `[C, T]`."""
        n = data.shape[-1]
        addresses = np.broadcast_to(addresses, self.shape)
        data = np.ascontiguousarray(np.broadcast_to(data, (*self.shape, n)))
        located = locate(self, space, addresses, n)
        step = min(n, 16)
        for at in located:
            for k in range(0, n, step):
                piece = np.ascontiguousarray(data[..., k : k + step]).view(at.space.views[step].dtype)[..., 0]
                write(self, Located(at.space, at.index + k, at.mask), step, piece, undefined)

    # --- asynchronous -----------------------------------------------------------------------------------------------

    def issue(self, op: AsyncOperation) -> None:
        """Put an operation in flight; its place is that of the instruction unless it has one."""
        if op.place is None:
            op.place = self.place
        op.cta = int(self.machine.row_cta[op.row])
        op.issued = self.machine.instructions_run
        op.batch = (self.machine.execution, self.op, op.kind)
        self.machine.asynchronous.issue(op)
