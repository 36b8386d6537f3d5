"""Find every cubin and every PTX text in files: cubins, PTX, fat binaries, objects, libraries, `.a` archives, wheels and other
zips.

Files are mapped, not read; entries are decompressed when asked for; members of a zip are unpacked into a temporary file, one at
a time.
"""

from __future__ import annotations

import io
import mmap
import os
import stat
import tempfile
import zipfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, final

from warpsmith.base.errors import CapabilityError, CubinError, InputError
from warpsmith.cubin.binary import forget
from warpsmith.cubin.compression import DEFAULT_LIMIT, METHODS, decompress
from warpsmith.cubin.fatbin import read_entries
from warpsmith.cubin.host import containers, elf_size, is_cubin, looks_like_ptx, regions
from warpsmith.cubin.model import read_cubin

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from warpsmith.cubin.binary import Buffer
    from warpsmith.cubin.fatbin import Entry
    from warpsmith.cubin.model import Cubin

__all__ = ["Found", "files_below", "find", "require_regular"]

_AR, _THIN = b"!<arch>\n", b"!<thin>\n"
_AR_HEADER = 60
_ZIP = b"PK\x03\x04"
_NESTED = 3
"""Archives inside archives that are followed."""
_MEMBER_LIMIT = 8 << 30
"""Bytes that one member of a zip may have; the largest library seen has 2 GB."""
_MEMBER_RATIO = 200
"""Deflate packs code 2 to 10 times; a member that claims more than this is refused."""
_CHUNK = 1 << 20
_KEPT = 1 << 26


@final
@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """One cubin or PTX text. `path` names members of archives behind `!`; `offset` counts in the innermost file."""

    path: str
    offset: int
    section: str | None
    kind: str
    """`elf`, `ptx`, or `kind 8` for an entry that is not known."""
    arch: str | None
    """The architecture; None for a PTX file, which `.target` tells."""
    size: int
    """Bytes when decompressed; up to seven more than `read` gives for an entry that is not compressed."""
    stored: int
    """Bytes in the file."""
    compression: str
    """`none`, `lz4`, `zstd`."""
    _source: Buffer
    _start: int

    def read(self, limit: int = DEFAULT_LIMIT) -> bytes:
        """Return the cubin or the PTX text; raise `CubinError` where it is damaged or over `limit` bytes."""
        data = bytes(self._source[self._start : self._start + self.stored])
        try:
            if self.compression not in METHODS:
                raise CapabilityError(
                    f"compression by the method of flag {self.compression} is not modelled; known are lz4 and zstd"
                )
            out = decompress(self.compression, data, self.size, limit)
        except CubinError as error:
            raise CubinError(error.message, offset=self.offset, section=self.section, file=self.path) from None
        except CapabilityError as error:
            raise CapabilityError(f"{self.path}: {error}") from None
        if self.kind == "ptx":
            return out.rstrip(b"\0")
        return out if self.compression != "none" else _without_padding(out)

    def cubin(self) -> Cubin:
        """Return the cubin, taken apart."""
        if self.kind != "elf":
            raise CubinError(
                f"the entry holds {self.kind}, not a cubin", offset=self.offset, section=self.section, file=self.path
            )
        try:
            return read_cubin(self.read())
        except CubinError as error:
            raise CubinError(
                error.message, offset=error.offset, section=error.section, file=error.file or f"{self.path}@{self.offset:#x}"
            ) from None


def _without_padding(data: bytes) -> bytes:
    """Return a cubin without the zeros that fill its entry up to 8 bytes."""
    end = elf_size(data)
    return data[:end] if end is not None and len(data) - 8 < end < len(data) and not any(data[end:]) else data


def find(path: str | Path | bytes) -> Iterator[Found]:
    """Return the cubins and PTX texts in a file, or in bytes, in file order, as they are met.

    Of a folder, the files below it are looked into whose names end as those of libraries, objects, archives and GPU code do.
    Raises `CubinError` for a damaged container or archive, `InputError` for a device or pipe, `OSError` for a file that
    cannot be read.
    """
    if isinstance(path, bytes):
        yield from _guarded(path, "bytes", 0)
        return
    if not str(path):
        raise InputError("the path is empty; name a file or a folder")
    if Path(path).is_dir():
        for inner in files_below(Path(path)):
            yield from find(inner)
        return
    require_regular(Path(path))
    with Path(path).open("rb") as file:
        if not os.fstat(file.fileno()).st_size:
            return
        yield from _guarded(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), str(path), 0)


def files_below(path: Path) -> list[Path]:
    """Return the files of a folder that `find` looks into, in its order; the path itself if it is no folder."""
    return sorted(p for p in path.rglob("*") if _is_worth(p.name) and p.is_file()) if path.is_dir() else [path]


