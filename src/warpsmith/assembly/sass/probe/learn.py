"""Learn the table of an architecture: all classes that seed words and flipped bits lead to, form after form."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, final

from warpsmith.assembly.sass.probe.adopt import holds
from warpsmith.assembly.sass.probe.form import Start, Study, learn_form
from warpsmith.assembly.sass.probe.serve import serve
from warpsmith.assembly.sass.probe.subject import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from warpsmith.assembly.sass.probe.oracle import Oracle
    from warpsmith.assembly.sass.probe.store import Store
    from warpsmith.assembly.sass.row import Row

__all__ = ["Learned", "learn"]

_TOGETHER = 64
"""Forms that are learned at one time."""
_MOST_FORMS = 40
"""Forms of one class; what lies beyond is named in the log and left out."""


@final
@dataclass(slots=True)
class Learned:
    """What is known of an architecture: forms by class, and the seed words with their texts."""

    rows: dict[str, list[Row]] = field(default_factory=dict[str, "list[Row]"])
    seeds: dict[str, list[tuple[int, int, str]]] = field(default_factory=dict[str, "list[tuple[int, int, str]]"])
    """Class -> (word, address, text)."""
    log: list[str] = field(default_factory=list[str])
    probes: int = 0


def learn(
    oracle: Oracle,
    words: Iterable[int],
    store: Store,
    tell: Callable[[str, int, int], None],
    *,
    parent: Sequence[Row] = (),
    wander: bool = True,
) -> Learned:
    """Learn every class that the words, or with `wander` flips of their bits, belong to; `tell(what, done, total)` reports
    progress.

    Classes whose forms in `parent`, the rows of another architecture, hold here too are taken over.
    """
    out = Learned()
    _group(oracle, list(dict.fromkeys(plain(w) for w in words)), out)
    _adopt(oracle, parent, store, out, tell)
    lost = [plain(int(r.notes["default"], 0)) for r in parent if r.name not in out.rows and r.name not in out.seeds]
    _group(oracle, lost, out)  # classes that changed, though no seed belongs to them
    starts = [Start(name, _richest(seeds)) for name, seeds in out.seeds.items() if name not in out.rows]
    forms: dict[str, set[tuple[int, int]]] = {}
    tried = set(starts)
    crowded: set[str] = set()
    for generation in range(12):
        fresh = _study(oracle, starts, store, lambda done, total, g=generation: tell(f"generation {g}", done, total))
        starts = []
        classes: dict[str, int] = {}
        for start, study in fresh:
            if study.row and not study.wrong and not study.log:
                study.row.notes.update(seed=f"{start.base:#x}", probes=str(study.probes))
                out.rows.setdefault(start.name, []).append(study.row)
            out.log += [f"{start.name}: a form is left out: {line}" for line in study.log]
            out.probes += study.probes
            if study.wrong and not study.log:
                out.log.append(f"{start.name}: a form is left out: {study.wrong} of {study.tried} samples differ")
            known = forms.setdefault(start.name, set())
            for m in study.more:
                key = (m.fixed, m.base & m.fixed)
                if key not in known and len(known) < _MOST_FORMS:
                    known.add(key)
                    starts.append(m)
                elif key not in known:
                    crowded.add(start.name)
            classes |= {c: w for c, w in study.others.items() if wander and c not in out.seeds}
        starts += _add_seeds(oracle, classes, out)
        if not starts:
            starts = _uncovered(out, tried)
        if not starts:
            break
        tried |= set(starts)
    for name in sorted(crowded):
        out.log.append(f"{name}: left out, more than {_MOST_FORMS} forms")
        out.rows.pop(name, None)
    return out


def _adopt(oracle: Oracle, parent: Sequence[Row], store: Store, out: Learned, tell: Callable[[str, int, int], None]) -> None:
    """Take over the classes of another architecture that hold here, those first that the seeds belong to."""
    classes: dict[str, list[Row]] = {}
    for row in parent:
        classes.setdefault(row.name, []).append(row)
    digests = {n: _digest(rows) for n, rows in classes.items()}
    names = [n for n in classes if (n, digests[n]) not in store.adopted]
    for at in range(0, len(names), 2 * _TOGETHER):
        tell("inherited classes", at, len(names))
        for name, tried in serve(oracle, {n: holds(classes[n]) for n in names[at : at + 2 * _TOGETHER]}).items():
            store.adopt(name, digests[name], tried)
    for name, rows in classes.items():
        if tried := store.adopted[name, digests[name]]:
            out.rows[name] = [replace(r, notes={**r.notes, "probes": str(tried)}) for r in rows]
            out.probes += tried


def _digest(rows: Sequence[Row]) -> str:
    """Return what changes with anything in the rows but their provenance."""
    return f"{zlib.crc32(repr([replace(r, notes={'default': r.notes['default']}) for r in rows]).encode()):08x}"


def _group(oracle: Oracle, words: Sequence[int], out: Learned) -> None:
    for word, text, name in zip(words, oracle.texts(words), oracle.classes(words), strict=True):
        if text and name:
            out.seeds.setdefault(name[0], []).append((word, *text))


def _add_seeds(oracle: Oracle, classes: dict[str, int], out: Learned) -> list[Start]:
    words = [plain(w) for w in classes.values()]
    for name, word, text in zip(classes, words, oracle.texts(words), strict=True):
        out.seeds[name] = [(word, *text)] if text else []
    return [Start(name, word) for name, word in zip(classes, words, strict=True)]


def _richest(seeds: Sequence[tuple[int, int, str]]) -> int:
    return max(seeds, key=lambda s: len(s[2]))[0]


def _study(
    oracle: Oracle, starts: Sequence[Start], store: Store, tell: Callable[[int, int], None]
) -> list[tuple[Start, Study]]:
    todo = [s for s in starts if s not in store.studies]
    for at in range(0, len(todo), _TOGETHER):
        tell(len(starts) - len(todo) + at, len(starts))
        for start, study in serve(oracle, {s: learn_form(s) for s in todo[at : at + _TOGETHER]}).items():
            store.add(start, study)
    return [(s, store.studies[s]) for s in starts]


def _uncovered(out: Learned, tried: set[Start]) -> list[Start]:
    """Return a seed of each class that no form of it covers, or that one prints wrongly, and that was not tried before."""
    starts: list[Start] = []
    for name, seeds in out.seeds.items():
        for word, address, text in seeds:
            row = next((r for r in out.rows.get(name, ()) if r.covers(word) and r.template(word) is not None), None)
            if (row is None or row.text(word, address) != text) and (start := Start(name, word)) not in tried:
                starts.append(start)
                break
    return starts
