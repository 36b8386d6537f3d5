"""Say where a module holds what ptxas makes wrong code of."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from warpsmith.assembly.ptx.flow import Flow
from warpsmith.assembly.ptx.miscompiled.patterns import PATTERNS
from warpsmith.assembly.ptx.miscompiled.table import Entry, release, table
from warpsmith.assembly.ptx.print_items import print_statement
from warpsmith.assembly.ptx.walk import each_instruction
from warpsmith.base.findings import Finding, Related, Severity

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from warpsmith.assembly.ptx.flow import Step
    from warpsmith.assembly.ptx.miscompiled.table import Release
    from warpsmith.assembly.ptx.module import Module

__all__ = ["KIND", "miscompiled"]

KIND = "ptxas-miscompiles"
_UNMEASURED = ("-O0", "-O1", "-O2", "-g", "--device-debug", "--opt-level")
"""Options under which the patterns were not measured: ptxas optimises less, and some of them it compiles right."""


def miscompiled(module: Module, ptxas: str | None = None, options: Sequence[str] = ()) -> list[Finding]:
    """Return a finding for each instruction that ptxas makes wrong code of.

    `ptxas` is the version at hand, e.g. `13.5.37`, and `options` its further arguments. Findings are errors where that release
    was seen to make wrong code; where no release is given, or one that was not measured, they are of severity `portability` and
    say which were. A release that makes right code of a pattern gives none.
    """
    entries = [entry for entry in table().entries if entry.shows_on(module.arch)]
    wanted = {entry: judged for entry in entries if (judged := _judged(entry, ptxas, options))}
    out: list[Finding] = []
    for function in module.functions():
        mnemonics = {i.mnemonic for i in each_instruction(function.body or ())}
        looked_at = {m: found for m in mnemonics if (found := _looking_at(m, wanted, mnemonics))}
        if not looked_at:
            continue
        flow = Flow(module, function)
        for step in flow.steps:
            for entry in looked_at.get(step.instruction.mnemonic, ()):
                if (others := PATTERNS[entry.name](flow, step)) is not None:
                    out.append(_finding(entry, step, others, wanted[entry]))
    return out


def _looking_at(mnemonic: str, wanted: Container[Entry], mnemonics: set[str]) -> list[Entry]:
    """Return the patterns that look at a mnemonic in a function that has `mnemonics`."""
    return [
        entry
        for entry in _candidates(mnemonic)
        if entry in wanted and (entry.besides is None or any(entry.besides.fullmatch(m) for m in mnemonics))
    ]


@lru_cache(maxsize=20_000)
def _candidates(mnemonic: str) -> tuple[Entry, ...]:
    return tuple(entry for entry in table().entries if entry.looks_at.fullmatch(mnemonic))


def _judged(entry: Entry, ptxas: str | None, options: Sequence[str]) -> tuple[Severity, str] | None:
    """Return the severity of the pattern's findings and what they say of ptxas; None for a release that compiles it right."""
    seen = f"seen with {_shown(entry.first)} to {_shown(entry.last)}"
    if ptxas is None:
        return "portability", f"ptxas {entry.makes} ({seen})"
    at, measured = release(ptxas), table().measured
    if at > measured[-1]:
        known, untried = entry.last == measured[-1], _shown(at)
    elif at < measured[0]:
        known, untried = entry.first == measured[0], _shown(at)
    else:
        known, untried = entry.first <= at <= entry.last, " ".join(o for o in options if o.startswith(_UNMEASURED))
    if not known:
        return None
    if untried:
        return "portability", f"ptxas {entry.makes} ({seen}, not tried with {untried})"
    return "error", f"ptxas {_shown(at)} {entry.makes}"


def _finding(entry: Entry, step: Step, others: Sequence[Step], judged: tuple[Severity, str]) -> Finding:
    severity, says = judged
    return Finding(
        kind=KIND,
        severity=severity,
        message=f"`{_text(step)}`: {says} [{entry.name}]",
        where=step.place,
        related=tuple(Related(f"`{_text(s)}`", s.place) for s in others),
        repair=entry.instead,
    )


def _text(step: Step) -> str:
    return " ".join(print_statement(step.instruction).split()).rstrip(";")


def _shown(at: Release) -> str:
    return f"{at[0]}.{at[1]}"
