"""The rooms a kernel object needs only when it runs or compiles, imported at that moment.

Tracing and `k.ptx()` must not load numpy, nor look for tools; this is the registry that loads those rooms.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warpsmith.base.tile import Tile
    from warpsmith.dsl.build import Built
    from warpsmith.toolchain.ptxas import Compilation

__all__ = [
    "arrays_of", "compiled", "complain", "disassemble", "launch", "map_element", "ml_dtypes", "numpy", "pack_value", "simulate",
    "tensor_map", "toolchain",
]  # fmt: skip


_ELEMENTS = {
    "f16": "f16", "bf16": "bf16", "f32": "f32", "tf32": "f32", "f64": "f64", "u8": "u8", "s8": "u8", "b8": "u8", "u16": "u16",
    "s16": "u16", "b16": "u16", "u32": "u32", "s32": "s32", "b32": "u32", "u64": "u64", "s64": "s64", "b64": "u64",
}  # fmt: skip
"""PTX type → element type of a tensor map; 8-bit floats are moved as bytes."""


_complained: set[str] = set()
_libraries: dict[type, Any] = {}
"""Type of an array -> the adapter of its library."""


def numpy() -> Any:
    """Return numpy."""
    return import_module("numpy")


def ml_dtypes() -> Any:
    """Return ml_dtypes."""
    return import_module("ml_dtypes")


def simulate(module: Any, **options: Any) -> Any:
    """Run a kernel on the simulator, with `against_gpu` also on the GPU."""
    return import_module("warpsmith.hardware.against_gpu").simulate(module, **options)


def toolchain() -> Any:
    """Return the toolchain."""
    return import_module("warpsmith.toolchain")


def compiled(built: Built, arch: str, name: str) -> Compilation:
    """Return what ptxas makes of a traced kernel, with findings about what it makes wrong code of."""
    done = import_module("warpsmith.toolchain").compile_ptx(built.text(), arch, name=name)
    wrong = import_module("warpsmith.assembly.ptx.miscompiled").miscompiled_here(built.module)
    return replace(done, findings=(*done.findings, *wrong)) if wrong else done


def complain(compilation: Compilation) -> Compilation:
    """Log what ptxas made wrong code of, each once: for callers who are given no findings."""
    for finding in compilation.findings:
        if finding.kind == "ptxas-miscompiles" and (text := str(finding)) not in _complained:
            _complained.add(text)
            logging.getLogger("warpsmith").warning("%s", text)
    return compilation


def disassemble(cubin: bytes) -> Any:
    """Return the listing of a cubin's machine code."""
    return import_module("warpsmith.toolchain").disassemble(cubin)


def tensor_map(tile: Tile, array: Any) -> Any:
    """Return the simulator's tensor map of `array` as `tile` describes it."""
    box = tile.descriptor(tile.extract_env(array.shape))
    view = numpy().lib.stride_tricks.as_strided(array, box.extents[::-1], (*box.strides[::-1], array.itemsize))
    maps = import_module("warpsmith.simulator.tensormap")
    element = _ELEMENTS.get(tile.dtype.name)
    return maps.TensorMap(view, box=box.box[::-1], swizzle=box.swizzle or "none", element=element, memory=array)


def map_element(type_: str) -> str:
    """Return the element type of a tensor map of a PTX type."""
    return _ELEMENTS.get(type_, "u8")


def launch(module: str) -> Any:
    """Return a module of the room `launch`."""
    return import_module(f"warpsmith.launch.{module}")


def arrays_of(value: object) -> Any:
    """Return the adapter of the library whose array `value` is; None for numpy and for what is no array."""
    kind = type(value)
    if kind not in _libraries:
        _libraries[kind] = launch("arrays").arrays_of(value)
    return _libraries[kind]


def pack_value(value: object, parameter: Any, what: str) -> bytes:
    """Return the bytes of a number (or bytes) for a kernel parameter."""
    return import_module("warpsmith.simulator.arguments").pack_value(value, parameter, what)
