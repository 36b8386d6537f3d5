"""A disk cache of compiled code, safe under concurrent processes.

One file an entry: a magic line, the SHA-256 of the rest, the length of the log (8 bytes, little-endian), the log, the cubin.
Files appear by renaming, so a reader sees a whole entry or none; one that fails its checksum is removed and computed again.
The modification time is the time of last use; over its size limit the cache drops what was used longest ago.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import re
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import final

from warpsmith.base.errors import InputError

__all__ = ["CubinCache", "Entry", "default_cache", "default_folder"]

MAGIC = b"warpsmith cubin 1\n"
DIGEST = 32
SUFFIX = ".cubin"
DEFAULT_LIMIT = 1 << 30
STALE = 3600.0
"""Seconds after which a temporary file counts as left behind."""

_complained: set[str] = set()


@final
@dataclass(frozen=True, slots=True)
class Entry:
    """What is kept of a compilation."""

    cubin: bytes
    log: str


@final
class CubinCache:
    """Cubins in `folder`, at most `limit` bytes of them. A cache that cannot be read or written is no error."""

    def __init__(self, folder: Path, limit: int = DEFAULT_LIMIT) -> None:
        self.folder = folder
        self.limit = limit
        self.trouble = ""
        """Why the last `put` kept nothing; empty when it did."""

    @staticmethod
    def key(*parts: str | bytes) -> str:
        """Return the name of an entry: a digest of everything its content depends on."""
        digest = hashlib.sha256()
        for part in parts:
            data = part.encode() if isinstance(part, str) else part
            digest.update(len(data).to_bytes(8, "little") + data)
        return digest.hexdigest()

    def get(self, key: str) -> Entry | None:
        """Return the entry, or None if there is none or it is damaged (then it is removed)."""
        path = self._path(key)
        try:
            data = path.read_bytes()
        except OSError:
            return None
        entry = _unpack(data)
        with contextlib.suppress(OSError):
            if entry is None:
                path.unlink()
            else:
                os.utime(path)
        return entry

    def put(self, key: str, entry: Entry) -> None:
        """Keep the entry; when that is not possible, log a warning once and set `trouble`."""
        self.trouble = ""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            _write_whole(self._path(key), _pack(entry))
            self._evict()
        except OSError as error:
            self.trouble = f"{self.folder} keeps no cubins: {error.strerror or error}"
            if str(self.folder) not in _complained:
                _complained.add(str(self.folder))
                logging.getLogger("warpsmith").warning("%s; set WARPSMITH_CACHE_DIR to another folder", self.trouble)

    def size(self) -> tuple[int, int]:
        """Return how many entries there are, and their bytes."""
        entries = [size for _, size, path in self._entries() if path.suffix == SUFFIX]
        return len(entries), sum(entries)

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}{SUFFIX}"

    def _entries(self) -> list[tuple[float, int, Path]]:
        """Return (time of last use, bytes, path) of every file; files that vanish meanwhile are left out."""
        out: list[tuple[float, int, Path]] = []
        with contextlib.suppress(OSError), os.scandir(self.folder) as files:
            for file in files:
                with contextlib.suppress(OSError):
                    status = file.stat()
                    out.append((status.st_mtime, status.st_size, Path(file.path)))
        return out

    def _evict(self) -> None:
        """Drop files left behind, then the entries used longest ago, until nine tenths of the limit are kept."""
        entries = self._entries()
        old = time.time() - STALE
        for used, _, path in entries:
            if path.suffix != SUFFIX and used < old:
                path.unlink(missing_ok=True)
        kept = sorted(e for e in entries if e[2].suffix == SUFFIX)
        total = sum(size for _, size, _ in kept)
        if total <= self.limit:
            return
        for _, size, path in kept:
            if total <= self.limit * 9 // 10:
                break
            path.unlink(missing_ok=True)
            total -= size


def default_folder() -> Path:
    """Return `WARPSMITH_CACHE_DIR`, or `warpsmith` in the user's cache folder."""
    if chosen := os.environ.get("WARPSMITH_CACHE_DIR"):
        return Path(chosen)
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "warpsmith"


def default_cache() -> CubinCache:
    """Return the cache in the default folder; `WARPSMITH_CACHE_SIZE` (e.g. `500M`, `2G`) limits it, 1 GiB by default."""
    text = os.environ.get("WARPSMITH_CACHE_SIZE", "")
    m = re.fullmatch(r"(\d+)([KMG]?)", text.strip().upper())
    if text and not m:
        raise InputError(f"WARPSMITH_CACHE_SIZE={text!r} is not a size; write bytes, or e.g. 500M or 2G")
    limit = int(m[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[m[2]] if m else DEFAULT_LIMIT
    return CubinCache(default_folder() / "cubins", limit)


def _pack(entry: Entry) -> bytes:
    log = entry.log.encode()
    body = len(log).to_bytes(8, "little") + log + entry.cubin
    return MAGIC + hashlib.sha256(body).digest() + body


def _unpack(data: bytes) -> Entry | None:
    start = len(MAGIC) + DIGEST
    body = data[start:]
    if not data.startswith(MAGIC) or hashlib.sha256(body).digest() != data[len(MAGIC) : start]:
        return None
    length = int.from_bytes(body[:8], "little")
    return Entry(body[8 + length :], body[8 : 8 + length].decode())


def _write_whole(path: Path, data: bytes) -> None:
    """Write to a temporary file and rename it, so that no reader sees half of it."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
