"""Files read whole within a limit, and files that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path
from typing import BinaryIO

from warpsmith.base.errors import InputError

__all__ = ["LIMIT", "read_stream", "read_whole", "write_whole"]

LIMIT = 1 << 30
"""Bytes that are read from a file into memory, unless the caller says otherwise."""


def read_whole(path: str | os.PathLike[str], limit: int = LIMIT) -> bytes:
    """Return the bytes of a file, or what a device or pipe gives until it ends.

    Raises `InputError` for more than `limit` bytes and for an empty path, `OSError`, which names the file, where it cannot be
    read.
    """
    if not os.fspath(path):
        raise InputError("the path is empty; name a file")
    try:
        with Path(path).open("rb") as file:
            return read_stream(file, str(path), limit)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


def read_stream(file: BinaryIO, name: str, limit: int = LIMIT) -> bytes:
    """Return what a stream gives until it ends; raise `InputError` for more than `limit` bytes."""
    parts: list[bytes] = []
    left = limit + 1
    while left and (part := file.read(min(left, _PART))):
        parts.append(part)
        left -= len(part)
    if not left:
        raise InputError(f"{name}: more than {limit:,} bytes, the most that is read into memory here")
    return b"".join(parts)


_PART = 1 << 24
"""Bytes read at a time, so that an endless device is noticed before the memory of `limit` is taken."""


def write_whole(path: Path, data: bytes) -> None:
    """Write `data` to a temporary file beside `path` and rename it; nothing is left behind on an error.

    A link is followed; a device or a pipe is written to, never replaced.
    """
    try:
        target = Path(os.path.realpath(path))
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if target.exists() and not target.is_file():
            target.write_bytes(data)
        else:
            _replace(target, data)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


def _replace(path: Path, data: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".warpsmith-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
