"""Judge the words of one bucket: decode, compare with the disassembler, encode back; the result is a small record."""

from __future__ import annotations

import json
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from warpsmith.assembly.sass.control import CONTROL_MASK
from warpsmith.assembly.sass.lex import mnemonic_of
from warpsmith.assembly.sass.probe.oracle import Oracle
from warpsmith.assembly.sass.program import tools_of
from warpsmith.assembly.sass.unknown import explain
from warpsmith.base.errors import InputError
from warpsmith.base.whole_file import write_whole
from warpsmith.sass.audit.report import SHOWN, Example, Tally
from warpsmith.sass.audit.words import Words, distinct, integers, text_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from warpsmith.assembly.sass.decode import Decoder
    from warpsmith.assembly.sass.encode import Encoder

__all__ = ["Bucket", "judge", "load_judged"]

_LISTED = 100_000
"""Words that are not exact kept from one bucket, as seeds for probing."""
_TEXT = (1 << 105) - 1
_HIGH = 7 << 125
_REUSE = 7 << 122


@final
@dataclass(frozen=True, slots=True)
class Bucket:
    """The words of an architecture whose hash lies in `[first, last)` of the ranges of `words.index_of`."""

    name: str
    arch: str
    files: tuple[str, ...]
    first: int
    last: int
    tables: str
    """Folder of the tables."""


@final
@dataclass(frozen=True, slots=True)
class _Text:
    """The first word of those that share a text, and our text of it at an address."""

    word: int
    address: int
    text: str | None
    mnemonic: str
    """'' for words that both sides reject."""


@final
class _Judged:
    """Counts and examples of one bucket."""

    def __init__(self, arch: str) -> None:
        self.arch = arch
        self.tallies: dict[str, Tally] = {}
        self.examples: dict[tuple[str, str], list[Example]] = {}
        self.illegal = 0
        self.wrong: list[int] = []

    def note(self, mnemonic: str, kind: str, word: int, ours: str, theirs: str) -> None:
        """Keep an example; the words of least value stay."""
        kept = self.examples.setdefault((mnemonic, kind), [])
        kept.append(Example(self.arch, mnemonic, kind, word, ours, theirs))
        if len(kept) > 8 * SHOWN:
            kept.sort(key=lambda e: e.word)
            del kept[SHOWN:]

    def plain(self) -> dict[str, Any]:
        """Return what is stored."""
        examples = [astuple(e) for kept in self.examples.values() for e in sorted(kept, key=lambda e: e.word)[:SHOWN]]
        return {
            "tallies": {k: list(astuple(t)) for k, t in self.tallies.items()},
            "examples": examples,
            "illegal": self.illegal,
            "wrong": [f"{w:#x}" for w in sorted(self.wrong)[:_LISTED]],
        }


def judge(bucket: Bucket, folder: Path) -> None:
    """Judge a bucket and write `folder/<name>.json`."""
    words = _load(bucket)
    decoder, encoder = tools_of(bucket.arch, Path(bucket.tables))
    out = _Judged(bucket.arch)
    if len(words):
        key = text_key(words)
        starts = np.flatnonzero(np.concatenate(([True], (key[1:] != key[:-1]).any(1))))
        counts = np.diff(np.append(starts, len(words)))
        firsts = integers(words[starts])
        answers = Oracle(bucket.arch).texts(firsts)
        places = [0 if a is None else a[0] for a in answers]
        theirs = [None if a is None else a[1] for a in answers]
        ours = [decoder.text(w, at) for w, at in zip(firsts, places, strict=True)]
        names = _compare(out, decoder, firsts, ours, theirs, counts.tolist())
        group = np.repeat(np.arange(len(starts)), counts)
        texts = [_Text(*t) for t in zip(firsts, places, ours, names, strict=True)]
        _encode(out, (decoder, encoder), words, group, texts)
    write_whole(folder / f"{bucket.name}.json", json.dumps(out.plain()).encode())


def _load(bucket: Bucket) -> Words:
    parts: list[Words] = []
    for name in bucket.files:
        path = Path(name)
        index = np.load(path.with_suffix(".index.npy"))
        parts.append(np.array(np.load(path, mmap_mode="r")[index[bucket.first] : index[bucket.last]]))
    return distinct(np.concatenate(parts))


