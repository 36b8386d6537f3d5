"""Edit machine code by its listing and run it: `python -m warpsmith.study.cubin_edits [--keep DIR]`.

A loop over vectors, c = a + b and d = a b, is compiled by ptxas. Its listing (`warpsmith sass --ours`) gets instructions, or
loses some, and goes back into the cubin (`warpsmith assemble --into`); a third cubin is assembled from text alone. nvdisasm
and cuobjdump, where found, must accept each, and the GPU must give what the edited code says: where there is none, the cubins
are made and read only. Prints a line for each.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from warpsmith.base.errors import ToolError
from warpsmith.hardware.gpu_run import prepare
from warpsmith.study.cubin_check import readers, takes
from warpsmith.toolchain import compile_ptx

__all__ = ["BUILT", "LOOP", "grown", "main", "run", "shrunk"]

ARCH, COUNT = "sm_90a", 100_000

LOOP = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry vectors(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd, .param .u32 pn)
{
  .reg .b64 %a, %b, %c, %d, %o, %q;
  .reg .b32 %i, %n, %s, %t;
  .reg .f32 %x, %y, %z, %w;
  .reg .pred %p;
  ld.param.u64 %a, [pa];
  ld.param.u64 %b, [pb];
  ld.param.u64 %c, [pc];
  ld.param.u64 %d, [pd];
  ld.param.u32 %n, [pn];
  mov.u32 %i, %ctaid.x;
  mov.u32 %s, %ntid.x;
  mov.u32 %t, %tid.x;
  mad.lo.u32 %i, %i, %s, %t;
  mov.u32 %t, %nctaid.x;
  mul.lo.u32 %s, %s, %t;
NEXT:
  setp.ge.u32 %p, %i, %n;
  @%p bra DONE;
  mul.wide.u32 %o, %i, 4;
  add.u64 %q, %a, %o;
  ld.global.f32 %x, [%q];
  add.u64 %q, %b, %o;
  ld.global.f32 %y, [%q];
  add.f32 %z, %x, %y;
  mul.f32 %w, %x, %y;
  add.u64 %q, %c, %o;
  st.global.f32 [%q], %z;
  add.u64 %q, %d, %o;
  st.global.f32 [%q], %w;
  add.u32 %i, %i, %s;
  bra NEXT;
DONE:
  ret;
}
"""

BUILT = """.arch sm_90a
.function vectors
.registers 16
.params 8 8 8 8 4
B------:R-:W0:-:S01        S2R R0, SR_TID.X ;
B------:R-:W1:-:S01        S2R R3, SR_CTAID.X ;
B------:R-:W2:-:S02        LDC.64 R4, c[0x0][0x210] ;
B------:R-:W2:-:S02        LDC.64 R6, c[0x0][0x218] ;
B------:R-:W2:-:S02        LDC.64 R8, c[0x0][0x220] ;
B------:R-:W-:-:S01        ULDC.64 UR4, c[0x0][0x208] ;
B------:R-:W-:Y:S13        ULDC UR6, c[0x0][0x0] ;
B01----:R-:W-:-:S05        IMAD R0, R3, UR6, R0 ;
B------:R-:W-:Y:S13        ULDC UR6, c[0x0][0x230] ;
B------:R-:W-:Y:S13        ISETP.GE.U32.AND P0, PT, R0, UR6, PT ;
B------:R-:W-:-:S05        @P0 EXIT ;
B--2---:R-:W-:-:S01        IMAD.WIDE.U32 R4, R0, 0x4, R4 ;
B------:R-:W-:-:S01        IMAD.WIDE.U32 R6, R0, 0x4, R6 ;
B------:R-:W-:Y:S06        IMAD.WIDE.U32 R8, R0, 0x4, R8 ;
B------:R-:W0:-:S01        LDG.E R10, desc[UR4][R4.64] ;
B------:R-:W0:-:S01        LDG.E R11, desc[UR4][R6.64] ;
B0-----:R-:W-:-:S05        FADD R12, R10, R11 ;
B------:R-:W-:-:S01        STG.E desc[UR4][R8.64], R12 ;
B------:R-:W-:-:S05        EXIT ;
stop:
B------:R-:W-:Y:S00        BRA stop ;
"""


