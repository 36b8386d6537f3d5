"""Capture what a GPU computes for warp-level and atomic instructions, and compare it with whole programs on the simulator.

    python -m warpsmith.hardware.program_capture build --arch sm_90a --cubins DIR     (needs ptxas)
    python -m warpsmith.hardware.program_capture run --cubins DIR --out OUT           (needs the GPU and numpy)
    python -m warpsmith.hardware.program_capture compare FILE                         (needs numpy)

Every program is free of conflicts between threads, so that its results are fixed.
"""

from __future__ import annotations

import argparse
import json
import struct
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from warpsmith.assembly.ptx.parser import parse as read_ptx
from warpsmith.base.errors import InputError, WarpsmithError
from warpsmith.base.ptx_types import TYPES
from warpsmith.hardware.command import CaptureCommand, Differing, about, count_report, open_build
from warpsmith.hardware.scalar_store import block_hashes
from warpsmith.hardware.scalar_values import code_dtype, inputs
from warpsmith.launch.driver import driver
from warpsmith.simulator.api import simulate
from warpsmith.toolchain.ptxas import compile_ptx

__all__ = ["Program", "build", "compare", "differing", "main", "programs", "run", "run_condensed"]

Array = NDArray[Any]
_BLOCK = 128
_HEAD = 512
"""Results that a condensed capture keeps of each program."""


@final
@dataclass(frozen=True, slots=True)
class Program:
    """A kernel `k(in…, out…)`: thread t computes `body` from %x0, %x1, … and stores %y0, %y1, …"""

    name: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    body: str

    def inputs(self) -> list[Array]:
        """Return the inputs, one array per read operand, of a whole number of blocks."""
        arrays = inputs(self.reads)
        whole = len(arrays[0]) // _BLOCK * _BLOCK
        return [a[:whole] for a in arrays]

    def text(self, arch: str) -> str:
        """Return the PTX."""
        parameters = [f".param .u64 in{i}" for i in range(len(self.reads))]
        parameters += [f".param .u64 out{i}" for i in range(len(self.writes))]
        lines = [".reg .u64 %a, %b; .reg .b32 %t, %c, %s; .reg .pred %p, %q; .shared .align 16 .b8 cells[2048];"]
        lines += ["mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; mad.lo.u32 %t, %c, 128, %t;"]
        for i, name in enumerate(self.reads):
            bits = TYPES[name].bits
            lines += [f".reg .b{bits} %x{i}; ld.param.u64 %a, [in{i}]; mad.wide.u32 %a, %t, {bits // 8}, %a;"]
            lines += [f"ld.global.b{bits} %x{i}, [%a];"]
        lines += [f".reg .b{TYPES[name].bits} %y{i};" for i, name in enumerate(self.writes)]
        lines.append(self.body)
        for i, name in enumerate(self.writes):
            bits = TYPES[name].bits
            lines += [f"ld.param.u64 %a, [out{i}]; mad.wide.u32 %a, %t, {bits // 8}, %a; st.global.b{bits} [%a], %y{i};"]
        body = "\n".join(lines)
        head = f".version 8.8\n.target {arch}\n.address_size 64\n"
        return f"{head}.visible .entry k({', '.join(parameters)})\n{{\n{body}\nret;\n}}\n"


def _atomic(op: str, type_: str, space: str, noftz: bool = False) -> Program:
    """Every thread has a cell of its own: memory holds the first operand; results are the old value and the new one."""
    bits = TYPES[type_].bits
    cell = f"mov.u32 %s, %tid.x; mov.u32 %c, cells; mad.lo.u32 %c, %s, {bits // 8}, %c;"
    where = "[%c]" if space == "shared" else "[%b]"
    if space == "global":
        cell = f"ld.param.u64 %b, [out1]; mad.wide.u32 %b, %t, {bits // 8}, %b;"
    third = ", %x2" if op == "cas" else ""
    name = f"atom.{space}.{op}{'.noftz' if noftz else ''}.{type_}"
    body = f"{cell} st.{space}.b{bits} {where}, %x0; {name} %y0, {where}, %x1{third}; ld.{space}.b{bits} %y1, {where};"
    reads = (type_,) * (3 if op == "cas" else 2)
    return Program(name, reads, (type_, type_), body)


def _atomics() -> Iterator[Program]:
    for space in ("global", "shared"):
        for type_ in ("u32", "s32", "u64", "f32", "f64"):
            yield _atomic("add", type_, space)
        for op in ("min", "max"):
            for type_ in ("u32", "s32", "u64", "s64"):
                yield _atomic(op, type_, space)
        for type_ in ("b32", "b64"):
            for op in ("and", "or", "xor", "exch", "cas"):
                yield _atomic(op, type_, space)
        yield from (_atomic("inc", "u32", space), _atomic("dec", "u32", space), _atomic("cas", "b16", space))
        for type_ in ("f16", "bf16", "f16x2", "bf16x2"):
            yield _atomic("add", type_, space, noftz=True)
    for op in ("add", "min", "max"):
        for type_ in ("f16x2", "bf16x2"):
            yield _vector(op, type_)


