"""Which fences of the asynchronous proxy cover which memory (PTX ISA 9.7.15.4).

A fence with a state space orders "only operations performed on objects in the state space specified", one without orders
all. A program whose fences all cover the same needs one plane of the clocks, others one for each kind of memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from warpsmith.simulator.check.clocks import EXECUTED
from warpsmith.simulator.check.sites import executes_apart, operations_of

if TYPE_CHECKING:
    from warpsmith.simulator.program import Program

__all__ = ["ProxyPlanes"]

_BOTH = frozenset(("shared", "global"))


@final
class ProxyPlanes:
    """The planes of the clocks that hold what the asynchronous proxy may rely on, by kind of memory."""

    def __init__(self, program: Program, *, clusters: bool) -> None:
        kinds = {c for op in operations_of(program) if (c := _covered(op.text))}
        apart = executes_apart(program, clusters=clusters)
        self.first = first = EXECUTED + apart
        """The first of them: behind that of what is executed, if the program has one."""
        proxied = len(kinds if len(kinds) < 2 else _BOTH)
        self.count = first + proxied if proxied or apart else 0
        """Planes of the clocks in all; 0: nothing here asks for any."""
        self.behind: int | None = None
        """The last plane, of shared memory that was fenced before something in the order of execution alone."""
        if apart and any("shared" in c for c in kinds):
            self.behind, self.count = self.count, self.count + 1
        planes: dict[str, int | None] = {"shared": None, "global": None}
        for name in planes:
            if any(name in c for c in kinds):
                planes[name] = first + (len(kinds) > 1 and name == "global")
        self.of = planes
        """By name of the space: its plane, None where no fence covers it."""

    def planes(self, mnemonic: str) -> tuple[int, ...]:
        """Return the planes that a fence raises; none where it is no fence of the asynchronous proxy."""
        names = sorted(_covered(mnemonic))
        planes = [self.of[name] for name in names] + ([self.behind] if "shared" in names else [])
        return tuple({plane for plane in planes if plane is not None})


def _covered(mnemonic: str) -> frozenset[str]:
    """Return the kinds of memory that an instruction fences towards the asynchronous proxy."""
    words = mnemonic.split(".")
    if words[0] not in ("fence", "membar") or words[1:2] != ["proxy"] or not words[2].startswith("async"):
        return frozenset()
    if words[-2].endswith("::read"):  # orders reads alone, which no copy asks a fence for
        return frozenset()
    if "global" in words:
        return frozenset(("global",))
    return frozenset(("shared",)) if any("shared::" in w for w in words) else _BOTH
