"""The simulator's approximate functions on another array library: the same source, evaluated on a GPU through CuPy.

`meanings/mufu.py` and `meanings/approx.py` are executed a second time with another library in place of numpy. Nothing is
written down twice but flushing, whose shortcuts for ordinary operands need reductions.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec, module_from_spec
from typing import TYPE_CHECKING, Any, final

from warpsmith.simulator.meanings import mufu

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["Unflushed", "functions_on"]

_MEANINGS = "warpsmith.simulator.meanings"


def _copy(name: str) -> ModuleType:
    spec = find_spec(f"{_MEANINGS}.{name}")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def functions_on(library: Any) -> Any:
    """Return a module like `meanings/approx.py` whose functions take and give arrays of `library`."""
    unit, approx = _copy("mufu"), _copy("approx")

    @cache
    def table(name: str) -> Any:
        return library.asarray(mufu.table(name))

    def flush(x: Any) -> Any:
        return library.where(library.abs(x) < 2.0**-126, library.copysign(library.zeros_like(x), x), x)

    def settle(out: Any, ftz: bool, _: bool) -> None:
        out[...] = flush(out) if ftz else out
        out.view(library.uint32)[library.isnan(out)] = 0x7FFFFFFF

    unit.__dict__.update(np=library, table=table)
    approx.__dict__.update(np=library, mufu=unit, flush=flush, settle=settle)
    return approx


@final
class Unflushed:
    """CuPy, but for f32 products and sums: its own kernels flush subnormals."""

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        for name, instruction in (("multiply", "mul.rn.f32"), ("add", "add.rn.f32")):
            code = f'asm("{instruction} %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));'
            setattr(self, name, cupy.ElementwiseKernel("float32 a, float32 b", "float32 c", code, f"unflushed_{name}"))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cupy, name)
