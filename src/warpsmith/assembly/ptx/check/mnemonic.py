"""The words of an instruction: known or not, what was meant, and where they are available."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from warpsmith.assembly.ptx.check.complaint import Complaint
from warpsmith.assembly.ptx.check.forms import row_form
from warpsmith.assembly.ptx.isa import opcodes, rows
from warpsmith.base.arch import parse_arch

if TYPE_CHECKING:
    from warpsmith.assembly.ptx.isa import Match, Row
    from warpsmith.assembly.ptx.isa.row import Element

__all__ = ["availability", "newer", "unknown"]


def unknown(mnemonic: str) -> Complaint:
    """Explain why `mnemonic` fits no row."""
    opcode, *words = mnemonic.split(".")
    known = rows(opcode)
    if not known:
        close = get_close_matches(opcode, opcodes(), 1)
        return Complaint(f"unknown instruction `{opcode}`", None, f"did you mean `{close[0]}`?" if close else "")
    vocabulary = {w for row in known for w in row.words}
    for word in words:
        if word not in vocabulary:
            close = get_close_matches(word, sorted(vocabulary), 1)
            hint = f"did you mean `.{close[0]}`?" if close else f"closest form: {row_form(_closest(known, words))}"
            return Complaint(f"`{opcode}` has no modifier `.{word}`", None, hint)
    form = _closest(known, words)
    hint = f"closest form: {row_form(form)}"
    if len(set(words)) == len(words) and (missing := _missing(form, words)):
        alone = [m[0] for row in known if len(m := _missing(row, words)) == 1]
        if (
            len(alone) > 1
        ):  # several forms lack a word each: any of them would do, and none of the forms is meant more than another
            choice = dict.fromkeys(w for element in alone for w in element.words)
            return Complaint(
                f"`{mnemonic}` lacks one of {', '.join(f'`.{w}`' for w in choice)}", None, "" if len(choice) > 3 else hint
            )
        one = "one of " if len(missing[0].words) > 1 else ""
        return Complaint(f"`{mnemonic}` lacks {one}{', '.join(f'`.{w}`' for w in missing[0].words)}", None, hint)
    return Complaint(f"the modifiers of `{mnemonic}` do not go together", None, hint)


def _missing(row: Row, words: list[str]) -> list[Element]:
    """Return the parts that a form wants and the words lack; none for a form that has other words than these."""
    if not set(words) <= row.words:
        return []
    return [e for e in row.elements if not e.optional and not any(w in e.words for w in words)]


def _closest(known: tuple[Row, ...], words: list[str]) -> Row:
    return max(known, key=lambda row: (len(row.words & set(words)), -len(row.required - set(words)), -len(row.words)))


def newer(what: str, wanted: tuple[int, int], version: tuple[int, int], index: int | None = None) -> Complaint:
    """Complain about a module of PTX `version` that has what came with the version `wanted`."""
    hint = f"write `.version {wanted[0]}.{wanted[1]}` or later"
    return Complaint(f"{what} needs PTX {wanted[0]}.{wanted[1]}, the module is {version[0]}.{version[1]}", index, hint)


def availability(match: Match, version: tuple[int, int], arch: str) -> Complaint | None:
    """Complain about the first word that the PTX version or the architecture lacks."""
    for need in match.needs:
        what = need.what
        if need.ptx is not None and version < need.ptx:
            return newer(f"`{what}`", need.ptx, version)
        if need.arch is not None and not need.arch.allows(parse_arch(arch)):
            return Complaint(f"`{what}` needs {need.arch}, the target is {arch}", None, f"compile for one of {need.arch}")
    first = match.row.first(parse_arch(arch))
    if version < first:
        return newer(f"`{match.mnemonic}` for {arch}", first, version)
    gone = match.row.removed
    if gone is not None and match.row.gone(version, parse_arch(arch)):
        since = f"PTX {gone.ptx[0]}.{gone.ptx[1]}" if gone.ptx else "PTX"
        where = f" for {gone.arch}" if gone.arch else ""
        message = f"{since} removed `{match.mnemonic}`{where}, the module is {version[0]}.{version[1]} for {arch}"
        hint = (
            "write the form with `.sync`" if "sync" not in match.row.words else "leave out what was removed, or write older PTX"
        )
        return Complaint(message, None, hint)
    return None
