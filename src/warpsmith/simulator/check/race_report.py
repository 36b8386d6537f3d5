"""How a race is told: both parties, where, and what would order them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from warpsmith.base.findings import Related
from warpsmith.simulator.check.clocks import KNOWN
from warpsmith.simulator.check.entries import AGENT, AGENTS, agents_of, times_of
from warpsmith.simulator.memory import GLOBAL_BASE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.base.findings import Severity
    from warpsmith.simulator.check.entries import Entries
    from warpsmith.simulator.check.races import RaceWatch
    from warpsmith.simulator.check.shadow import Shadow
    from warpsmith.simulator.check.sites import Site
    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.program import Operation

    Mask = NDArray[np.bool_]

__all__ = [
    "APART",
    "KINDS",
    "REPAIR",
    "TOGETHER",
    "WIDEN",
    "Accesses",
    "Pairs",
    "equal_bytes",
    "lanes_of",
    "report",
    "report_together",
    "severity_of",
]

KINDS = {"shared": "shared-race", "global": "global-race"}
REPAIR = {
    "shared": "Put a barrier that both threads pass (bar.sync, bar.warp.sync within a warp, an mbarrier) between the accesses.",
    "global": "Order the two accesses (a release and an acquire, a barrier of the grid or of the CTA), or make both atomic.",
}

_WORDS: dict[int, Any] = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64, 16: np.complex128}


class Accesses(NamedTuple):
    """What lanes do: an instruction's accesses `at` flat indices `[…, C, T]`, to cells of the same shape or `[…, C, T, k]`."""

    shadow: Shadow
    site: Site
    at: NDArray[np.int64]
    cells: NDArray[np.int64]
    verb: Literal["reads", "writes", "overwrites"]
    """`writes`: bytes that others have written; `overwrites`: that others have read."""


class Pairs(NamedTuple):
    """Accesses that may race, one a row: who (row, thread) meets which entry, and where in the array of accesses."""

    where: tuple[NDArray[np.intp], ...]
    rows: NDArray[np.int64]
    threads: NDArray[np.int64]
    entries: Entries


APART = "; it runs later, but nothing orders their memory: a side of what is between is .relaxed, or its scope too narrow"
"""What is said of accesses that are ordered in execution only (`clocks.EXECUTED`)."""
TOGETHER = "; nothing but that their warpgroup issues the product together orders the two"
"""What is said of bytes that one warp of a warpgroup has written and fenced, and all four multiply."""
WIDEN = "Arrive with .release and wait with .acquire, at scope .cluster between CTAs (the default is .cta)."


def severity_of(space: str, *, overwrites: bool, apart: bool, fenced: bool = False) -> Severity:
    """Return how severe a race is. Kernels that ship rely on two of shared memory that are ordered in execution.

    Reads are over when their threads arrive, and asynchronous writes when their completion has been seen; writes are done that
    are `fenced` towards the asynchronous proxy, their reader.
    """
    return "portability" if apart and (overwrites or fenced) and space == "shared" else "error"