def grown(listing: str) -> str:
    """Double the sum twice before it is stored, and put 30 NOPs into the loop, so that its branch goes farther."""
    found = re.search(r"^.*\bFADD (R\d+),.*\n", listing, re.M)
    assert found is not None
    wait = "B------:R-:W-:-:S05 NOP ;\n"
    double = f"B------:R-:W-:-:S05 FADD {found[1]}, {found[1]}, {found[1]} ;\n"
    listing = listing.replace(found[0], found[0] + wait + 2 * double)
    start = listing.rindex("\n", 0, listing.index("LDG.E")) + 1
    return listing[:start] + 30 * wait + listing[start:]


def shrunk(listing: str) -> str:
    """Take out the product, its store, and the NOPs behind the code; the sum waits for itself now, as the product had done."""
    product, total = (re.search(rf"^.*\b{name} (R\d+),.*\n", listing, re.M) for name in ("FMUL", "FADD"))
    assert product is not None
    assert total is not None
    waiting = re.sub(r":[-Y]:S\d\d(/\d+)?", ":-:S05", total[0]).replace(".reuse", "")
    listing = listing.replace(product[0], "").replace(total[0], waiting)
    listing = re.sub(rf"^.*\bSTG\.E desc.*, {product[1]} ;\n", "", listing, flags=re.M)
    return re.sub(r"^.*\bNOP ;\n", "", listing, flags=re.M)


def _cli(*arguments: str, text: str = "") -> str:
    done = subprocess.run(
        [sys.executable, "-m", "warpsmith", *arguments], input=text, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ToolError(f"warpsmith {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def _made(folder: Path) -> dict[str, Path]:
    paths = {name: folder / f"{name}.cubin" for name in _WANTED}
    paths["compiled"].write_bytes(compile_ptx(LOOP, arch=ARCH).cubin)
    listing = _cli("sass", str(paths["compiled"]), "--ours")
    for name, edit in (("grown", grown), ("shrunk", shrunk)):
        _cli("assemble", "-", "--into", str(paths["compiled"]), "-o", str(paths[name]), text=edit(listing))
    _cli("assemble", "-", "-o", str(paths["built"]), text=BUILT)
    return paths


_WANTED: dict[str, tuple[float, bool]] = {
    "compiled": (1.0, True),
    "grown": (4.0, True),
    "shrunk": (1.0, False),
    "built": (1.0, False),
}
"""Cubin -> (how many times a + b is stored in c, whether d is stored)."""


def run(data: bytes, name: str) -> str:
    """Return what the GPU made of a cubin."""
    rng = np.random.default_rng(4)
    a, b = (rng.standard_normal(COUNT).astype(np.float32) for _ in range(2))
    c, d = (np.full(COUNT, -7, np.float32) for _ in range(2))
    grid = -(-COUNT // 256) if name == "built" else 64
    prepared = prepare(data, "vectors", grid=(grid, 1, 1), block=(256, 1, 1), args=[a, b, c, d, np.uint32(COUNT)])
    prepared.run()
    prepared.free()
    times, product = _WANTED[name]
    right = np.array_equal(c, np.float32(times) * (a + b)) and np.array_equal(d, a * b if product else np.full_like(d, -7))
    return f"c = {times:g} (a + b), d {'= a b' if product else 'untouched'}: {'right' if right else 'WRONG'}"


def main(arguments: list[str]) -> int:
    """Make the cubins, show them to the readers that are found, and to the GPU if there is one."""
    parser = argparse.ArgumentParser(prog="python -m warpsmith.study.cubin_edits")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="folder that gets the cubins")
    keep: Path | None = parser.parse_args(arguments).keep
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for name, path in _made(Path(folder)).items():
            said = [f"{path.stat().st_size} bytes"]
            data = path.read_bytes()
            said += [f"{Path(tool[0]).name} {'accepts' if takes(tool, data) else 'REFUSES'}" for tool in readers()]
            try:
                said.append(run(data, name))
            except ToolError as error:
                said.append(f"not run: {error}")
            failed = failed or any(word in text for word in ("WRONG", "REFUSES") for text in said)
            sys.stdout.write(f"{name}: {', '.join(said)}\n")
            if keep:
                keep.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, keep)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
