"""Decompress entries of fat binaries, within a limit: zstd through whichever package there is, LZ4 by `lz4.py`."""

from __future__ import annotations

import importlib
from functools import cache
from typing import TYPE_CHECKING, Any

from warpsmith.base.errors import CapabilityError, CubinError
from warpsmith.cubin import lz4

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["DEFAULT_LIMIT", "METHODS", "decompress", "has_zstd"]

METHODS = ("none", "lz4", "zstd")
"""The methods that are known."""

DEFAULT_LIMIT = 1 << 30
"""Bytes that one entry may have when decompressed, unless the caller says otherwise.

The largest seen in PyTorch 2.14 has 37 MB.
"""


def _stdlib(module: Any) -> Callable[[bytes, int], bytes]:
    return lambda data, limit: module.ZstdDecompressor().decompress(data, limit)


def _zstandard(module: Any) -> Callable[[bytes, int], bytes]:
    return lambda data, limit: module.ZstdDecompressor(max_window_size=1 << 27).stream_reader(data).read(limit)


_PACKAGES = {"compression.zstd": _stdlib, "backports.zstd": _stdlib, "zstandard": _zstandard}
"""Module -> how it decompresses at most so many bytes. Python 3.14 has the first; the others are packages."""


@cache
def _zstd() -> tuple[Callable[[bytes, int], bytes], type[Exception]] | None:
    for name, adapt in _PACKAGES.items():
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        return adapt(module), module.ZstdError
    return None


def has_zstd() -> bool:
    """Whether zstd can be decompressed."""
    return _zstd() is not None


def decompress(method: str, data: bytes, size: int, limit: int = DEFAULT_LIMIT) -> bytes:
    """Return the `size` bytes that `data` holds, compressed by `method` (`none`, `lz4`, `zstd`).

    Raises `CubinError` where the size is over `limit` or not what was announced, `CapabilityError` without a package for zstd.
    """
    if size > limit:
        raise CubinError(f"the entry has {size:,} bytes when decompressed, over the limit of {limit:,}; pass a larger limit=")
    if method == "none":
        return data
    if method == "lz4":
        return lz4.decompress(data, size)
    if (found := _zstd()) is None:
        raise CapabilityError(
            "the entry is compressed with zstd, which Python has from 3.14 on; "
            "install the extra: pip install 'warpsmith[zstd]' (or the package backports.zstd or zstandard)"
        )
    read, error = found
    try:
        out = read(data, size + 1)
    except (error, EOFError, MemoryError) as problem:
        raise CubinError(f"zstd: {problem}") from None
    if len(out) != size:
        raise CubinError(f"zstd: the entry holds {len(out)} bytes or more, {size} were announced")
    return out
