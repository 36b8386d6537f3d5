"""Ask the disassembler about words: their text, and the name of their instruction class."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, final

from warpsmith.assembly.sass.control import NO_CONTROL
from warpsmith.base.arch import parse_arch
from warpsmith.base.errors import ToolError
from warpsmith.toolchain.find import require_tool
from warpsmith.toolchain.run import run_tool, workspace

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from warpsmith.toolchain.find import Tool
    from warpsmith.toolchain.run import Completed

__all__ = ["Oracle"]

_UNKNOWN_ARCH = re.compile(r"Value '\w+' is not defined for option 'binary'")
_NOP = 0x7918 | NO_CONTROL
_LINE = re.compile(r"^\s*/\*([0-9a-f]+)\*/\s+(.*);\s*$", re.MULTILINE)
_AT = re.compile(r"at address 0x([0-9a-f]+)")
_CLASS = re.compile(r"Opclass '(\w+)', undefined value \w+ for table '(\w+)' at address 0x([0-9a-f]+)")
_ISSUE = 0x1F << 105
"""Stall and yield; with all of them 0 the disassembler puts no blank before the semicolon, but for a few classes (ERRBAR)."""
_OWN_BLANK = re.compile(r"(?:INF|QNAN|SNAN|-0\.0) $")
"""Numbers that end in a blank of their own."""
_CHUNK = 120_000
"""Words of one call: some 50 MB of the disassembler's memory."""


@final
class Oracle:
    """nvdisasm on raw words of one architecture. `.words` counts what was asked, `.calls` the processes."""

    def __init__(self, arch: str, tool: Tool | None = None) -> None:
        parsed = parse_arch(arch)
        self.arch = arch
        self.name = f"SM{parsed.number}{parsed.suffix}"
        self.tool = tool or require_tool("nvdisasm")
        self.version = self.tool.version()
        self.words = 0
        self.calls = 0

    def texts(self, words: Sequence[int]) -> list[tuple[int, str] | None]:
        """Return (address, text) for each word, None where the disassembler rejects it or prints nothing."""
        out: list[tuple[int, str] | None] = []
        for start in range(0, len(words), _CHUNK):
            out += self._texts(words[start : start + _CHUNK])
        return out

    def classes(self, words: Sequence[int]) -> list[tuple[str, str] | None]:
        """Return (class, table of control codes) for each word, None where it names none.

        Bits 105–109 all ones are illegal with every instruction; the complaint names the class.
        """
        out: list[tuple[str, str] | None] = []
        for start in range(0, len(words), _CHUNK):
            part = [w | _ISSUE for w in words[start : start + _CHUNK]]
            found = {int(m[3], 16) >> 4: (m[1], m[2]) for m in _CLASS.finditer(self._run(part).err)}
            out += [found.get(i) for i in range(len(part))]
        return out

    def _texts(self, words: Sequence[int]) -> list[tuple[int, str] | None]:
        done = self._run(words)
        bad: set[int] = set()
        if done.status and not done.out:
            bad = {int(m[1], 16) >> 4 for m in _AT.finditer(done.err)}
            done = self._run([_NOP if i in bad else w for i, w in enumerate(words)])
            if done.status and not done.out:
                return self._halves(words)
        found = {int(m[1], 16) >> 4: m[2] for m in _LINE.finditer(done.out)}
        return [
            None if i in bad or (text := found.get(i)) is None else (i << 4, _without_separator(text, w))
            for i, w in enumerate(words)
        ]

    def _halves(self, words: Sequence[int]) -> list[tuple[int, str] | None]:
        """Find words that are rejected without an address."""
        if len(words) == 1:
            return [None]
        middle = len(words) // 2
        return self._texts(words[:middle]) + self._texts(words[middle:])

    def _run(self, words: Sequence[int]) -> Completed:
        self.words += len(words)
        self.calls += 1
        with workspace() as folder:
            _write(folder / "words.bin", words)
            done = run_tool(self.tool, ["--binary", self.name, "-ndf", "-raw", "words.bin"], folder, timeout=600)
        if _UNKNOWN_ARCH.search(done.err):
            raise ToolError(f"nvdisasm {self.version} does not know {self.arch}; name one that does with --nvdisasm")
        if done.status not in (0, 1):
            raise ToolError(f"nvdisasm ended with status {done.status} on {len(words)} words of {self.arch}: {done.err[:300]}")
        return done


def _without_separator(text: str, word: int) -> str:
    """Return what stands before a semicolon without the blank that separates them."""
    if not word & _ISSUE and not text.endswith("  ") and _OWN_BLANK.search(text):
        return text
    return text.removesuffix(" ")


def _write(path: Path, words: Sequence[int]) -> None:
    path.write_bytes(b"".join([w.to_bytes(16, "little") for w in words]))