def _vector(op: str, type_: str) -> Program:
    name = f"atom.global.v2.{type_}.{op}.noftz"
    cell = "ld.param.u64 %b, [out2]; mad.wide.u32 %b, %t, 8, %b; st.global.v2.b32 [%b], {%x0, %x1};"
    mnemonic = f"atom.global.{op}.noftz.v2.{type_}"
    body = f"{cell} {mnemonic} {{%y0, %y1}}, [%b], {{%x1, %x0}}; ld.global.b64 %y2, [%b];"
    return Program(name, (type_, type_), (type_, type_, "b64"), body)


def _warps() -> Iterator[Program]:
    flag = "selp.b32 %y1, 1, 0, %p;"
    quarter = "mov.u32 %s, %laneid; and.b32 %s, %s, 24; mov.b32 %c, 255; shl.b32 %c, %c, %s;"
    for mode in ("up", "down", "bfly", "idx"):
        body = f"and.b32 %s, %x2, 0x1f1f; shfl.sync.{mode}.b32 %y0|%p, %x0, %x1, %s, 0xffffffff; {flag}"
        yield Program(f"shfl.sync.{mode}.b32", ("b32", "b32", "b32"), ("b32", "b32"), body)
    for mode in ("all", "any", "uni"):
        body = f"{quarter} setp.lt.s32 %q, %x0, 0; vote.sync.{mode}.pred %p, %q, %c; {flag} mov.b32 %y0, 0;"
        yield Program(f"vote.sync.{mode}.pred", ("b32",), ("b32", "b32"), body)
    yield Program(
        "vote.sync.ballot.b32", ("b32",), ("b32",), f"{quarter} setp.lt.s32 %q, %x0, 0; vote.sync.ballot.b32 %y0, %q, %c;"
    )
    for type_ in ("b32", "b64"):
        some = f"{quarter} and.{type_} %x0, %x0, 3;"
        yield Program(f"match.any.sync.{type_}", (type_,), ("b32",), f"{some} match.any.sync.{type_} %y0, %x0, %c;")
        body = f"{some} match.all.sync.{type_} %y0|%p, %x0, %c; {flag}"
        yield Program(f"match.all.sync.{type_}", (type_,), ("b32", "b32"), body)
    for op in ("add.u32", "add.s32", "min.u32", "min.s32", "max.u32", "max.s32", "and.b32", "or.b32", "xor.b32"):
        yield Program(f"redux.sync.{op}", ("b32",), ("b32",), f"{quarter} redux.sync.{op} %y0, %x0, %c;")
    body = f"{quarter} elect.sync %y0|%p, %c; {flag}"
    yield Program("elect.sync", ("b32",), ("b32", "b32"), body)


def _carries() -> Iterator[Program]:
    """What an instruction of one family finds after one of the other."""
    for first, second in (
        ("sub.cc", "addc"),
        ("add.cc", "subc"),
        ("sub.cc", "subc"),
        ("mad.lo.cc", "subc"),
        ("mad.hi.cc", "addc"),
    ):
        third = ", %x1" if "mad" in first else ""
        body = f"{first}.u32 %y0, %x0, %x1{third}; {second}.u32 %y1, 5, 3;"
        yield Program(f"{first} {second}", ("u32", "u32"), ("u32", "u32"), body)


def _halves() -> Iterator[Program]:
    """fma.oob with every code in each place, to see which NaN it takes for out of bounds."""
    for type_, two in (("f16", "0x4000"), ("bf16", "0x4000")):
        for k, operands in enumerate(("%x0, %k, %k", "%k, %x0, %k", "%k, %k, %x0")):
            for mode in ("oob", "oob.relu"):
                body = f".reg .b16 %k; mov.b16 %k, {two}; fma.rn.{mode}.{type_} %y0, {operands};"
                yield Program(f"fma.rn.{mode}.{type_} operand {k}", ("b16",), ("b16",), body)


def programs() -> list[Program]:
    """Return all programs."""
    return [*_atomics(), *_warps(), *_carries(), *_halves()]


def build(arch: str, folder: Path) -> str:
    """Compile all programs into `folder/programs.zip`."""
    folder.mkdir(parents=True, exist_ok=True)
    every = programs()
    with zipfile.ZipFile(folder / "programs.zip", "w", zipfile.ZIP_DEFLATED) as z:
        for i, p in enumerate(every):
            z.writestr(f"{i}.cubin", compile_ptx(p.text(arch), arch, ["--fmad=false"], name=p.name).cubin)
        z.writestr("manifest.json", json.dumps({"arch": arch, "names": [p.name for p in every]}))
    return f"{len(every)} programs"


