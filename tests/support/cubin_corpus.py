"""The cubins of tests/data/cubin, by name (its README says how they were made), and what reads all of one."""

from __future__ import annotations

import tarfile
from functools import cache
from pathlib import Path

from warpsmith.cubin import decode_payload

DATA = Path(__file__).parents[1] / "data/cubin"


@cache
def cubins() -> dict[str, bytes]:
    """Name without suffix, such as `ptxas-13.5-sm_90a`, -> bytes."""
    with tarfile.open(DATA / "cubins.tar.xz") as archive:
        files = {m.name.removesuffix(".cubin"): archive.extractfile(m) for m in archive.getmembers()}
        return {name: file.read() for name, file in files.items() if file}


def read_everything(cubin) -> None:
    """Touch all that is read on demand."""
    _ = cubin.arch, cubin.kernels, cubin.tools, cubin.callgraph, cubin.relocations, cubin.compat, cubin.info
    tables = [cubin.info, cubin.compat, *(f.info for f in cubin.functions.values())]
    _ = [decode_payload(attribute) for table in tables for attribute in table]
    for function in cubin.functions.values():
        _ = function.code, function.info, function.params, function.constants, function.lines, function.ptx_lines
        _ = function.registers, function.barriers, function.shared, function.stack, function.local, function.is_entry
