"""What an audit found: counts by architecture and mnemonic, and the words that are not as they should be."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, final

__all__ = ["Example", "Input", "Report", "Tally"]

SHOWN = 20
"""Examples kept of each kind, architecture and mnemonic."""


@final
@dataclass(slots=True)
class Tally:
    """Counts. `words` differ in what their text can depend on, `raw` in any of the 128 bits."""

    words: int = 0
    exact: int = 0
    """Words whose text is the disassembler's, character for character."""
    differing: int = 0
    unknown: int = 0
    """Words that the table does not know."""
    rejected: int = 0
    """Words that the disassembler rejects, and we print."""
    raw: int = 0
    """All distinct words, control bits included, but for those that both sides reject."""
    encoded: int = 0
    """Distinct words that text, control bits and unprinted bits give back."""
    canonical: int = 0
    """Those of them that text and control bits give back."""

    def add(self, other: Tally) -> None:
        """Add other counts."""
        for name in Tally.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    @property
    def clean(self) -> bool:
        """Whether all words are exact and all are given back."""
        return self.words == self.exact and self.raw == self.encoded


@final
@dataclass(frozen=True, slots=True)
class Example:
    """One word that is not as it should be: `kind` is `differing`, `unknown`, `rejected` or `encode`."""

    arch: str
    mnemonic: str
    kind: str
    word: int
    ours: str
    """Our text; for `encode` why the word is not given back."""
    theirs: str
    """The disassembler's; '' where it rejects the word."""

    def __str__(self) -> str:
        return f"{self.arch} {self.kind} {self.word:#034x}\n  ours   {self.ours}\n  theirs {self.theirs or '(rejected)'}"


@final
@dataclass(frozen=True, slots=True)
class Input:
    """A file that was read."""

    path: str
    size: int
    sha256: str


@final
@dataclass(slots=True)
class Report:
    """The result of an audit."""

    code: str
    """Digest of the source of decoder, encoder and comparison."""
    tool: str
    """The disassembler and its version."""
    inputs: list[Input]
    sample: int
    """How many words were drawn; 0 for all."""
    seed: int
    tables: dict[str, str] = field(default_factory=dict[str, str])
    """Architecture -> SHA-256 over the files of its table."""
    instructions: dict[str, int] = field(default_factory=dict[str, int])
    """Architecture -> instructions, doubles and all."""
    cubins: dict[str, int] = field(default_factory=dict[str, int])
    tallies: dict[str, dict[str, Tally]] = field(default_factory=dict[str, "dict[str, Tally]"])
    """Architecture -> mnemonic -> counts."""
    illegal: dict[str, int] = field(default_factory=dict[str, int])
    """Architecture -> words that the disassembler rejects and we do not know either."""
    without_table: dict[str, int] = field(default_factory=dict[str, int])
    """Architecture that has no table -> instructions, which were not looked at."""
    examples: list[Example] = field(default_factory=list[Example])
    unread: list[str] = field(default_factory=list[str])

    def total(self, arch: str | None = None) -> Tally:
        """Return the counts of an architecture, or of all."""
        out = Tally()
        for name, rows in self.tallies.items():
            for tally in rows.values() if arch in (None, name) else ():
                out.add(tally)
        return out

    @property
    def clean(self) -> bool:
        """Whether every word is exact and given back, and everything could be read."""
        return not self.unread and self.total().clean

    def as_json(self) -> dict[str, Any]:
        """Return the report as plain values; words are hexadecimal."""
        out = asdict(self)
        for example in out["examples"]:
            example["word"] = f"{example['word']:#034x}"
        return out
