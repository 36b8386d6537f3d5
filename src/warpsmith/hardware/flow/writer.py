"""What all parts of the generator share: choices, labels, where in a program a statement stands.

Registers of every function and kernel, of which statements read and write the first three banks freely:

    %r<R> %d<D> %p<P>           32 and 64 bits, predicates                %acc      gathers what was seen on the way
    %m<k>                       the lanes of this warp at level k         %i<k> %n<k> %q<k>   counter, limit, condition of it
    %t<k> %a<k> %u<k> %x        temporaries within a line                 %me %ln %w          thread of the CTA, lane, warp
    %sh %la                     the thread's 64 bytes of shared and local memory; %gs %gl %gg generic, of global memory too

Level 0 are the lanes that entered. A construct at level k puts the lanes that go into an arm, an iteration or a target into
`%m<k+1>` before they part, so that every `.sync` instruction names exactly the lanes that come to it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, final

from warpsmith.hardware.random_stream import RandomStream

if TYPE_CHECKING:
    from collections.abc import Callable

    from warpsmith.hardware.flow.nodes import Node

__all__ = ["CELL", "LEVELS", "WORDS", "Function", "Scope", "Shape", "Writer"]

CELL = 64
"""Bytes of each place that a thread has for itself."""
WORDS = 64
"""Words of each array that all threads change by atomic operations: eight for each operation."""
LEVELS = 7
"""Masks, counters and conditions of a function."""


@final
@dataclass(frozen=True, slots=True)
class Shape:
    """How a program is launched."""

    ctas: int
    threads: int
    """Of a CTA."""
    cluster: bool
    """Whether its CTAs are one cluster."""

    @property
    def whole(self) -> bool:
        """Whether every warp has 32 lanes."""
        return self.threads % 32 == 0

    @property
    def warps(self) -> int:
        """Warps of a CTA."""
        return -(-self.threads // 32)


@final
@dataclass(frozen=True, slots=True)
class Function:
    """A device function: name, kind of its arguments (`reg`, `param`, `struct`), whether it calls itself."""

    name: str
    kind: str
    recursive: bool
    nodes: tuple[Node, ...]


@final
@dataclass(frozen=True, slots=True)
class Scope:
    """Where a statement stands."""

    registers: tuple[int, int, int]
    """How many of `%r`, `%d` and `%p` there are."""
    level: int = 0
    loops: int = 0
    """Loops around it."""
    kernel: bool = True
    """Whether it is in the kernel, where global memory is at hand."""
    warp: bool = False
    """Whether all lanes of a whole warp come to it together."""
    cta: bool = False
    """Whether all threads of the CTA come to it."""
    exits: bool = False
    """Whether lanes may exit."""
    local: bool = True
    """Whether it has local memory; functions that call themselves have none, since it may not be the same for each call."""
    leave: str = ""
    """What makes all lanes of this level leave the loop or the function around it, if that is of this very level."""

    @property
    def mask(self) -> str:
        """The register of its lanes."""
        return f"%m{self.level}"

    def inner(self, **changes: object) -> Scope:
        """Return the scope of a divergent construct's body."""
        plain = replace(self, level=self.level + 1, warp=False, cta=False, leave="")
        return replace(plain, **changes)  # pyright: ignore[reportArgumentType]


@final
@dataclass(slots=True)
class Writer:
    """Choices of one program."""

    stream: RandomStream
    shape: Shape
    makers: tuple[tuple[int, Callable[[Writer, Scope], Node | None]], ...]
    """Weight and maker of each kind of statement; one that cannot stand there returns None."""
    budget: int = 60
    """Statements that may still be made."""
    functions: list[Function] = field(default_factory=list[Function])
    """Those that may be called."""
    labels: int = 0

    def label(self) -> str:
        """Return a fresh label."""
        self.labels += 1
        return f"L{self.labels}"

    def r(self, scope: Scope) -> str:
        """Return a 32-bit register."""
        return f"%r{self.stream.below(scope.registers[0])}"

    def d(self, scope: Scope) -> str:
        """Return a 64-bit register."""
        return f"%d{self.stream.below(scope.registers[1])}"

    def p(self, scope: Scope) -> str:
        """Return a predicate."""
        return f"%p{self.stream.below(scope.registers[2])}"

    def several(self, scope: Scope, n: int) -> list[str]:
        """Return n 32-bit registers, all different."""
        rest = list(range(scope.registers[0]))
        return [f"%r{rest.pop(self.stream.below(len(rest)))}" for _ in range(n)]

    def seen(self, value: str) -> str:
        """Return an instruction that adds a 32-bit value to what was seen."""
        return f"mad.lo.u32 %acc, %acc, 0x9E3779B1, {value};"

    def guard(self, scope: Scope) -> str:
        """Return the guard of an instruction, or none."""
        return f"@{'!' if self.stream.chance(50) else ''}{self.p(scope)} " if self.stream.chance(15) else ""

    def body(self, scope: Scope, most: int) -> tuple[Node, ...]:
        """Return some statements, at least one."""
        total = sum(weight for weight, _ in self.makers)
        nodes: list[Node] = []
        for _ in range(1 + self.stream.below(most)):
            self.budget -= 1
            node: Node | None = None
            while node is None:
                at = self.stream.below(total)
                for weight, make in self.makers:
                    if at < weight:
                        node = make(self, scope)
                        break
                    at -= weight
            nodes.append(node)
            if self.budget <= 0:
                break
        return tuple(nodes)
