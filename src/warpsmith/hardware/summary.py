"""What the captures of a folder hold, as a table: form or family, vectors, architecture, date, driver."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np

from warpsmith.hardware.differences import differing_forms
from warpsmith.hardware.differential_capture import DifferentialCapture
from warpsmith.hardware.family_capture import FamilyCapture
from warpsmith.hardware.flow_store import FlowCapture
from warpsmith.hardware.machine_capture import MachineCapture
from warpsmith.hardware.random_programs import SLOTS, THREADS
from warpsmith.hardware.scalar_store import BLOCK, Capture
from warpsmith.hardware.tensor_programs import tensor_programs

__all__ = ["Line", "lines", "table"]


@final
@dataclass(slots=True)
class Line:
    """Forms of one kind, and how many results of theirs a capture holds."""

    family: str
    about: dict[str, Any]
    forms: set[str] = field(default_factory=set[str])
    results: int = 0
    differing: frozenset[str] | None = None
    """The forms of the capture that differ; None if it was not replayed."""

    @property
    def differ(self) -> str:
        """How many forms differ."""
        return "not replayed" if self.differing is None else f"{len(self.forms & self.differing):,}"

    @property
    def dates(self) -> str:
        """When the forms were captured; `added` in `about` lists by date those that came to a capture later."""
        added = {date: self.forms.intersection(names) for date, names in self.about.get("added", {}).items()}
        first = [self.about.get("date", "")] if self.forms.difference(*added.values()) else []
        return ", ".join([*first, *(date for date, forms in sorted(added.items()) if forms)])


def _scalar(path: Path) -> Iterator[Line]:
    capture = Capture.read(path)
    found: dict[str, Line] = {}
    for c in capture.items:
        opcode = c.form.mnemonic.partition(".")[0]
        kind = f"`{opcode}`"
        line = found.setdefault(kind, Line(kind, capture.about))
        line.forms.add(c.form.key)
        line.results += sum(len(e) for e in c.edges) + sum(BLOCK * len(h) for h in c.hashes)
    yield from (found[k] for k in sorted(found))


def _families(path: Path) -> Iterator[Line]:
    capture = FamilyCapture.read(path)
    found: dict[str, Line] = {}
    for c in capture.items:
        f = c.family
        words = f.mnemonic.split(".")
        head = "wgmma" if f.wgmma else "mma"
        shape = "" if f.wgmma else f" m{f.size[0]}n{f.size[1]}k{f.size[2]}"
        sparse = ".sp" if f.sparse else ""
        kind = f"`{head}{sparse}{shape} {'.'.join(w for w in words if w in f.types)}`"
        line = found.setdefault(kind, Line(kind, capture.about))
        line.forms.add(f.key)
        line.results += f.ctas * f.words_out * (2 if f.types[0] == "f16" else 1)
    yield from (found[k] for k in sorted(found))


def _machine(path: Path) -> Iterator[Line]:
    capture = MachineCapture.read(path)
    found: dict[str, Line] = defaultdict(lambda: Line("", capture.about))
    for c in capture.items:
        for mnemonics, slots in c.covers:
            for name in mnemonics:
                opcode = ".".join(
                    name.split(".")[: 2 if name.startswith(("mbarrier", "cp", "barrier", "wmma", "fence")) else 1]
                )
                line = found[opcode]
                line.family = f"`{opcode}`"
                line.forms.add(name)
                line.results += slots * 2 * THREADS
    yield from (found[k] for k in sorted(found))


def _arrays(path: Path, title: str) -> Iterator[Line]:
    with np.load(path) as z:
        arrays = dict(z.items())
    about = json.loads(str(arrays.pop("about"))) if "about" in arrays else {}
    line = Line(title, about)
    for name, values in arrays.items():
        if name.endswith("#"):
            line.results += BLOCK * values.size
        elif f"{name}#" not in arrays:
            line.results += values.size
        line.forms.add(name.rpartition("/")[0] or name)
    yield line


def _tensor(path: Path) -> Iterator[Line]:
    with np.load(path) as z:
        arrays = dict(z.items())
    about = json.loads(str(arrays.pop("about"))) if "about" in arrays else {}
    titles = {
        "wgmma": "descriptors of `wgmma`",
        "mma": "fragments of `mma`",
        "load": "tensor loads",
        "store": "tensor stores and reductions",
        "map": "instructions that write tensor maps",
    }
    found = {title: Line(title, about) for title in titles.values()}
    for p in tensor_programs():
        if p.name in arrays:
            line = found[titles[p.name.partition(" ")[0].partition(".")[0]]]
            line.forms.add(p.name)
            line.results += arrays[p.name].size
    yield from (x for x in found.values() if x.forms)


def _differential(path: Path) -> Iterator[Line]:
    capture = DifferentialCapture.read(path)
    line = Line("random straight-line programs", capture.about)
    line.forms = {str(p.number) for p in capture.programs}
    line.results = len(capture.programs) * SLOTS * THREADS
    yield line


def _flow(path: Path) -> Iterator[Line]:
    capture = FlowCapture.read(path)
    line = Line("random programs of many threads", capture.about)
    line.forms, line.results = set(map(str, capture.numbers)), capture.about["words"]
    yield line


_READERS = {
    "scalar": _scalar, "families": _families, "machine": _machine, "tensor": _tensor, "differential": _differential,
    "flow": _flow, "programs": lambda path: _arrays(path, "warp-level, atomic, carry programs"),
}  # fmt: skip


def lines(folder: Path) -> Iterator[Line]:
    """Yield the lines of every capture in a folder."""
    for name in ("scalar", "programs", "machine", "tensor", "families", "differential", "flow"):
        for path in sorted(folder.glob(f"{name}*")):
            if path.suffix in (".capture", ".npz"):
                differing = differing_forms(path)
                for line in _READERS[name](path):
                    line.differing = differing
                    yield line


def table(folder: Path) -> str:
    """Return the table as Markdown."""
    head = ["| forms of | forms | results | architecture | date | device, driver | differ |", "|---|---|---|---|---|---|---|"]
    rows = [
        f"| {x.family} | {len(x.forms):,} | {x.results:,} | {x.about.get('arch', '')} | {x.dates} "
        f"| {x.about.get('device', '')}, {x.about.get('driver', '')} | {x.differ} |"
        for x in lines(folder)
    ]
    return "\n".join([*head, *rows]) + "\n"
