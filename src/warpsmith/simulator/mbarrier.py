"""mbarrier objects: what a barrier in shared memory counts (PTX ISA 9.7.15.16).

A barrier counts phases from 0. A phase completes when its pending arrivals and its transaction count are both zero; the
next one then starts with the expected count. The 64-bit object in memory is opaque to programs: the state lives here, and
the bytes are a stamp by which an overwritten barrier is recognised.

A barrier of layout v1 also keeps a report, which operations that inspect what they copy may set: none of those is modelled, so
that every report is zero and its conditional phase completes with its primary one, as in layout v0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.base.source import Place
    from warpsmith.simulator.asynchronous import AsyncOperation
    from warpsmith.simulator.check.clocks import Message
    from warpsmith.simulator.memory import Space

__all__ = ["MAX_COUNT", "MAX_TX", "Arrival", "MBarrier", "MBarriers"]

MAX_COUNT = ((1 << 20) - 1, (1 << 9) - 1)
"""Largest arrival count of layout v0 and of v1 (table 43)."""
MAX_TX = (1 << 20) - 1
"""Largest magnitude of the transaction count."""
_STAMP = 0x5EED_0000_0000_0000


@final
@dataclass(frozen=True, slots=True)
class Arrival:
    """Who counted down or changed the transaction count, and by how much."""

    what: str
    amount: int
    place: Place | None
    threads: str


@final
@dataclass(slots=True, eq=False)
class MBarrier:
    """One barrier object."""

    index: int
    """Flat byte index in shared memory; `address` within its CTA."""
    address: int
    row: int
    cta: int
    """The CTA (linear in the grid) that the row held then."""
    expected: int
    """Arrivals that each phase from the next one on expects."""
    pending: int
    place: Place | None
    """Where it was initialised."""
    layout: int = 0
    """0: `.layout::v0`, 1: `.layout::v1`."""
    fenced: bool = False
    """A fence has ordered its initialisation before asynchronous uses."""
    tx: int = 0
    phase: int = 0
    """Number of the phase in progress."""
    events: list[Arrival] = field(default_factory=list)
    """What happened in the phase in progress."""
    previous: list[Arrival] = field(default_factory=list)
    """What happened in the phase before."""
    observed: dict[tuple[int, int], int] = field(default_factory=dict)
    """(row, warp) -> latest phase it has waited for successfully."""
    refused: dict[tuple[int, int], int] = field(default_factory=dict)
    """(row, warp) -> phase for which a try_wait has already come back without success."""
    signals: list[tuple[AsyncOperation, int]] = field(default_factory=list)
    """Operations in flight that will complete transactions here, with the phase in which they were issued."""
    told: NDArray[np.int64] | None = None
    """What the CTAs of a cluster have told each other through this barrier (`check.peers`)."""
    arrivers: dict[tuple[str, Place | None], set[tuple[int, int]]] = field(default_factory=dict)
    """(instruction, its line) -> the (row, warp) that have ever arrived by it or issued copies that signal this barrier."""
    maker: tuple[int, int, int] | None = None
    """Row and thread that initialised it, and when (`check.clocks`)."""
    published: int = 0
    """When that thread executed `fence.mbarrier_init` behind it; 0: not yet."""
    known_to: set[tuple[int, int]] = field(default_factory=set)
    """(row, warp) whose threads are known to come after its initialisation."""
    known_by: set[tuple[tuple[int, int, int, int], bytes]] = field(default_factory=set)
    """(rectangle, lanes) that have been looked at for that."""
    column: int = 0
    """Its column in the vector clocks (`check.columns`)."""
    telling: Message | None = None
    """What arrivals have released in the phase in progress (`check.order`)."""
    telling_far: Message | None = None
    """What arrivals of other CTAs have released in it besides, to waits at the scope of the cluster."""
    tells: Message | None = None
    """What the completed phases tell whoever has waited for one."""
    tells_far: Message | None = None
    """What they tell besides those who have waited at the scope of the cluster."""
    born: int = 0
    """Epoch of its CTA (`check.peers`) in which it was initialised."""

    def settle(self) -> bool:
        """Complete the phase if nothing is outstanding; say whether it did."""
        if self.pending or self.tx:
            return False
        self.phase += 1
        self.pending = self.expected
        self.previous, self.events = self.events, []
        return True

    def passed(self, parity: int) -> bool:
        """Say whether the phase of this parity that ended last counts as complete (a fresh barrier: phase -1, parity 1)."""
        return self.phase & 1 != parity & 1

    def meant(self, waiter: tuple[int, int], parity: int) -> int:
        """Return the phase a waiter means: the smallest with this parity that it has not observed."""
        last = self.observed.get(waiter, -2)
        return last + 1 if (last + 1) & 1 == parity & 1 else last + 2

    def awaited(self) -> list[Arrival]:
        """Return last phase's completions by those that have not acted in this one, if they make up what lacks.

        Whoever brought those bytes then is the one who has yet to bring them now.
        """
        here = {e.threads for e in self.events}
        absent = [e for e in self.previous if " bytes completed by " in e.what and e.threads not in here]
        return absent if self.tx > 0 and sum(e.amount for e in absent) == self.tx else []

    def may_lack(self, what: str) -> bool:
        """Say whether an instruction that has signalled the barrier could bring what the phase in progress lacks.

        Where a phase has begun and lacks arrivals alone, completed bytes are no help; where it lacks bytes alone, arrivals are
        none; a phase that got bytes which nobody expected is not helped by more of them.
        """
        if not self.events or (self.pending and self.tx > 0):
            return True
        return ("complete_tx" in what) == (self.tx > 0)

    @property
    def stamp(self) -> int:
        """The 64 bits in memory."""
        return _STAMP | (self.phase & 0xFFFF) << 32 | (self.pending & 0xFFFF) << 16 | self.tx & 0xFFFF

    def describe(self) -> str:
        """Say what the phase in progress lacks."""
        lacks = [f"{self.pending} of {self.expected} arrivals"] if self.pending else []
        if self.tx > 0:
            lacks.append(f"{self.tx} bytes")
        last = f"; last: {self.events[-1].what} by {self.events[-1].threads}" if self.events else "; nobody arrived in it"
        if self.events and self.events[-1].place:
            last += f" at {self.events[-1].place}"
        for e in self.awaited()[:1]:
            last += f"; {e.amount} of them came in the phase before from {e.threads}"
        wrong = [f"lacks {' and '.join(lacks)}"] if lacks else []
        if self.tx < 0:
            wrong.append(f"{'' if lacks else 'has got '}{-self.tx} bytes that nobody expected{' have come' if lacks else ''}")
        return f"mbarrier [{self.address:#x}] phase {self.phase} {', and '.join(wrong) or 'lacks nothing'}{last}"


@final
class MBarriers:
    """The barriers of all resident CTAs, by flat index in shared memory."""

    def __init__(self, shared: Space) -> None:
        self.shared = shared
        self.by_index: dict[int, MBarrier] = {}

    def get(self, index: int, cta: int) -> MBarrier | None:
        """Return the barrier at a flat index, unless it belonged to an earlier CTA of the row."""
        found = self.by_index.get(index)
        return found if found is not None and found.cta == cta else None

    def init(self, index: int, cta: int, count: int, place: Place | None, layout: int = 0) -> MBarrier:
        """Make a barrier; its bytes are defined from now on."""
        row, address = divmod(index, self.shared.row)
        barrier = MBarrier(index, address, row, cta, count, count, place, layout)
        self.by_index[index] = barrier
        self.shared.unmark_pending(index, index + 8, write=True)
        self.store(barrier)
        return barrier

    def inval(self, index: int) -> None:
        """Forget a barrier: its bytes may be used for other things."""
        self.by_index.pop(index, None)
        self.shared.views[8][index >> 3] = 0

    def store(self, barrier: MBarrier) -> None:
        """Write the stamp of a barrier that changed."""
        self.shared.views[8][barrier.index >> 3] = np.uint64(barrier.stamp)

    def intact(self, barrier: MBarrier) -> bool:
        """Say whether nothing else has written the barrier's bytes."""
        return int(self.shared.views[8][barrier.index >> 3]) == barrier.stamp
