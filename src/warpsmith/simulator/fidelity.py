"""The fidelity report: which results are exact, and what was not modelled."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, final

__all__ = ["Fidelity", "Level"]

Level = Literal["exact", "published model", "approximate", "not modelled"]


@final
@dataclass(slots=True)
class Fidelity:
    """What the numbers of a run are worth, by instruction or mechanism."""

    notes: dict[str, tuple[Level, str]] = field(default_factory=dict)
    """Subject → (level, sentence)."""

    def note(self, subject: str, level: Level, sentence: str) -> None:
        """Record a statement about `subject` once."""
        self.notes.setdefault(subject, (level, sentence))

    def __str__(self) -> str:
        if not self.notes:
            return "exact"
        return "\n".join(f"{subject}: {level}; {sentence}" for subject, (level, sentence) in self.notes.items())
