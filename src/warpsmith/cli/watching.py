"""`--watch CTA:THREAD:LINE=SHOW,…`: watch points on the command line."""

from __future__ import annotations

from warpsmith.base.errors import InputError
from warpsmith.simulator import Watch

__all__ = ["parse_watch"]

_FORM = "write CTA:THREAD:LINE or CTA:THREAD:FILE:LINE, * for every one, and after = what to show, e.g. 0:37:25=%r1,value"


def parse_watch(text: str) -> Watch:
    """Return the watch point of an option.

    >>> parse_watch("0:37:25=%r1,value").on
    (0, 37, 25)
    """
    where, _, what = text.partition("=")
    parts = where.split(":", 2)
    if len(parts) != 3:
        raise InputError(f"--watch {text}: {_FORM}")
    cta, thread = (_number(p, text) for p in parts[:2])
    line = parts[2] if ":" in parts[2] else _number(parts[2], text)
    return Watch(on=(cta, thread, line), show=tuple(s for s in what.split(",") if s))


def _number(text: str, whole: str) -> int | None:
    if text == "*":
        return None
    if not text.isdecimal():
        raise InputError(f"--watch {whole}: `{text}` is no number; {_FORM}")
    return int(text)
