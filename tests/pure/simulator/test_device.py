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
