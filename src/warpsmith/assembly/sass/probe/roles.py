"""Find out which registers a form reads and writes: life ranges of words in which every operand has a register of its own.

A word of the form, twice with registers of its own for each operand, once ascending and once descending, is marked by
`LifeRanges`. The run of marked registers from an operand's number on is what it reads or writes; where two operands meet, the
other placement decides. Marks that stay the same in both placements belong to registers that no operand names. Modifiers are
varied one at a time and at random; a rule keeps those on which the outcome depends. Fresh words try the rules at the end: one
that any of them contradicts is given up.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, final

from warpsmith.assembly.sass.probe.decide import decide, values_missing
from warpsmith.assembly.sass.probe.slots import (
    default_word,
    find_slots,
    free_selectors,
    in_text_order,
    place,
    put,
    shuffle,
    variants,
)
from warpsmith.assembly.sass.roles import FormRoles, Outcome, Rule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warpsmith.assembly.sass.probe.liveness import LifeRanges, Marks
    from warpsmith.assembly.sass.probe.oracle import Oracle
    from warpsmith.assembly.sass.roles import Slot
    from warpsmith.assembly.sass.row import Row

__all__ = ["learn_roles"]

_Uses = tuple[frozenset[tuple[str, int]], frozenset[tuple[str, int]]]
"""Registers read and registers written."""


@final
class _Form:
    """What is known of one form so far."""

    def __init__(self, row: Row, *, few: bool) -> None:
        self.row = row
        self.draw = Random(row.value)
        slots = find_slots(row, self.draw)
        self.words = variants(row, slots, self.draw, mixed=0 if few else 64)
        if few:
            self.words = self.words[:1] + self.draw.sample(self.words[1:], min(12, len(self.words) - 1))
        self.slots: Sequence[Slot] = in_text_order(row, slots, [place(w, slots, backwards=False) for w in self.words[:200]])
        self.samples: list[tuple[int, tuple[str, ...]]] = []
        """(word, outcome of each slot and, last, of the registers that no operand names)."""
        self.judged: tuple[list[Rule | None], int] = ([], 0)
        """What `check` found: the rules, and how many samples they explain."""
        self.odd = 0
        """Words whose marks are not explained."""

    def placed(self) -> list[tuple[int, int]]:
        """Return each word ascending and descending, where the form takes both."""
        out: list[tuple[int, int]] = []
        for word in self.words:
            pair = place(word, self.slots, backwards=False), place(word, self.slots, backwards=True)
            if all(self.row.covers(w) and self.row.template(w) is not None for w in pair):
                out.append(pair)
        return out

    def take(self, first: int, second: int, a: Marks, b: Marks) -> None:
        """Add what the marks of both placements say."""
        ours, others = _uses(a), _uses(b)
        outcomes: list[Outcome] = []
        for slot in self.slots:
            runs = [
                min(_run(x[k], slot, w, others) for x, w, others in ((ours, first, self.slots), (others, second, self.slots)))
                for k in (0, 1)
            ]
            outcomes.append(Outcome(*runs))
        rest = [_unexplained(u, self.slots, outcomes, w) for u, w in ((ours, first), (others, second))]
        if rest[0] != rest[1]:
            self.odd += 1
            return
        self.samples.append((first, (*map(str, outcomes), _implicit(rest[0]))))

    def check(self) -> None:
        """Ask for fresh words, if there are rules that others than their samples could contradict."""
        rules = [self._rule(i) for i in range(len(self.slots) + 1)]
        fresh = (
            [shuffle(self.row, default_word(self.row), self.draw) for _ in range(96)]
            if any(r and r.bits for r in rules)
            else []
        )
        self.words = [w for w in dict.fromkeys(fresh) if self.row.covers(w) and self.row.template(w) is not None]
        self.judged = (rules, len(self.samples))

    def _refuted(self, index: int) -> bool:
        """Say whether a word asked for by `check` has another outcome than the rule that was known before."""
        rules, start = self.judged
        rule = rules[index]
        return rule is None or any(
            (said := rule.of(word)) is not None and said != outcome[index] for word, outcome in self.samples[start:]
        )

    def more(self) -> None:
        """Ask for the values of modifiers that no word has shown so far, where an outcome depends on them."""
        fresh: list[int] = []
        for index in range(len(self.slots) + 1):
            rule = self._rule(index)
            if rule is not None and rule.bits:
                for value in values_missing(rule):
                    fresh += [put(w, rule.bits, value) for w in self.draw.sample(self.words, min(3, len(self.words)))]
        self.words = [w for w in dict.fromkeys(fresh) if self.row.covers(w) and self.row.template(w) is not None]

    def _rule(self, index: int) -> Rule | None:
        return decide([(w, o[index]) for w, o in self.samples], free_selectors(self.row, self.slots))

    def roles(self) -> tuple[FormRoles, list[str]]:
        """Return what was learned, and remarks on what was not."""
        log = [f"{self.odd} words with marks that no operand explains"] if self.odd else []
        unknown = Rule((), {})
        rules: list[Rule] = []
        for index in range(len(self.slots) + 1):
            rule = self._rule(index) if self.samples else None
            if rule is not None and self._refuted(index):
                rule = None
            if rule is None:
                log.append(f"no rule for {self.slots[index] if index < len(self.slots) else 'unnamed registers'}")
            rules.append(rule or unknown)
        slots = tuple(replace(s, rule=r) for s, r in zip(self.slots, rules[:-1], strict=True))
        return FormRoles(slots, rules[-1]), log


def _uses(marks: Marks) -> _Uses:
    reads, writes = (frozenset(k for k, sign in marks.items() if letter in sign) for letter in "rw")
    return reads, writes


def _run(used: frozenset[tuple[str, int]], slot: Slot, word: int, slots: Sequence[Slot]) -> int:
    """Count the marked registers from the slot's own on; predicates stand alone."""
    first = slot.number(word)
    if slot.group in ("P", "UP"):
        return int((slot.group, first) in used)
    count = 0
    while (slot.group, first + count) in used:
        count += 1
    return count