def run(folder: Path, out: Path) -> str:
    """Run `folder/programs.zip` and write `out/programs.npz`: `<name>/<k>` holds result k of a program."""
    out.mkdir(parents=True, exist_ok=True)
    gpu = driver()
    known = {p.name: p for p in programs()}
    results: dict[str, Array] = {}
    with open_build(folder / "programs.zip", "program_capture") as z:
        manifest = json.loads(z.read("manifest.json"))
        results["about"] = np.array(json.dumps(about(manifest["arch"], gpu)))
        for i, name in enumerate(manifest["names"]):
            p = known[name]
            ins = p.inputs()
            outs = [np.zeros(len(ins[0]), code_dtype(t)) for t in p.writes]
            addresses = [gpu.allocate(a.nbytes) for a in (*ins, *outs)]
            for address, array in zip(addresses, ins, strict=False):
                gpu.upload(address, array.tobytes())
            function = gpu.load(z.read(f"{i}.cubin"), "k")
            function.launch((len(ins[0]) // _BLOCK, 1, 1), (_BLOCK, 1, 1), [struct.pack("<Q", a) for a in addresses])
            gpu.synchronize()
            for k, array in enumerate(outs):
                raw = gpu.download(addresses[len(ins) + k], array.nbytes)
                results[f"{name}/{k}"] = np.frombuffer(raw, array.dtype)
    np.savez_compressed(out / "programs.npz", **results)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    return f"{len(results) - 1} results of {len(known)} programs"


def condense(path: Path, to: Path) -> None:
    """Keep of a capture the first results of each program and a hash of every 64."""
    kept: dict[str, Array] = {}
    for name, values in np.load(path).items():
        if name == "about":
            kept[name] = values
            continue
        kept[name] = values[:_HEAD]
        kept[f"{name}#"] = block_hashes(values)
    np.savez_compressed(to, **kept)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def run_condensed(folder: Path, out: Path) -> str:
    """Run the programs, keep what the repository keeps, and compare."""
    run(folder, out)
    whole = out / "programs.npz"
    condense(whole, out / "programs.part.npz")
    (out / "programs.part.npz").replace(whole)
    return compare(whole)


def simulated(p: Program, arch: str = "sm_90a") -> list[Array]:
    """Return what the simulator computes for a program."""
    ins = p.inputs()
    outs = [np.zeros(len(ins[0]), code_dtype(t)) for t in p.writes]
    grid = (len(ins[0]) // _BLOCK, 1, 1)
    result = simulate(read_ptx(p.text(arch)), kernel="k", grid=grid, block=(_BLOCK, 1, 1), args=[*ins, *outs], check=False)
    if not result.completed:
        raise WarpsmithError(f"{p.name} did not complete: {'; '.join(str(f) for f in result.findings)}")
    return outs


def compare(path: Path) -> str:
    """Compare a capture with the simulator; return a report that begins with the number of programs that differ."""
    return count_report("programs", *differing(path))


def differing(path: Path) -> Differing:
    """Return how many programs a capture holds, and what differs by name."""
    try:
        captured = dict(np.load(path))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is not a program capture: {error}") from error
    lines: dict[str, str] = {}
    known = [p for p in programs() if f"{p.name}/0" in captured]
    for p in known:
        ins = p.inputs()
        texts = [_difference(ins, captured, f"{p.name}/{k}", ours) for k, ours in enumerate(simulated(p))]
        if any(texts):
            lines[p.name] = "\n".join(t for t in texts if t)
    return len(known), lines


def _difference(ins: list[Array], captured: dict[str, Array], key: str, ours: Array) -> str:
    """Say how a result of a program differs; "" if it does not."""
    theirs, hashes = captured[key], captured.get(f"{key}#")
    name = key.replace("/", " result ")
    bad = np.flatnonzero(theirs != ours[: len(theirs)])
    if len(bad):
        at = [int(i) for i in bad[:: max(1, len(bad) // 4)][:4]]
        shown = "; ".join(
            f"{' '.join(f'{int(x[i]):x}' for x in ins)} -> {int(theirs[i]):x}, simulator {int(ours[i]):x}" for i in at
        )
        return f"{name}: {len(bad)} of {len(ours)} differ: {shown}"
    wrong = 0 if hashes is None else int((hashes != block_hashes(ours)).sum())
    return f"{name}: {wrong} of {len(ours) // 64} blocks of 64 differ" if wrong else ""


def _condense(given: argparse.Namespace) -> str:
    condense(given.file, given.to)
    return f"{given.to}: {given.to.stat().st_size / 1e6:.1f} MB"


def main(arguments: list[str] | None = None) -> int:
    """Run one of the commands; return the exit status."""
    command = CaptureCommand("program_capture", __doc__, build=build, run=run, compare=compare)
    p = command.add("condense", "reduce a capture to what the repository keeps", _condense)
    p.add_argument("file", type=Path)
    p.add_argument("to", type=Path)
    return command.main(arguments)


if __name__ == "__main__":
    sys.exit(main())
