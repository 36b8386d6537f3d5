"""Launch paths with CuPy."""

# The package is optional, and its types with it.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportUnknownParameterType=false
# pyright: reportUntypedBaseClass=false, reportUntypedFunctionDecorator=false

from __future__ import annotations

import cupy

from warpsmith.study.launch_kernels import scaled_add, scaled_copy

__all__ = ["CHECKS"]


def outputs() -> None:
    """Outputs are CuPy's, in CuPy's current stream."""
    a, b = cupy.arange(1000, dtype=cupy.float32), cupy.ones(1000, cupy.float32)
    c = scaled_add(a, b, s=2.0)
    assert isinstance(c, cupy.ndarray)
    assert bool((c == 2 * a + 1).all())
    with cupy.cuda.Stream(non_blocking=True) as stream:
        a = cupy.full(1 << 22, 2, cupy.float32)
        for _ in range(20):
            a = cupy.sqrt(a * a)
        d = scaled_copy(a, s=3.0)
        stream.synchronize()
    assert bool((d == 6).all())


def mixed() -> str:
    """An array of another library is refused by name."""
    try:
        scaled_add(cupy.ones(128, cupy.float32), [1.0] * 128, s=1.0)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    raise AssertionError("accepted")


CHECKS = [outputs, mixed]
