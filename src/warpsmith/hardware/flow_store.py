"""What random programs of many threads left on a GPU: the log that a run appends to, and the capture that is made of it.

The log has a line for each run of a program, written as soon as it is known, so that a run may be broken off anywhere:

    # {"arch": "sm_90a", "device": …}
    17 1 8f3e11a0 00c1d2e3 5a5a0000 12345678     program 17, compiled with -O0: the digests of what it left
    17 0 ! it did not end within 4 s             … with ptxas's default: no result

A program may have several lines for one way of compiling; the first is kept, further ones show whether it repeats.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from warpsmith.base.errors import InputError
from warpsmith.hardware.flow.program import SLOTS, generate
from warpsmith.hardware.flow.writer import CELL, WORDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from warpsmith.hardware.flow.program import FlowProgram

    Answer = NDArray[np.uint32] | str
    """The digests of what a run left, or why it left nothing."""

__all__ = ["DIGESTS", "OUTCOMES", "UNOPTIMISED", "WAYS", "FlowCapture", "Log", "digest_of", "digests", "unlike"]

DIGESTS = ("first store", "second store", "cells", "counters and bulk copies")
"""What the four digests of a program are of."""
WAYS = ("default", "-O0")
"""What the two ways of compiling are called."""
UNOPTIMISED = 1
"""The way whose results a capture keeps."""
OUTCOMES = ("same", "other results", "did not end", "fault", "not run")
"""What a program did as ptxas compiles it by default, beside what it left with -O0."""


def digest_of(text: str) -> int:
    """Return the digest of a program's text."""
    return zlib.crc32(text.encode())


def digests(values: list[Any]) -> NDArray[np.uint32]:
    """Return the digests of what a run left in its arguments."""
    _, out, cells, counters, bulk, _ = values
    half = len(out) // 2
    parts = (out[:half].tobytes(), out[half:].tobytes(), cells.tobytes(), counters.tobytes() + bulk.tobytes())
    return np.array([zlib.crc32(p) for p in parts], np.uint32)


def words_of(p: FlowProgram) -> int:
    """Return how many words a program leaves."""
    total = p.shape.ctas * p.shape.threads
    return total * (2 * SLOTS + CELL // 8 + 1) + WORDS


def unlike(left: NDArray[np.uint32], ours: NDArray[np.uint32]) -> str:
    """Return the names of the parts that differ."""
    return ", ".join(name for name, a, b in zip(DIGESTS, left, ours, strict=True) if a != b)


@final
@dataclass(slots=True)
class FlowCapture:
    """A capture in memory: for each program its number, the digest of its text, those of what it left with -O0, and how it
    went as compiled by default."""

    about: dict[str, Any]
    numbers: list[int]
    texts: NDArray[np.uint32]
    """`[program]`"""
    left: NDArray[np.uint32]
    """`[program, 4]`"""
    optimised: NDArray[np.uint8]
    """`[program]`, an index of `OUTCOMES`"""

    def write(self, path: Path) -> None:
        """Write the file."""
        temporary = path.with_suffix(".part")
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_LZMA) as z:
            z.writestr("index.json", json.dumps({**self.about, "numbers": self.numbers}))
            for name in ("texts", "left", "optimised"):
                z.writestr(name, getattr(self, name).tobytes())
        temporary.replace(path)

    @classmethod
    def read(cls, path: Path) -> FlowCapture:
        """Read the file; raise `InputError` if it is no such capture."""
        try:
            with zipfile.ZipFile(path) as z:
                index = json.loads(z.read("index.json"))
                numbers = index.pop("numbers")
                texts = np.frombuffer(z.read("texts"), np.uint32).reshape(len(numbers))
                left = np.frombuffer(z.read("left"), np.uint32).reshape(len(numbers), len(DIGESTS))
                optimised = np.frombuffer(z.read("optimised"), np.uint8).reshape(len(numbers))
        except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
            raise InputError(f"{path} is not a capture of random programs of many threads: {error}") from error
        return cls(index, numbers, texts, left, optimised)


