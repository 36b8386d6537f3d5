"""What a failed launch says: the whole message, for refusals and for faults that come later."""

from __future__ import annotations

import pytest

from recording_driver import RecordingDriver, cubin_header
from warpsmith.base.errors import LaunchError
from warpsmith.launch.binding import LaunchShape
from warpsmith.launch.context import context
from warpsmith.launch.faults import synchronize
from warpsmith.launch.plan import Plan

BLOCK = (1024, 1, 1)


def plan(shape: LaunchShape, name: str = "k") -> Plan:
    return Plan(
        context(0),
        context(0).function(cubin_header() + name.encode(), name),
        shape,
        [],
        0,
        lambda values: f"{name}.simulate(a)\n  a  # f32 [4]",
    )


def refused(driver: RecordingDriver, status: int, shape: LaunchShape) -> str:
    driver.sizes["k"] = []
    p = plan(shape)
    driver.status = [status]
    with pytest.raises(LaunchError) as caught:
        p.run([], 0)
    assert caught.value.code == status
    return str(caught.value)


HEAD = "k: cuLaunchKernelEx failed: CUDA_ERROR_{0} ({0}): text of {0}\n  "


def test_too_many_threads_for_the_registers(driver: RecordingDriver) -> None:
    driver.function_attributes |= {4: 128, 0: 512}
    assert refused(driver, 701, LaunchShape((8, 1, 1), BLOCK)) == HEAD.format(701) + (
        "grid (8, 1, 1), block (1024, 1, 1), 128 registers a thread, 0 + 0 bytes of shared memory (static + dynamic), "
        "on NVIDIA H200 (sm_90)\n"
        "  likely cause: a CTA of 1024 threads with 128 registers each; the kernel was compiled for at most 512 threads. "
        "Use a smaller block, or fewer registers (.maxnreg, setmaxnreg)"
    )


def test_too_much_shared_memory(driver: RecordingDriver) -> None:
    driver.function_attributes[1] = 1024
    text = refused(driver, 1, LaunchShape((8, 1, 1), (32, 1, 1), (1, 1, 1), 232000))
    assert text.endswith("likely cause: 233,024 bytes of shared memory; NVIDIA H200 gives a CTA 232,448")


def test_shared_memory_that_the_driver_refuses_to_allow(driver: RecordingDriver) -> None:
    driver.fail["set_function_attribute"] = 1
    with pytest.raises(LaunchError) as caught:
        plan(LaunchShape((1, 1, 1), (32, 1, 1), (1, 1, 1), 300_000))
    assert str(caught.value) == (
        "k: set_function_attribute failed: CUDA_ERROR_1 (1): text of 1\n"
        "  grid (1, 1, 1), block (32, 1, 1), 32 registers a thread, 0 + 300,000 bytes of shared memory (static + dynamic), "
        "on NVIDIA H200 (sm_90)\n"
        "  likely cause: 300,000 bytes of shared memory; NVIDIA H200 gives a CTA 232,448"
    )


@pytest.mark.parametrize(
    ("status", "shape", "cause"),
    [
        (1, LaunchShape((3, 1, 1), (32, 1, 1), (2, 1, 1)),
         "the grid (3, 1, 1) is no multiple of the cluster (2, 1, 1); round the grid up"),
        (1, LaunchShape((1, 70000, 1), (32, 1, 1)), "the grid's y and z are at most 65,535"),
        (720, LaunchShape((9999, 1, 1), (32, 1, 1), cooperative=True),
         "a cooperative grid must be resident at once; use fewer CTAs (the multiprocessors times what fits on each)"),
        (400, LaunchShape((1, 1, 1), (32, 1, 1)),
         "a stream of another device or of another context; pass a stream of the tensors' device"),
    ],
)  # fmt: skip
def test_likely_causes(driver: RecordingDriver, status: int, shape: LaunchShape, cause: str) -> None:
    assert refused(driver, status, shape).endswith(f"\n  likely cause: {cause}")


FAULT = (
    "a kernel failed on device 0 (NVIDIA H200): {call} failed: CUDA_ERROR_716 (716): text of 716\n"
    "  an address was not a multiple of the size of its access\n"
    "  the device reports it late and does not say which kernel; the latest launches of this process, last first:\n"
    "  - second, grid (2, 1, 1), block (32, 1, 1)\n"
    "      second.simulate(a)\n"
    "        a  # f32 [4]\n"
    "  - first, grid (1, 1, 1), block (32, 1, 1)\n"
    "      first.simulate(a)\n"
    "        a  # f32 [4]\n"
    "  the context is unusable from now on; start a new process. Its inputs are kept with WARPSMITH_DUMP=folder"
)


