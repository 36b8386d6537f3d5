"""The fidelity report: which results are exact, compared with hardware or modelled, and what was not modelled."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, final

__all__ = ["Fidelity", "Level"]

Level = Literal["exact", "hardware-checked", "published model", "approximate", "not modelled"]
"""exact: defined to the bit by the manual and computed so. hardware-checked: exact, and compared bit for bit with a GPU of the
architecture. published model: computed by a model of the hardware that others published. approximate: within the manual's
bounds, or fewer bits on request. not modelled: a value that says nothing about hardware."""


@final
@dataclass(slots=True)
class Fidelity:
    """What the numbers of a run are worth, by instruction or mechanism; what has no note is exact."""

    notes: dict[str, tuple[Level, str]] = field(default_factory=dict)
    """Subject → (level, sentence)."""

    def note(self, subject: str, level: Level, sentence: str) -> None:
        """Record a statement about `subject` once."""
        self.notes.setdefault(subject, (level, sentence))

    def __str__(self) -> str:
        if not self.notes:
            return "exact"
        return "\n".join(f"{subject}: {level}; {sentence}" for subject, (level, sentence) in self.notes.items())
