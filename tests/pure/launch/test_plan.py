"""What the driver is given for a launch, argument by argument, and what it is not asked twice."""

from __future__ import annotations

import struct
import threading
from typing import Any

import pytest

from recording_driver import RecordingDriver, cubin_header
from warpsmith.base.tensormap import TensorMapFields
from warpsmith.base.tensormap_bits import encode
from warpsmith.launch.binding import LaunchShape
from warpsmith.launch.context import context
from warpsmith.launch.plan import Argument, MapArgument, Plan, PointerArgument

CUBIN = cubin_header()
SHAPE = LaunchShape((4, 2, 1), (128, 1, 1))
FIELDS = TensorMapFields("f16", 0, (128, 256), (256,), (64, 64), (1, 1), swizzle="128B")


def plan(driver: RecordingDriver, arguments: list[Argument], tensors: int, shape: LaunchShape = SHAPE, device: int = 0) -> Plan:
    driver.sizes["k"] = [
        128 if isinstance(a, MapArgument) else 8 if isinstance(a, PointerArgument) else len(a) for a in arguments
    ]
    c = context(device)
    return Plan(c, c.function(CUBIN, "k"), shape, arguments, tensors, lambda values: "k.simulate(a)")


def test_pointers_maps_and_constants_reach_their_parameters(driver: RecordingDriver) -> None:
    arguments: list[Argument] = [
        b"\x01\x02\x03\x04",
        PointerArgument(1),
        MapArgument(0, FIELDS),
        b"\x05" * 128,
        PointerArgument(0),
    ]
    plan(driver, arguments, 2).run([0x7F0000000000, 0x1234], stream=9)
    (launch,) = driver.launches
    assert launch["arguments"] == [
        b"\x01\x02\x03\x04",
        struct.pack("<Q", 0x1234),
        encode(FIELDS.at(0x7F0000000000)),
        b"\x05" * 128,
        struct.pack("<Q", 0x7F0000000000),
    ]
    assert (launch["name"], launch["shape"], launch["stream"]) == ("k", SHAPE, 9)
    assert launch["aligned"]


def test_a_tensor_map_is_encoded_once_for_an_address(driver: RecordingDriver) -> None:
    p = plan(driver, [MapArgument(0, FIELDS)], 1)
    for address in (0x1000, 0x2000, 0x1000, 0x1000):
        p.run([address], 0)
    assert [c[1].address for c in driver.calls if c[0] == "encode_tensor_map"] == [0x1000, 0x2000]
    assert [launch["arguments"][0] for launch in driver.launches] == [
        encode(FIELDS.at(a)) for a in (0x1000, 0x2000, 0x1000, 0x1000)
    ]


def test_later_launches_ask_the_driver_for_nothing_else(driver: RecordingDriver) -> None:
    p = plan(driver, [PointerArgument(0)], 1)
    p.run([1], 0)
    driver.calls.clear()
    for stream in (0, 5, 5, 0):
        p.run([2], stream)
    assert driver.calls == []
    assert [launch["stream"] for launch in driver.launches] == [0, 0, 5, 5, 0]


def test_shared_memory_and_large_clusters_are_asked_for_once(driver: RecordingDriver) -> None:
    large = LaunchShape((16, 1, 1), (64, 1, 1), (16, 1, 1), 200_000)
    for _ in range(2):
        plan(driver, [], 0, large).run([], 0)
    assert [c for c in driver.calls if c[0] == "set_function_attribute"] == [
        ("set_function_attribute", 8, 200_000), ("set_function_attribute", 14, 1),
    ]  # fmt: skip


def test_48_kilobytes_need_no_asking_less_what_is_static(driver: RecordingDriver) -> None:
    plan(driver, [], 0, SHAPE._replace(dynamic_shared=49152))
    assert not [c for c in driver.calls if c[0] == "set_function_attribute"]
    driver.function_attributes[1] = 16
    plan(driver, [], 0, SHAPE._replace(dynamic_shared=49152))
    assert [c for c in driver.calls if c[0] == "set_function_attribute"] == [("set_function_attribute", 8, 49152)]


def test_a_thread_without_a_context_launches_all_the_same(driver: RecordingDriver) -> None:
    p = plan(driver, [PointerArgument(0)], 1)
    driver.context = 0
    p.run([7], 0)
    assert driver.launches[-1]["context"] == 1000


def test_the_context_of_the_tensors_device_is_entered_and_left() -> None:
    from warpsmith.launch.binding import use_driver  # noqa: PLC0415
    from warpsmith.launch.context import forget_contexts  # noqa: PLC0415

    two = RecordingDriver(devices=2)
    use_driver(two)
    forget_contexts()
    try:
        two.context = 1000
        p = plan(two, [PointerArgument(0)], 1, device=1)
        p.run([1], 0)
        assert two.launches[-1]["context"] == 1001
        assert two.context == 1000
        plan(two, [PointerArgument(0)], 1, device=0).run([1], 0)
        assert two.launches[-1]["context"] == 1000
        assert [c[2] for c in two.calls if c[0] == "load_module"] == [1001, 1000]
    finally:
        use_driver(None)
        forget_contexts()


def test_a_cubin_is_loaded_once_in_a_context(driver: RecordingDriver) -> None:
    for _ in range(3):
        plan(driver, [], 0)
    assert len([c for c in driver.calls if c[0] == "load_module"]) == 1


def test_launches_from_many_threads_do_not_mix_their_arguments(driver: RecordingDriver) -> None:
    p = plan(driver, [PointerArgument(0), PointerArgument(1)], 2)
    waiting = threading.Barrier(4)
    original = driver.launch

    def slow(config: Any, function: int, parameters: int, extra: int) -> tuple[int]:
        waiting.wait(10)  # every thread has written its arguments before the driver reads any
        return original(config, function, parameters, extra)

    p.launch = slow
    threads = [threading.Thread(target=p.run, args=([i, 100 + i], i)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    got = {
        (int.from_bytes(a, "little"), int.from_bytes(b, "little"), x["stream"])
        for x in driver.launches
        for a, b in [x["arguments"]]
    }
    assert got == {(i, 100 + i, i) for i in range(4)}


def test_an_address_a_tensor_map_cannot_have_is_refused(driver: RecordingDriver) -> None:
    with pytest.raises(Exception, match=r"^tensor map: address 0x1008 is not a multiple of 16$"):
        plan(driver, [MapArgument(0, FIELDS)], 1).run([0x1008], 0)
