"""Places in source text: a `Source` holds the text, a `Span` points into it."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import final

__all__ = ["Place", "Source", "Span"]

_LONGEST_LINE = 160


@final
class Source:
    """Text with a name; turns offsets into lines and columns (both from 1)."""

    __slots__ = ("_starts", "name", "text")

    def __init__(self, text: str, name: str = "<string>") -> None:
        self.text = text
        self.name = name
        self._starts: list[int] | None = None

    def position(self, offset: int) -> tuple[int, int]:
        """Return (line, column) of a character offset, both from 1."""
        if self._starts is None:
            starts = [0]
            find = self.text.find
            at = find("\n")
            while at >= 0:
                starts.append(at + 1)
                at = find("\n", at + 1)
            self._starts = starts
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def line(self, number: int) -> str:
        """Return the text of line `number` (from 1), without its newline."""
        self.position(0)
        assert self._starts is not None
        start = self._starts[number - 1]
        end = self.text.find("\n", start)
        return self.text[start:] if end < 0 else self.text[start:end]


@final
@dataclass(frozen=True, slots=True)
class Span:
    """Characters `start` … `end` (exclusive) of a source."""

    source: Source = field(compare=False, repr=False)
    start: int
    end: int

    def __str__(self) -> str:
        line, column = self.source.position(self.start)
        return f"{self.source.name}:{line}:{column}"

    def caret(self) -> str:
        """Return the source line with a caret line under the span; of a long line the part around it."""
        line, column = self.source.position(self.start)
        text = self.source.line(line)
        if len(text) > _LONGEST_LINE:
            first = max(0, min(column - 1 - _LONGEST_LINE // 2, len(text) - _LONGEST_LINE))
            head, tail = "…" * (first > 0), "…" * (first + _LONGEST_LINE < len(text))
            text = f"{head}{text[first : first + _LONGEST_LINE]}{tail}"
            column += len(head) - first
        width = max(1, min(self.end - self.start, len(text) - column + 1))
        pad = "".join("\t" if c == "\t" else " " for c in text[: column - 1])
        if not text.isprintable():
            text = "".join(c if c == "\t" or c.isprintable() else "\ufffd" for c in text)
        return f"  {text}\n  {pad}{'^' * width}"


@final
@dataclass(frozen=True, slots=True)
class Place:
    """A file and line (from 1) as `.loc` or a Python frame names it."""

    file: str
    line: int
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"
