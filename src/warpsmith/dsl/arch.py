"""`arch="auto"`: the GPU that is present, else the simulator's default."""

from __future__ import annotations

import ctypes
import sys
from functools import cache

from warpsmith.base.arch import ARCHITECTURES

__all__ = ["DEFAULT_ARCH", "detect_arch", "resolve_arch"]

DEFAULT_ARCH = "sm_90a"

_MAJOR, _MINOR = 75, 76
"""CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR."""


def _capability() -> tuple[int, int] | None:
    """Compute capability of the first GPU through the CUDA driver, None without one."""
    try:
        cuda = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return None
    device, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    if cuda.cuInit(0) or cuda.cuDeviceGet(ctypes.byref(device), 0):
        return None
    for out, attribute in ((major, _MAJOR), (minor, _MINOR)):
        if cuda.cuDeviceGetAttribute(ctypes.byref(out), attribute, device):
            return None
    return major.value, minor.value


@cache
def detect_arch() -> str | None:
    """Return the architecture of the first GPU (`sm_90a`: with its own features where it has some), None without one."""
    found = _capability()
    if found is None:
        return None
    name = f"sm_{found[0]}{found[1]}"
    return f"{name}a" if f"{name}a" in ARCHITECTURES else name if name in ARCHITECTURES else None


@cache
def _announce() -> None:
    sys.stderr.write(f'warpsmith: arch="auto" found no GPU and takes {DEFAULT_ARCH}, the default of the simulator\n')


def resolve_arch(name: str) -> str:
    """Return `name`, or for `auto` the GPU's architecture, or the default with one message on standard error."""
    if name != "auto":
        return name
    found = detect_arch()
    if found is None:
        _announce()
        return DEFAULT_ARCH
    return found
