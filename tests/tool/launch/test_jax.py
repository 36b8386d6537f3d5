"""CPU arrays of JAX run on the simulator through a foreign function of XLA: eager, under jit, vmap and grad."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from vector_kernels import outside, scaled, scaled_add
from warpsmith import Layout, Tile, differentiable_kernel, kernel, ptx, reg
from warpsmith.base.errors import InputError
from warpsmith.types import bf16, f32, u16, u64


def ramp(n: int = 64) -> Any:
    return jnp.arange(n, dtype=jnp.float32)


def test_eager_and_jit_agree() -> None:
    def f(x: Any, y: Any) -> Any:
        return scaled_add(x * 2, y, s=2.0) + 1

    want = 4 * np.arange(64, dtype=np.float32) + 2
    for call in (f, jax.jit(f)):
        got = call(ramp(), jnp.ones(64))
        assert isinstance(got, jax.Array)
        np.testing.assert_array_equal(np.asarray(got), want)


def test_keywords_are_told_apart() -> None:
    got = [float(scaled(jnp.ones(32), s=s)[0]) for s in (1.0, 2.0, 1.0)]
    assert got == [1.0, 2.0, 1.0]


def test_vmap() -> None:
    got = jax.vmap(lambda x: scaled(x, s=2.0))(jnp.stack([ramp(), 2 * ramp()]))
    np.testing.assert_array_equal(np.asarray(got), np.stack([2 * np.arange(64), 4 * np.arange(64)]).astype(np.float32))


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit])
def test_differentiable(transform: Any) -> None:
    pair = differentiable_kernel(functools.partial(scaled_add, s=2.0), lambda x, y, g: (scaled(g, s=2.0), g))
    gradients = transform(jax.grad(lambda a, b: (pair(a, b) * ramp()).sum(), argnums=(0, 1)))(ramp(), jnp.ones(64))
    np.testing.assert_array_equal(np.asarray(gradients[0]), 2 * np.arange(64, dtype=np.float32))
    np.testing.assert_array_equal(np.asarray(gradients[1]), np.arange(64, dtype=np.float32))


def test_findings_come_out_as_the_error_of_the_execution() -> None:
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"SimulationError: [^\n]*out-of-bounds"):
        outside(ramp()).block_until_ready()


def test_column_major_arrays_and_bfloat16() -> None:
    @kernel(
        arch="sm_90a",
        in_specs=(Tile(4, 8, f32, Layout.COL),),
        out_specs=(Tile(32, f32), Tile(4, 8, f32, Layout.COL)),
        grid=(1,),
        block=(32,),
    )
    def in_memory_order(a: Any, flat: Any, same: Any) -> None:
        pa, pf, ps = ptx.global_ptrs(a, flat, same)
        offset, x = reg.scalar(u64), reg.scalar(f32)
        ptx.inst.mul.wide.u32(offset, ptx.special.tid.x(), 4)
        ptx.ld(f32, x, ptx.addr(pa + offset))
        ptx.st(f32, ptx.addr(pf + offset), x)
        ptx.st(f32, ptx.addr(ps + offset), x)
        ptx.ret()

    a = np.arange(32, dtype=np.float32).reshape(4, 8)
    flat, same = in_memory_order(jnp.asarray(a))
    np.testing.assert_array_equal(np.asarray(flat), a.T.reshape(-1))
    np.testing.assert_array_equal(np.asarray(same), a)

    @kernel(arch="sm_90a", in_specs=(Tile("N", bf16),), out_specs=(Tile("N", bf16),), grid=(1,), block=(32,))
    def copy(a: Any, c: Any) -> None:
        pa, pc = ptx.global_ptrs(a, c)
        offset, x = reg.scalar(u64), reg.scalar(u16)
        ptx.inst.mul.wide.u32(offset, ptx.special.tid.x(), 2)
        ptx.ld(u16, x, ptx.addr(pa + offset))
        ptx.st(u16, ptx.addr(pc + offset), x)
        ptx.ret()

    got = copy(jnp.arange(32, dtype=jnp.bfloat16))
    assert got.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(np.asarray(got), np.arange(32).astype(ml_dtypes.bfloat16))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: scaled(ramp(), ramp(), s=1.0),
            r"^scaled: arrays of JAX cannot be written; call with the inputs alone and take the outputs$",
        ),
        (lambda: scaled_add(ramp(), ramp(32), s=1.0), r"^scaled_add: the dimension 'N' is 64 in one tensor and 32 in another$"),
        (
            lambda: scaled_add(ramp(), [1.0] * 64, s=1.0),
            r"^scaled_add: argument 1 is a list beside arrays of JAX; pass jax.numpy arrays$",
        ),
        (lambda: scaled(jnp.arange(64), s=1.0), r"^scaled: argument a has dtype int32 where f32 is declared; give float32$"),
    ],
)
def test_refusals(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
