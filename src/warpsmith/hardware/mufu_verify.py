"""Verify the simulator's approximate functions on all operands, hardware against the model on the same GPU.

    python -m warpsmith.hardware.mufu_verify [OUT]       a line for each form, also into OUT/mufu.txt

Needs a GPU, ptxas, CuPy. Every f32 function takes all 2³² operands, those of f64 all upper words; div takes `PAIRS` pairs
from a counter-based generator. The model runs through CuPy (`device_functions.py`); on a sample of each form it is compared
with numpy's evaluation as well. The f16 and bf16 forms are captured on all 65,536 operands by `scalar_capture`.
"""

from __future__ import annotations

import importlib
import struct
import sys
import time
from pathlib import Path
from typing import Any, final

import numpy as np

from warpsmith.assembly.ptx.isa import match
from warpsmith.base.errors import ToolError
from warpsmith.base.module_command import run_module
from warpsmith.hardware.device_functions import Unflushed, functions_on
from warpsmith.hardware.mufu_capture import OPERATIONS, SEEDS
from warpsmith.launch.driver import driver
from warpsmith.simulator.meanings import approx
from warpsmith.simulator.meanings.forms import form_of
from warpsmith.toolchain import compile_ptx

__all__ = ["DIVISIONS", "EVERY", "PAIRS", "evaluate", "main", "pairs"]

DIVISIONS = ("div.approx.f32", "div.approx.ftz.f32", "div.full.f32", "div.full.ftz.f32")
EVERY = (*OPERATIONS, *SEEDS, *DIVISIONS)
PAIRS = 1 << 30
"""Pairs of operands that each form of div is compared on."""
_CHUNK = 1 << 26
_SAMPLE = 1 << 20
_THREADS = 256
_MIX = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


def pairs(index: Any, library: Any = np) -> tuple[Any, Any]:
    """Return the bits of both operands of pairs `index` (uint64): splitmix64's output, its halves.

    Three quarters of the pairs have exponents within 32 of each other's.
    """
    u = library.uint64
    z = index * u(_MIX[0])
    z = (z ^ (z >> u(30))) * u(_MIX[1])
    z = (z ^ (z >> u(27))) * u(_MIX[2])
    z = z ^ (z >> u(31))
    a, b = z >> u(32), z & u(0xFFFFFFFF)
    near = ((a & u(0x7F800000)) ^ ((b >> u(3)) & u(0x0F800000))) | (b & u(0x807FFFFF))
    return a.astype(library.uint32), library.where(index & u(3) != u(0), near, b).astype(library.uint32)


_PAIR = f"""
 mul.lo.u64 %z, %i, {_MIX[0]}; shr.u64 %y, %z, 30; xor.b64 %z, %z, %y; mul.lo.u64 %z, %z, {_MIX[1]};
 shr.u64 %y, %z, 27; xor.b64 %z, %z, %y; mul.lo.u64 %z, %z, {_MIX[2]}; shr.u64 %y, %z, 31; xor.b64 %z, %z, %y;
 mov.b64 {{%b, %a}}, %z; and.b32 %s, %a, 0x7F800000; shr.u32 %t, %b, 3; and.b32 %t, %t, 0x0F800000; xor.b32 %s, %s, %t;
 and.b32 %t, %b, 0x807FFFFF; or.b32 %s, %s, %t; and.b64 %y, %i, 3; setp.ne.u64 %p, %y, 0; selp.b32 %b, %s, %b, %p;
 mov.b32 %x0, %a; mov.b32 %x1, %b;
"""


def _kernel(operation: str) -> str:
    """Thread i of a launch computes the operation on operand or pair `first + i` and stores the result's bits."""
    if operation in SEEDS:
        apply = " cvt.u32.u64 %a, %i; mov.b32 %b, 0;"
        apply += f" mov.b64 %y0, {{%b, %a}}; {operation} %y1, %y0; mov.b64 {{%b, %a}}, %y1; mov.b32 %x2, %a;"
    elif operation in DIVISIONS:
        apply = f"{_PAIR} {operation} %x2, %x0, %x1;"
    else:
        apply = f" cvt.u32.u64 %a, %i; mov.b32 %x0, %a; {operation} %x2, %x0;"
    return f"""
.visible .entry {operation.replace(".", "_")}(.param .u64 to, .param .u64 first)
{{
 .reg .b64 %to, %i, %y, %z; .reg .b32 %a, %b, %s, %t, %k; .reg .f32 %x<3>; .reg .f64 %y0, %y1; .reg .pred %p;
 ld.param.u64 %to, [to]; ld.param.u64 %i, [first];
 mov.u32 %k, %ctaid.x; mov.u32 %t, %tid.x; mad.lo.u32 %k, %k, {_THREADS}, %t;
 mad.wide.u32 %to, %k, 4, %to; cvt.u64.u32 %y, %k; add.u64 %i, %i, %y;
{apply}
 st.global.f32 [%to], %x2;
 ret;
}}
"""


