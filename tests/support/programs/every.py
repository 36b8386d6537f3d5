"""Every program of every compiler, and the table of them that stands in docs/design/programs.md."""

from __future__ import annotations

import zlib

from programs import (
    clang_objects,
    cute_kernels,
    cutlass_examples,
    cutlass_kernels,
    gcc_regions,
    gluon_kernels,
    libraries_attention,
    libraries_inference,
    libraries_models,
    libraries_sorting,
    mojo_kernels,
    numba_kernels,
    nvcc_devices,
    nvcc_hopper,
    nvcc_memory,
    nvcc_numbers,
    nvcc_objects,
    nvcc_orders,
    nvcc_recursion,
    nvrtc_kernels,
    tilelang_kernels,
    tinygrad_kernels,
    triton_kernels,
    triton_more,
    warp_kernels,
)
from programs.program import Program

__all__ = ["PROGRAMS", "RUNS", "share", "table"]

_COLLECTIONS = (
    clang_objects,
    cute_kernels,
    cutlass_examples,
    cutlass_kernels,
    gcc_regions,
    gluon_kernels,
    libraries_attention,
    libraries_inference,
    libraries_models,
    libraries_sorting,
    mojo_kernels,
    numba_kernels,
    nvcc_devices,
    nvcc_hopper,
    nvcc_memory,
    nvcc_numbers,
    nvcc_objects,
    nvcc_orders,
    nvcc_recursion,
    nvrtc_kernels,
    tilelang_kernels,
    tinygrad_kernels,
    triton_kernels,
    triton_more,
    warp_kernels,
)
PROGRAMS: list[Program] = [p for collection in _COLLECTIONS for p in collection.PROGRAMS]
RUNS = [(p, arch) for p in PROGRAMS for arch in p.archs]


def share(one_in: int) -> list[tuple[Program, str]]:
    """For each program that is not slow one architecture, drawn by its name; of slow ones one in `one_in`."""
    out: list[tuple[Program, str]] = []
    for p in PROGRAMS:
        drawn = zlib.crc32(f"{p.compiler}/{p.source}/{p.name}".encode())
        if not p.slow or drawn % one_in == 0:
            out.append((p, p.archs[drawn // one_in % len(p.archs)]))
    return out


def table() -> str:
    """The programs as a table of Markdown."""
    lines = ["| compiler | program | what it is | runs for | found |", "|---|---|---|---|---|"]
    for p in sorted(PROGRAMS, key=lambda p: p.compiler):
        where = " ".join(
            dict.fromkeys(a.split(".")[0] + (" -G" if "debug" in a else " (13.5)" if "next" in a else "") for a in p.archs)
        )
        remarks = " ".join(f"`{k}`" for k in p.remarks) or "none"
        name = p.source if p.source in ("", p.name) else f"{p.source}/{p.name}"
        lines.append(f"| {p.compiler} | `{name}` | {p.about} | {where} | {remarks} |")
    return "\n".join([*lines, ""])
