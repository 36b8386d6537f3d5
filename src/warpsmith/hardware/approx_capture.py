"""Capture the approximate functions of a GPU densely: whole binades of f32, every code of f16 and bf16.

    python -m warpsmith.hardware.approx_capture build --arch sm_90a --cubins DIR      (needs ptxas)
    python -m warpsmith.hardware.approx_capture run --cubins DIR --out OUT            (needs the GPU and numpy)

`run` writes `OUT/approx-<group>.zip`: one member per range, the LZMA-compressed first differences of consecutive results
(int8 where they fit, else int32), and `index.json` with the ranges. `read` gives the results back.
"""

from __future__ import annotations

import argparse
import json
import lzma
import multiprocessing
import os
import struct
import sys
import zipfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from warpsmith.base.errors import InputError, WarpsmithError
from warpsmith.launch.driver import driver
from warpsmith.toolchain.ptxas import compile_ptx

__all__ = ["RANGES", "Range", "main", "read"]

Array = NDArray[Any]
_BLOCK = 256
_BINADE = 1 << 23


@final
@dataclass(frozen=True, slots=True)
class Range:
    """Results of `mnemonic` for the `count` consecutive codes from `start`."""

    group: str
    mnemonic: str
    start: int
    count: int

    @property
    def name(self) -> str:
        """Member name."""
        return f"{self.mnemonic}-{self.start:08x}-{self.count:x}"


def _f32(group: str, function: str, *binades: tuple[int, int]) -> list[Range]:
    return [Range(group, f"{function}.approx.ftz.f32", start, count * _BINADE) for start, count in binades]


_ONE, _HALF = 0x3F800000, 0x3F000000
RANGES = [
    *_f32("ex2", "ex2", (_ONE, 1), (_HALF, 1), (0xBF800000, 1), (0xBF000000, 1), (0x3E800000, 1)),
    *_f32("ex2", "rcp", (_ONE, 1)),
    *_f32("roots", "rsqrt", (_ONE, 2)),
    *_f32("roots", "sqrt", (_ONE, 2)),
    *_f32("lg2", "lg2", (_ONE, 1), (_HALF, 1), (0x41000000, 1)),
    *(Range("lg2", "tanh.approx.f32", start, _BINADE) for start in (0x3E000000, 0x3E800000, _HALF, _ONE, 0x40000000)),
    *(Range("lg2", m, 0, 1 << 16) for m in ("ex2.approx.f16", "ex2.approx.ftz.bf16", "tanh.approx.f16", "tanh.approx.bf16")),
    *_f32("circle", "sin", (_ONE, 1), (0x40800000, 1), (0x3E800000, 1)),
    *_f32("circle", "cos", (_ONE, 1), (0x40800000, 1)),
]


def _text(mnemonic: str, arch: str) -> str:
    """A kernel `k(start, out)`: thread t stores the result for the code start + t."""
    bits = 32 if mnemonic.endswith("f32") else 16
    narrow = "" if bits == 32 else "cvt.u16.u32 %h, %x; "
    register = "%x" if bits == 32 else "%h"
    return f""".version 8.6
.target {arch}
.address_size 64
.visible .entry k(.param .u32 start, .param .u64 out)
{{
.reg .b32 %t, %c, %x; .reg .b16 %h; .reg .b64 %o;
mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; mad.lo.u32 %t, %c, {_BLOCK}, %t;
ld.param.u32 %x, [start]; add.u32 %x, %x, %t; {narrow}
{mnemonic} {register}, {register};
ld.param.u64 %o, [out]; mad.wide.u32 %o, %t, {bits // 8}, %o; st.global.b{bits} [%o], {register};
ret;
}}
"""


def build(arch: str, folder: Path) -> str:
    """Compile one kernel per instruction into `folder/approx.zip`."""
    folder.mkdir(parents=True, exist_ok=True)
    mnemonics = sorted({r.mnemonic for r in RANGES})
    with zipfile.ZipFile(folder / "approx.zip", "w", zipfile.ZIP_DEFLATED) as z:
        for mnemonic in mnemonics:
            z.writestr(f"{mnemonic}.cubin", compile_ptx(_text(mnemonic, arch), arch, name=mnemonic).cubin)
    return f"{len(mnemonics)} kernels"