def _unexplained(uses: _Uses, slots: Sequence[Slot], outcomes: Sequence[Outcome], word: int) -> _Uses:
    reads, writes = set(uses[0]), set(uses[1])
    for slot, outcome in zip(slots, outcomes, strict=True):
        first = slot.number(word)
        reads -= {(slot.group, first + i) for i in range(outcome.reads)}
        writes -= {(slot.group, first + i) for i in range(outcome.writes)}
    return frozenset(reads), frozenset(writes)


def _implicit(rest: _Uses) -> str:
    """Return the text of registers that no operand names, runs together."""
    parts: list[str] = []
    kind = {k: ("r" if k in rest[0] else "") + ("w" if k in rest[1] else "") for k in rest[0] | rest[1]}
    left = sorted(kind)
    while left:
        group, first = left[0]
        count = 1
        while kind.get((group, first + count)) == kind[left[0]]:
            count += 1
        parts.append(f"{group}{first}" + "".join(f"{c}{count}" for c in kind[left[0]]))
        left = left[count:]
    return "+".join(parts) or "-"


def learn_roles(
    rows: Sequence[Row], oracle: Oracle, ranges: LifeRanges, *, alone: bool
) -> list[tuple[Row, FormRoles, list[str]]]:
    """Return the registers of forms, each with remarks.

    `alone` is for forms that steer the flow of control: each word in a function of its own, few of them, and none where the
    disassembler refuses the form's first.
    """
    forms = [_Form(row, few=alone) for row in rows]
    if alone:
        firsts = [place(form.words[0], form.slots, backwards=False) if form.words else 0 for form in forms]
        good = oracle.texts(firsts)
        for form, word, text in zip(forms, firsts, good, strict=True):
            if text is None or ranges.marks([word], alone=True) == [None]:
                form.words = []
    for step in (_Form.more, _Form.more, _Form.check, _Form.more, _Form.more, _Form.check, None):
        _ask(forms, oracle, ranges, alone=alone)
        for form in forms:
            if step:
                step(form)
    return [(form.row, *form.roles()) for form in forms]


def _ask(forms: Sequence[_Form], oracle: Oracle, ranges: LifeRanges, *, alone: bool) -> None:
    asked = [(form, pair) for form in forms for pair in form.placed()]
    legal = [t is not None for t in oracle.texts([w for _, pair in asked for w in pair])]
    good = [a for i, a in enumerate(asked) if legal[2 * i] and legal[2 * i + 1]]
    marks = ranges.marks([w for _, pair in good for w in pair], alone=alone)
    for i, (form, pair) in enumerate(good):
        a, b = marks[2 * i], marks[2 * i + 1]
        if a is not None and b is not None:
            form.take(*pair, a, b)
