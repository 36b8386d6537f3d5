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

__all__ = ["availability", "unknown"]


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
    if set(words) <= form.words and len(set(words)) == len(words):
        for element in form.elements:
            if not element.optional and not any(w in element.words for w in words):
                one = "one of " if len(element.words) > 1 else ""
                return Complaint(f"`{mnemonic}` lacks {one}{', '.join(f'`.{w}`' for w in element.words)}", None, hint)
    return Complaint(f"the modifiers of `{mnemonic}` do not go together", None, hint)


def _closest(known: tuple[Row, ...], words: list[str]) -> Row:
    return max(known, key=lambda row: (len(row.words & set(words)), -len(row.required - set(words)), -len(row.words)))


def availability(match: Match, version: tuple[int, int], arch: str) -> Complaint | None:
    """Complain about the first word that the PTX version or the architecture lacks."""
    for need in match.needs:
        what = need.what
        if need.ptx is not None and version < need.ptx:
            hint = f"write `.version {need.ptx[0]}.{need.ptx[1]}` or later"
            return Complaint(
                f"`{what}` needs PTX {need.ptx[0]}.{need.ptx[1]}, the module is {version[0]}.{version[1]}", None, hint
            )
        if need.arch is not None and not need.arch.allows(parse_arch(arch)):
            return Complaint(f"`{what}` needs {need.arch}, the target is {arch}", None, f"compile for one of {need.arch}")
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
