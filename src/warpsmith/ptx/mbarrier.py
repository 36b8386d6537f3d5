"""mbarriers in shared memory (PTX ISA 9.7.13.15).

A barrier is given as `smem.mbarrier(n)[i]`, a u32 register, or `ptx.addr(…)`.
"""

from __future__ import annotations

from typing import final

from warpsmith.base.place import error
from warpsmith.base.ptx_types import TYPES
from warpsmith.dsl.address import Address, TensorAddress, address, in_register
from warpsmith.dsl.registers import NegPred, Reg
from warpsmith.dsl.shared import scaled_offset
from warpsmith.dsl.trace import Trace, current

__all__ = [
    "BarrierArray",
    "array",
    "arrive",
    "arrive_expect_tx",
    "expect_tx",
    "init",
    "inval",
    "try_wait",
    "wait",
]  # fmt: skip

Pred = Reg | NegPred | None


def _space(trace: Trace) -> str:
    """Spelling of the CTA's shared memory; `.shared::cta` is newer than sm_80's mbarriers."""
    return "shared::cta" if trace.arch.number >= 90 else "shared"


def _barrier(mbar: object) -> Address | TensorAddress:
    if isinstance(mbar, Reg) and mbar.type not in ("u32", "b32", "s32"):
        raise error(
            f"wrong barrier argument: {mbar.name} is {mbar.dtype}, and a barrier's address is a 32-bit shared address",
            "give smem.mbarrier(n)[i], or smem.base() plus an offset",
        )
    return address(mbar)


def init(mbar: object, count: int | Reg, *, pred: Pred = None) -> None:
    """Initialise a barrier that completes a phase after `count` arrivals (1 to 2^20 - 1)."""
    if isinstance(count, int) and not 1 <= count < 1 << 20:
        raise error(f"wrong barrier argument: an mbarrier counts 1 to {(1 << 20) - 1} arrivals, not {count}")
    trace = current()
    trace.emit(f"mbarrier.init.{_space(trace)}.b64", (_barrier(mbar), count), pred)


def inval(mbar: object, *, pred: Pred = None) -> None:
    """Invalidate a barrier, so that its memory may be used otherwise."""
    trace = current()
    trace.emit(f"mbarrier.inval.{_space(trace)}.b64", (_barrier(mbar),), pred)


def _scoped(trace: Trace, order: str, scope: str | None) -> str:
    """Return the qualifiers of an order of memory (PTX ISA 8.0, sm_90); without a scope none, which means that of the CTA."""
    if scope is None:
        return ""
    if scope not in ("cta", "cluster"):
        raise error(f"the scope of an mbarrier is 'cta' or 'cluster', not {scope!r}")
    if trace.arch.number < 90:
        raise error(f"scopes of mbarriers are there from sm_90 on, and this kernel is for {trace.arch}", "leave scope= away")
    return f".{order}.{scope}"


def arrive(mbar: object, count: int | Reg | None = None, *, scope: str | None = None, pred: Pred = None) -> Reg:
    """Arrive once per executing thread (`count` times if given), as a release at `scope`; return the state register."""
    trace = current()
    state = trace.new(TYPES["b64"])
    where = _barrier(mbar)
    mnemonic = f"mbarrier.arrive{_scoped(trace, 'release', scope)}.{_space(trace)}.b64"
    trace.emit(mnemonic, (state, where) if count is None else (state, where, count), pred)
    return state


def _check_bytes(tx: int | Reg) -> None:
    if isinstance(tx, int) and not 0 <= tx < 1 << 20:
        raise error(f"wrong barrier argument: an mbarrier counts up to {(1 << 20) - 1} pending bytes, not {tx}")


def arrive_expect_tx(mbar: object, tx_count: int | Reg, *, pred: Pred = None) -> Reg:
    """Add `tx_count` pending bytes and arrive once; return the state register."""
    _check_bytes(tx_count)
    trace = current()
    state = trace.new(TYPES["b64"])
    trace.emit("mbarrier.arrive.expect_tx.shared::cta.b64", (state, _barrier(mbar), tx_count), pred)
    return state


def expect_tx(mbar: object, tx_count: int | Reg, *, pred: Pred = None) -> None:
    """Add `tx_count` pending bytes without arriving."""
    _check_bytes(tx_count)
    current().emit("mbarrier.expect_tx.relaxed.cta.shared::cta.b64", (_barrier(mbar), tx_count), pred)


def _check_phase(phase: object) -> None:
    if isinstance(phase, Reg):
        if phase.dtype.bits != 32 or phase.dtype.kind in ("float", "packed"):
            raise error(f"a phase parity is a 32-bit register or 0 or 1, and {phase.name} is {phase.dtype}")
    elif not isinstance(phase, int) or phase not in (0, 1):
        raise error(f"a phase parity is 0, 1 or a register, not {phase!r}", "the parity is the number of the phase modulo 2")


def _test(
    trace: Trace, into: Reg, mbar: Address | TensorAddress, phase: object, parity: bool, scope: str | None, pred: Pred
) -> None:
    op = f"{'try_wait' if trace.arch.number >= 90 else 'test_wait'}{'.parity' if parity else ''}"
    trace.emit(f"mbarrier.{op}{_scoped(trace, 'acquire', scope)}.{_space(trace)}.b64", (into, mbar, phase), pred)


