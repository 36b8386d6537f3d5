"""Every PTX sample transpiles to Python that traces to the same machine code, sugared or not."""

from __future__ import annotations

import lzma
import struct
from pathlib import Path

import pytest

from warpsmith import ptx
from warpsmith.assembly.ptx.printer import print_module
from warpsmith.dsl.kernel import Kernel
from warpsmith.toolchain import compile_ptx

DATA = Path(__file__).parents[2] / "data" / "ptx"
# ptxas wants debug sections for `.target debug`, and a transpiled kernel has none
FILES = [p for p in sorted(DATA.glob("*/*.ptx*")) if ".debug." not in p.name]


def code_of(elf: bytes) -> dict[str, bytes]:
    """The `.text.*` sections of a 64-bit ELF file."""
    (at,) = struct.unpack_from("<40xQ", elf)
    size, count, names = struct.unpack_from("<58xHHH", elf)
    headers = [struct.unpack_from("<IIQQQQ", elf, at + size * k) for k in range(count)]
    strings = headers[names][4]
    named = ((elf[strings + h[0] : elf.index(b"\0", strings + h[0])].decode(), h) for h in headers)
    return {name: elf[h[4] : h[4] + h[5]] for name, h in named if name.startswith(".text.")}


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}-{p.name}")
def test_same_code(path: Path) -> None:
    text = lzma.decompress(path.read_bytes()).decode() if path.suffix == ".xz" else path.read_text()
    options = ["-c"] if ".extern .func" in text.replace("vprintf", "") else []
    before = code_of(compile_ptx(print_module(ptx.parse(text), locations=False), options=options).cubin)
    for sugar in (False, True):
        space: dict[str, object] = {}
        exec(compile(ptx.to_python(text, sugar=sugar), str(path), "exec"), space)
        for k in [k for k in space.values() if isinstance(k, Kernel)]:
            after = code_of(compile_ptx(k.ptx(loc=False), options=options).cubin)
            assert after[f".text.{k.__name__}"] == before[f".text.{k.__name__}"], k.__name__
