"""Ask the disassembler which registers an instruction reads and writes: it prints life ranges of the code of a cubin.

`nvdisasm --life-range-mode narrow` has a column for each register, in a block for each register file; a row has `^` where the
instruction assigns the register, `v` where it uses it, `x` where it does both. That is not limited to what a compiler
made: words put into a cubin of our own are marked as well.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, final

from warpsmith.assembly.sass.control import NO_CONTROL
from warpsmith.base.arch import parse_arch
from warpsmith.base.errors import ToolError
from warpsmith.cubin.arch_flags import flags_for
from warpsmith.cubin.model import Cubin
from warpsmith.toolchain.find import require_tool
from warpsmith.toolchain.run import run_tool, workspace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["LifeRanges", "Marks", "parse_marks"]

Marks = dict[tuple[str, int], str]
"""(register file `R`, `P`, `UR` or `UP`, number) -> `r`, `w` or `rw`."""

_EXIT = 0x94D | NO_CONTROL | 0x7 << 12 | 0x7 << 87
_PER_FUNCTION = 200
_CHUNK = 20_000
"""Words of one call: some 15 MB of text."""
_FILES = {"GPR": "R", "PRED": "P", "UGPR": "UR", "UPRED": "UP"}
_SIGNS = {"^": "w", "v": "r", "x": "rw"}
_TEXT = re.compile(r"^\s+/\*([0-9a-f]{4,})\*/.*?// \|")


def parse_marks(listing: str) -> Iterator[tuple[str, int, Marks]]:
    """Yield (section, address, marks) for each instruction of a listing in mode `narrow`."""
    section = ""
    columns: list[tuple[int, str, int]] = []
    header: list[str] = []
    for line in listing.splitlines():
        if line.startswith("\t.section\t"):
            section = line.split("\t")[2].split(",")[0].strip('"')
            header = []
        bar = line.find("// |")
        if bar < 0:
            continue
        m = _TEXT.match(line)
        if m:
            if header:
                columns = _columns(header)
                header = []
            marks: Marks = {}
            for at, group, number in columns:
                sign = _SIGNS.get(line[bar + at : bar + at + 1])
                if sign:
                    marks[group, number] = sign
            yield section, int(m[1], 16), marks
        elif line[:bar].isspace():
            header.append(line[bar:])


def _columns(header: list[str]) -> list[tuple[int, str, int]]:
    """Return (position, register file, number) for each column; numbers stand upright, a digit a line."""
    names, *digits = header
    out: list[tuple[int, str, int]] = []
    start = 0
    for m in re.finditer(r"\|([^|]*)(?=\|)", names):
        group = _FILES.get(m[1].strip(), "")
        start = m.start()
        count = max((line.find("#", start, m.end()) for line in digits), default=-1)
        for at in range(count + 1 if count > 0 else start + 1, m.end()):
            number = "".join(line[at : at + 1] for line in digits).replace("#", "").strip()
            if number.isdigit() and group:
                out.append((at, group, int(number)))
    return out


@final
class LifeRanges:
    """nvdisasm's life ranges for words of one architecture. `.words` counts what was asked."""

    def __init__(self, arch: str) -> None:
        self.number = parse_arch(arch).number
        self.tool = require_tool("nvdisasm")
        self.words = 0

    def marks(self, words: Sequence[int], *, alone: bool = False) -> list[Marks | None]:
        """Return the marks of each word, which must be legal; None where the disassembler makes no life ranges of it.

        `alone` puts each word into a function of its own, for words that end the flow of control; a target of theirs must be
        the next instruction, at 16.
        """
        out: list[Marks | None] = []
        size = _CHUNK // (6 if alone else 1)
        for start in range(0, len(words), size):
            out += self._marks(list(words[start : start + size]), 1 if alone else _PER_FUNCTION)
        return out

    def of_cubin(self, cubin: bytes) -> list[tuple[str, int, Marks]]:
        """Return (section, address, marks) for each instruction of a cubin; raises `ToolError` where there are none."""
        with workspace() as folder:
            (folder / "k.cubin").write_bytes(cubin)
            done = run_tool(self.tool, ["-c", "-lrm", "narrow", "k.cubin"], folder, timeout=600)
        if done.status:
            raise ToolError(f"nvdisasm makes no life ranges (exit status {done.status}): {done.err.strip()[:300]}")
        return list(parse_marks(done.out))

    def _marks(self, words: list[int], per: int) -> list[Marks | None]:
        self.words += len(words)
        try:
            found = {(s, a): m for s, a, m in self.of_cubin(self._cubin(words, per))}
        except ToolError:
            if len(words) == 1:
                return [None]
            middle = len(words) // 2
            return self._marks(words[:middle], per) + self._marks(words[middle:], per)
        return [found.get((f".text.k{i // per}", i % per * 16)) for i in range(len(words))]

    def _cubin(self, words: list[int], per: int) -> bytes:
        built = Cubin.new("sm_100" if self.number in (101, 110) else f"sm_{self.number}")
        for start in range(0, len(words), per):
            code = b"".join(w.to_bytes(16, "little") for w in (*words[start : start + per], _EXIT))
            built.add_function(f"k{start // per}", code, params=[8], registers=255)
        built.header.flags = flags_for(self.number)
        return built.write()