@final
@dataclass(slots=True)
class Log:
    """The log of a run: what is in the file, and what is appended to it."""

    path: Path
    about: dict[str, Any]
    answers: dict[tuple[int, int], list[Answer]] = field(default_factory=lambda: defaultdict(list))
    """(program, way) -> what its runs gave, in their order"""

    @classmethod
    def begin(cls, path: Path, about: dict[str, Any]) -> Log:
        """Continue the log of `path`, or begin one."""
        if path.exists():
            return cls.read(path)
        path.write_text(f"# {json.dumps(about)}\n", encoding="utf-8")
        return cls(path, about)

    @classmethod
    def read(cls, path: Path) -> Log:
        """Read a log, whose last line may be broken off; raise `InputError` if it is none."""
        try:
            head, *lines = path.read_text(encoding="utf-8").split("\n")
            log = cls(path, json.loads(head.removeprefix("# ")))
            for line in lines[:-1]:
                if line.startswith("#"):
                    continue
                number, way, words = line.split(" ", 2)
                broken = words.startswith("! ")
                answer = words[2:] if broken else np.array([int(w, 16) for w in words.split()], np.uint32)
                log.answers[int(number), int(way)].append(answer)
        except (OSError, ValueError) as error:
            raise InputError(f"{path} is not a log of random programs of many threads: {error}") from error
        return log

    def add(self, number: int, way: int, answer: Answer) -> None:
        """Append what a run gave."""
        if isinstance(answer, str):
            answer = " ".join(answer.split())
        self.answers[number, way].append(answer)
        words = f"! {answer}" if isinstance(answer, str) else " ".join(f"{int(x):08x}" for x in answer)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{number} {way} {words}\n")

    def note(self, text: str) -> None:
        """Append a remark."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"# {text}\n")

    def left(self, number: int) -> bool:
        """Say whether a program left something with -O0."""
        some = self.answers.get((number, UNOPTIMISED))
        return bool(some) and not isinstance(some[0], str)

    def capture(self) -> FlowCapture:
        """Return the capture of the programs that left something with -O0."""
        kept = sorted(n for n, way in self.answers if way == UNOPTIMISED and self.left(n))
        left = [self.answers[n, UNOPTIMISED][0] for n in kept]
        programs = [generate(n) for n in kept]
        texts = [digest_of(p.text(self.about["arch"])) for p in programs]
        optimised = [OUTCOMES.index(self.outcome(n)) for n in kept]
        about = {**self.about, "words": sum(map(words_of, programs))}
        return FlowCapture(
            about, kept, np.array(texts, np.uint32), np.array(left, np.uint32).reshape(-1, len(DIGESTS)),
            np.array(optimised, np.uint8),
        )  # fmt: skip

    def outcome(self, number: int) -> str:
        """Return how a program went as compiled by default: one of `OUTCOMES`."""
        answers: Mapping[tuple[int, int], list[Answer]] = self.answers
        some = answers.get((number, 1 - UNOPTIMISED))
        if not some:
            return "not run"
        if isinstance(some[0], str):
            return "did not end" if some[0].startswith("it did not end") else "fault"
        return "same" if (some[0] == self.answers[number, UNOPTIMISED][0]).all() else "other results"

    def report(self) -> str:
        """Return how many programs ran, and which differ or left nothing, with what further runs of them gave."""
        numbers = sorted({n for n, _ in self.answers})
        lines = [line for n in numbers if (line := self._line(n))]
        both = sum((n, 0) in self.answers and (n, 1) in self.answers for n in numbers)
        return "\n".join(
            [f"{len(numbers)} programs, {both} in both ways; {len(lines)} differ between them or left nothing", *lines]
        )

    def _line(self, n: int) -> str:
        first = self.answers.get((n, UNOPTIMISED), ["not run"])[0]
        if isinstance(first, str):
            return f"program {n}, {WAYS[UNOPTIMISED]}: {first}"
        if (said := self.outcome(n)) in ("same", "not run"):
            return ""
        runs = [a if isinstance(a, str) else unlike(a, first) or "same" for a in self.answers[n, 1 - UNOPTIMISED]]
        return f"program {n}, {WAYS[1 - UNOPTIMISED]}: {said}: {'; '.join(runs)}"
