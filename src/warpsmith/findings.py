"""Findings, and every kind of them: what is wrong, and how to mend it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from warpsmith.base.errors import InputError
from warpsmith.base.findings import Finding, Related, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["KINDS", "Finding", "Kind", "Related", "Severity", "Suppressions"]


@final
@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of finding."""

    name: str
    severity: Severity
    """What findings of this kind usually are."""
    wrong: str
    """What is wrong, in a sentence."""
    repair: str
    """How to mend it, in a sentence."""

    def __str__(self) -> str:
        return f"{self.name}: {self.wrong} {self.repair}"


_SIMULATOR = (
    Kind(
        "deadlock",
        "error",
        "Every warp waits, and no asynchronous work is left that could release one.",
        "Give the barrier the arrivals or bytes it still expects, or wait for the phase that completes.",
    ),
    Kind(
        "phase-alias",
        "error",
        "A wait blocks although the phase it means has already completed: its parity is that of a later phase.",
        "Let each waiter keep its own phase bit and flip it after every wait it passes.",
    ),
    Kind(
        "over-arrival",
        "error",
        "More arrivals came in one phase of a barrier than its count.",
        "Make the count given to mbarrier.init the number of arrivals of a phase.",
    ),
    Kind(
        "tx-mismatch",
        "error",
        "The bytes a barrier was told to expect are not the bytes that complete on it.",
        "Pass expect_tx the bytes of every copy that signals this barrier in this phase.",
    ),
    Kind(
        "uninitialised-barrier",
        "error",
        "A barrier is used before it is initialised, without a fence after its initialisation, or initialised anew in use.",
        "Initialise it in one thread, fence (fence.mbarrier_init or fence.proxy.async), and synchronise before its first use.",
    ),
    Kind(
        "async-read-before-complete",
        "error",
        "Bytes are read that an unfinished copy or matrix operation still writes.",
        "Wait on the barrier or group of that operation before the read.",
    ),
    Kind(
        "register-before-wait",
        "error",
        "Registers of a wgmma in flight are touched before wgmma.wait_group.",
        "Put wgmma.fence before the first wgmma and wait_group before the registers are used.",
    ),
    Kind(
        "named-barrier",
        "error",
        "A named barrier has an id over 15, a count that is no multiple of 32, or counts that differ between participants.",
        "Give each group of warps an id of its own and one thread count, a multiple of the warp size.",
    ),
    Kind(
        "out-of-bounds",
        "error",
        "An access leaves its allocation, is misaligned, or a tensor copy does not fit its map.",
        "Check the offset against the size of the array, and guard the tail.",
    ),
    Kind(
        "uninitialised-read",
        "error",
        "A value nobody wrote reaches an address, a predicate or a store.",
        "Write the bytes or register before it is used, on every path.",
    ),
    Kind(
        "divergent-collective",
        "error",
        "An instruction that a whole warp or warpgroup must execute together is executed by a part of it.",
        "Move it out of the branch, or make the branch uniform.",
    ),
    Kind(
        "leftover",
        "error",
        "The kernel ends while transactions are pending or asynchronous work still touches its memory.",
        "Wait for every copy and group before the kernel ends.",
    ),
    Kind(
        "peer-lifetime",
        "error",
        "Shared memory of another CTA of the cluster is touched, and nothing says that this CTA has started.",
        "Put barrier.cluster.arrive and barrier.cluster.wait before the first access.",
    ),
    Kind(
        "cluster-exit",
        "error",
        "A CTA may end while another CTA of its cluster still touches its shared memory or signals its barriers.",
        "Put barrier.cluster.arrive and barrier.cluster.wait behind the last access.",
    ),
    Kind(
        "empty-commit",
        "error",
        "A wait covers no group, because the operations it means have not been committed by the thread that issued them.",
        "Commit the group in the thread that issued the operations, before the wait.",
    ),
    Kind(
        "setmaxnreg-budget",
        "error",
        "The register counts of setmaxnreg cannot be had, go the wrong way, or differ within a warpgroup.",
        "Let all warps of a warpgroup agree, lower the producers first, and keep the sum within what the launch allots.",
    ),
    Kind(
        "descriptor-mismatch",
        "error",
        "A matrix descriptor names another swizzle than the one the tile was stored with.",
        "Give the descriptor and the tensor map of the tile the same swizzle mode.",
    ),
    Kind(
        "async-overwrite",
        "error",
        "Bytes are written that an unfinished asynchronous operation still reads or writes.",
        "Wait until the operation has finished with the bytes before they are written again.",
    ),
    Kind(
        "shared-race",
        "error",
        "Two threads touch a byte of shared memory, one of them writes it, and nothing orders the two accesses.",
        "Put a barrier that both threads pass between the accesses: bar.sync, bar.warp.sync within a warp, or an mbarrier.",
    ),
    Kind(
        "global-race",
        "error",
        "Two threads touch a byte of global memory, one of them writes it, and nothing orders the two accesses.",
        "Order the accesses by a release and an acquire or a barrier that both threads pass, or make both atomic.",
    ),
    Kind(
        "missing-proxy-fence",
        "error",
        "An asynchronous operation touches bytes that threads have written, with no fence.proxy.async in between.",
        "Put fence.proxy.async behind the stores, before the barrier that lets the asynchronous operation begin.",
    ),
    Kind(
        "tmem-lifetime",
        "error",
        "Tensor memory is used outside the columns that are allocated then, or is allocated and freed wrongly.",
        "Let one warp allocate, use the columns it was given, and let the same warp free them when nobody uses them any more.",
    ),
    Kind(
        "tmem-alias",
        "error",
        "Columns of tensor memory are read or written while an operation in flight writes or reads them.",
        "Wait for the barrier of a tcgen05.commit behind the operation, or keep the columns of the two apart.",
    ),
    Kind(
        "missing-tcgen05-wait",
        "error",
        "Columns are used that a warp has loaded or stored without waiting for it.",
        "Put tcgen05.wait::ld (wait::st) behind the loads (stores), before others are told that the columns are free (full).",
    ),
    Kind(
        "missing-tcgen05-fence",
        "portability",
        "Accesses to tensor memory by different threads are ordered without the fences that tcgen05 asks for around a barrier.",
        "Put tcgen05.fence::before_thread_sync before the arrival and tcgen05.fence::after_thread_sync behind the wait.",
    ),
    Kind(
        "trap",
        "error",
        "The kernel executed trap, or an assertion of its own failed.",
        "Look at the condition that led there: the kernel asked to abort.",
    ),
    Kind(
        "livelock",
        "error",
        "The launch took more steps than max_steps allows, or was interrupted before it ended.",
        "Look at the loop that is named; raise max_steps if it is only long.",
    ),
)

