"""Seeded mutations of cubins and fat binaries, and the check that nothing but our own errors comes of reading them."""

from __future__ import annotations

import io
import random
import struct
import zipfile
from collections.abc import Iterator

from containers import ar, container, entry, host_elf
from cubin_corpus import cubins, read_everything
from warpsmith import cubin as ws_cubin
from warpsmith.base.errors import CapabilityError, CubinError

EXTREMES = (0, 1, 7, 63, 64, 65, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 32, 1 << 40, (1 << 63) - 1, (1 << 64) - 1)


def _put(data: bytearray, at: int, size: int, value: int) -> None:
    if at >= 0 and at + size <= len(data):
        data[at : at + size] = (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")


def _flips(rng: random.Random, data: bytearray) -> None:
    for _ in range(rng.choice((1, 1, 2, 8, 64))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _head_flips(rng: random.Random, data: bytearray) -> None:
    data[rng.randrange(min(200, len(data)))] = rng.randrange(256)


def _truncate(rng: random.Random, data: bytearray) -> None:
    del data[rng.randrange(len(data)) :]


def _extend(rng: random.Random, data: bytearray) -> None:
    data += rng.randbytes(rng.randrange(1, 200))


def _number(rng: random.Random, data: bytearray) -> None:
    size = rng.choice((2, 4, 8))
    _put(data, size * rng.randrange(len(data) // size), size, rng.choice((*EXTREMES, len(data), len(data) - 1, len(data) + 1)))


def _header_field(rng: random.Random, data: bytearray) -> None:
    at, size = rng.choice(
        ((16, 2), (18, 2), (20, 4), (32, 8), (40, 8), (48, 4), (52, 2), (54, 2), (56, 2), (58, 2), (60, 2), (62, 2))
    )
    _put(data, at, size, rng.choice((*EXTREMES, len(data), rng.randrange(len(data)))))


def _section_field(rng: random.Random, data: bytearray) -> None:
    """Giant sizes, overlapping sections, links in circles."""
    if len(data) < 64:
        return
    (table,), (count,) = struct.unpack_from("<Q", data, 40), struct.unpack_from("<H", data, 60)
    for _ in range(rng.choice((1, 1, 3))):
        row = table + 64 * rng.randrange(max(1, count))
        at, size = rng.choice(((0, 4), (4, 4), (8, 8), (24, 8), (32, 8), (40, 4), (44, 4), (48, 8), (56, 8)))
        _put(
            data,
            row + at,
            size,
            rng.choice((*EXTREMES, len(data), rng.randrange(len(data)), rng.randrange(64), 0x70000000 + rng.randrange(0x90))),
        )


def _copy_block(rng: random.Random, data: bytearray) -> None:
    size = rng.randrange(1, min(256, len(data)))
    a, b = (rng.randrange(len(data) - size + 1) for _ in range(2))
    data[b : b + size] = data[a : a + size]


def _cut_block(rng: random.Random, data: bytearray) -> None:
    at = rng.randrange(len(data))
    del data[at : at + rng.randrange(1, 128)]


MUTATIONS = (
    _flips,
    _head_flips,
    _truncate,
    _extend,
    _number,
    _header_field,
    _section_field,
    _section_field,
    _copy_block,
    _cut_block,
)


def mutants(seeds: list[bytes], count: int, seed: int) -> Iterator[bytes]:
    """Return `count` mutated files, the same for the same seed."""
    rng = random.Random(seed)
    for _ in range(count):
        data = bytearray(rng.choice(seeds))
        for _ in range(rng.choice((1, 1, 2, 3))):
            if len(data) > 8:
                rng.choice(MUTATIONS)(rng, data)
        yield bytes(data)


def archive_seeds() -> list[bytes]:
    """Return wheels packed in the four ways a zip knows, and an `ar` archive."""
    small = host_elf({".x": container(entry(cubins()["ptxas-13.5-sm_80"][:2000]), entry(b".version 8.0\n", kind=1))})
    out = [ar({"a.o": small, "a_rather_long_member_name.o": small})]
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", method) as archive:
            archive.writestr("a/b.so", small)
            archive.writestr("k.ptx", b".version 8.0\n")
        out.append(file.getvalue())
    return out


def _named(error: Exception, outcome: str) -> str:
    assert str(error)
    return outcome


def read_cubin_mutant(data: bytes) -> str:
    """Read all of a mutated cubin and write it; return what became of it. Any other exception is the test's failure."""
    try:
        cubin = ws_cubin.open(data)
    except CubinError as error:
        return _named(error, "refused")
    assert cubin.write() == data  # what is accepted is written as it was, whatever it says
    try:
        read_everything(cubin)
    except CubinError as error:
        return _named(error, "refused when looked into")
    return "read"


def find_mutant(data: bytes) -> str:
    """List and unpack what a mutated container holds."""
    try:
        for item in ws_cubin.find(data):
            item.read(limit=1 << 22)
    except (CubinError, CapabilityError) as error:
        return _named(error, "refused")
    return "read"
