"""Launch paths with torch.compile and autograd."""

# The package is optional, and its types with it.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportUnknownParameterType=false
# pyright: reportUntypedBaseClass=false, reportUntypedFunctionDecorator=false

from __future__ import annotations

import functools
import sys
from typing import Any

import torch

from warpsmith.dsl.differentiable import differentiable_kernel
from warpsmith.study.launch_kernels import scaled_add, scaled_copy

__all__ = ["CHECKS"]


def _backend() -> str:
    """Return inductor, or aot_eager where inductor finds no compiler for its own kernels."""
    try:
        torch.compile(lambda x: x * 2 + 1, fullgraph=True)(torch.ones(8, device="cuda"))
    except Exception as error:
        sys.stdout.write(f"inductor does not work here ({type(error).__name__}: {str(error)[:200]}); aot_eager instead\n")
        torch.compiler.reset()
        return "aot_eager"
    return "inductor"


BACKEND = _backend()


def compiled() -> None:
    """torch.compile, whole graph, three shapes."""
    f = torch.compile(lambda x, y, s: scaled_add(x * 2, y, s=s).relu() + 1, fullgraph=True, backend=BACKEND)
    for n in (1000, 3000, 5000):
        a, b = torch.randn(n, device="cuda"), torch.randn(n, device="cuda")
        torch.testing.assert_close(f(a, b, 3.0), (6 * a + b).relu() + 1)


def reduced() -> None:
    """torch.compile that captures CUDA graphs itself."""
    how: dict[str, Any] = {"mode": "reduce-overhead"} if BACKEND == "inductor" else {"backend": "cudagraphs"}
    f = torch.compile(lambda x, y: scaled_add(x, y, s=2.0) * 3, fullgraph=True, **how)
    for i in range(5):
        a, b = torch.randn(1024, device="cuda"), torch.full((1024,), float(i), device="cuda")
        torch.testing.assert_close(f(a, b).clone(), (2 * a + b) * 3)


def gradient() -> None:
    """differentiable_kernel, eager and compiled."""
    forward: Any = functools.partial(scaled_add, s=2.0)
    pair = differentiable_kernel(forward, lambda x, y, g: (scaled_copy(g, s=2.0), g))
    for f in (pair, torch.compile(lambda a, b: pair(a, b), fullgraph=True, backend=BACKEND)):
        a, b = (torch.randn(1024, device="cuda", requires_grad=True) for _ in range(2))
        (f(a, b) * 5).sum().backward()
        assert a.grad is not None
        assert b.grad is not None
        torch.testing.assert_close(a.grad, torch.full_like(a, 10.0))
        torch.testing.assert_close(b.grad, torch.full_like(b, 5.0))


def recorded() -> str:
    """A kernel without a derivative refuses backward, and says so."""
    a = torch.ones(128, device="cuda", requires_grad=True)
    try:
        scaled_copy(a, s=2.0).sum().backward()
    except RuntimeError as error:
        return str(error).partition(".")[0]
    raise AssertionError("backward went through")


CHECKS = [compiled, reduced, gradient, recorded]