def two(driver: RecordingDriver) -> list[Plan]:
    driver.sizes |= {"first": [], "second": []}
    plans = [plan(LaunchShape((1 + i, 1, 1), (32, 1, 1)), name) for i, name in enumerate(("first", "second"))]
    for p in (plans[0], plans[0], plans[1]):
        p.run([], 0)
    return plans


def test_a_fault_that_comes_out_at_a_later_launch_names_the_launches_before(driver: RecordingDriver) -> None:
    plans = two(driver)
    driver.status = [716]
    with pytest.raises(LaunchError) as caught:
        plans[0].run([], 0)
    assert str(caught.value) == FAULT.format(call="cuLaunchKernelEx")


def test_a_fault_that_comes_out_when_waiting(driver: RecordingDriver) -> None:
    two(driver)
    driver.fail["synchronize"] = 716
    with pytest.raises(LaunchError) as caught:
        synchronize(context(0))
    assert str(caught.value) == FAULT.format(call="synchronize")


def test_launches_after_a_fault_say_that_the_context_is_broken(driver: RecordingDriver) -> None:
    plans = two(driver)
    driver.status = [716, 716]
    for _ in range(2):
        with pytest.raises(LaunchError) as caught:
            plans[0].run([], 0)
    assert str(caught.value) == (
        "the CUDA context of device 0 is broken by an earlier fault; start a new process. The fault was:\n"
        + FAULT.format(call="cuLaunchKernelEx")
    )


def test_an_error_that_is_no_fault_leaves_the_context_usable(driver: RecordingDriver) -> None:
    plans = two(driver)
    driver.status = [701]
    with pytest.raises(LaunchError):
        plans[0].run([], 0)
    plans[0].run([], 0)
    assert context(0).broken is None


AFTER = "the CUDA context of device 0 is broken by an earlier fault; start a new process. The fault was:\n"


@pytest.mark.parametrize("call", ["load_module", "get_function", "set_function_attribute"])
def test_a_kernel_prepared_after_a_fault_says_that_the_context_is_broken(driver: RecordingDriver, call: str) -> None:
    plans = two(driver)
    driver.status = [716]
    with pytest.raises(LaunchError):
        plans[0].run([], 0)
    driver.sizes["third"] = []
    driver.fail[call] = 716
    with pytest.raises(LaunchError) as caught:
        plan(LaunchShape((1, 1, 1), (32, 1, 1), (1, 1, 1), 100_000), "third")
    assert str(caught.value) == AFTER + FAULT.format(call="cuLaunchKernelEx")


@pytest.mark.parametrize("call", ["load_module", "set_function_attribute"])
def test_preparing_a_kernel_may_be_what_tells_of_a_fault(driver: RecordingDriver, call: str) -> None:
    two(driver)
    driver.sizes["third"] = []
    driver.fail[call] = 716
    with pytest.raises(LaunchError) as caught:
        plan(LaunchShape((1, 1, 1), (32, 1, 1), (1, 1, 1), 100_000), "third")
    assert str(caught.value) == FAULT.format(call=call)


def test_a_fault_on_one_of_several_devices_breaks_all(driver: RecordingDriver) -> None:
    driver.devices = 2
    driver.sizes |= {"first": [], "second": []}
    shape = LaunchShape((1, 1, 1), (32, 1, 1))
    plans = [
        Plan(
            context(n), context(n).function(cubin_header(), name), shape, [], 0, lambda values, name=name: f"{name}.simulate(a)"
        )
        for n, name in enumerate(("first", "second"))
    ]
    for p in plans:
        p.run([], 0)
    driver.status = [700, 700]
    with pytest.raises(LaunchError) as caught:
        plans[0].run([], 0)
    said = (
        "a kernel failed on one of the devices, as told by device 0 (NVIDIA H200): cuLaunchKernelEx failed: "
        "CUDA_ERROR_700 (700): text of 700\n"
        "  an address outside every allocation was read or written\n"
        "  the device reports it late and does not say which kernel; the latest launches of this process, last first:\n"
        "  - second, grid (1, 1, 1), block (32, 1, 1), on device 1\n"
        "      second.simulate(a)\n"
        "  - first, grid (1, 1, 1), block (32, 1, 1), on device 0\n"
        "      first.simulate(a)\n"
        "  the contexts of all devices are unusable from now on; start a new process. "
        "Its inputs are kept with WARPSMITH_DUMP=folder"
    )
    assert str(caught.value) == said
    with pytest.raises(LaunchError) as caught:
        plans[1].run([], 0)
    assert str(caught.value) == AFTER.replace("device 0", "device 1") + said
