"""CPU tensors of torch run on the simulator: eager, under torch.compile, and differentiated."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import torch

from vector_kernels import outside, scaled, scaled_add
from warpsmith import differentiable_kernel
from warpsmith.base.errors import InputError, SimulationError


def ramp(n: int = 64) -> Any:
    return torch.arange(n, dtype=torch.float32)


def test_results_are_tensors() -> None:
    c = scaled_add(ramp(), torch.ones(64), s=2.0)
    assert isinstance(c, torch.Tensor)
    assert torch.equal(c, 2 * ramp() + 1)


def test_an_output_given_is_written_and_returned() -> None:
    out = torch.zeros(64)
    assert scaled(ramp(), out, s=3.0) is out
    assert torch.equal(out, 3 * ramp())


def test_findings_are_raised() -> None:
    with pytest.raises(SimulationError, match="out-of-bounds"):
        outside(ramp())


def test_bfloat16_and_simulate() -> None:
    result = scaled.simulate(ramp(), s=2.0)
    assert torch.equal(result.outputs[0], 2 * ramp())


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compile_sees_one_operator(backend: str) -> None:
    f = torch.compile(lambda x, y, s: scaled_add(x * 2, y, s=s) + 1, fullgraph=True, backend=backend)
    for n, s in ((64, 2.0), (128, 2.0), (96, 3.0)):
        assert torch.equal(f(ramp(n), torch.ones(n), s), 2 * s * ramp(n) + 2)


def test_compile_with_an_output_given() -> None:
    out = torch.zeros(64)
    f = torch.compile(lambda x, o: scaled(x, o, s=2.0) + 1, fullgraph=True, backend="aot_eager")
    assert torch.equal(f(ramp(), out), 2 * ramp() + 1)
    assert torch.equal(out, 2 * ramp())


def test_the_operator_says_its_shapes_without_data() -> None:
    f = torch.compile(lambda x: scaled(x, s=2.0), fullgraph=True, backend="eager")
    f(ramp())
    names = [str(v) for k, v in scaled.operators.items() if k[:2] == ("operator", 1)]
    assert names
    assert all(n.startswith("kernel_scaled_") for n in names)
    with torch._subclasses.FakeTensorMode():
        made = getattr(torch.ops.warpsmith, names[0])(torch.empty(96), 2.0)
    assert (made.shape, made.dtype) == ((96,), torch.float32)


def test_fake_tensors_give_fake_tensors() -> None:
    with torch._subclasses.FakeTensorMode():
        made = scaled(torch.empty(96), s=2.0)
    assert type(made).__name__ == "FakeTensor"
    assert (made.shape, made.dtype) == ((96,), torch.float32)


def test_a_kernel_without_a_derivative_refuses_backward() -> None:
    x = ramp().requires_grad_()
    c = scaled(x, s=2.0)
    assert c.requires_grad
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        c.sum().backward()
    with torch.no_grad():
        assert not scaled(x, s=2.0).requires_grad


def pair(**options: Any) -> Any:
    return differentiable_kernel(functools.partial(scaled_add, s=2.0), lambda x, y, g: (scaled(g, s=2.0), g), **options)


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # torch.compile's own doing
@pytest.mark.parametrize("compiled", [False, True])
def test_differentiable(compiled: bool) -> None:
    f = pair()
    run = torch.compile(lambda a, b: f(a, b), fullgraph=True, backend="aot_eager") if compiled else f
    a, b = ramp().requires_grad_(), torch.ones(64, requires_grad=True)
    (run(a, b) * ramp()).sum().backward()
    assert torch.equal(a.grad, 2 * ramp())
    assert torch.equal(b.grad, ramp())


def test_what_is_saved_may_be_outputs() -> None:
    seen: list[Any] = []

    def backward(*saved: Any) -> Any:
        seen.extend(saved)
        return saved[-1]

    f = differentiable_kernel(functools.partial(scaled, s=2.0), backward, save_for_backward=[1, 0])
    x = ramp().requires_grad_()
    f(x).sum().backward()
    assert torch.equal(seen[0], 2 * ramp())
    assert torch.equal(seen[1], ramp())


def test_inputs_without_a_gradient() -> None:
    f = differentiable_kernel(functools.partial(scaled_add, s=2.0), lambda x, y, g: scaled(g, s=2.0), num_grad_inputs=1)
    a, b = ramp().requires_grad_(), torch.ones(64, requires_grad=True)
    f(a, b).sum().backward()
    assert torch.equal(a.grad, torch.full((64,), 2.0))
    assert b.grad is None


def test_too_few_gradients_are_named() -> None:
    f = differentiable_kernel(functools.partial(scaled_add, s=2.0), lambda x, y, g: g)
    with pytest.raises(InputError, match=r"returns 1 gradients for 2 inputs; give num_grad_inputs=1 if the others have none$"):
        f(ramp().requires_grad_(), torch.ones(64)).sum().backward()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: scaled(ramp().double(), s=1.0), r"^scaled: argument a has dtype float64 where f32 is declared; give float32$"),
        (lambda: scaled(ramp(128)[::2], s=1.0), r"^scaled: argument a is not contiguous; "),
        (lambda: scaled(ramp().to(torch.complex64), s=1.0), r"^a tensor of torch.complex64: kernels take "),
    ],
)
def test_refusals(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