def require_regular(path: Path) -> None:
    """Raise `InputError` for a device, pipe or socket, `OSError` for a file that is not there."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise InputError(f"{path}: a device, pipe or socket, which cannot be mapped; write what it gives to a file first")


def _guarded(data: Buffer, path: str, depth: int) -> Iterator[Found]:
    try:
        yield from _look(data, path, depth)
    except CubinError as error:
        raise CubinError(error.message, offset=error.offset, section=error.section, file=error.file or path) from None


def _look(data: Buffer, path: str, depth: int) -> Iterator[Found]:
    head = bytes(data[:8])
    if head[:4] == _ZIP:
        yield from _in_zip(data, path, depth)
    elif head == _AR:
        yield from _in_archive(data, path, depth)
    elif head == _THIN:
        raise CubinError("a thin archive holds no members; name the object files it refers to", offset=0)
    elif is_cubin(data):
        yield Found(path, 0, None, "elf", read_cubin(data).arch, len(data), len(data), "none", data, 0)
    elif looks_like_ptx(data):
        yield Found(path, 0, None, "ptx", None, len(data), len(data), "none", data, 0)
    else:
        for region in regions(data):
            for offset, _ in containers(data, region):
                for entry in read_entries(data, offset, region.name):
                    yield _found(data, path, region.name, entry)


def _found(data: Buffer, path: str, section: str | None, e: Entry) -> Found:
    return Found(path, e.offset, section, e.kind, e.arch, e.size, e.stored, e.compression, data, e.data)


def _in_archive(data: Buffer, path: str, depth: int) -> Iterator[Found]:
    """Look into the members of an `ar` archive (GNU and BSD names)."""
    if depth >= _NESTED:
        raise CubinError(f"archives are nested more than {_NESTED} deep")
    at, long_names = len(_AR), b""
    while at + _AR_HEADER <= len(data):
        header = bytes(data[at : at + _AR_HEADER])
        digits = header[48:58].strip()
        if header[58:] != b"`\n" or not digits.isdigit():
            raise CubinError("a member's header in the archive is damaged", offset=at)
        start, size = at + _AR_HEADER, int(digits)
        if start + size > len(data):
            raise CubinError(f"a member of {size} bytes ends behind the archive's end at {len(data):#x}", offset=at)
        name = header[:16].decode("latin-1").strip()
        body = memoryview(data)[start : start + size]
        if name == "//":
            long_names = bytes(body)
        elif name not in ("/", "/SYM64/"):
            name, body = _named(name, long_names, body, at)
            yield from _guarded(body, f"{path}!{name}", depth + 1)
        at = start + size + size % 2


def _named(name: str, long_names: bytes, body: memoryview, at: int) -> tuple[str, memoryview]:
    """Return a member's whole name and its bytes: GNU keeps long names in a table, BSD puts them before the bytes."""
    if name[:1] == "/" and name[1:].isdigit():
        place = int(name[1:])
        if place >= len(long_names):
            raise CubinError(f"a member's name is at {place} of {len(long_names)} bytes of long names", offset=at)
        return long_names[place:].partition(b"\n")[0].decode("utf-8", "replace").rstrip("/"), body
    if name[:3] == "#1/" and name[3:].isdigit():
        length = int(name[3:])
        if length > len(body):
            raise CubinError(f"a member of {len(body)} bytes is said to begin with a name of {length}", offset=at)
        return bytes(body[:length]).rstrip(b"\0").decode("utf-8", "replace"), body[length:]
    return name.rstrip("/"), body


_WORTH = (
    ".so",
    ".a",
    ".o",
    ".cubin",
    ".fatbin",
    ".ptx",
    ".whl",
    ".zip",
    ".dll",
    ".pyd",
    ".lib",
    ".obj",
    ".exe",
    ".dylib",
    ".bin",
)


@final
class _View(io.RawIOBase):
    """A file over a buffer, for `zipfile`: nothing is copied but what is read."""

    def __init__(self, data: Buffer) -> None:
        self._data, self._at, self._read = data, 0, 0

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = max(0, offset + (0, self._at, len(self._data))[whence])
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int = -1) -> bytes:
        end = len(self._data) if size is None or size < 0 else min(len(self._data), self._at + size)
        out = bytes(self._data[self._at : end])
        self._at += len(out)
        self._read += len(out)
        if self._read > _KEPT:
            forget(self._data)
            self._read = 0
        return out


def _is_worth(name: str) -> bool:
    return name.lower().endswith(_WORTH) or ".so." in name.lower()


@contextmanager
def _reading_zip() -> Generator[None]:
    """Turn what a damaged archive makes `zipfile` raise into an error of ours: it is of a dozen kinds, IndexError too."""
    try:
        yield
    except (CubinError, MemoryError):
        raise
    except Exception as error:
        raise CubinError(f"the zip archive is damaged or of a kind that is not read: {error}") from None


def _in_zip(data: Buffer, path: str, depth: int) -> Iterator[Found]:
    if depth >= _NESTED:
        raise CubinError(f"archives are nested more than {_NESTED} deep")
    with _reading_zip():
        archive = zipfile.ZipFile(_View(data))
        members = [m for m in archive.infolist() if _is_worth(m.filename)]
    for member in members:
        yield from _guarded(_unpack(archive, member), f"{path}!{member.filename}", depth + 1)


def _unpack(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Buffer:
    """Unpack a member into a temporary file that is gone when its last entry is."""
    if member.file_size > min(_MEMBER_LIMIT, _MEMBER_RATIO * max(member.compress_size, 1 << 20)):
        raise CubinError(f"member {member.filename!r} claims {member.file_size:,} bytes from {member.compress_size:,}; refused")
    total = 0
    with tempfile.TemporaryFile() as file:
        for chunk in _chunks(archive, member):
            total += len(chunk)
            if total > member.file_size:
                raise CubinError(f"member {member.filename!r} is longer than the {member.file_size:,} bytes it claims")
            file.write(chunk)
        file.flush()
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if total else b""


def _chunks(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Iterator[bytes]:
    with _reading_zip():
        source = archive.open(member)
    while True:
        with _reading_zip():
            chunk = source.read(_CHUNK)
        if not chunk:
            return
        yield chunk
