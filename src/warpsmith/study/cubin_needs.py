"""Ask the driver what it needs of a cubin: `python -m warpsmith.study.cubin_needs`, on a machine with an sm_90 GPU and ptxas.

From the shipped GEMM (TMA, mbarriers, wgmma, setmaxnreg) one attribute or section is taken out at a time, and cubins are edited
and built; each variant is loaded, launched and compared in a process of its own. Prints a line a variant.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from warpsmith.base.errors import ToolError
from warpsmith.cubin import Cubin, open, shifted
from warpsmith.dsl.call import bind
from warpsmith.hardware.gpu_run import prepare
from warpsmith.kernels import gemm
from warpsmith.study.moved_code import rewritten

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warpsmith.dsl.kernel import Kernel

__all__ = ["main", "variants"]

NEEDED = ("REGCOUNT", "KPARAM_INFO", "NUM_BARRIERS", "PARAM_CBANK")
"""What was found to be enough."""
_TABLES = (".nv.info", ".nv.info.gemm", ".nv.compat")
_SECONDS = 30


def _kernel() -> Kernel:
    return gemm.build(gemm.Config(512, 384, 256, "bf16", "nt"))


def variants(data: bytes) -> Iterator[tuple[str, Cubin]]:
    """Return what was done to the GEMM's cubin, and the cubin."""
    yield "as compiled", open(data)
    yield "grown at 40 places", _grown(data)
    yield "built from nothing", _built(data)
    for table in _TABLES:
        for i, attribute in enumerate(_table(open(data), table)):
            cubin = open(data)
            attributes = _table(cubin, table)
            del attributes[i]
            yield f"without {attribute.name} of {table} ({i})", cubin
    for section in ([".nv.callgraph"], [".debug_frame"], [".note.nv.tkinfo", ".note.nv.cuinfo"]):
        cubin = open(data)
        cubin.remove_sections(*section)
        yield f"without {' and '.join(section)}", cubin
    cubin = open(data)
    for table in _TABLES:
        attributes = _table(cubin, table)
        attributes[:] = [a for a in attributes if a.name in NEEDED]
    yield f"{', '.join(NEEDED)} alone", cubin
    cubin = open(data)
    cubin.functions["gemm"].registers = 32
    yield "32 registers in place of 168", cubin


def _table(cubin: Cubin, name: str) -> list[Any]:
    tables = {".nv.info": cubin.info, ".nv.compat": cubin.compat, ".nv.info.gemm": cubin.functions["gemm"].info}
    return tables[name].attributes


def _grown(data: bytes) -> Cubin:
    cubin = open(data)
    code = cubin.functions["gemm"].code
    rng = random.Random(2)
    places = {16 * rng.randrange(len(code) // 16): 16 * rng.randrange(1, 4) for _ in range(40)}
    moved = shifted(places)
    cubin.functions["gemm"].replace(rewritten(code, moved, len(code) + sum(places.values())), moved)
    return cubin


def _built(data: bytes) -> Cubin:
    theirs = open(data).functions["gemm"]
    cubin = Cubin.new("sm_90a")
    sizes = [(p.size, 64 if p.size == 128 else 8) for p in theirs.params]
    cubin.add_function("gemm", theirs.code, params=sizes, registers=theirs.registers, barriers=theirs.barriers)
    return cubin


def _run(path: str) -> int:
    """Run one variant; print what became of it."""
    rng = np.random.default_rng(2)
    a, b = (rng.standard_normal(shape).astype(ml_dtypes.bfloat16) for shape in ((512, 256), (384, 256)))
    bound = bind(_kernel(), (a, b), {})
    stage = "not loaded"
    try:
        prepared = prepare(
            Path(path).read_bytes(), "gemm", grid=bound.grid, block=bound.block, cluster=bound.cluster, args=bound.args,
            dynamic_shared=bound.built.dynamic_shared,
        )  # fmt: skip
        stage = "not launched"
        prepared.launch()
        stage = "fails"
        prepared.run()
    except ToolError as error:
        sys.stdout.write(f"{stage}: {error}\n")
        return 1
    want = a.astype(np.float64) @ b.astype(np.float64).T
    right = np.abs(bound.outputs[0].astype(np.float64) - want).max() / 16 < 3e-2
    sys.stdout.write("right\n" if right else "wrong result\n")
    return 0


def _outcome(path: Path) -> str:
    command = [sys.executable, "-m", "warpsmith.study.cubin_needs", str(path)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"no end within {_SECONDS} s"
    return done.stdout.strip() or f"the process died: {done.stderr.strip()[-200:]}"


def main(arguments: list[str]) -> int:
    """Run one variant, whose file is named, or all of them."""
    if arguments:
        return _run(arguments[0])
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(4) as pool:
        names: list[str] = []
        paths: list[Path] = []
        for i, (name, cubin) in enumerate(variants(_kernel().cubin())):
            paths.append(Path(folder) / f"{i}.cubin")
            paths[-1].write_bytes(cubin.write())
            names.append(name)
        for name, outcome in zip(names, pool.map(_outcome, paths), strict=True):
            sys.stdout.write(f"{name}: {outcome}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
