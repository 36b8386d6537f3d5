"""CPU tensors of torch run on the simulator: eager, under torch.compile, and differentiated."""

from __future__ import annotations

import functools
import struct
from typing import Any

import numpy as np
import pytest
import torch

from recording_driver import RecordingDriver
from vector_kernels import VECTOR, blocks, outside, scaled, scaled_add
from warpsmith import differentiable_kernel, kernel, ptx
from warpsmith.base.errors import InputError, LaunchError, SimulationError
from warpsmith.dsl import launching
from warpsmith.launch import torch_arrays
from warpsmith.launch.context import forget_contexts


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


@pytest.fixture
def pretended(driver: RecordingDriver, monkeypatch: pytest.MonkeyPatch) -> RecordingDriver:
    """A recording driver, on whose GPU every CPU tensor is."""
    facts = torch_arrays.TorchArrays.facts
    monkeypatch.setattr(torch_arrays.TorchArrays, "on_gpu", lambda self, value: True)
    monkeypatch.setattr(torch_arrays.TorchArrays, "stream", lambda self, device, arrays: 3)
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda device: 3, raising=False)
    monkeypatch.setattr(torch_arrays, "_device", lambda tensor: 0)
    monkeypatch.setattr(torch_arrays.TorchArrays, "facts", lambda self, value: facts(self, value)._replace(device=0))
    driver.sizes |= {"plain": [8, 8], "scaled": [8, 8, 4]}
    for kind in (plain, scaled):
        kind.plans.clear()
        kind.latest.clear()
        kind.quick.clear()
    return driver


@kernel(arch="sm_90a", in_specs=(VECTOR,), out_specs=(VECTOR,), grid=blocks, block=(32,))
def plain(a: Any, c: Any) -> None:
    ptx.global_ptrs(a, c)
    ptx.ret()


def addresses(driver: RecordingDriver) -> list[list[int]]:
    return [[int.from_bytes(a, "little") for a in x["arguments"][:2]] for x in driver.launches]


def test_later_launches_see_new_addresses_and_new_shapes(pretended: RecordingDriver) -> None:
    tensors = [torch.zeros(n) for n in (64, 64, 64, 64, 96, 96, 64, 64)]
    pairs = list(zip(tensors[::2], tensors[1::2], strict=True))
    for a, c in pairs:
        assert plain(a, c) is c
    assert addresses(pretended) == [[a.data_ptr(), c.data_ptr()] for a, c in pairs]
    assert [x["shape"].grid[0] for x in pretended.launches] == [2, 2, 3, 2]
    assert {x["stream"] for x in pretended.launches} == {3}
    assert len([c for c in pretended.calls if c[0] == "config"]) == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.double(), r"^plain: argument c has dtype float64 where f32 is declared; give float32$"),
        (lambda t: torch.zeros(128)[::2], r"^plain: argument c has strides \(8,\) in bytes; it must be contiguous; "),
        (
            lambda t: torch.zeros(64, 1),
            r"^plain: argument c: a tensor of shape \(64, 1\) where Tile\('N', f32\) has 1 dimensions$",
        ),
        (lambda t: torch.zeros(32), r"^plain: the dimension 'N' is 64 in one tensor and 32 in another$"),
    ],
)
def test_a_launch_after_a_good_one_is_judged_as_the_first(pretended: RecordingDriver, change: Any, message: str) -> None:
    a, c = torch.zeros(64), torch.zeros(64)
    plain(a, c)
    plain(a, c)
    with pytest.raises(InputError, match=message):
        plain(a, change(c))
    assert len(pretended.launches) == 2


def test_a_tensor_that_was_resized_in_place_is_seen(pretended: RecordingDriver) -> None:
    a, c = torch.zeros(64), torch.zeros(64)
    plain(a, c)
    for t in (a, c):
        t.resize_(32)
    plain(a, c)
    assert [x["shape"].grid[0] for x in pretended.launches] == [2, 1]


