"""How a launch is written on the command line: the entry, the grid, the block, the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warpsmith.assembly.ptx.lexer import whole_number
from warpsmith.base.errors import InputError
from warpsmith.base.mangled import same_in_source
from warpsmith.dsl.binding import grid_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from warpsmith.assembly.ptx import Module

__all__ = ["directive", "entry_name", "extents", "launch_shape", "raw_launch", "takes_raw"]

Extents = tuple[int, int, int]


def extents(text: str, option: str) -> Extents:
    """Read `8`, `8,2` or `8,2,1` (also with `x`); every extent is at least 1."""
    parts = text.replace("x", ",").split(",")
    try:
        values = [int(p) for p in parts]
    except ValueError:
        values = []
    if not 1 <= len(values) <= 3 or min(values) < 1:
        raise InputError(f"--{option} {text}: one to three numbers of at least 1, e.g. --{option} 8 or --{option} 8,2,1")
    x, y, z = (*values, 1, 1)[:3]
    return x, y, z


def entry_name(module: Module, name: str | None, target: str) -> str:
    """Return the entry of that name, or that has it in the source of C++ (`saxpy`: `_Z5saxpyifPKfPf`), or the only one."""
    entries = [f.name for f in module.functions() if f.kind == "entry" and f.body is not None]
    there = ", ".join(entries) or "none"
    if name is None and len(entries) == 1:
        return entries[0]
    if name is None:
        raise InputError(f"{target}: which kernel? write --kernel NAME; kernels there: {there}")
    if name in entries:
        return name
    alike = same_in_source(name, entries)
    if len(alike) == 1:
        return alike[0]
    if alike:
        raise InputError(f"{target}: {len(alike)} kernels are called {name!r} in the source; write one of: {', '.join(alike)}")
    raise InputError(f"{target}: no kernel is called {name!r}; kernels there: {there}")


def directive(module: Module, entry: str, *names: str) -> Extents | None:
    """Return the extents that the first of these directives of an entry states, or None."""
    for name in names:
        for d in module.entry(entry).directives:
            if getattr(d, "name", "") == name and (words := getattr(d, "arguments", [])):
                return extents(",".join(str(whole_number(word) or 0) for word in words), name)
    return None


def launch_shape(
    module: Module, entry: str, grid: str, block: str | None, cluster: str | None, target: str
) -> dict[str, Extents]:
    """Return grid, block and cluster of a launch; the entry's directives fill what is not given."""
    threads = extents(block, "block") if block else directive(module, entry, "reqntid", "maxntid")
    if threads is None:
        raise InputError(f"{target}: {entry} does not state its block (.reqntid); write --block, e.g. --block 128")
    shape = {"grid": extents(grid, "grid"), "block": threads}
    ctas = extents(cluster, "cluster") if cluster else directive(module, entry, "reqnctapercluster")
    return {**shape, "cluster": ctas} if ctas else shape


def takes_raw(kernel: Any) -> bool:
    """Say whether a kernel written in Python has raw parameters alone, as `transpile` writes it: it is launched as PTX is."""
    c = kernel.configuration
    return bool(c.raw_params) and not (c.in_specs or c.out_specs)


def raw_launch(kernel: Any, launch: Mapping[str, Any], parameters: Mapping[str, object], target: str) -> dict[str, Any]:
    """Return what `simulate` needs to launch a kernel of raw parameters but its arguments and `launch`'s other options."""
    if launch.get("kernel"):
        raise InputError(f"{target}: a kernel written in Python states --kernel itself")
    built = kernel.build(None, **parameters)
    given = launch.get("grid") or ",".join(map(str, grid_of(kernel, {}, None if kernel.configuration.grid else (1, 1, 1))))
    shape = launch_shape(built.module, built.name, given, launch.get("block"), launch.get("cluster"), target)
    shared = launch.get("shared") or built.dynamic_shared
    return {"source": built.module, "kernel": built.name, "dynamic_shared": shared, **shape}
