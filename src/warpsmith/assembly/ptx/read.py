"""Read PTX given as text, as a path or as a module already read."""

from __future__ import annotations

import os

from warpsmith.assembly.ptx.module import Module
from warpsmith.assembly.ptx.parser import LIMIT, parse_file
from warpsmith.assembly.ptx.parser import parse as parse_text
from warpsmith.base.errors import InputError

__all__ = ["parse"]


def parse(source: str | os.PathLike[str] | Module, name: str = "<string>", *, limit: int = LIMIT) -> Module:
    """Return the module of PTX text or of a file: a path object, or a string of one line (PTX text has several).

    `name` is what messages call a text; more than `limit` bytes are refused.

    Raises `PtxError` with every problem of text that is not PTX, `InputError` for a file that cannot be read.
    """
    if isinstance(source, Module):
        return source
    if isinstance(source, os.PathLike):
        return parse_file(source, limit=limit)
    if not isinstance(source, str):
        raise InputError(f"PTX is given as text or as a path, not as {type(source).__name__}")
    one_line = "\n" not in source and source.strip() and ".version" not in source
    return parse_file(source, limit=limit) if one_line else parse_text(source, name, limit=limit)
