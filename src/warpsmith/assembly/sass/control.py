"""The control bits of an instruction word: scheduling, the same place on every architecture from sm_75 on.

| bits    | field |
|---------|-------|
| 105–108 | `stall`: issue cycles before the next instruction of the warp |
| 109     | `yield_`: 0 where the scheduler may switch to another warp |
| 110–112 | `write`: scoreboard that the result releases, 7 for none |
| 113–115 | `read`: scoreboard that the last read of the sources releases, 7 for none |
| 116–121 | `wait`: mask of scoreboards that must be free before the issue |
| 122–124 | `reuse`: operand cache slots kept for the next instruction |

Bits 105–109 and 122–124 are one joint field to the disassembler: with bit 109 set and stall 1–11 the reuse bits are
operand reuse and printed;
with bit 109 clear they are not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import final

from warpsmith.base.errors import InputError

__all__ = ["CONTROL_MASK", "NO_CONTROL", "Control", "parse_control"]

CONTROL_MASK = ((1 << 20) - 1) << 105
"""Bits 105 to 124."""

NO_CONTROL = (1 << 105) | (1 << 109) | (7 << 110) | (7 << 113)
"""Stall 1, no yield, no scoreboard, no wait, no reuse: accepted with every instruction."""


@final
@dataclass(frozen=True, slots=True)
class Control:
    """Scheduling of one instruction. `str()` gives `B--2---:R-:W0:-:S04`, with `/010` behind for reuse bits;
    `parse_control` reads it."""

    stall: int = 1
    """Issue cycles, 0–15."""
    yield_: bool = False
    """The scheduler may switch to another warp (bit 109 clear)."""
    write: int | None = None
    """Scoreboard 0–5 released by the result."""
    read: int | None = None
    """Scoreboard 0–5 released when the sources have been read."""
    wait: tuple[int, ...] = ()
    """Scoreboards 0–5 waited for."""
    reuse: int = 0
    """Bits 122–124: slot A is 1, B is 2, C is 4."""

    @staticmethod
    def of(word: int) -> Control:
        """Read the control bits of a 128-bit word; the reserved numbers 6 of a scoreboard stay as they are."""
        write, read, mask = (word >> 110) & 7, (word >> 113) & 7, (word >> 116) & 63
        return Control(
            stall=(word >> 105) & 15,
            yield_=not (word >> 109) & 1,
            write=None if write == 7 else write,
            read=None if read == 7 else read,
            wait=tuple(i for i in range(6) if mask >> i & 1),
            reuse=(word >> 122) & 7,
        )

    def bits(self) -> int:
        """Return the control bits in place, as part of a 128-bit word; raise `InputError` for a number out of range."""
        self._check()
        write = 7 if self.write is None else self.write
        read = 7 if self.read is None else self.read
        low = self.stall | (not self.yield_) << 4 | write << 5 | read << 8
        return (low | sum(1 << i for i in self.wait) << 11 | self.reuse << 17) << 105

    def _check(self) -> None:
        for name, value, top in (("stall", self.stall, 15), ("reuse", self.reuse, 7)):
            if not 0 <= value <= top:
                raise InputError(f"control code: {name} {value} is out of range: 0 to {top}")
        for name, value in (("write", self.write), ("read", self.read)):
            if value is not None and not 0 <= value <= 6:
                raise InputError(f"control code: {name} scoreboard {value} is not there: 0 to 5, or None for none")
        for value in self.wait:
            if not 0 <= value <= 5:
                raise InputError(f"control code: there is no scoreboard {value} to wait for: 0 to 5")

    def __str__(self) -> str:
        waits = "".join(str(i) if i in self.wait else "-" for i in range(6))
        read = "-" if self.read is None else self.read
        write = "-" if self.write is None else self.write
        reuse = f"/{self.reuse:03b}" if self.reuse else ""
        return f"B{waits}:R{read}:W{write}:{'Y' if self.yield_ else '-'}:S{self.stall:02d}{reuse}"


_TEXT = re.compile(r"B([0-9-]{6}):R([0-9-]):W([0-9-]):([Y-]):S(\d\d)")


def parse_control(text: str, reuse: int = 0) -> Control:
    """Read what `str(Control)` writes, reuse bits apart. Raises `InputError` for what is none, or out of range."""
    m = _TEXT.fullmatch(text)
    if m is None or any(c not in ("-", str(i)) for i, c in enumerate(m[1])):
        raise InputError(
            f"{text!r} is no control code; write B012345:R0:W0:Y:S00 with '-' for scoreboards that are not waited for or set,"
            " and for no yield"
        )
    number = lambda t: None if t == "-" else int(t)  # noqa: E731
    out = Control(int(m[5]), m[4] == "Y", number(m[3]), number(m[2]), tuple(int(c) for c in m[1] if c != "-"), reuse)
    out._check()
    return out
