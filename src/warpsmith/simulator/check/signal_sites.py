"""Which instructions of a program may signal an mbarrier, by their addresses: for barriers that nobody has arrived on yet.

An address is followed back through constants, `add`, `mad` and `mapa`: a number, or a number plus an index. Of those with an
index, the ones that begin nearest below the barrier may mean it, if all barriers from there on count as many arrivals as it
does: arrays of barriers lie one behind the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, final

import numpy as np

from warpsmith.simulator.program import Address, Const, Reg, Special
from warpsmith.simulator.shared_address import place_of
from warpsmith.simulator.special import SHARED_ADDRESS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warpsmith.simulator.engine import Engine
    from warpsmith.simulator.program import Lowered, Operation

__all__ = ["SignalSites", "signals"]

_DEPTH = 12
"""Instructions an address is followed back through."""
_SAME = ("mov", "cvta", "cvt", "mapa")


class _Value(NamedTuple):
    number: int
    indexed: bool


def signals(op: Operation) -> bool:
    """Say whether an instruction may bring a phase of an mbarrier to its end."""
    text = op.text
    return (
        (op.opcode == "mbarrier" and ("arrive" in text or "complete_tx" in text))
        or text.startswith(("tcgen05.commit", "clusterlaunchcontrol.try_cancel"))
        or (op.opcode in ("cp", "st", "red") and ("mbarrier" in text))
    )


@final
class SignalSites:
    """The signalling instructions of a program, with their blocks and addresses."""

    def __init__(self, engine: Engine) -> None:
        self._writers: dict[tuple[str, int], list[Operation]] = {}
        found: list[tuple[int, Operation]] = []
        for block in engine.blocks:
            for op in _operations(block):
                for cell in op.writes():
                    self._writers.setdefault(cell, []).append(op)
                if signals(op):
                    found.append((block.index, op))
        self.all = found
        self._at = {id(op): self._address(op) for _, op in found}

    def of(self, address: int, counts: dict[int, int]) -> list[tuple[int, Operation]]:
        """Return (block, instruction) of those whose address may be this one; empty if none is known to.

        `counts`: the arrivals of a phase of each barrier of the CTA, by address.
        """
        exact = [s for s in self.all if (v := self._at[id(s[1])]) is not None and not v.indexed and v.number == address]
        below = [v.number for v in self._at.values() if v is not None and v.indexed and v.number <= address]
        nearest = max(below, default=-1)
        if counts.get(nearest) is None or any(counts[a] != counts[address] for a in counts if nearest <= a <= address):
            return exact
        return exact + [s for s in self.all if self._at[id(s[1])] == _Value(nearest, indexed=True)]

    def _address(self, op: Operation) -> _Value | None:
        """Return the address of the barrier: of several the last, for destinations come first."""
        places = [o for o in op.operands if isinstance(o, Address) and not o.inner]
        if not places:
            return None
        place = places[-1]
        value = self._value(place.base, _DEPTH)
        return None if value is None else _Value(place_of(value.number + place.offset), value.indexed)

    def _value(self, operand: Lowered, depth: int) -> _Value | None:
        if isinstance(operand, Const):
            return _Value(int(np.asarray(operand.value).astype(np.int64)) & 0xFFFFFFFF, indexed=False)
        if isinstance(operand, Special) and operand.name.startswith(SHARED_ADDRESS):
            return _Value(int(operand.name.removeprefix(SHARED_ADDRESS)), indexed=False)
        if not isinstance(operand, Reg) or operand.negated or not depth:
            return None
        found = {self._result(op, depth - 1) for op in self._writers.get((operand.bank, operand.slot), ())}
        return found.pop() if len(found) == 1 else None

    def _result(self, op: Operation, depth: int) -> _Value | None:
        """Return what an instruction computes; products and unknown terms of a sum are indices."""
        sources = op.operands[1:]
        if op.opcode in _SAME:
            return self._value(sources[0], depth)
        if op.opcode == "and" and any(isinstance(o, Const) and place_of(int(o.value)) == place_of(-1) for o in sources):
            return self._value(sources[0], depth)  # the rank masked: the barrier of a pair's leader
        if op.opcode == "mad":
            base = self._value(sources[2], depth)
            return None if base is None else base._replace(indexed=True)
        if op.opcode != "add":
            return None
        a, b = self._value(sources[0], depth), self._value(sources[1], depth)
        if a is None or b is None:
            known = a or b
            return None if known is None else known._replace(indexed=True)
        return _Value(a.number + b.number & 0xFFFFFFFF, a.indexed or b.indexed)


def _operations(block: object) -> Iterator[Operation]:
    last = getattr(getattr(block, "ending", None), "operation", None)
    yield from getattr(block, "operations", ())
    if last is not None:
        yield last
