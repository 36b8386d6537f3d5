"""Capture what the CUDA driver encodes: parameter sets of a tensor map -> result code and the 128 bytes.

Runs with the standard library alone, as a script or a module, on a machine with the CUDA driver (13 or later knows all
entry points; older ones skip what they lack):

    python3 src/warpsmith/hardware/tensormap_capture.py OUT.jsonl.gz

The output is gzipped text: a header line, then one JSON object a line (`Case` fields, `rc` and `hex`). The parameter sets
are the same in every run (a fixed seed), so captures of two drivers can be compared line by line.
Source: CUDA driver API, section "Tensor Map Object Management".
"""

from __future__ import annotations

import ctypes
import gzip
import json
import random
import sys
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Case", "cases", "main"]

SIZES = (1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4)
"""Bytes of an element by CUtensorMapDataType 0 … 12 (13, 14, 15 are the packed 4 and 6 bit types)."""


@dataclass(frozen=True)
class Case:
    """One call of an encode function; lists run from the innermost dimension outwards."""

    call: str = "tiled"
    """`tiled`, `im2col`, `im2col_wide` or `replace_address`."""
    dtype: int = 6
    rank: int = 2
    address: int = 0x7F00_0000_0000
    dim: list[int] = field(default_factory=lambda: [256, 128])
    stride: list[int] = field(default_factory=lambda: [512])
    box: list[int] = field(default_factory=lambda: [64, 32])
    element_stride: list[int] = field(default_factory=lambda: [1, 1])
    interleave: int = 0
    swizzle: int = 0
    l2: int = 0
    fill: int = 0
    lower: list[int] = field(default_factory=list)
    """im2col: lower corner of the pixel box (wide: the one offset)."""
    upper: list[int] = field(default_factory=list)
    channels: int = 0
    pixels: int = 0
    mode: int = 0
    """im2col_wide: 0 W, 1 W128."""
    new_address: int = 0
    """replace_address: what the map of the other fields is moved to."""


def packed(dim: list[int], size: int) -> list[int]:
    """Return byte strides of a packed tensor, rounded up to 16 bytes, without the innermost."""
    out: list[int] = []
    step = size
    for d in dim[:-1]:
        step = (step * d + 15) // 16 * 16
        out.append(step)
    return out


def tiled(rank: int, **changes: Any) -> Case:
    """Return the plain tiled case of `rank` with some fields changed."""
    dim = [256, 128, 64, 32, 16][:rank]
    box = [64, 16, 8, 4, 2][:rank]
    case = Case(rank=rank, dim=dim, stride=packed(dim, 2), box=box, element_stride=[1] * rank)
    return replace(case, **changes)


def im2col(rank: int, **changes: Any) -> Case:
    """Return the plain im2col case of `rank` (3 … 5) with some fields changed."""
    dim = [*[256, 64, 32, 16, 8][: rank - 1], 8]
    spatial = rank - 2
    case = Case(
        "im2col", rank=rank, dim=dim, stride=packed(dim, 2), box=[], element_stride=[1] * rank,
        lower=[-1] * spatial, upper=[-2] * spatial, channels=64, pixels=128,
    )  # fmt: skip
    return replace(case, **changes)


def swap(values: list[int], index: int, value: int) -> list[int]:
    """Return `values` with one entry replaced."""
    return [*values[:index], value, *values[index + 1 :]]


def tiled_cases() -> Iterator[Case]:
    """Yield tiled cases that vary one parameter at a time over every rank, in and out of range."""
    for rank in range(7):
        base = tiled(min(max(rank, 1), 5))
        yield replace(base, rank=rank)
        if not 1 <= rank <= 5:
            continue
        for dtype in range(17):
            yield replace(base, dtype=dtype)
            yield replace(base, dtype=dtype, stride=[s * 8 for s in base.stride])
            yield tiled(rank, dtype=dtype, box=[128, *base.box[1:]], stride=[s * 8 for s in base.stride])
        for shift in range(65):
            yield replace(base, address=(1 << shift) & (1 << 64) - 1)
        for axis in range(rank):
            for shift in range(34):
                for value in ((1 << shift) - 1, 1 << shift, (1 << shift) + 1):
                    yield replace(base, dim=swap(base.dim, axis, value))
            for value in (*range(12), 15, 16, 17, 24, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 512):
                yield replace(base, box=swap(base.box, axis, value))
            for value in range(11):
                yield replace(base, element_stride=swap(base.element_stride, axis, value))
        for axis in range(rank - 1):
            for shift in range(42):
                yield replace(base, stride=swap(base.stride, axis, 1 << shift))
                yield replace(base, stride=swap(base.stride, axis, (1 << shift) + 16))
            yield replace(base, stride=swap(base.stride, axis, 0))
            yield replace(base, stride=swap(base.stride, axis, (1 << 40) - 16))
        yield from mode_cases(base)


