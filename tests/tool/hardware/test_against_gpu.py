"""One launch on both sides: what is equal, what differs and who wrote it, what cannot be compared."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

import numpy as np
import pytest

import warpsmith as ws
from recording_driver import RecordingDriver
from vector_kernels import scaled
from warpsmith.base.errors import InputError, LaunchError, ToolError
from warpsmith.hardware.against_gpu import excluded
from warpsmith.launch.binding import use_driver

PTX = """.version 8.0
.target {target}
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 c, .param .f32 s)
{{
    .reg .b32 %i; .reg .f32 %x; .reg .b64 %a, %c, %o;
    .reg .f32 %s;
    ld.param.u64 %a, [a];
    ld.param.u64 %c, [c];
    ld.param.f32 %s, [s];
    mov.u32 %i, %tid.x;
    mul.wide.u32 %o, %i, 4;
    add.u64 %a, %a, %o;
    add.u64 %c, %c, %o;
    ld.global.f32 %x, [%a];
    mul.f32 %x, %x, %s;
    {body}
    st.global.f32 [%c], %x;
    ret;
}}
"""


def ptx(body: str = "", target: str = "sm_90") -> str:
    return PTX.format(body=body, target=target)


ARGS = [np.zeros(32, np.float32), np.zeros(32, np.float32), 1.0]


def floats(address: bytes, n: int) -> Any:
    return np.ctypeslib.as_array((ctypes.c_float * n).from_address(struct.unpack("<Q", address)[0]))


def scale(wrong: int | None = None) -> Any:
    def kernel(a: bytes, c: bytes, s: bytes) -> None:
        floats(c, 32)[:] = floats(a, 32) * np.float32(struct.unpack("<f", s)[0])
        if wrong is not None:
            floats(c, 32)[wrong] += 1

    return kernel


@pytest.fixture(autouse=True)
def sizes(driver: RecordingDriver) -> None:
    driver.sizes |= {"k": [8, 8, 4], "scaled": [8, 8, 4]}


def both(body: str = "", target: str = "sm_90", **options: Any) -> tuple[ws.SimulationResult, Any]:
    a, c = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    result = ws.simulate(ptx(body, target), grid=1, block=32, args=[a, c, 2.0], against_gpu=True, **options)
    return result, c


def test_equal_outputs(driver: RecordingDriver) -> None:
    driver.kernel = scale()
    result, c = both()
    assert str(result.comparison) == "against NVIDIA H200 (sm_90), ptxas --fmad=false: 2 arrays bit-identical"
    assert (result.comparison.same, result.comparison.failed) == (True, False)
    np.testing.assert_array_equal(c, 2 * np.arange(32))


def test_the_first_difference_names_element_thread_and_instruction(driver: RecordingDriver) -> None:
    driver.kernel = scale(wrong=5)
    result, c = both()
    assert str(result.comparison) == (
        "against NVIDIA H200 (sm_90), ptxas --fmad=false: array 1: 1 of 32 elements differ, first [5]: GPU 11.0 (0x41300000), "
        "simulator 10.0 (0x41200000)\n"
        "  written on the simulator by `st.global.f32` at <string>:18, by thread (5, 0, 0) of CTA (0, 0, 0)\n"
        "compiled with -O0 the GPU differs, too"
    )
    assert result.comparison.failed
    np.testing.assert_array_equal(c, 2 * np.arange(32))


def test_what_only_optimised_code_does_otherwise_is_said(driver: RecordingDriver) -> None:
    launches = iter((scale(wrong=5), scale()))
    driver.kernel = lambda *args: next(launches)(*args)
    result, c = both()
    assert str(result.comparison).splitlines()[2] == (
        "compiled with -O0 the GPU gives the simulator's bits: what differs is what ptxas makes of the kernel to optimise it"
    )
    assert result.comparison.as_json()["unoptimised"] is True
    assert result.comparison.failed
    np.testing.assert_array_equal(c, 2 * np.arange(32))


def test_code_of_warp_groups_is_not_compiled_again(driver: RecordingDriver) -> None:
    driver.kernel = scale(wrong=5)
    result, _ = both("setmaxnreg.dec.sync.aligned.u32 24;", "sm_90a")
    assert result.comparison.unoptimised is None
    assert len(str(result.comparison).splitlines()) == 2


def test_an_element_that_nobody_writes_on_the_simulator(driver: RecordingDriver) -> None:
    def kernel(a: bytes, c: bytes, s: bytes) -> None:
        scale()(a, c, s)
        floats(a, 32)[3] = 77

    driver.kernel = kernel
    result, _ = both()
    assert result.comparison.difference.writer == "no instruction: it holds what it held before the launch"


def test_a_kernel_object(driver: RecordingDriver) -> None:
    driver.kernel = scale(wrong=31)
    result = scaled.simulate(np.ones(32, np.float32), s=3.0, against_gpu=True)
    assert "thread (31, 0, 0) of CTA (0, 0, 0)" in str(result)
    np.testing.assert_array_equal(result.outputs[0], np.full(32, 3, np.float32))


def test_ptx_for_an_older_architecture_is_compiled_for_the_gpu_and_simulated_as_it(driver: RecordingDriver) -> None:
    driver.kernel = scale()
    assert both(target="sm_80")[0].comparison.same


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("mov.u32 %i, %clock;", "a clock: `mov.u32` at <string>:17"),
        ("mov.u32 %i, %smid;", "the number of a multiprocessor or warp slot: `mov.u32` at <string>:17"),
        (
            "red.global.add.f32 [%c], %x;",
            "a floating atomic, whose order is the hardware's: `red.global.add.f32` at <string>:17",
        ),
        (
            "atom.global.add.u32 %i, [%c], 0;",
            "an atomic whose result is used, as in a work queue: `atom.global.add.u32` at <string>:17",
        ),
        ("red.global.add.u32 [%c], 0;", ""),
        ("atom.shared.add.u32 %i, [%i], 0;", ""),
    ],
)
def test_what_is_excluded_by_name(body: str, text: str) -> None:
    assert excluded(ws.ptx.parse(ptx(body)), "k") == ((text,) if text else ())


def test_a_difference_of_a_kernel_with_a_clock_is_no_failure(driver: RecordingDriver) -> None:
    driver.kernel = scale(wrong=1)
    result, _ = both("mov.u32 %i, %clock;")
    assert not result.comparison.same
    assert not result.comparison.failed
    assert str(result.comparison).splitlines()[-2:] == [
        "not comparable bit for bit, since the kernel has:", "  a clock: `mov.u32` at <string>:17",
    ]  # fmt: skip


def test_permitted_contraction_is_said(driver: RecordingDriver) -> None:
    driver.kernel = scale()
    a, c = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    result = ws.simulate(ptx(), grid=1, block=32, args=[a, c, 2.0], against_gpu=["-O1"])
    assert str(result.comparison).splitlines() == [
        "against NVIDIA H200 (sm_90), ptxas -O1: 2 arrays bit-identical",
        "contraction permitted: ptxas may have fused a multiplication and an addition that the simulator rounds twice",
    ]


def test_views_of_one_array_stay_views(driver: RecordingDriver) -> None:
    base = np.arange(64, dtype=np.float32)
    driver.kernel = scale()
    result = ws.simulate(ptx(), grid=1, block=32, args=[base, base[32:], 2.0], against_gpu=True)
    a, c = (struct.unpack("<Q", x)[0] for x in driver.launches[0]["arguments"][:2])
    assert c - a == 128
    assert result.comparison.same
    np.testing.assert_array_equal(base[32:], 2 * np.arange(32))


def test_without_a_gpu_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ToolError("no CUDA driver: libcuda is missing. Run on a machine with an NVIDIA GPU, or simulate")

    use_driver(None)
    monkeypatch.setattr("warpsmith.launch.binding.adapter", missing)
    with pytest.raises(
        ToolError, match=r"^no CUDA driver: libcuda is missing\. Run on a machine with an NVIDIA GPU, or simulate$"
    ):
        both()


def test_ptx_for_a_newer_architecture_is_refused(driver: RecordingDriver) -> None:
    with pytest.raises(
        LaunchError, match=r"^PTX for sm_100 cannot be compiled for NVIDIA H200, which is sm_90; write its \.target$"
    ):
        ws.simulate(ptx(target="sm_100").replace("8.0", "8.6"), grid=1, block=32, args=ARGS, against_gpu=True)


def test_arguments_are_judged_as_by_the_simulator(driver: RecordingDriver) -> None:
    with pytest.raises(InputError, match=r"^kernel `k` takes 3 arguments \(a, c, s\); 1 were given$"):
        ws.simulate(ptx(), grid=1, block=32, args=[1], against_gpu=True)


def test_what_ptxas_compiles_wrong_is_named_where_outputs_differ(driver: RecordingDriver) -> None:
    body = ".reg .pred %q<2>; setp.eq.u32 %q0, %i, 3; setp.eq.u32 %q1, %i, 4; @%q0 testp.finite.f32 %q1, %x;"
    driver.kernel = scale()
    result, _ = both(body)
    assert result.comparison.miscompiled == ()
    driver.kernel = scale(wrong=5)
    result, _ = both(body)
    (told,) = result.comparison.miscompiled
    assert told.startswith("<string>:17: `@%q0 testp.finite.f32 %q1, %x`: ptxas 1")
    assert f"\nknown to be compiled wrong:\n  {told}" in str(result.comparison)
