"""Collect the distinct words of one unit of work: every so-many-th cubin of a file."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, final

import numpy as np

from warpsmith.base.errors import CapabilityError, CubinError
from warpsmith.base.whole_file import write_whole
from warpsmith.cubin import find
from warpsmith.cubin.compression import METHODS
from warpsmith.sass.audit.words import Words, code_of, distinct, index_of, mix

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["Collected", "Unit", "collect", "hashes", "load_collected", "lowest", "save_words"]

_PENDING = 4_000_000
"""Words kept before the doubles among them are taken out: some 300 MB of memory while they are sorted."""


@final
@dataclass(frozen=True, slots=True)
class Unit:
    """The cubins of `path` whose number, counted from 0, is `part` modulo `parts`."""

    name: str
    path: str
    part: int
    parts: int
    archs: tuple[str, ...]
    """Architectures that are looked at; all, if none is named."""
    sample: int
    """Keep this many words of each architecture, those of the lowest hash; 0 keeps all."""
    seed: int


@final
@dataclass(slots=True)
class Collected:
    """What a unit gave. Files of words lie beside this record."""

    instructions: dict[str, int] = field(default_factory=dict[str, int])
    """Architecture -> instructions, doubles and all."""
    cubins: dict[str, int] = field(default_factory=dict[str, int])
    files: dict[str, list[str]] = field(default_factory=dict[str, "list[str]"])
    """Architecture -> names of files of distinct words, ordered as `words.distinct` does."""
    rows: dict[str, int] = field(default_factory=dict[str, int])
    unread: list[str] = field(default_factory=list[str])
    """What could not be read, and why."""


def lowest(words: Words, count: int, seed: int, arch: str) -> Words:
    """Return the `count` words of the lowest hash: a sample that depends on the set of words alone."""
    if count and len(words) > count:
        words = words[np.sort(np.argsort(hashes(words, seed, arch), kind="stable")[:count])]
    return words


def hashes(words: Words, seed: int, arch: str) -> Any:
    """Return the hash by which samples are drawn; it differs between architectures."""
    return mix(words, (seed << 32) ^ int.from_bytes(arch.encode(), "little"))


def collect(unit: Unit, folder: Path) -> None:
    """Write the words of a unit and, last, its record `<name>.json`."""
    out = Collected()
    pending: dict[str, list[Words]] = {}
    amount: Counter[str] = Counter()

    def flush(arch: str) -> None:
        words = lowest(distinct(np.concatenate(pending.pop(arch))), unit.sample, unit.seed, arch)
        amount[arch] = 0
        names = out.files.setdefault(arch, [])
        names.append(f"{unit.name}-{arch}-{len(names)}.npy")
        out.rows[arch] = out.rows.get(arch, 0) + len(words)
        save_words(folder / names[-1], words)

    try:
        for number, item in enumerate(find(unit.path)):
            if number % unit.parts != unit.part or item.kind != "elf" or item.arch is None:
                continue
            if unit.archs and item.arch not in unit.archs:
                continue
            try:
                blocks = list(code_of(item))
            except CubinError as error:
                out.unread.append(str(error))
                continue
            except CapabilityError as error:
                if item.compression in METHODS:  # a package is missing here: nothing is wrong with the file
                    raise
                out.unread.append(str(error))
                continue
            arch = item.arch
            out.cubins[arch] = out.cubins.get(arch, 0) + 1
            out.instructions[arch] = out.instructions.get(arch, 0) + sum(map(len, blocks))
            if blocks:
                pending.setdefault(arch, []).extend(blocks)
                amount[arch] += sum(map(len, blocks))
            if sum(amount.values()) > _PENDING:
                flush(amount.most_common(1)[0][0])
    except CubinError as error:  # what follows in a damaged container cannot be found
        out.unread += [str(error)] if unit.part == 0 else []
    for arch in sorted(pending):
        flush(arch)
    write_whole(folder / f"{unit.name}.json", json.dumps(asdict(out)).encode())


def save_words(path: Path, words: Words) -> None:
    """Write words ordered as `words.distinct` does, and beside them where each range begins."""
    with path.open("wb") as file:
        np.save(file, words)
    with path.with_suffix(".index.npy").open("wb") as file:
        np.save(file, index_of(words))


def load_collected(folder: Path, units: Sequence[Unit]) -> list[Collected]:
    """Return the records of units, in order."""
    return [Collected(**json.loads((folder / f"{u.name}.json").read_bytes())) for u in units]