def mode_cases(base: Case) -> Iterator[Case]:
    """Yield every combination of interleave, swizzle and inner box, then promotions and fills over data types."""
    for interleave in range(4):
        for swizzle in range(8):
            for inner in (8, 16, 32, 64, 65, 128, 256):
                yield replace(base, interleave=interleave, swizzle=swizzle, box=[inner, *base.box[1:]])
    for l2 in range(5):
        yield replace(base, l2=l2)
    for fill in range(3):
        for dtype in range(17):
            yield replace(base, fill=fill, dtype=dtype, box=[128, *base.box[1:]], stride=[s * 8 for s in base.stride])


def im2col_cases() -> Iterator[Case]:
    """Yield im2col cases that vary one parameter at a time."""
    for rank in range(2, 7):
        base = im2col(min(max(rank, 3), 5))
        yield replace(base, rank=rank)
        if not 3 <= rank <= 5:
            continue
        for corner in ("lower", "upper"):
            start: list[int] = getattr(base, corner)
            for axis in range(rank - 2):
                for value in (*range(-18, 18), -129, -128, -127, 126, 127, 128, -32769, -32768, 32767, 32768):
                    yield replace(base, **{corner: swap(start, axis, value)})
        for value in (*range(18), 31, 32, 63, 64, 65, 96, 127, 128, 129, 255, 256, 257, 511, 512, 1023, 1024, 1025):
            yield replace(base, channels=value)
            yield replace(base, pixels=value)
        for axis in range(rank):
            for value in range(11):
                yield replace(base, element_stride=swap(base.element_stride, axis, value))
        for dtype in range(17):
            yield replace(base, dtype=dtype, stride=[s * 8 for s in base.stride])
            yield replace(base, dtype=dtype, stride=[s * 8 for s in base.stride], channels=128)
        for interleave in range(4):
            for swizzle in range(8):
                for channels in (8, 16, 32, 64, 128):
                    yield replace(base, interleave=interleave, swizzle=swizzle, channels=channels)
        for l2 in range(5):
            yield replace(base, l2=l2)
        for fill in range(3):
            yield replace(base, fill=fill)
        for mode in range(3):
            for low, high in ((0, 0), (-1, -1), (-8, 7), (3, -3), (-32768, 32767), (-129, 5)):
                yield replace(base, call="im2col_wide", lower=[low], upper=[high], mode=mode, swizzle=3)


