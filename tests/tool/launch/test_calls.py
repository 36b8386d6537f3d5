"""Kernel calls on GPU arrays: what the driver is given, and what is refused before it is asked."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recording_driver import GpuArray, RecordingDriver, gpu
from vector_kernels import VECTOR, blocks, scaled, scaled_add
from warpsmith import Layout, Tile, kernel, ptx
from warpsmith.base.errors import InputError, LaunchError
from warpsmith.base.tensormap import TensorMapFields
from warpsmith.base.tensormap_bits import encode
from warpsmith.launch.binding import use_driver
from warpsmith.launch.context import forget_contexts
from warpsmith.types import bf16, f16, f32


@pytest.fixture(autouse=True)
def sizes(driver: RecordingDriver) -> None:
    driver.sizes |= {"scaled_add": [8, 8, 8, 4], "scaled": [8, 8, 4], "maps": [128, 8, 128]}
    for k in (scaled_add, scaled):
        k.plans.clear()
        k.latest.clear()


def pointer(array: GpuArray) -> bytes:
    return struct.pack("<Q", array.address)


def test_addresses_and_numbers_reach_the_kernel(driver: RecordingDriver) -> None:
    a, b, c = gpu((64,)), gpu((64,)), gpu((64,))
    assert scaled_add(a, b, c, s=2.5) is c
    (launch,) = driver.launches
    assert launch["arguments"] == [pointer(a), pointer(b), pointer(c), struct.pack("<f", 2.5)]
    assert (launch["shape"].grid, launch["shape"].block, launch["stream"]) == ((2, 1, 1), (32, 1, 1), 0)


def test_each_kind_of_arguments_is_judged_once(driver: RecordingDriver) -> None:
    for size, s in ((64, 1.0), (64, 1.0), (96, 1.0), (64, 2.0), (64, 1.0), (96, 1.0)):
        scaled(gpu((size,)), gpu((size,)), s=s)
    assert [launch["shape"].grid[0] for launch in driver.launches] == [2, 2, 3, 2, 2, 3]
    assert [struct.unpack("<f", launch["arguments"][2])[0] for launch in driver.launches] == [1, 1, 1, 2, 1, 1]
    assert len([c for c in driver.calls if c[0] == "config"]) == 2  # the number is no part of the kind
    assert len([c for c in driver.calls if c[0] == "load_module"]) == 1


def test_streams_and_attributes(driver: RecordingDriver) -> None:
    class Stream:
        def __cuda_stream__(self) -> tuple[int, int]:
            return 0, 77

    a, c = gpu((32,), stream=5), gpu((32,), stream=5)
    scaled(a, c, s=1.0)
    scaled(a, c, s=1.0, stream=6)
    scaled(a, c, s=1.0, stream=Stream(), cooperative=True)
    scaled(gpu((32,), stream=1), gpu((32,)), s=1.0, programmatic=True)
    assert [launch["stream"] for launch in driver.launches] == [5, 6, 77, 0]
    assert [(x["shape"].cooperative, x["shape"].programmatic) for x in driver.launches] == [
        (False, False), (False, False), (True, False), (False, True),
    ]  # fmt: skip


def test_a_stream_of_the_caller_waits_for_the_arrays_streams(driver: RecordingDriver) -> None:
    scaled(gpu((32,), stream=5), gpu((32,), stream=7), s=1.0, stream=7)
    assert [c for c in driver.calls if c[0] == "wait_for_stream"] == [("wait_for_stream", 7, 5)]
    assert driver.launches[0]["stream"] == 7


def test_the_driver_says_where_an_array_without_a_device_is() -> None:
    class Bare:
        def __init__(self, array: Any) -> None:
            self.array = array

        @property
        def __cuda_array_interface__(self) -> dict[str, Any]:
            return {"shape": self.array.shape, "typestr": "<f4", "data": (self.array.ctypes.data, False), "version": 2}

    two = RecordingDriver(devices=2)
    two.sizes["scaled"] = [8, 8, 4]
    two.holder = 1
    use_driver(two)
    forget_contexts()
    scaled(Bare(np.zeros(32, np.float32)), Bare(np.zeros(32, np.float32)), s=1.0)
    assert two.launches[0]["context"] == 1001


def test_tensor_maps_describe_the_tensors(driver: RecordingDriver) -> None:
    tile = Tile("M", "N", f16, Layout.TMA_128B, tma_box=(32, 64))

    @kernel(arch="sm_90a", in_specs=(tile, Tile("M", "N", f16)), out_specs=(tile,), grid=(1,), block=(32,), cluster=(1, 1, 1))
    def maps(a: Any, b: Any, c: Any) -> None:
        a.tma_desc()
        ptx.global_ptrs(b)
        c.tma_desc()
        ptx.ret()

    arrays = [gpu((96, 128), np.float16, address=0x7F0000000000 + i * 4096) for i in range(3)]
    maps(*arrays)
    fields = TensorMapFields("f16", 0, (128, 96), (256,), (64, 32), (1, 1), swizzle="128B")
    assert driver.launches[0]["arguments"] == [
        encode(fields.at(arrays[0].address)), pointer(arrays[1]), encode(fields.at(arrays[2].address)),
    ]  # fmt: skip
    assert driver.launches[0]["aligned"]


def test_an_edited_module_is_launched_as_it_is_now(driver: RecordingDriver) -> None:
    @kernel(arch="sm_90a", in_specs=(VECTOR,), out_specs=(), grid=blocks, block=(32,))
    def edited(a: Any) -> None:
        ptx.global_ptrs(a)
        ptx.ret()

    driver.sizes["edited"] = [8]
    edited(gpu((32,)))
    module = edited.module()
    edited(gpu((32,)))
    assert len([c for c in driver.calls if c[0] == "load_module"]) == 1
    (entry,) = module.functions()
    entry.directives.clear()
    edited(gpu((32,)))
    assert len([c for c in driver.calls if c[0] == "load_module"]) == 2


@pytest.mark.parametrize(
    ("arrays", "keywords", "message"),
    [
        (lambda: [gpu((64,), np.float64), gpu((64,))], {"s": 1.0},
         "scaled: argument a has dtype float64 where f32 is declared; give float32"),
        (lambda: [GpuArray(np.zeros(128, np.float32)[::2]), gpu((64,))], {"s": 1.0},
         "scaled: argument a has strides (8,) in bytes; it must be contiguous; pass .contiguous() or a copy"),
        (lambda: [gpu((64,), address=0x1002), gpu((64,))], {"s": 1.0},
         "scaled: argument a is at 0x1002, no multiple of its element's 4 bytes"),
        (lambda: [gpu((64,)), gpu((32,))], {"s": 1.0}, "scaled: the dimension 'N' is 64 in one tensor and 32 in another"),
        (lambda: [gpu((64,)), gpu((64, 1))], {"s": 1.0},
         "scaled: argument c: a tensor of shape (64, 1) where Tile('N', f32) has 1 dimensions"),
        (lambda: [gpu((64,)), np.zeros(64, np.float32)], {"s": 1.0},
         "scaled: argument 1 is a numpy.ndarray beside arrays of __cuda_array_interface__ or DLPack; pass arrays of one "
         "library"),
        (lambda: [gpu((64,)), gpu((64,))], {}, "scaled: the parameter 's' of raw_params needs a value; pass s=…"),
        (lambda: [gpu((64,)), gpu((64,))], {"s": "x"},
         "scaled: the parameter 's': str given for a parameter of type .f32; pass a number"),
        (lambda: [gpu((64,)), gpu((64,))], {"s": 1.0, "stream": "main"},
         "stream='main': give a stream of torch or CuPy, or the handle as an int"),
        (lambda: [gpu((64,), stream=3), gpu((64,), stream=4)], {"s": 1.0},
         "the arrays belong to different streams ([3, 4]); say with stream= which one to launch in"),
        (lambda: [gpu((64,))], {"s": 1.0},
         "an output of shape (64,): arrays known only by __cuda_array_interface__ or DLPack cannot be allocated; pass the "
         "outputs too"),
        (lambda: [gpu((64,)), gpu((64,)), gpu((64,))], {"s": 1.0},
         "scaled: 3 tensors given, and it takes 1 input (a), or 2 with its outputs (c)"),
    ],
)  # fmt: skip
def test_refusals(driver: RecordingDriver, arrays: Any, keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        scaled(*arrays(), **keywords)
    assert str(caught.value) == message
    assert not driver.launches


def test_arrays_on_two_devices_are_refused(driver: RecordingDriver) -> None:
    with pytest.raises(InputError, match=r"^scaled: the arguments are on devices \[0, 1\]; move them to one$"):
        scaled(gpu((64,)), gpu((64,), device=1), s=1.0)


def test_a_device_of_another_architecture_is_named(driver: RecordingDriver) -> None:
    driver.attributes[75] = 8
    with pytest.raises(LaunchError, match=r"^scaled is compiled for sm_90a, and NVIDIA H200 is sm_80; "):
        scaled(gpu((64,)), gpu((64,)), s=1.0)


def test_types_without_a_numpy_type_are_bits(driver: RecordingDriver) -> None:
    @kernel(arch="sm_90a", in_specs=(Tile("N", bf16),), out_specs=(), grid=(1,), block=(32,))
    def halves(a: Any) -> None:
        ptx.global_ptrs(a)
        ptx.ret()

    driver.sizes["halves"] = [8]
    halves(gpu((32,), np.uint16))
    with pytest.raises(InputError, match=r"^halves: argument a has dtype float16 where bf16 is declared; give bfloat16$"):
        halves(gpu((32,), np.float16))
    assert len(driver.launches) == 1


def test_the_message_of_a_fault_says_how_to_simulate_the_launch(driver: RecordingDriver) -> None:
    scaled(gpu((64,)), gpu((64,)), s=2.0)
    driver.status = [700]
    with pytest.raises(LaunchError) as caught:
        scaled(gpu((64,)), gpu((64,)), s=2.0)
    lines = str(caught.value).splitlines()
    assert lines[3] == "  - scaled, grid (2, 1, 1), block (32, 1, 1)"
    assert lines[4] == f"      warpsmith simulate {scaled.fn.__code__.co_filename}:scaled -a 'f32[64]=normal' -p s=2.0"


def test_a_column_major_tensor_is_the_transpose_of_a_contiguous_one(driver: RecordingDriver) -> None:
    @kernel(arch="sm_90a", in_specs=(Tile(4, 8, f32, Layout.COL),), out_specs=(), grid=(1,), block=(32,))
    def columns(a: Any) -> None:
        ptx.global_ptrs(a)
        ptx.ret()

    driver.sizes["columns"] = [8]
    columns(GpuArray(np.zeros((8, 4), np.float32).T))
    with pytest.raises(InputError, match=r"^columns: argument a has strides \(32, 4\) in bytes; it must be column-major "):
        columns(gpu((4, 8)))
    assert len(driver.launches) == 1


def test_inputs_are_kept_on_request(driver: RecordingDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPSMITH_DUMP", str(tmp_path / "kept"))
    x = np.arange(64, dtype=np.float32)
    for factor in (1, 2):
        scaled(GpuArray(x * factor), gpu((64,)), s=2.0)
    files = sorted((tmp_path / "kept").glob("*-scaled.npz"))
    assert [np.load(f)["a"].tolist() for f in files] == [x.tolist(), (2 * x).tolist()]
    driver.status = [700]
    with pytest.raises(LaunchError) as caught:
        scaled(gpu((64,)), gpu((64,)), s=2.0)
    assert f"      its inputs: {sorted((tmp_path / 'kept').iterdir())[-1]}" in str(caught.value).splitlines()
