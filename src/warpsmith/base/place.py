"""Where the user stands: the innermost Python frame outside the DSL, as a `Place` or as an error message.

It lives in `base` because tiles, too, are declared at a user's line.
"""

from __future__ import annotations

import linecache
import os
import sys
from typing import TYPE_CHECKING

from warpsmith.base.errors import KernelError, Problem
from warpsmith.base.source import Place, Source, Span

if TYPE_CHECKING:
    from types import FrameType, TracebackType

__all__ = ["error", "misuse", "place_error", "shown_path", "user_frame", "user_place"]

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_ROOMS = ("base" + os.sep, "dsl" + os.sep, "ptx" + os.sep, "reg.py", "smem.py", "debugkit")

_LIBRARY = os.path.dirname(os.path.abspath(os.__file__)) + os.sep

_internal: dict[str, bool] = {}
"""file name of a code object -> whether it belongs to the DSL."""

_places: dict[tuple[str, int], Place] = {}


def _is_internal(filename: str) -> bool:
    known = _internal.get(filename)
    if known is None:
        path = os.path.abspath(filename)
        known = path.startswith(_ROOT) and path[len(_ROOT) :].startswith(_ROOMS)
        _internal[filename] = known
    return known


def user_frame() -> FrameType:
    """Return the innermost frame that is not the DSL's own."""
    frame = sys._getframe(1)
    internal = _internal
    while True:
        name = frame.f_code.co_filename
        known = internal.get(name)
        if known is None:
            known = _is_internal(name)
        if not known or frame.f_back is None:
            return frame
        frame = frame.f_back


def user_place() -> Place:
    """Return the user's file (absolute as Python knows it) and line."""
    frame = user_frame()
    key = (frame.f_code.co_filename, frame.f_lineno)
    place = _places.get(key)
    if place is None:
        place = _places[key] = Place(key[0], key[1])
    return place


def shown_path(filename: str) -> str:
    """Return `filename` as messages show it: relative to the working directory when inside it."""
    if filename.startswith("<"):
        return filename
    path = os.path.abspath(filename)
    try:
        here = os.getcwd() + os.sep
    except OSError:
        return path
    return path[len(here) :] if path.startswith(here) else path


def _span(frame: FrameType, at_line: int, at_instruction: int) -> Span | None:
    filename = frame.f_code.co_filename
    lines = linecache.getlines(filename, frame.f_globals)
    if not lines or not 0 < at_line <= len(lines):
        return None
    source = Source("".join(lines), shown_path(filename))
    positions = list(frame.f_code.co_positions())
    at = at_instruction // 2
    line, end_line, column, end_column = positions[at] if at < len(positions) else (None, None, None, None)
    if line is None or column is None or end_column is None or end_line is None:
        line = end_line = at_line
        text = lines[line - 1]
        column, end_column = len(text) - len(text.lstrip()), len(text.rstrip())
    elif line != at_line:
        line, column, end_line, end_column = at_line, 0, at_line, len(lines[at_line - 1].rstrip())
    # co_positions counts bytes of UTF-8, spans count characters
    column = len(lines[line - 1].encode()[:column].decode(errors="replace"))
    end_column = len(lines[end_line - 1].encode()[:end_column].decode(errors="replace"))
    start = sum(map(len, lines[: line - 1]))
    end = sum(map(len, lines[: end_line - 1]))
    return Span(source, start + column, end + end_column)


def error(message: str, hint: str = "") -> KernelError:
    """Build the `KernelError` of the call the user is making: message, file:line, source line with caret, hint."""
    frame = user_frame()
    return _error(_span(frame, frame.f_lineno, frame.f_lasti), frame.f_code.co_filename, frame.f_lineno, message, hint)


def misuse(caught: Exception) -> KernelError | None:
    """Build the `KernelError` of a slip inside the DSL that a wrong argument caused; None if the user's own code raised it."""
    user: TracebackType | None = None
    at = caught.__traceback__
    while at is not None and at.tb_next is not None:
        name = at.tb_frame.f_code.co_filename
        if not _is_internal(name) and not name.startswith(_LIBRARY):
            user = at if _is_internal(at.tb_next.tb_frame.f_code.co_filename) else None
        at = at.tb_next
    last = at.tb_frame.f_code.co_filename if at is not None else ""
    if user is None or not (_is_internal(last) or last.startswith(_LIBRARY)):
        return None
    frame = user.tb_frame
    span = _span(frame, user.tb_lineno, user.tb_lasti)
    return _error(span, frame.f_code.co_filename, user.tb_lineno, f"an argument of this call has the wrong type: {caught}", "")


def place_error(place: Place, message: str, hint: str = "") -> KernelError:
    """Build the `KernelError` of a line the user wrote earlier."""
    lines = linecache.getlines(place.file)
    span = None
    if 0 < place.line <= len(lines):
        text = lines[place.line - 1]
        start = sum(map(len, lines[: place.line - 1]))
        source = Source("".join(lines), shown_path(place.file))
        span = Span(source, start + len(text) - len(text.lstrip()), start + len(text.rstrip()))
    return _error(span, place.file, place.line, message, hint)


def _error(span: Span | None, filename: str, line: int, message: str, hint: str) -> KernelError:
    if span is not None:
        return KernelError(str(Problem(message, span, hint)))
    text = f"{shown_path(filename)}:{line}: error: {message}"
    return KernelError(f"{text}\n  hint: {hint}" if hint else text)
