"""Architectures: names, ordering, and the availability notation of the instruction tables.

A requirement is a comma list of alternatives (PTX ISA 11.1.2, `.target`):

    sm_80+     sm_80 or any later architecture, whatever its suffix
    sm_90a     that architecture alone
    sm_100f    the family: sm_100f, sm_100a and the later members of the family with suffix f or a
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import final

from warpsmith.base.errors import InputError

__all__ = ["ARCHITECTURES", "Arch", "Requirement", "first_ptx_version", "parse_arch", "parse_requirement"]

# architecture -> first PTX version that accepts it as a target (PTX ISA 11.1.2, table of target architectures)
_FIRST_PTX = {
    "sm_20": (2, 0), "sm_21": (2, 0),
    "sm_30": (3, 0), "sm_32": (4, 0), "sm_35": (3, 1), "sm_37": (4, 1),
    "sm_50": (4, 0), "sm_52": (4, 1), "sm_53": (4, 2),
    "sm_60": (5, 0), "sm_61": (5, 0), "sm_62": (5, 0),
    "sm_70": (6, 0), "sm_72": (6, 1), "sm_75": (6, 3),
    "sm_80": (7, 0), "sm_86": (7, 1), "sm_87": (7, 4), "sm_88": (9, 0), "sm_89": (7, 8),
    "sm_90": (7, 8), "sm_90a": (8, 0),
    "sm_100": (8, 6), "sm_100a": (8, 6), "sm_100f": (8, 8),
    "sm_101": (8, 6), "sm_101a": (8, 6), "sm_101f": (8, 8),
    "sm_103": (8, 8), "sm_103a": (8, 8), "sm_103f": (8, 8),
    "sm_107": (9, 4), "sm_107a": (9, 4), "sm_107f": (9, 4),
    "sm_110": (9, 0), "sm_110a": (9, 0), "sm_110f": (9, 0),
    "sm_120": (8, 7), "sm_120a": (8, 7), "sm_120f": (8, 8),
    "sm_121": (8, 8), "sm_121a": (8, 8), "sm_121f": (8, 8),
}  # fmt: skip

_FAMILIES = {100: (100, 103, 107), 103: (103, 107), 107: (107,), 101: (101, 110), 110: (110,), 120: (120, 121), 121: (121,)}
"""family named by its first member -> members that implement it (PTX ISA 11.1.2, family-specific features)."""


@final
@dataclass(frozen=True, slots=True, order=True)
class Arch:
    """An architecture such as `sm_90a`: `.number` 90, `.suffix` 'a'."""

    number: int
    suffix: str = ""

    def __str__(self) -> str:
        return f"sm_{self.number}{self.suffix}"


ARCHITECTURES = tuple(_FIRST_PTX)


@cache
def parse_arch(name: str) -> Arch:
    """Return the architecture called `name`; raise `InputError` for one this package does not know."""
    m = re.fullmatch(r"sm_(\d+)([af]?)", name)
    if not m or name not in _FIRST_PTX:
        near = f"sm_{digits[0].lower()}" if (digits := re.search(r"\d+[afAF]?$", name)) else ""
        meant = f"; did you mean {near!r}?" if near in _FIRST_PTX else ""
        raise InputError(f"unknown architecture {name!r}{meant}; known: {', '.join(ARCHITECTURES)}")
    return Arch(int(m[1]), m[2])


def first_ptx_version(arch: str) -> tuple[int, int]:
    """Return the lowest PTX version that accepts `arch` as a target."""
    parse_arch(arch)
    return _FIRST_PTX[arch]


@final
@dataclass(frozen=True, slots=True)
class Requirement:
    """A parsed availability note: `text`, and `allows(arch)`."""

    text: str
    alternatives: tuple[tuple[int, str], ...]
    """(number, mode) with mode '+' for and-later, '' or 'a' exactly that, 'f' for the family."""

    def allows(self, arch: Arch) -> bool:
        """Say whether code for `arch` may use the feature."""
        for number, mode in self.alternatives:
            if mode == "+":
                if arch.number >= number:
                    return True
            elif mode == "f":
                if arch.suffix and arch.number in _FAMILIES.get(number, (number,)):
                    return True
            elif arch.number == number and arch.suffix == mode:
                return True
        return False

    def __str__(self) -> str:
        return self.text


@cache
def parse_requirement(text: str) -> Requirement:
    """Parse `sm_80+`, `sm_90a,sm_100f`, …; raise `InputError` on anything else."""
    out: list[tuple[int, str]] = []
    for part in text.split(","):
        m = re.fullmatch(r"sm_(\d+)([af+]?)", part.strip())
        if not m:
            raise InputError(f"bad architecture requirement {text!r}; write e.g. sm_80+ or sm_90a,sm_100f")
        out.append((int(m[1]), m[2]))
    return Requirement(text, tuple(out))
