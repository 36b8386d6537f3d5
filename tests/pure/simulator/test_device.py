"""Several launches on one memory."""

import numpy as np
import pytest

import warpsmith as ws
from warpsmith.base.errors import InputError

TEXT = """
.version 8.0
.target sm_90
.address_size 64
.global .align 4 .b32 total = 5;
.visible .entry double(.param .u64 p)
{ .reg .b64 %rd<4>; .reg .b32 %r<4>; ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd1, %rd1, %rd2; ld.global.u32 %r2, [%rd1]; shl.b32 %r2, %r2, 1; st.global.u32 [%rd1], %r2;
  atom.global.add.u32 %r3, [total], 1; ret; }
"""


def test_arrays_and_variables_live_on():
    gpu = ws.Device("H200")
    module = ws.ptx.parse(TEXT)
    x = gpu.array(np.arange(32, dtype=np.uint32))
    for _ in range(3):
        result = gpu.launch(module, kernel="double", grid=1, block=32, args=[x])
        assert result.completed, str(result)
    assert np.array_equal(x.numpy(), 8 * np.arange(32))
    assert gpu.globals["total"].view(np.uint32)[0] == 5 + 96
    gpu.globals["total"] = np.array([7], np.uint32)
    x.set(np.zeros(32, np.uint32))
    gpu.launch(module, kernel="double", grid=1, block=32, args=[x])
    assert gpu.globals["total"].view(np.uint32)[0] == 7 + 32


def test_out_of_bounds_names_the_array():
    gpu = ws.Device()
    result = gpu.launch(TEXT, grid=1, block=32, args=[gpu.array((16,), np.uint32)])
    assert "device array of shape (16,) (64 bytes)" in result.findings[0].message


def test_bad_uses():
    gpu = ws.Device()
    with pytest.raises(InputError, match=r"^Device.array: give dtype= with a shape$"):
        gpu.array((3, 4))
    with pytest.raises(InputError, match=r"^no global variable `x`; the modules loaded have: none$"):
        gpu.globals["x"]
    with pytest.raises(InputError, match=r"^kernel `double`, argument 0 \(`p`\): the device array belongs to another device"):
        ws.Device().launch(TEXT, grid=1, block=32, args=[gpu.array((32,), np.uint32)])
    with pytest.raises(InputError, match=r"^device array of shape \(4,\): an array of shape \(5,\) was given$"):
        gpu.array((4,), np.int32).set(np.zeros(5))


def test_a_device_by_name():
    result = ws.simulate(TEXT, grid=1, block=32, args=[np.zeros(32, np.uint32)], device=ws.device("h100"))
    assert result.completed
    with pytest.raises(InputError, match=r"^unknown device 'H1000'; known: V100, T4, A100, "):
        ws.device("H1000")


ARRAYS = [
    (((-1,), np.float32), "Device.array: shape (-1,), dtype float32: give extents from 0 on, and a dtype of numbers"),
    (((3,), object), "Device.array: shape (3,), dtype object: give extents from 0 on, and a dtype of numbers"),
    (((3,), "nope"), "Device.array: shape (3,), dtype 'nope': data type 'nope' not understood"),
    (((1.5,), "f4"), "Device.array: shape (1.5,), dtype 'f4': 'float' object cannot be interpreted as an integer"),
    (
        (np.array([None]),),
        "Device.array: an array of Python objects cannot be passed; convert it to a numeric dtype",
    ),
    (
        (np.zeros(3, ">f4"),),
        'Device.array: the array has the byte order of another machine (>f4); pass array.astype(array.dtype.newbyteorder("="))',
    ),
    (
        (np.array(["a"]), "f4"),
        "Device.array: ndarray cannot be made an array of f4: could not convert string to float: np.str_('a')",
    ),
]


@pytest.mark.parametrize(("arguments", "message"), ARRAYS, ids=range(len(ARRAYS)))
def test_arrays_that_no_gpu_holds(arguments, message):
    with pytest.raises(InputError) as caught:
        ws.Device().array(*arguments)
    assert str(caught.value) == message


def test_more_than_this_computer_has():
    with pytest.raises(
        InputError, match=r"^a device array of shape \(1125899906842624,\) in memory of 4,503,599,627,370,496 bytes "
    ):
        ws.Device().array(1 << 50, np.float32)


def test_what_cannot_be_set_is_named():
    gpu = ws.Device()
    with pytest.raises(InputError) as caught:
        gpu.array((4,), np.float32).set("x")
    assert str(caught.value) == (
        "device array of shape (4,): str cannot be made an array of float32: could not convert string to float: 'x'"
    )
    gpu.load(TEXT)
    with pytest.raises(InputError) as caught:
        gpu.globals["total"] = None
    assert str(caught.value) == (
        "global variable `total`: an array of Python objects cannot be passed; convert it to a numeric dtype"
    )
    with pytest.raises(InputError) as caught:
        gpu.launch(TEXT, grid=1, block=32, args=[0], device="H100")
    assert str(caught.value) == "Device.launch: a launch is on this device; leave device= out"


def test_text_is_loaded_once():
    gpu = ws.Device()
    x = gpu.array(np.zeros(32, np.uint32))
    for _ in range(2):
        gpu.launch(TEXT, grid=1, block=32, args=[x])
    assert gpu.globals["total"].view(np.uint32)[0] == 5 + 64
    assert len(gpu.globals.loaded) == 1