def try_wait(mbar: object, phase: int | Reg, *, parity: bool = True, scope: str | None = None, pred: Pred = None) -> Reg:
    """Test whether the phase of that parity (or of that state, `parity=False`) has completed; return the predicate.

    It acquires at `scope`: "cluster" where other CTAs arrive, to see what they have written; by default "cta". May suspend the
    thread for a while first (on sm_80 to sm_89, `test_wait`, it does not).
    """
    if parity:
        _check_phase(phase)
    trace = current()
    done = trace.new(TYPES["pred"])
    _test(trace, done, _barrier(mbar), phase, parity, scope, pred)
    return done


def wait(mbar: object, phase: int | Reg, *, scope: str | None = None, pred: Pred = None) -> None:
    """Wait until the phase of parity `phase` has completed: a loop around try_wait. Threads without `pred` go on at once.

    It acquires at `scope`: "cluster" where other CTAs arrive, to see what they have written; by default "cta".
    """
    _check_phase(phase)
    trace = current()
    where = _barrier(mbar)
    if trace.wait_map is not None:
        trace.wait_map.before_wait()
    again = trace.unique_label("wait")
    if pred is not None:
        trace.emit("bra", (f"{again}_done",), ~pred)
    done = trace.new(TYPES["pred"])
    trace.label(again)
    _test(trace, done, where, phase, True, scope, None)
    trace.emit("bra", (again,), ~done)
    if pred is not None:
        trace.label(f"{again}_done")
    if trace.wait_map is not None:
        trace.wait_map.after_wait()


@final
class Barrier:
    """One barrier of an array, with the operations as methods."""

    __slots__ = ("_base", "_offset")

    def __init__(self, base: Reg | str, offset: int) -> None:
        self._base = base
        self._offset = offset

    def location(self) -> tuple[Reg | str, int]:
        """Return (base, byte offset)."""
        return self._base, self._offset

    def init(self, count: int | Reg, *, pred: Pred = None) -> None:
        """Initialise it for `count` arrivals."""
        init(self, count, pred=pred)

    def wait(self, phase: int | Reg, *, scope: str | None = None, pred: Pred = None) -> None:
        """Wait for the phase of that parity."""
        wait(self, phase, scope=scope, pred=pred)

    def arrive(self, *, scope: str | None = None, pred: Pred = None) -> Reg:
        """Arrive once per executing thread."""
        return arrive(self, scope=scope, pred=pred)

    def arrive_expect_tx(self, tx_count: int | Reg, *, pred: Pred = None) -> Reg:
        """Add pending bytes and arrive once."""
        return arrive_expect_tx(self, tx_count, pred=pred)

    def arrive_remote(self, cta_id: int | Reg, count: int | Reg = 1, *, pred: Pred = None) -> None:
        """Arrive on the same barrier of another CTA of the cluster."""
        arrive_remote(in_register(current(), self), cta_id, count, pred=pred)


@final
class BarrierArray:
    """`count` barriers of 8 bytes from `base + byte_offset` on: `[i]` or `.at(stage)` is one."""

    __slots__ = ("_base", "_offset", "count")

    def __init__(self, base: object, byte_offset: int, count: int) -> None:
        where = address(base, byte_offset)
        self._base, self._offset = where.base, where.offset
        self.count = count

    def __len__(self) -> int:
        return self.count

    def at(self, index: int | Reg) -> Barrier:
        """Return the barrier at `index`."""
        if isinstance(index, int):
            if not -self.count <= index < self.count:
                raise error(f"barrier {index} is outside an array of {self.count}")
            index %= self.count
        return Barrier(*scaled_offset(self._base, self._offset, index, 8))

    __getitem__ = at

    def init_all(self, count: int | Reg, *, pred: Pred = None) -> None:
        """Initialise every barrier for `count` arrivals."""
        for i in range(self.count):
            self.at(i).init(count, pred=pred)

    def arrive_remote_all(self, cta_id: int | Reg, count: int | Reg = 1, *, pred: Pred = None) -> None:
        """Arrive on every barrier of another CTA of the cluster."""
        for i in range(self.count):
            self.at(i).arrive_remote(cta_id, count, pred=pred)


def array(base: object, byte_offset: int, count: int) -> BarrierArray:
    """Return the barriers that lie from `base + byte_offset` on."""
    if not isinstance(count, int) or count < 1:
        raise error(f"an array of barriers has at least 1, not {count!r}")
    return BarrierArray(base, byte_offset, count)


def arrive_remote(bar_addr: object, cta_id: int | Reg, count: int | Reg = 1, *, pred: Pred = None) -> None:
    """Arrive `count` times per executing thread on the barrier at the same offset in CTA `cta_id` (release, cluster)."""
    trace = current()
    remote = trace.new(TYPES["u32"])
    trace.emit("mapa.shared::cluster.u32", (remote, in_register(trace, bar_addr), cta_id), pred)
    trace.emit("mbarrier.arrive.release.cluster.shared::cluster.b64", ("_", Address(remote), count), pred)