@final
class Verifier:
    """Both sides on one GPU."""

    def __init__(self) -> None:
        try:
            self.cupy: Any = importlib.import_module("cupy")
        except ImportError as error:
            raise ToolError(f"mufu_verify needs CuPy: {error}; install cupy-cuda13x") from None
        self.gpu = driver()
        arch = self.gpu.arch
        text = f".version 8.0\n.target {arch}\n.address_size 64\n" + "".join(map(_kernel, EVERY))
        self.cubin = compile_ptx(text, arch).cubin
        self.results = self.cupy.empty(_CHUNK, self.cupy.uint32)
        self.model = functions_on(Unflushed(self.cupy))

    def hardware(self, operation: str, first: int) -> Any:
        """Return the results' bits for `_CHUNK` operands from `first` on."""
        function = self.gpu.load(self.cubin, operation.replace(".", "_"))
        arguments = [struct.pack("<Q", int(self.results.data.ptr)), struct.pack("<Q", first)]
        function.launch((_CHUNK // _THREADS, 1, 1), (_THREADS, 1, 1), arguments)
        self.gpu.synchronize()
        return self.results

    def wrong(self, operation: str, first: int) -> tuple[int, str]:
        """Compare `_CHUNK` operands; return how many differ, and the first of them in words."""
        theirs = self.hardware(operation, first)
        ours = evaluate(operation, first, _CHUNK, self.cupy, self.model)
        bad = self.cupy.flatnonzero(ours != theirs)
        if not bad.size:
            return 0, ""
        i = int(bad[0])
        return int(bad.size), f"{first + i:#x}: hardware {int(theirs[i]):#010x}, simulator {int(ours[i]):#010x}"

    def verify(self, operation: str) -> tuple[int, str]:
        """Compare all operands (or pairs) and a sample of the two evaluations of the model; return (differing, a line)."""
        count = PAIRS if operation in DIVISIONS else 1 << 32
        total, sample, start = 0, "", time.perf_counter()
        for first in range(0, count, _CHUNK):
            n, text = self.wrong(operation, first)
            total, sample = total + n, sample or text
        for first in (0, 0x3F000000, 0xC0000000, 0x7F700000, 0xFF700000, 0x42000000):
            mine = self.cupy.asnumpy(evaluate(operation, first, _SAMPLE, self.cupy, self.model))
            if (mine != evaluate(operation, first, _SAMPLE, np, approx)).any():
                total, sample = total + 1, f"the model's two evaluations differ from {first:#x} on"
        seconds = time.perf_counter() - start
        return total, f"{operation}: {total} of {count} differ {sample} ({seconds:.1f} s)".replace("  ", " ")


def evaluate(operation: str, first: int, count: int, library: Any, model: Any) -> Any:
    """Return the bits of what the model gives for `count` operands from `first` on, through `library`."""
    index = library.arange(first, first + count, dtype=library.uint64)
    if operation in DIVISIONS:
        a, b = (x.view(library.float32) for x in pairs(index, library))
        out = library.empty(count, library.float32)
        with np.errstate(all="ignore"):
            model.divide(form_of(match(operation)[0]))(out, a, b)
    elif operation in SEEDS:
        unit = model.mufu.rcp64h if operation.startswith("rcp") else model.mufu.rsq64h
        return unit(index.astype(library.uint32))
    else:
        name, ftz = operation.partition(".")[0], ".ftz" in operation
        with np.errstate(all="ignore"):
            out = model.FUNCTIONS[name](index.astype(library.uint32).view(library.float32), ftz)
    return out.astype(library.float32).view(library.uint32)


def main(arguments: list[str]) -> int:
    """Verify every form; return 1 if any differs."""
    verifier, lines, status = Verifier(), list[str](), 0
    for operation in EVERY:
        wrong, line = verifier.verify(operation)
        status |= wrong != 0
        lines.append(line)
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
    if arguments:
        Path(arguments[0]).mkdir(parents=True, exist_ok=True)
        Path(arguments[0], "mufu.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(run_module(main, __doc__, sys.argv[1:]))