def _pack(results: Array) -> bytes:
    steps = np.diff(results.view(f"i{results.dtype.itemsize}").astype(np.int64), prepend=0)
    narrow = int(np.abs(steps[1:]).max() < 128)
    header = struct.pack("<BBq", narrow, results.dtype.itemsize, int(steps[0]))
    return lzma.compress(header + steps[1:].astype(np.int8 if narrow else np.int32).tobytes(), preset=6)


def _unpack(data: bytes) -> Array:
    raw = lzma.decompress(data)
    narrow, size, first = struct.unpack_from("<BBq", raw)
    steps = np.frombuffer(raw, np.int8 if narrow else np.int32, offset=10)
    whole = np.cumsum(np.concatenate([[first], steps.astype(np.int64)]))
    return whole.astype(f"i{size}").view(f"u{size}")


def run(folder: Path, out: Path) -> str:
    """Run all ranges and write the files of each group."""
    out.mkdir(parents=True, exist_ok=True)
    gpu = driver()
    jobs: list[Any] = []
    try:
        z = zipfile.ZipFile(folder / "approx.zip")
    except (OSError, zipfile.BadZipFile) as error:
        raise InputError(f"{folder / 'approx.zip'} cannot be read: {error}; make it with `approx_capture build`") from error
    with z, multiprocessing.get_context("spawn").Pool(max(1, (os.cpu_count() or 2) - 1)) as pool:
        for r in RANGES:
            dtype = np.dtype(np.uint32 if r.mnemonic.endswith("f32") else np.uint16)
            address = gpu.allocate(r.count * dtype.itemsize)
            arguments = [struct.pack("<I", r.start), struct.pack("<Q", address)]
            gpu.load(z.read(f"{r.mnemonic}.cubin"), "k").launch((r.count // _BLOCK, 1, 1), (_BLOCK, 1, 1), arguments)
            gpu.synchronize()
            results = np.frombuffer(gpu.download(address, r.count * dtype.itemsize), dtype)
            gpu.free(address)
            jobs.append(pool.apply_async(_pack, (results,)))
        packed = [job.get() for job in jobs]
    sizes: list[str] = []
    for group in dict.fromkeys(r.group for r in RANGES):
        path = out / f"approx-{group}.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as z:
            members = [(r, data) for r, data in zip(RANGES, packed, strict=True) if r.group == group]
            z.writestr("index.json", json.dumps({"device": gpu.arch, "ranges": [asdict(r) for r, _ in members]}))
            for r, data in members:
                z.writestr(r.name, data)
        sizes.append(f"{path.name} {path.stat().st_size / 1e6:.1f} MB")
    return "\n".join(sizes)


def read(path: Path) -> dict[Range, Array]:
    """Return the results of a file by range; raise `InputError` if it is none."""
    try:
        with zipfile.ZipFile(path) as z:
            ranges = [Range(**r) for r in json.loads(z.read("index.json"))["ranges"]]
            return {r: _unpack(z.read(r.name)) for r in ranges}
    except (OSError, KeyError, ValueError, zipfile.BadZipFile, lzma.LZMAError) as error:
        raise InputError(f"{path} is no capture of approximate functions: {error}") from error


def main(arguments: list[str] | None = None) -> int:
    """Run one of the commands; return the exit status."""
    parser = argparse.ArgumentParser(prog="approx_capture", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    p = commands.add_parser("build", help="compile the kernels")
    p.add_argument("--arch", default="sm_90a")
    p.add_argument("--cubins", type=Path, required=True)
    p = commands.add_parser("run", help="run them on this machine's GPU")
    p.add_argument("--cubins", type=Path, required=True)
    p.add_argument("--out", type=Path, required=True)
    args = parser.parse_args(arguments)
    try:
        text = build(args.arch, args.cubins) if args.command == "build" else run(args.cubins, args.out)
    except WarpsmithError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