def report(races: RaceWatch, x: Lanes, accesses: Accesses, pairs: Pairs, bad: Mask, operations: list[Operation] | None) -> None:
    """Report the first of the `bad` pairs; `operations` are those of the first axis, where the accesses have one."""
    shadow, site, verb = accesses.shadow, accesses.site, accesses.verb
    apart = races.executed(pairs.rows, pairs.threads, pairs.entries)
    own = _own_part_waited(races, pairs) if verb == "overwrites" else np.zeros_like(apart)
    bad = bad & ~apart & ~own if (bad & ~apart & ~own).any() else bad
    i = int(np.flatnonzero(bad)[0])
    place = tuple(int(w[i]) for w in pairs.where)
    if operations is not None:
        x.op = operations[place[0]]
        site = races.sites.of(x.op)
        bad = bad & (pairs.where[0] == place[0])
    item, columns = int(pairs.entries[i]), races.columns
    asynchronous = (item >> AGENT & (AGENTS - 1)) % columns.count >= columns.threads
    kind = KINDS[shadow.space.name]
    if asynchronous:
        kind = "async-read-before-complete" if verb == "reads" else "async-overwrite"
    behind = bool(apart[i])
    over = verb == "overwrites" or (verb == "writes" and asynchronous)
    severity = severity_of(shadow.space.name, overwrites=over, apart=behind or bool(own[i]))
    if races.machine.findings.known(kind, x.place, severity):
        return
    other, who = races.party(item)
    text = f"{site.text} {'reads' if verb == 'reads' else 'writes'} "
    text += _address_in(shadow, int(accesses.at[place[: accesses.at.ndim]]))
    did = "read" if verb == "overwrites" else "written"
    repair = REPAIR[shadow.space.name]
    if asynchronous:
        by = other.short if other is not None else who
        text += f" before its thread can know that {by} has {did} it"
        text += ": it has waited for the part of its own warp" if own[i] else ""
        repair = columns.mend((item >> AGENT & (AGENTS - 1)) % columns.count)
    else:
        text += f", which {who} has {did}{'' if behind else '; nothing orders the two'}"
    if behind:
        text, repair = text + APART, WIDEN
    related: list[Related] = []
    if other is not None:
        related.append(Related(f"{other.short if asynchronous else other.text} by {who}", other.operation.place))
    lanes = lanes_of(x, pairs.where, accesses.at.ndim - 2, bad)
    x.finding(kind, text, lanes=lanes, severity=severity, related=related, repair=repair)


def _own_part_waited(races: RaceWatch, pairs: Pairs) -> Mask:
    """Say which entries are reads by products of the same warpgroup's other warps, of which a thread has waited for its part.

    The parts of the four warps are one product to the hardware. The manual has each warp wait for its own part only.
    """
    columns = races.columns
    out = np.zeros(pairs.rows.shape, np.bool_)
    if not columns.groups:
        return out
    other_rows, other = np.divmod(agents_of(pairs.entries), columns.count)
    warps, mine = other - columns.group("wgmma", 0), pairs.threads // 32
    mates = (other_rows == pairs.rows) & (warps >= 0) & (warps < columns.warps) & (warps // 4 == mine // 4)
    if mates.any():
        part = columns.group("wgmma", 0) + mine
        waited = races.clocks.ordered(pairs.rows, pairs.threads, other_rows, part, times_of(pairs.entries), KNOWN)
        out = mates & waited
    return out


def _address_in(shadow: Shadow, index: int) -> str:
    """Name the address of a flat index."""
    space = shadow.space
    return f"{space.name} address {index + GLOBAL_BASE if space.name == 'global' else index % space.row:#x}"


def lanes_of(x: Lanes, where: tuple[NDArray[Any], ...], axis: int, chosen: Mask) -> Mask:
    """Return the lanes `[C, T]` of some accesses; `axis` is that of C in `where`."""
    out = np.zeros(x.shape, np.bool_)
    out[where[axis][chosen], where[axis + 1][chosen]] = True
    return out


def report_together(x: Lanes, accesses: Accesses, lanes: Mask, values: NDArray[Any]) -> None:
    """Report lanes `[C, T]` that store unlike values `[C, T]` to the same bytes with one instruction."""
    flat, stored = accesses.at[lanes], np.broadcast_to(values, x.shape)[lanes]
    _, first, group = np.unique(flat, return_index=True, return_inverse=True)
    words = stored.view(_WORDS[stored.itemsize])
    unlike = words != words[first[group]]
    if stored.itemsize == 16:
        pairs = stored.view(np.uint64).reshape(-1, 2)
        unlike = (pairs != pairs[first[group]]).any(axis=1)
    if not unlike.any():
        return
    bad = np.zeros(x.shape, np.bool_)
    bad[lanes] = unlike
    c, t = np.argwhere(bad)[0].tolist()
    shadow = accesses.shadow
    text = (
        f"{accesses.site.text}: several threads store different values to {_address_in(shadow, int(accesses.at[c, t]))} "
        "at once, and nothing orders them"
    )
    x.finding(KINDS[shadow.space.name], text, lanes=bad, repair=REPAIR[shadow.space.name])


def equal_bytes(a: NDArray[Any], b: NDArray[Any]) -> Mask:
    """Say which items have the same bytes."""
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    return (a[..., None].view(np.uint8) == b[..., None].view(np.uint8)).all(axis=-1)
