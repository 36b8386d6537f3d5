"""Capture the multi-function unit's tables on a GPU, and verify the simulator's functions over all inputs.

    python -m warpsmith.hardware.mufu_capture capture OUT     write OUT/mufu-sm_90-*.table (to be put into simulator/tables)
    python -m warpsmith.hardware.mufu_capture verify          run every function on all 2³² inputs, both sides; a line each

Needs a GPU and ptxas; numpy. The first takes about a minute, the second twenty; `mufu_verify` does the same in less than one.
"""

from __future__ import annotations

import datetime
import os
import struct
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from warpsmith.base.module_command import run_module
from warpsmith.launch.driver import driver
from warpsmith.simulator.meanings import mufu
from warpsmith.simulator.meanings.approx import FUNCTIONS
from warpsmith.simulator.tables import differences
from warpsmith.toolchain import compile_ptx

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["OPERATIONS", "SEEDS", "main"]

OPERATIONS = (
    *(f"{name}.approx{ftz}.f32" for name in ("ex2", "lg2", "rcp", "rsqrt", "sqrt", "sin", "cos") for ftz in (".ftz", "")),
    "tanh.approx.f32",
)
SEEDS = ("rcp.approx.ftz.f64", "rsqrt.approx.ftz.f64")
"""Functions of the upper words of f64; `run` takes and gives those."""
_CHUNK = 1 << 26
_THREADS = 256


def _applied(operation: str) -> str:
    """Lines that apply the operation to the bits `%i3` and leave those of the result in `%i2`."""
    if operation in SEEDS:
        return f"mov.b32 %i0, 0; mov.b64 %y0, {{%i0, %i3}}; {operation} %y1, %y0; mov.b64 {{%i0, %i2}}, %y1;"
    return f"mov.b32 %x0, %i3; {operation} %x1, %x0; mov.b32 %i2, %x1;"


def _kernel(operation: str) -> str:
    return f"""
.visible .entry {operation.replace(".", "_")}(.param .u64 to, .param .u32 first)
{{
    .reg .u64 %a<3>;
    .reg .u32 %i<4>;
    .reg .f32 %x<2>;
    .reg .f64 %y<2>;
    ld.param.u64 %a0, [to];
    ld.param.u32 %i0, [first];
    mov.u32 %i1, %ctaid.x;
    mov.u32 %i2, %tid.x;
    mad.lo.u32 %i1, %i1, {_THREADS}, %i2;
    add.u32 %i3, %i1, %i0;
    {_applied(operation)}
    mad.wide.u32 %a1, %i1, 4, %a0;
    st.global.b32 [%a1], %i2;
    ret;
}}
"""