_TOOLCHAIN = (
    Kind("ptxas-error", "error", "ptxas rejects the program.", "Do what its message says."),
    Kind("ptxas-note", "note", "ptxas has something to say.", "Do what its message says, or leave it."),
    Kind(
        "ptxas-miscompiles",
        "error",
        "ptxas takes the instruction and makes other code of it than the PTX asks for.",
        "Write what the finding names instead; its page shows each pattern and a repaired program.",
    ),
    Kind(
        "register-spill",
        "note",
        "Registers are kept in local memory, because there are too few.",
        "Keep fewer values alive at once, or allow more registers.",
    ),
    Kind(
        "setmaxnreg-ignored",
        "note",
        "ptxas drops setmaxnreg.",
        "Let it know the register count at entry: .maxnreg, or .minnctapersm beside .maxntid or .reqntid.",
    ),
    Kind(
        "wgmma-serialised",
        "note",
        "ptxas makes every wgmma wait for the one before it.",
        "Touch no register of a wgmma between wgmma.fence and wgmma.wait_group, and take one path through them.",
    ),
    Kind(
        "wgmma-wait-injected",
        "note",
        "ptxas had to put in a wgmma.wait_group.",
        "Put one before the first use of the accumulators.",
    ),
    Kind(
        "cache",
        "note",
        "A compiled kernel could not be kept on disk.",
        "Set WARPSMITH_CACHE_DIR to a folder that can be written.",
    ),
)

KINDS: dict[str, Kind] = {kind.name: kind for kind in (*_SIMULATOR, *_TOOLCHAIN)}
"""Every kind that is implemented, by name."""


@final
class Suppressions:
    """Findings to be passed over: `kind`, or `kind@file.py:12`, and the reason why."""

    def __init__(self, reasons: Mapping[str, str]) -> None:
        self.reasons = dict(reasons)
        for key, reason in self.reasons.items():
            kind, at, place = key.partition("@")
            if kind not in KINDS:
                raise InputError(f"suppress: no kind of finding is called {kind!r}; known: {', '.join(KINDS)}")
            if at and not place.rpartition(":")[2].isdecimal():
                raise InputError(f"suppress: {key!r}: write a place as FILE:LINE, e.g. {kind}@kernel.py:12")
            if not reason.strip():
                raise InputError(f"suppress: say why {key!r} is passed over")

    def reason(self, finding: Finding) -> str | None:
        """Return why a finding is passed over; None: it is not."""
        for key, reason in self.reasons.items():
            kind, at, place = key.partition("@")
            if kind != finding.kind:
                continue
            if not at:
                return reason
            file, _, line = place.rpartition(":")
            where = finding.where
            if where is not None and where.line == int(line) and (where.file == file or where.file.endswith("/" + file)):
                return reason
        return None

    def sort(self, findings: Iterable[Finding]) -> tuple[list[Finding], list[tuple[Finding, str]]]:
        """Return the findings that stay, and those that are passed over with the reasons."""
        kept: list[Finding] = []
        passed: list[tuple[Finding, str]] = []
        for f in findings:
            if (reason := self.reason(f)) is None:
                kept.append(f)
            else:
                passed.append((f, reason))
        return kept, passed
