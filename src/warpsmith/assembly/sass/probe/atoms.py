"""Texts with their fields marked: what remains when numbers are taken out, so that effects hold for every value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.assembly.sass.floats import FLOAT_KINDS
from warpsmith.assembly.sass.probe.diff import Tokens, edits_of
from warpsmith.assembly.sass.row import gather, scatter
from warpsmith.assembly.sass.tokens import RELATIVE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warpsmith.assembly.sass.probe.requests import Asking
    from warpsmith.assembly.sass.probe.subject import Effect, Subject
    from warpsmith.assembly.sass.row import Field

__all__ = ["abstract", "alternate", "ask_atoms", "base_atoms", "concrete", "hole", "token_of"]

_MARK = "«"


def token_of(found: Field, word: int) -> str:
    """Return the token of a field as a subject's tokens show it."""
    return f"{RELATIVE}{found.number(word):#x}" if found.kind == "r" else found.text(word, 0)


def mark(index: int) -> str:
    """Return the token that stands for field `index`."""
    return f"{_MARK}{index}"


def hole(token: str) -> int | None:
    """Return the field that a marked token stands for, None for plain tokens."""
    return int(token[1:]) if token[0] == _MARK else None


def base_atoms(s: Subject) -> Tokens:
    """Return the base's tokens with the fields marked where they were found."""
    places = {p: i for i, (_, at) in enumerate(s.fields) for p in at}
    return tuple(mark(places[p]) if p in places else t for p, t in enumerate(s.tokens))


def abstract(s: Subject, words: Sequence[int], texts: Sequence[Tokens]) -> Tokens:
    """Mark the fields in the text of a word, told apart by the texts of the same word with other values in its fields.

    A token is a field's if it reads as the field in every text; of fields that still read alike, the earlier comes first.
    """
    places: list[dict[str, list[int]]] = []
    for word in words:
        here: dict[str, list[int]] = {}
        for index, (found, _) in enumerate(s.fields):
            here.setdefault(token_of(found, word), []).append(index)
        places.append(here)
    used: dict[int, int] = {}
    out: list[str] = []
    for tokens in zip(*texts, strict=True):
        fits = [here.get(token, ()) for here, token in zip(places, tokens, strict=True)]
        common = [i for i in fits[0] if all(i in other for other in fits[1:])]
        if not common:
            out.append(tokens[0])
        else:
            chosen = min(common, key=lambda i: (used.get(i, 0), s.fields[i][1]))
            used[chosen] = used.get(chosen, 0) + 1
            out.append(mark(chosen))
    return tuple(out)


def alternate(s: Subject, word: int) -> int:
    """Return the word with other ordinary values in its fields; fields at a special value keep it."""
    seen: dict[str, int] = {}
    for found, _ in s.fields:
        now = gather(word, found.bits)
        if now != gather(s.base, found.bits):
            continue
        turn = seen[found.kind] = seen.get(found.kind, 0) + 1
        if found.kind in ("P", "UP"):
            new = (now + 3 - turn % 2) % 7
        elif found.kind in ("R", "UR"):
            new = (4 * turn + (140 if found.width > 6 else 0)) % ((1 << found.width) - 4)
        elif found.kind in FLOAT_KINDS:
            new = now ^ (0x25 + 2 * turn)
        else:
            new = now ^ (0x28 if found.width > 6 else 1)
        word ^= scatter(now ^ new, found.bits)
    return word


def concrete(s: Subject, atoms: Sequence[str], word: int) -> Tokens:
    """Put the values that `word` has into marked tokens."""
    return tuple(t if (i := hole(t)) is None else token_of(s.fields[i][0], word) for t in atoms)


def effects_of(
    s: Subject, words: Sequence[int], texts: Sequence[Tokens | None], others: Sequence[Tokens | None]
) -> list[Effect]:
    """Return what words did to the marked base text; `others` are the texts of `alternate(s, word)`."""
    out: list[Effect] = []
    for word, text, other in zip(words, texts, others, strict=True):
        if text is None:
            out.append(None)
        elif other is None or len(other) != len(text):
            out.append(edits_of(s.atoms, abstract(s, [word], [text])))
        else:
            out.append(edits_of(s.atoms, abstract(s, [word, alternate(s, word)], [text, other])))
    return out


def ask_atoms(s: Subject, words: Sequence[int]) -> Asking[list[Effect]]:
    """Ask for the effects of words on the marked base text."""
    texts = yield from s.ask_tokens([*words, *(alternate(s, w) for w in words)])
    return effects_of(s, words, texts[: len(words)], texts[len(words) :])