class Unit:
    """Runs an operation on consecutive bit patterns."""

    def __init__(self) -> None:
        self.gpu = driver()
        arch = self.gpu.arch
        head = f".version 8.0\n.target {arch}\n.address_size 64\n"
        self.cubin = compile_ptx(head + "".join(_kernel(o) for o in (*OPERATIONS, *SEEDS)), arch).cubin
        self.buffer = self.gpu.allocate(4 * _CHUNK)

    def run(self, operation: str, first: int, count: int) -> NDArray[np.uint32]:
        """Return the results for bit patterns `first` … `first + count − 1`; count is a multiple of 256, at most 2²⁶."""
        function = self.gpu.load(self.cubin, operation.replace(".", "_"))
        arguments = [struct.pack("<Q", self.buffer), struct.pack("<I", first)]
        function.launch((count // _THREADS, 1, 1), (_THREADS, 1, 1), arguments)
        self.gpu.synchronize()
        return np.frombuffer(self.gpu.download(self.buffer, 4 * count), np.uint32)

    def binades(self, operation: str, biased: int, count: int = 1) -> NDArray[np.int64]:
        """Return the results over whole binades as int64."""
        return np.concatenate([self.run(operation, (biased + i) << 23, 1 << 23) for i in range(count)]).astype(np.int64)


def _double(unit: Unit, operation: str, count: int) -> NDArray[np.int64]:
    """Upper words of results for those of 1 to 2 (to 4 for `count` 2), the lower words zero."""
    return np.concatenate([unit.run(operation, (1023 + i) << 20, 1 << 20) for i in range(count)]).astype(np.int64)


def _sine(unit: Unit) -> NDArray[np.int64]:
    """The first quarter, hit through the products with 1/2π of arguments up to 16."""
    quarter = np.full(1 << 23, -1, np.int64)
    for biased in range(101, 132):
        x = np.arange(biased << 23, (biased + 1) << 23, dtype=np.uint32).view(np.float32)
        k = np.floor(np.fmod(mufu.turns(x).astype(np.float64), 1.0) * 2.0**25).astype(np.int64)
        r = unit.binades("sin.approx.ftz.f32", biased)
        first = k < (1 << 23)
        quarter[k[first]] = r[first]
    quarter[0] = 0
    if (quarter < 0).any():
        raise SystemExit(f"sin: {int((quarter < 0).sum())} entries were not hit")
    return quarter


def _hyperbolic(unit: Unit) -> NDArray[np.int64]:
    parts: list[NDArray[np.int64]] = []
    for biased, ignored in mufu.TANH_BUCKETS.items():
        r = unit.binades("tanh.approx.f32", biased).reshape(-1, 1 << ignored)
        if (r != r[:, :1]).any():
            raise SystemExit(f"tanh: exponent {biased - 127} looks at more than {23 - ignored} fraction bits")
        parts.append(r[:, 0])
    return np.concatenate(parts)


def capture(to: Path) -> None:
    """Write every table."""
    unit = Unit()
    tables: dict[str, Any] = {
        "rcp": unit.binades("rcp.approx.ftz.f32", 127),
        "rsq": unit.binades("rsqrt.approx.ftz.f32", 127, 2),
        "sqrt": unit.binades("sqrt.approx.ftz.f32", 127, 2),
        "ex2": unit.binades("ex2.approx.ftz.f32", 127) - (1 << 23),
        "lg2": unit.binades("lg2.approx.ftz.f32", 126, 2),
        "sin": _sine(unit),
        "tanh": _hyperbolic(unit),
        "rcp64h": _double(unit, SEEDS[0], 1),
        "rsq64h": _double(unit, SEEDS[1], 2),
    }
    note = f"captured on {unit.gpu.arch} {unit.gpu.name}, driver {unit.gpu.version}, {datetime.date.today().isoformat()}"
    for name, values in tables.items():
        path = to / f"mufu-sm_90-{name}.table"
        differences.save(path, name, values, note)
        sys.stdout.write(f"{path.name}: {len(values)} entries, {path.stat().st_size} bytes\n")


def _compare(task: tuple[str, int, bytes]) -> tuple[int, str]:
    operation, first, data = task
    hardware = np.frombuffer(data, np.uint32)
    x = np.arange(first, first + hardware.size, dtype=np.uint64).astype(np.uint32).view(np.float32)
    name, ftz = operation.partition(".")[0], ".ftz" in operation
    with np.errstate(all="ignore"):
        ours = np.asarray(FUNCTIONS[name](x, ftz), np.float32).view(np.uint32)
    wrong = np.flatnonzero(ours != hardware)
    if not wrong.size:
        return 0, ""
    i = int(wrong[0])
    return int(wrong.size), f"{first + i:#010x}: hardware {int(hardware[i]):#010x}, simulator {int(ours[i]):#010x}"


def verify() -> int:
    """Compare all inputs of every operation; 1 if any differs."""
    unit, bad = Unit(), 0
    size = 1 << 24
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for operation in OPERATIONS:
            jobs: list[Any] = []
            for first in range(0, 1 << 32, _CHUNK):
                data = unit.run(operation, first, _CHUNK)
                jobs += [
                    pool.submit(_compare, (operation, first + at, data[at : at + size].tobytes()))
                    for at in range(0, _CHUNK, size)
                ]
                while len(jobs) > 64:
                    jobs = _collect(operation, jobs)
            results = [j if isinstance(j, tuple) else j.result() for j in jobs]
            wrong = sum(n for n, _ in results)
            sample = next((text for n, text in results if n), "")
            bad += wrong > 0
            sys.stdout.write(f"{operation}: {wrong} of 4294967296 differ {sample}\n")
            sys.stdout.flush()
    return 1 if bad else 0


def _collect(operation: str, jobs: list[Any]) -> list[Any]:
    """Turn the oldest half of the jobs into their results."""
    half = [j if isinstance(j, tuple) else j.result() for j in jobs[:32]]
    total = sum(n for n, _ in half)
    sample = next((text for n, text in half if n), "")
    return [*jobs[32:], (total, sample)]


def main(arguments: list[str]) -> int:
    """Run a command; see the module."""
    if arguments[:1] == ["capture"] and len(arguments) == 2:
        capture(Path(arguments[1]))
        return 0
    if arguments == ["verify"]:
        return verify()
    sys.stderr.write("usage: python -m warpsmith.hardware.mufu_capture capture DIRECTORY | verify\n")
    return 2


if __name__ == "__main__":
    sys.exit(run_module(main, __doc__, sys.argv[1:]))