def _compare(
    out: _Judged,
    decoder: Decoder,
    words: Sequence[int],
    ours: Sequence[str | None],
    theirs: Sequence[str | None],
    counts: Sequence[int],
) -> list[str]:
    """Count the texts; return the mnemonic of each, '' for words that both sides reject."""
    names: list[str] = []
    for word, mine, other, count in zip(words, ours, theirs, counts, strict=True):
        text = mine if other is None else other
        if text is None:
            out.illegal += 1
            names.append("")
            continue
        name = mnemonic_of(text)
        names.append(name)
        tally = out.tallies.get(name)
        if tally is None:
            tally = out.tallies[name] = Tally()
        tally.words += 1
        tally.raw += count
        if mine == other:
            tally.exact += 1
            continue
        out.wrong.append(word)
        if mine is None:
            tally.unknown += 1
            out.note(name, "unknown", word, explain(decoder.table, word), text)
        elif other is None:
            tally.rejected += 1
            out.note(name, "rejected", word, mine, "")
        else:
            tally.differing += 1
            out.note(name, "differing", word, mine, other)
    return names


def _encode(
    out: _Judged,
    tools: tuple[Decoder, Encoder],
    words: Words,
    group: NDArray[np.int64],
    texts: Sequence[_Text],
) -> None:
    """Encode each text, then each control code with it; count the words that come back the same.

    `group` gives the index of each word's text in `texts`.
    """
    decoder, encoder = tools
    back = [0] * len(texts)
    reasons: dict[int, str] = {}
    for at, t in enumerate(texts):
        if t.text is not None:
            try:
                back[at] = encoder.word(t.text, address=t.address)
                # where only control bits differ, the encoder has made sure of the text
                if (back[at] ^ t.word) & _TEXT and (again := decoder.text(back[at], t.address)) != t.text:
                    reasons[at] = f"becomes {back[at]:#034x}, which reads {again!r}"
            except InputError as error:
                reasons[at] = str(error)
    good = np.array([t.text is not None and at not in reasons for at, t in enumerate(texts)], bool)
    same = np.array([not (b ^ t.word) & ~(CONTROL_MASK | _HIGH) for b, t in zip(back, texts, strict=True)], bool)
    encoded = good[group]
    encoded &= _controls(tools, words, group, back, texts, reasons)
    canonical = encoded & same[group] & (words[:, 1] < np.uint64(1 << 61))
    for t, n, m in zip(texts, _sums(encoded, group, len(texts)), _sums(canonical, group, len(texts)), strict=True):
        if t.mnemonic:
            out.tallies[t.mnemonic].encoded += n
            out.tallies[t.mnemonic].canonical += m
    for at, reason in reasons.items():
        t = texts[at]
        out.note(t.mnemonic, "encode", t.word, reason, t.text or "")


def _sums(flags: NDArray[np.bool_], group: NDArray[np.int64], length: int) -> list[int]:
    return np.bincount(group, flags, length).astype(np.int64).tolist()


def _controls(
    tools: tuple[Decoder, Encoder],
    words: Words,
    group: NDArray[np.int64],
    back: Sequence[int],
    texts: Sequence[_Text],
    reasons: dict[int, str],
) -> NDArray[np.bool_]:
    """Say for each word whether its control bits come back with its text; what is refused is added to `reasons`.

    Whether they do depends on the form, the reuse bits of the text and the control bits; each combination is tried once.
    """
    decoder, encoder = tools
    rows: dict[int, int] = {}
    forms = np.zeros(len(back), np.uint64)
    for at, (word, t) in enumerate(zip(back, texts, strict=True)):
        if t.text is not None and at not in reasons and (form := decoder.form(word)):
            forms[at] = 1 + rows.setdefault(id(form.row), len(rows)) << 3 | (word & _REUSE) >> 122
    control = (words[:, 1] >> np.uint64(41)) & np.uint64((1 << 20) - 1)
    kinds, example, place = np.unique(forms[group] << np.uint64(20) | control, return_index=True, return_inverse=True)
    taken = np.zeros(len(kinds), bool)
    for number, (kind, at) in enumerate(zip(kinds.tolist(), group[example].tolist(), strict=True)):
        if kind >> 20:
            bits = (kind & ((1 << 20) - 1)) << 105
            try:
                found = encoder.word(texts[at].text or "", control=bits, address=texts[at].address)
                taken[number] = found == back[at] & ~CONTROL_MASK | bits
            except InputError as error:
                reasons.setdefault(at, str(error))
    return taken[place]


def load_judged(folder: Path, buckets: Iterable[Bucket]) -> Iterable[tuple[str, dict[str, Any]]]:
    """Return architecture and record of each bucket, in order."""
    for bucket in buckets:
        yield bucket.arch, json.loads((folder / f"{bucket.name}.json").read_bytes())
