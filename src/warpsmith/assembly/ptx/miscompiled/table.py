"""Load `patterns.txt`: which releases of ptxas make wrong code of which pattern. The only place that knows its columns."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import final

from warpsmith.base.errors import DeclarationError

__all__ = ["Entry", "Release", "Table", "release", "table"]

Release = tuple[int, int]
"""(13, 5)."""
_FIELDS = ("looks_at", "ptxas", "makes", "instead")
_OPTIONAL = ("besides", "on")


@final
@dataclass(frozen=True, slots=True)
class Entry:
    """A pattern as the table has it."""

    name: str
    looks_at: re.Pattern[str]
    """Mnemonics of the instructions at which it may be found."""
    besides: re.Pattern[str] | None
    """A mnemonic that must stand in the same function."""
    on: re.Pattern[str] | None
    """Architectures that it shows on; None: all."""
    first: Release
    last: Release
    """The first and the last release that was seen to make wrong code of it."""
    makes: str
    """What ptxas makes of it: `gives -1 for …`."""
    instead: str
    """What to write instead, in a sentence."""

    def shows_on(self, arch: str) -> bool:
        """Say whether ptxas makes wrong code of it for an architecture, e.g. `sm_90a`."""
        return self.on is None or bool(self.on.fullmatch(arch))


@final
@dataclass(frozen=True, slots=True)
class Table:
    """All patterns, and what was measured."""

    measured: tuple[Release, ...]
    """Releases of ptxas that were tried, in order."""
    targets: tuple[str, ...]
    """Architectures that were tried."""
    entries: tuple[Entry, ...]


def release(text: str) -> Release:
    """Read `13.5` or `13.5.37`; raise `DeclarationError` for anything else."""
    m = re.match(r"(\d+)\.(\d+)(?:\.|$)", text)
    if not m:
        raise DeclarationError(f"not a release of ptxas: {text!r}")
    return int(m[1]), int(m[2])


def parse_table(text: str, file: str) -> Table:
    """Read a table; raise `DeclarationError` naming the line."""
    heads: dict[str, list[str]] = {}
    patterns: dict[str, dict[str, str]] = {}
    current: dict[str, str] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        word, _, rest = line.strip().partition(" ")
        if line[0] != " " and word in ("measured", "targets"):
            heads[word] = rest.split()
        elif line[0] != " ":
            if rest or word in patterns:
                raise DeclarationError(f"{file}:{number}: a pattern begins with its name alone, once: {line!r}")
            current = patterns[word] = {}
        elif current is None or word not in (*_FIELDS, *_OPTIONAL) or word in current:
            raise DeclarationError(f"{file}:{number}: {word!r} is no line of a pattern, or there twice")
        else:
            current[word] = rest.strip()
    measured = tuple(map(release, heads.get("measured", ())))
    entries = tuple(_entry(name, fields, measured, file) for name, fields in patterns.items())
    return Table(measured, tuple(heads.get("targets", ())), entries)


def _entry(name: str, fields: dict[str, str], measured: tuple[Release, ...], file: str) -> Entry:
    if missing := [f for f in _FIELDS if f not in fields]:
        raise DeclarationError(f"{file}: {name} lacks {', '.join(missing)}")
    seen = [release(t) for t in fields["ptxas"].split()]
    if len(seen) != 2 or seen[0] > seen[1] or not set(seen) <= set(measured):
        raise DeclarationError(f"{file}: {name}: `ptxas` is the first and the last release, both measured: {fields['ptxas']!r}")
    besides = re.compile(fields["besides"]) if "besides" in fields else None
    on = re.compile(fields["on"]) if "on" in fields else None
    return Entry(name, re.compile(fields["looks_at"]), besides, on, seen[0], seen[1], fields["makes"], fields["instead"])


@cache
def table() -> Table:
    """Return the package's own table."""
    path = Path(__file__).with_name("patterns.txt")
    return parse_table(path.read_text("utf-8"), path.name)
