"""Findings: what the simulator, the checker and ptxas have to say about a program."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, final

if TYPE_CHECKING:
    from warpsmith.base.source import Place

__all__ = ["Finding", "Related", "Severity"]

Severity = Literal["error", "portability", "note"]


@final
@dataclass(frozen=True, slots=True)
class Related:
    """The other party of a finding: what it did, and where."""

    message: str
    where: Place | None = None

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message


@final
@dataclass(frozen=True, slots=True)
class Finding:
    """One fault of a program, named by its kind (a key of `warpsmith.findings.KINDS`)."""

    kind: str
    severity: Severity
    message: str
    """What is wrong, in a sentence with the numbers that show it."""
    where: Place | None = None
    """The user's line: the `.loc` of the instruction, else the PTX line."""
    threads: str = ""
    """Who: e.g. `cta (0,0,0) warp 4 lanes 0-31`."""
    related: tuple[Related, ...] = field(default=())
    repair: str = ""
    """One sentence on how to mend it."""
    schedule: str = ""
    """The schedule that exposed it, e.g. `random seed 7`."""

    def __str__(self) -> str:
        head = f"{self.where}: " if self.where else ""
        lines = [f"{head}{self.severity}[{self.kind}]: {self.message}"]
        if self.threads:
            lines.append(f"  threads: {self.threads}")
        lines += [f"  {r}" for r in self.related]
        if self.repair:
            lines.append(f"  repair: {self.repair}")
        if self.schedule:
            lines.append(f"  schedule: {self.schedule}")
        return "\n".join(lines)