def random_cases(count: int, seed: int = 20) -> Iterator[Case]:
    """Yield seeded random cases, most of them valid, some on the edge of a rule."""
    rng = random.Random(seed)
    for _ in range(count):
        rank = rng.randint(1, 5)
        dtype = rng.randrange(16)
        size = SIZES[dtype] if dtype < len(SIZES) else 1
        dim = [rng.choice((1, 7, 16, 64, 100, 128, 256, 384, 1000, 4096)) for _ in range(rank)]
        if dtype >= len(SIZES):
            dim[0] = rng.choice((64, 128, 256, 384))
        stride = [s * rng.choice((1, 1, 2)) for s in packed(dim, size)]
        if rng.random() < 0.1:
            stride = [s + rng.choice((0, 8, 16)) for s in stride]
        box = [rng.choice((1, 2, 3, 8, 16, 32, 64, 96, 128, 256)) for _ in range(rank)]
        if rng.random() < 0.8:
            box[0] = max(16 // size, rng.choice((16, 32, 64, 128)) // size)
        if dtype >= 14 and rng.random() < 0.8:
            box[0] = 128
        elements = [rng.choice((1, 1, 1, 1, 2, 3, 8)) for _ in range(rank)]
        case = Case(
            dtype=dtype, rank=rank, dim=dim, stride=stride, box=box, element_stride=elements,
            address=rng.choice((0x7F0000000000, 0x7F1234567890, 0x1230, 0x7F00000000A0)),
            interleave=rng.choice((0, 0, 0, 0, 1, 2)), swizzle=rng.choice((0, 1, 2, 3, 3, 4, 5, 6)),
            l2=rng.randrange(4), fill=rng.choice((0, 0, 0, 1)),
        )  # fmt: skip
        if rank >= 3 and rng.random() < 0.3:
            spatial = rank - 2
            case = replace(
                case, call="im2col", box=[], channels=box[0], pixels=rng.choice((1, 8, 64, 128, 256, 1024)),
                lower=[rng.randint(-8, 8) for _ in range(spatial)], upper=[rng.randint(-8, 8) for _ in range(spatial)],
            )  # fmt: skip
        yield case


def replace_cases() -> Iterator[Case]:
    """Yield moves of an encoded map to another address."""
    for rank in range(1, 6):
        for address in (0x7F00_0000_1000, 0x10, 0x8, 0x7F00_0000_0020, 0xFFFF_FFFF_FFF0):
            yield tiled(rank, call="replace_address", new_address=address)


def cases() -> Iterator[Case]:
    """Yield every parameter set of the capture, in a fixed order."""
    yield from tiled_cases()
    yield from im2col_cases()
    yield from random_cases(4000)
    yield from replace_cases()


class Driver:
    """The driver's encode functions through ctypes, with a context made."""

    def __init__(self) -> None:
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.check("cuInit", 0)
        device = ctypes.c_int()
        self.check("cuDeviceGet", ctypes.byref(device), 0)
        context = ctypes.c_void_p()
        self.check("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.check("cuCtxSetCurrent", context)
        version = ctypes.c_int()
        self.check("cuDriverGetVersion", ctypes.byref(version))
        name = ctypes.create_string_buffer(100)
        self.check("cuDeviceGetName", name, 100, device)
        self.version = version.value
        self.device = name.value.decode()

    def check(self, function: str, *arguments: Any) -> None:
        """Call a driver function; end the program with a message when it fails."""
        code = getattr(self.cuda, function)(*arguments)
        if code:
            raise SystemExit(f"{function} failed with CUDA error {code}")

    def encode(self, case: Case) -> tuple[int, bytes]:
        """Return (result code, 128 bytes) of one case; code -1 when the driver lacks the function."""
        buffer = (ctypes.c_uint8 * 256)()
        start = -ctypes.addressof(buffer) % 64
        tensor_map = ctypes.c_void_p(ctypes.addressof(buffer) + start)
        code = self.call(case, tensor_map)
        if case.call == "replace_address" and not code:
            code = self.cuda.cuTensorMapReplaceAddress(tensor_map, ctypes.c_void_p(case.new_address))
        return code, bytes(buffer[start : start + 128])

    def call(self, case: Case, tensor_map: ctypes.c_void_p) -> int:
        """Make the encode call of `case`; lists are padded so that a bad rank reads defined memory."""
        dim = (ctypes.c_uint64 * 8)(*case.dim)
        stride = (ctypes.c_uint64 * 8)(*case.stride)
        elements = (ctypes.c_uint32 * 8)(*case.element_stride)
        head = (tensor_map, case.dtype, case.rank, ctypes.c_void_p(case.address), dim, stride)
        tail = (elements, case.interleave)
        if case.call in ("tiled", "replace_address"):
            box = (ctypes.c_uint32 * 8)(*case.box)
            return self.cuda.cuTensorMapEncodeTiled(*head, box, *tail, case.swizzle, case.l2, case.fill)
        pixel = (case.channels, case.pixels)
        if case.call == "im2col":
            lower, upper = (ctypes.c_int * 8)(*case.lower), (ctypes.c_int * 8)(*case.upper)
            return self.cuda.cuTensorMapEncodeIm2col(*head, lower, upper, *pixel, *tail, case.swizzle, case.l2, case.fill)
        if not hasattr(self.cuda, "cuTensorMapEncodeIm2colWide"):
            return -1
        corners = (case.lower[0], case.upper[0])
        return self.cuda.cuTensorMapEncodeIm2colWide(
            *head, *corners, *pixel, *tail, case.mode, case.swizzle, case.l2, case.fill
        )


def main(path: str) -> None:
    """Capture every case into the gzipped file `path`."""
    driver = Driver()
    count = 0
    with gzip.open(path, "wt", encoding="ascii") as out:
        out.write(json.dumps({"what": "cuTensorMapEncode*", "device": driver.device, "driver": driver.version}) + "\n")
        for case in cases():
            code, data = driver.encode(case)
            out.write(json.dumps(asdict(case) | {"rc": code, "hex": data.hex() if code == 0 else ""}) + "\n")
            count += 1
    sys.stdout.write(f"{count} cases from {driver.device}, driver {driver.version} -> {path}\n")


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        raise SystemExit("usage: tensormap_capture.py OUT.jsonl.gz")
    try:
        main(sys.argv[1])
    except OSError as problem:  # no driver, or a file that cannot be written
        raise SystemExit(f"error: {problem}") from None
