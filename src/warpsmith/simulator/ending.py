"""How blocks end: branches, calls, returns, exits, switch points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import numpy as np

from warpsmith.simulator.calls import carry_in, carry_out
from warpsmith.simulator.outcome import Wait
from warpsmith.simulator.program import Branch, Call, Indexed, Jump, Reg, Return, Sync
from warpsmith.simulator.recursion import Recursion
from warpsmith.simulator.schedule import QUANTUM

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.simulator.cohort import Cohort
    from warpsmith.simulator.engine import Engine
    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.program import Block
    from warpsmith.simulator.scope import Signature

__all__ = ["Endings"]


@final
class Endings:
    """Carries out the endings of blocks for an engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.machine = engine.machine
        self.recursion = Recursion(engine.machine)

    def follow(self, c: Cohort, x: Lanes, block: Block) -> None:
        """Move, split, park or end the cohort."""
        e = block.ending
        if isinstance(e, Jump):
            self._backward(c, e.target)
        elif isinstance(e, Branch):
            self._branch(c, x, e)
        elif isinstance(e, Sync):
            self._sync(c, x, e)
        elif isinstance(e, Indexed):
            self._indexed(c, x, e)
        elif isinstance(e, Call):
            self._call(c, x, e)
        elif isinstance(e, Return) and c.frames:
            self._return(c, x)
        else:
            self._exit(c, x)

    def _go(self, c: Cohort, target: int) -> None:
        self.engine.move(c, target)
        self.engine.ready.append(c)

    def _value(self, x: Lanes, reg: Reg) -> NDArray[Any]:
        return self.machine.registers.view(reg.bank, reg.slot, None, reg.dtype, x.rect)

    def _checked(self, x: Lanes, reg: Reg, operation: Any, what: str) -> None:
        m = self.machine
        if m.registers.undefined is not None:
            x.op = operation
            m.check.undefined_use(x, m.registers.undefined_view(reg.bank, reg.slot, None, x.rect), what)

    def _branch(self, c: Cohort, x: Lanes, e: Branch) -> None:
        self._checked(x, e.predicate, e.operation, "branch predicate")
        p = self._value(x, e.predicate)
        taken, other = (e.other, e.taken) if e.predicate.negated else (e.taken, e.other)
        yes = p if c.mask is None else p & c.mask
        count = np.count_nonzero(yes)
        total = yes.size if c.mask is None else np.count_nonzero(c.mask)
        if count == total:
            self._backward(c, taken)
        elif count == 0:
            self._backward(c, other)
        else:
            no = ~p if c.mask is None else c.mask & ~p
            for lanes, target in ((yes, taken), (no, other)):
                part = c.part(lanes)
                self._go(part, target)

    def _backward(self, c: Cohort, target: int) -> None:
        """Go to a block; a loop that only waits for memory to change is parked."""
        blocks = self.engine.blocks
        if target <= c.block and blocks[target].order <= blocks[c.block].order and self.engine.spins.seen(c, target):
            return
        self._go(c, target)

    def _indexed(self, c: Cohort, x: Lanes, e: Indexed) -> None:
        self._checked(x, e.index, e.operation, "branch index")
        index = self._value(x, e.index)
        active = x.active()
        inside = active & (index < len(e.targets))
        if (inside != active).any() and e.operation is not None:
            x.op = e.operation
            wrong = active & ~inside
            message = f"`brx.idx` with index {int(index[wrong][0])} of {len(e.targets)} targets"
            repair = "compare the index with the length of the target list before the branch"
            x.finding("out-of-bounds", message, lanes=wrong, repair=repair, stop=True)
            return
        chosen = np.array(e.targets)[np.where(inside, index, 0)]
        for target in sorted(set(chosen[active].tolist())):
            self._go(c.part(active & (chosen == target)), target)

    def _sync(self, c: Cohort, x: Lanes, e: Sync) -> None:
        x.op = e.operation
        outcome = self.engine.sync_code(c, x)(x)
        if outcome is None:
            self.engine.hold(c, 0)
            return
        c.timed_out = c.released = False
        if x.yields:
            x.yields = False
            c.turns = (c.turns // QUANTUM + 1) * QUANTUM
        if not isinstance(outcome, Wait):
            self._go(c, e.target)
            return
        passed = outcome.passed
        if passed is not None:
            lanes = np.broadcast_to(passed, x.shape) & x.active()
            if lanes.any():
                gone, rest = c.part(lanes), x.active() & ~lanes  # `after` may get these very lanes, with the mask of those gone
                if outcome.after is not None:
                    y = self.machine.lanes(gone.rect)
                    y.mask, y.op = gone.mask, e.operation
                    outcome.after(y)
                self._go(gone, e.target)
                if not rest.any():
                    return
                stay = c.part(rest)
                self.engine.park(stay, self.engine.cut(outcome, c.rect, stay.rect), e.operation)
                return
        if outcome.retry:
            self.engine.standstill.note()
        self.engine.park(c, outcome, e.operation)

    # --- functions ------------------------------------------------------------------------------------------------

    def _call(self, c: Cohort, x: Lanes, e: Call) -> None:
        if isinstance(e.target, Reg):
            self._checked(x, e.target, e.operation, "function address")
            address = self._value(x, e.target)
            active = x.active()
            for one in sorted(set(address[active].tolist())):
                part = c.part(active & (address == one))
                self._enter(part, int(one), e)
        else:
            self._enter(c, e.target, e)

    def _enter(self, c: Cohort, address: int, e: Call) -> None:
        m = self.machine
        x = m.lanes(c.rect)
        x.mask = c.mask
        signature = m.program.functions.get(address)
        if signature is None:
            assert e.operation is not None
            x.op = e.operation
            message = f"call of address {address:#x}, which is no function"
            x.finding("out-of-bounds", message, repair="load the function's address before the call", stop=True)
            return
        blocks = self.engine.blocks
        self.recursion.enter(x, signature, self._depth(c, signature), len(c.frames))
        carry_in(x, e, signature)
        c.frames = (*c.frames, c.block)
        c.trail = (*c.trail, (0,) * (len(blocks[signature.entry].order) - 1))
        c.block, c.key = signature.entry, None
        self.engine.ready.append(c)

    def _depth(self, c: Cohort, signature: Signature) -> int:
        """Return how often a function is active already."""
        return sum(self.engine.blocks[b].function == signature.name for b in (*c.frames, c.block))

    def _return(self, c: Cohort, x: Lanes) -> None:
        blocks = self.engine.blocks
        caller = c.frames[-1]
        e = blocks[caller].ending
        assert isinstance(e, Call)
        signature = next(s for s in self.machine.program.functions.values() if s.name == blocks[c.block].function)
        depth = self._depth(c, signature) - 1
        carry_out(x, e, signature, lambda: self.recursion.leave(x, signature, depth, len(c.frames) - 1))
        c.frames, c.trail = c.frames[:-1], c.trail[:-1]
        c.block = caller
        self._go(c, e.back)

    def _exit(self, c: Cohort, x: Lanes) -> None:
        m = self.machine
        live = m.live[x.c0 : x.c1, x.t0 : x.t1]
        live &= ~x.active()
        m.progress()
        if m.peers is not None:
            gone = x.active().any(axis=1) & ~m.live[x.c0 : x.c1].any(axis=1)
            m.peers.end([x.c0 + c for c in np.flatnonzero(gone).tolist()])
        m.barriers.after_exit(slice(x.c0, x.c1))
        m.cluster_barrier.complete(x.c0, x.c1)
        self.engine.retire(x.c0, x.c1)
