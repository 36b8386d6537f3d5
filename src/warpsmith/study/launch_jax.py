"""Launch paths with JAX: eager, jit, grad, vmap, and the cost of the foreign function."""

# The package is optional, and its types with it.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportUnknownParameterType=false
# pyright: reportUntypedBaseClass=false, reportUntypedFunctionDecorator=false

from __future__ import annotations

import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from warpsmith.dsl.differentiable import differentiable_kernel
from warpsmith.kernels.attention import hopper
from warpsmith.kernels.attention.reference import attention
from warpsmith.study.launch_kernels import scaled_add, scaled_copy

__all__ = ["CHECKS"]


def _add(a: Any, b: Any) -> Any:
    return scaled_add(a, b, s=2.0)


def eager() -> str:
    """Arrays on the GPU, called eagerly."""
    a = jnp.arange(1000, dtype=jnp.float32)
    c = _add(a, jnp.ones_like(a))
    np.testing.assert_array_equal(np.asarray(c), 2 * np.arange(1000, dtype=np.float32) + 1)
    return str(next(iter(c.devices())))


def jit() -> None:
    """jax.jit around kernels and XLA's own operations, 200 executions."""
    f = jax.jit(lambda a, b: _add(jnp.sin(a), b) * 2 + _add(a, a))
    for i in range(200):
        a = jnp.full(4096, float(i), jnp.float32)
        got = np.asarray(f(a, a))
        np.testing.assert_allclose(got, 2 * (2 * np.sin(np.float32(i)) + i) + 3 * i, rtol=1e-5, atol=1e-5)


def recorded() -> None:
    """A chain of kernels that XLA may record, on arrays that move: 60 executions, some results kept, all right."""
    f = jax.jit(lambda a, b: _chain(a, b, 12))
    kept: list[Any] = []
    for i in range(60):
        a, b = jnp.full(5000, float(i), jnp.float32), jnp.arange(5000, dtype=jnp.float32) + i
        expected = np.full(5000, i, np.float32)
        for _ in range(12):
            expected = np.float32(0.5) * expected + np.asarray(b)
        made = f(a, b)
        kept += [made, a] if i % 3 else []
        np.testing.assert_allclose(np.asarray(made), expected, rtol=1e-6)


def _chain(a: Any, b: Any, length: int) -> Any:
    for _ in range(length):
        a = scaled_add(a, b, s=0.5)
    return a


def attention_jit() -> str:
    """Tensor maps under jax.jit: Hopper attention against float64."""
    q, k, v = (np.random.default_rng(i).standard_normal((2, 300, 64)).astype(np.float16) for i in range(3))
    o = np.asarray(jax.jit(hopper.build(hopper.Config(2, 300, 64, "f16", False)))(q, k, v)[0])
    error = abs(o.astype("f8") - attention(q, k, v, causal=False, scale=64**-0.5)[0]).max()
    assert error < 4e-3, error
    return f"error {error:.1e}"


def gradient() -> None:
    """jax.grad and jax.vmap through differentiable_kernel."""
    pair = differentiable_kernel(_add, lambda x, y, g: (scaled_copy(g, s=2.0), g))
    a = jnp.ones(256, jnp.float32)
    np.testing.assert_array_equal(np.asarray(jax.jit(jax.grad(lambda x: pair(x, a).sum()))(a)), np.full(256, 2, np.float32))
    assert jax.vmap(_add)(jnp.ones((3, 128)), jnp.ones((3, 128))).shape == (3, 128)


def cost() -> str:
    """Cost of a chain of 100 kernels in one jitted function, against 100 of XLA's own (of 2^20 elements)."""

    def ours(a: Any) -> Any:
        for _ in range(100):
            a = scaled_copy(a, s=1.0)
        return a

    def theirs(a: Any) -> Any:
        for _ in range(100):
            a = jax.lax.optimization_barrier(a * 1.000001)
        return a

    out: list[str] = []
    for name, fn in (("ours", jax.jit(ours)), ("XLA", jax.jit(theirs))):
        a = jnp.ones(1 << 20, jnp.float32)
        fn(a).block_until_ready()
        times: list[float] = []
        for _ in range(20):
            started = time.perf_counter()
            fn(a).block_until_ready()
            times.append((time.perf_counter() - started) * 1e4)
        out.append(f"{name} {sorted(times)[10]:.1f} µs a kernel")
    return ", ".join(out)


CHECKS = [eager, jit, recorded, attention_jit, gradient, cost]