@pytest.mark.parametrize("shape", [(), (5,), (2, 3, 4), (2, 0, 3), (0,)])
def test_on_the_only_gpu_outputs_come_from_the_allocation_of_compiled_code(
    shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def empty(*given: Any) -> torch.Tensor:
        asked.append(given)
        return torch._C._dynamo.guards._empty_strided_cpu(*given)

    monkeypatch.setattr(torch_arrays, "_empty_cuda", empty)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    made = torch_arrays.ARRAYS.allocator(shape, "float8_e4m3fn", 0, column_major=False)()
    expected = torch.empty(shape, dtype=torch.float8_e4m3fn)
    assert (made.shape, made.stride(), made.dtype) == (expected.shape, expected.stride(), expected.dtype)
    assert len(asked) == 1
    torch_arrays.ARRAYS.allocator(shape, "float32", -1, column_major=False)()
    assert len(asked) == 1


@pytest.mark.parametrize("device", [0, 1])
def test_of_several_gpus_only_the_current_one_allocates_as_compiled_code_does(
    device: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(torch_arrays, "_empty_cuda", lambda *given: asked.append(given))
    monkeypatch.setattr(torch, "empty", lambda shape, dtype, device: asked.append(device))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    allocate = torch_arrays.ARRAYS.allocator((2, 3), "float32", device, column_major=False)
    for current in (0, 1):
        monkeypatch.setattr(torch_arrays, "_current", lambda current=current: current)
        allocate()
    assert asked[device] == ((2, 3), (3, 1), torch.float32)
    assert asked[1 - device] == torch.device("cuda", device)


def test_outputs_are_allocated_for_every_launch(pretended: RecordingDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_arrays.TorchArrays, "allocator", lambda self, shape, *_: lambda: torch.zeros(shape))
    a = torch.zeros(64)
    first, second = plain(a), plain(a)
    assert addresses(pretended) == [[a.data_ptr(), first.data_ptr()], [a.data_ptr(), second.data_ptr()]]
    assert first.data_ptr() != second.data_ptr()


def test_a_gradient_goes_through_the_operator_also_after_a_launch_without(pretended: RecordingDriver) -> None:
    a, c = torch.zeros(64), torch.zeros(64)
    plain(a, c)
    wanted = torch.zeros(64, requires_grad=True)
    with torch.no_grad():
        plain(wanted, c)
    assert len(pretended.launches) == 2
    scaled(a, c, s=1.0)
    assert [x["name"] for x in pretended.launches] == ["plain", "plain", "scaled"]


def test_an_address_off_by_four_bytes_is_told_apart(pretended: RecordingDriver) -> None:
    a, c = torch.zeros(64), torch.zeros(64)
    plain(a, c)
    shifted = torch.zeros(65)[1:]
    plain(shifted, c)
    assert addresses(pretended)[1] == [shifted.data_ptr(), c.data_ptr()]
    assert len([x for x in pretended.calls if x[0] == "config"]) == 2


def values(driver: RecordingDriver) -> list[float]:
    return [struct.unpack("<f", x["arguments"][2])[0] for x in driver.launches]


def test_numbers_and_streams_of_later_launches(pretended: RecordingDriver) -> None:
    a, c = torch.zeros(64), torch.zeros(64)
    for s, stream in ((1.0, 5), (2.0, 6), (3.0, None), (4, 7)):
        assert scaled(a, c, s=s, stream=stream) is c
    scaled(a, c, stream=8, s=5.0)
    scaled(a, c, s=np.float32(6))
    scaled(a, c, s=7.0)
    assert values(pretended) == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    assert [x["stream"] for x in pretended.launches] == [5, 6, 3, 7, 8, 3, 3]


def test_later_launches_take_one_function(pretended: RecordingDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    a, c = torch.zeros(64), torch.zeros(64)
    plain(a, c)
    scaled(a, c, s=1.0)
    scaled(a, c, s=1.0, stream=4)
    monkeypatch.setattr(launching, "launch", None)
    plain(a, c)
    scaled(a, c, s=2.0)
    scaled(a, c, s=3.0, stream=5)
    assert [x["name"] for x in pretended.launches] == ["plain", "scaled", "scaled"] * 2
    assert [x["stream"] for x in pretended.launches] == [3, 3, 4, 3, 3, 5]


def test_calls_of_two_counts_take_turns(pretended: RecordingDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_arrays.TorchArrays, "allocator", lambda self, shape, *_: lambda: torch.zeros(shape))
    a, c = torch.zeros(64), torch.zeros(64)
    for _ in range(3):
        assert plain(a, c) is c
        made = plain(a)
        assert made is not c
        assert addresses(pretended)[-2:] == [[a.data_ptr(), c.data_ptr()], [a.data_ptr(), made.data_ptr()]]


def test_a_kernel_whose_module_was_handed_out_goes_the_long_way(
    pretended: RecordingDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, c = torch.zeros(64), torch.zeros(64)
    plain(a, c)
    built = next(iter(plain.plans.values())).built
    seen, launch = [], launching.launch
    monkeypatch.setattr(launching, "launch", lambda *x, **y: seen.append(1) or launch(*x, **y))
    monkeypatch.setattr(built, "shared_out", True)
    plain(a, c)
    assert (len(seen), len(pretended.launches)) == (1, 2)


def test_a_refused_launch_is_explained_also_the_second_time(pretended: RecordingDriver) -> None:
    a, c = torch.zeros(64), torch.zeros(64)
    plain(a, c)
    pretended.status = [1]
    with pytest.raises(LaunchError, match="plain"):
        plain(a, c)
    plain(a, c)
    assert len(pretended.launches) == 2


def test_with_two_devices_the_context_is_entered(pretended: RecordingDriver) -> None:
    pretended.devices = 2
    forget_contexts()
    a, c = torch.zeros(64), torch.zeros(64)
    for _ in range(3):
        pretended.context = 77
        plain(a, c)
    assert [x["context"] for x in pretended.launches] == [1000] * 3
    assert pretended.context == 77
