"""Tensor copies of packed elements, along W without offsets, to many CTAs; what stores must keep to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.pure.simulator.tensor.test_tensor_copies import MAP, loading, storing, unswizzled

from warpsmith.base.errors import CapabilityError, InputError
from warpsmith.simulator.tensormap import TensorMap


def stored(
    run: Any, tensor_map: TensorMap, data: np.ndarray, coordinates: list[int], mode: str = "tile", **options: Any
) -> Any:
    """Store `data` as a box of the tensor."""
    copy = f"cp.async.bulk.tensor.{{dims}}d.global.shared::cta.{mode}.bulk_group"
    dims = options.pop("dims", len(coordinates))
    body = storing(dims, coordinates, data.nbytes, copy)
    return run(body, data, tensor_map, parameters=MAP, **options)


# --- packed elements (5.5.1.1) ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("element", "group"), [("b4x16_p64", 8), ("b6x16_p32", 12)])
@pytest.mark.parametrize("swizzle", ["none", "128B"])
@pytest.mark.parametrize("at", [[0, 0], [128, 3], [128, 6], [256, 2]])
def test_a_load_pads_groups_of_sixteen_elements(run: Any, element: str, group: int, swizzle: str, at: list[int]) -> None:
    """Each 8 (12) bytes of a row are followed by 8 (4) bytes of padding; what lies outside the tensor is zero."""
    a = np.random.default_rng(3).integers(1, 255, (8, 2 * 8 * group)).astype(np.uint8)
    tensor_map = TensorMap(a, box=(4, 128), element=element, swizzle=swizzle)
    assert tensor_map.options["dims"] == (256, 8)
    body = loading(2, at, 4 * 8 * group, kept=512)
    out = np.zeros(512, np.uint8)
    r = run(body, out, tensor_map, parameters=MAP, target="sm_100a", check=False)
    assert r.completed
    got = unswizzled(out, swizzle).reshape(4, 8, 16)[..., :group]
    want = np.zeros((4, 8, group), np.uint8)
    for row in range(4):
        if at[1] + row < 8 and at[0] < 256:
            first = at[0] // 16 * group
            want[row] = a[at[1] + row, first : first + 8 * group].reshape(8, group)
    assert (got == want).all()


def test_the_padding_of_a_load_is_undefined(run: Any) -> None:
    a = np.ones((8, 64), np.uint8)
    body = loading(2, [0, 0], 256, kept=512)
    r = run(body, np.zeros(512, np.uint8), TensorMap(a, box=(4, 128), element="b4x16_p64"), parameters=MAP, target="sm_100a")
    assert [f.kind for f in r.findings] == ["uninitialised-read"]


def test_a_store_of_six_bit_elements_drops_the_upper_two_bits_of_each(run: Any) -> None:
    """b6p2x16: sixteen bytes of shared memory become twelve, element i in bits 6 i to 6 i + 5."""
    a, data = np.zeros((4, 96), np.uint8), np.random.default_rng(5).integers(0, 255, (4, 128)).astype(np.uint8)
    r = stored(run, TensorMap(a, box=(4, 128), element="b6x16_p32"), data, [0, 0], target="sm_100a")
    assert [str(f) for f in r.findings] == []
    for row in range(4):
        bits = sum((int(v) & 63) << 6 * i for i, v in enumerate(data[row]))
        assert a[row].tobytes() == bits.to_bytes(96, "little")


def test_packed_elements_start_at_multiples_of_128(run: Any) -> None:
    a = np.ones((8, 128), np.uint8)
    r = run(loading(2, [64, 0], 256), np.zeros(256, np.uint8), TensorMap(a, box=(4, 128), element="b4x16_p64"),
            parameters=MAP, target="sm_100a")  # fmt: skip
    assert [(f.kind, f.message) for f in r.findings] == [
        ("out-of-bounds", "a tensor copy of b4x16_p64 starts at innermost coordinate 64; it must be a multiple of 128")
    ]


@pytest.mark.parametrize(("options", "message"), [
    ({"swizzle": "64B"}, "b4x16_p64 has no swizzle 64B; it has none, 128B, 128B_atom_32B, 128B_atom_64B"),
    ({"box": (4, 64)}, "b4x16_p64 needs the box's innermost dimension of 128 elements, not 64"),
    ({"fill": "nan"}, "NaN fill needs a floating-point element type, not b4x16_p64"),
])  # fmt: skip
def test_maps_of_packed_elements_are_checked(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=rf"^tensor map: {message}$"):
        TensorMap(np.ones((8, 64), np.uint8), **{"box": (4, 128), "element": "b4x16_p64", **options})


def test_im2col_w_has_no_interleave(run: Any) -> None:
    a = np.zeros((2, 3, 4, 9, 16), np.float16)
    options = {"channels": 16, "pixels": 8, "mode": "im2col_w", "lower": (0,), "upper": (0,)}
    tensor_map = TensorMap(a, interleave="32B", swizzle="32B", **options)
    body = loading(4, [0, 0, 0, 0], 256, "im2col::w", ", {0, 0}")
    r = run(body, np.zeros(256, np.uint8), tensor_map, parameters=MAP, target="sm_100a")
    assert r.findings[0].message == "a copy in im2col::w mode with a tensor map of interleave 32B, which this mode has not"


# --- stores -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("coordinates", [[-32, 0], [0, -3], [-32, -3]])
@pytest.mark.parametrize("what", ["store", "reduction"])
def test_stores_do_not_start_before_the_tensor(run: Any, coordinates: list[int], what: str) -> None:
    a, data = np.zeros((16, 128), np.uint16), np.ones(1024, np.uint8)
    copy = "cp.async.bulk.tensor.{dims}d.global.shared::cta.tile.bulk_group"
    if what == "reduction":
        copy = copy.replace("cp.async", "cp.reduce.async").replace(".tile", ".xor.tile")
    body = storing(2, coordinates, 1024, copy)
    element = "u32" if what == "reduction" else "u16"
    a = a.view(np.uint32) if what == "reduction" else a
    r = run(body, data, TensorMap(a, box=(8, 1024 // 8 // a.itemsize), element=element), parameters=MAP)
    assert not r.completed
    assert [(f.kind, f.message) for f in r.findings] == [
        ("out-of-bounds", f"a tensor {what} starts at coordinates ({coordinates[0]}, {coordinates[1]}); none may be negative")
    ]
    assert not a.any()


def test_scatter4_takes_negative_rows_on_sm_107_alone(run: Any) -> None:
    a, data = np.zeros((16, 64), np.uint16), np.arange(4 * 32, dtype=np.uint16) + 1
    r = stored(
        run, TensorMap(a, box=(1, 32)), data, [0, -1, 3, 15, 99], "tile::scatter4", dims=2, target="sm_107a", version="9.4"
    )
    assert [(f.kind, f.severity, f.message) for f in r.findings] == [
        (
            "out-of-bounds",
            "portability",
            "a tensor store starts at coordinates (0, -1, 3, 15, 99); only sm_107 takes negative ones",
        )
    ]
    want = np.zeros_like(a)
    want[3, :32], want[15, :32] = data[32:64], data[64:96]
    assert (a == want).all()


@pytest.mark.parametrize(("lower", "upper"), [((-1, 0), (0, 0)), ((0, -1), (-1, -1)), ((0, 0), (0, 1))])
def test_a_pixel_box_for_stores_stays_in_the_tensor(run: Any, lower: tuple[int, int], upper: tuple[int, int]) -> None:
    """An H200 stops with an illegal instruction, wherever the pixels lie that are stored."""
    a, data = np.zeros((2, 6, 5, 8), np.float16), np.ones(2 * 8, np.float16)
    tensor_map = TensorMap(a, lower=lower, upper=upper, channels=8, pixels=2)
    r = stored(run, tensor_map, data, [0, 1, 1, 0], "im2col_no_offs")
    corners = f"lower corner {lower[::-1]}, upper corner {upper[::-1]}"  # W first
    message = f"a tensor store with a pixel box that leaves the tensor ({corners})"
    assert [(f.kind, f.severity, f.message) for f in r.findings] == [("out-of-bounds", "error", message)]
    assert not r.completed
    assert not a.any()


def test_im2col_no_offs_w_stores_along_w(run: Any) -> None:
    """wHalo and wOffset are 0 (9.7.10.28.5.3): from (w, h) = (3, 2) of image 0 on, then row 2 of the next images."""
    a, data = np.zeros((3, 4, 6, 16), np.float16), np.arange(8 * 16).reshape(8, 16).astype(np.float16)
    tensor_map = TensorMap(a, channels=16, pixels=8, swizzle="32B", mode="im2col_w", lower=(0,), upper=(0,))
    at = np.arange(8 * 32)
    swizzled = np.zeros(8 * 32, np.uint8)
    swizzled[at ^ (at >> 3 & 16)] = data.reshape(-1).view(np.uint8)
    r = stored(run, tensor_map, swizzled, [0, 3, 2, 0], "im2col_no_offs::w", target="sm_107a", version="9.4")
    assert [str(f) for f in r.findings] == []
    want = np.zeros_like(a)
    for k, (image, w) in enumerate([(0, 3), (0, 4), (0, 5), (1, 0), (1, 1), (1, 2), (1, 3), (1, 4)]):
        want[image, 2, w] = data[k]
    assert (a == want).all()


@pytest.mark.parametrize("tensor", [False, True])
def test_bytes_that_nobody_wrote_are_not_stored_in_silence(run: Any, tensor: bool) -> None:
    body = """ .shared .align 128 .b8 buf[256];
 mov.u32 %r1, buf; mov.u64 %rd1, map; cvta.param.u64 %rd1, %rd1; setp.ne.u32 %p1, %t, 0;
 shl.b32 %r2, %t, 2; add.u32 %r2, %r1, %r2; st.shared.b32 [%r2], %t;
 fence.proxy.async.shared::cta; bar.sync 0;
 @%p1 bra DONE;
 COPY
 cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
DONE:
"""
    copy = "cp.async.bulk.global.shared::cta.bulk_group [%out], [%r1], 256;"
    if tensor:
        copy = "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd1, {0, 0}], [%r1];"
    a = np.zeros((8, 16), np.uint32)
    r = run(body.replace("COPY", copy), a, TensorMap(a, box=(4, 16)), parameters=MAP)
    name = "cp.async.bulk.tensor" if tensor else "cp.async.bulk"
    assert [(f.kind, f.message) for f in r.findings] == [
        ("uninitialised-read", f"`{name}`: bytes of shared memory that nobody wrote are stored to global memory")
    ]
    half = run(body.replace("COPY", copy).replace("256;", "128;"), a, TensorMap(a, box=(2, 16)), parameters=MAP)
    assert [str(f) for f in half.findings] == []


# --- many CTAs, reports -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("report", ["", ".mbarrier::report::disabled"])
def test_a_multicast_takes_masks_of_32_bits(run: Any, report: str) -> None:
    a = np.arange(8 * 16, dtype=np.uint16).reshape(8, 16)
    body = loading(2, [0, 0], 256).replace("setp.ne.u32 %p1, %t, 0;\n", " setp.ne.u32 %p1, %t, 0; mov.u32 %r9, 0x1;\n")
    body = body.replace("bytes [%r1]", f"bytes{report}.multicast::cluster::32b [%r1]").replace(
        "[%r2];\nLOADED", "[%r2], %r9;\nLOADED"
    )
    out = np.zeros(256, np.uint8)
    r = run(body, out, TensorMap(a, box=(8, 16)), parameters=MAP, target="sm_107a", version="9.4")
    assert [str(f) for f in r.findings] == []
    assert (out.view(np.uint16).reshape(8, 16) == a).all()
    wrong = run(
        body.replace("0x1;", "0x10001;"), out, TensorMap(a, box=(8, 16)), parameters=MAP, target="sm_107a", version="9.4"
    )
    assert wrong.findings[0].message == "multicast mask 0x10001 names CTAs that the cluster of 1 does not have"


@pytest.mark.parametrize(("report", "reason"), [
    ("per_16bytes::8000", "which element of 16 bytes a copy with a report samples is left open"),
    ("per_element::ff", "whether a report by element takes bytes of 0xff or 4-bit elements of 0xf is left open"),
])  # fmt: skip
def test_copies_that_report_are_refused(run: Any, report: str, reason: str) -> None:
    body = loading(2, [0, 0], 256).replace(
        "complete_tx::bytes [%r1]", f"complete_tx::bytes.mbarrier::report::validity::{report} [%r1]"
    )
    tensor_map = TensorMap(np.zeros((8, 16), np.uint16), box=(8, 16))
    with pytest.raises(CapabilityError, match=reason):
        run(body, np.zeros(256, np.uint8), tensor_map, parameters=MAP, target="sm_107a", version="9.4")


# --- fields that the instruction overrides (9.7.10.28.5.2) ------------------------------------------------------------


def _overriding(extra: str, attribute: str, dims: int, coordinates: str, size: int) -> str:
    body = loading(dims, [0] * dims, size)
    old = body[body.index("[%rd1, {") : body.index("}]", body.index("[%rd1, {")) + 2]
    body = body.replace(old, f"[%rd1, {extra}, {{{coordinates}}}]")
    return body.replace("complete_tx::bytes [", f"complete_tx::bytes.override::global_address{attribute} [")


def _other(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(7).integers(0, 1 << 31, shape).astype(np.int32)


NINE_FOUR = {"target": "sm_107f", "version": "9.4", "parameters": MAP + ", .param .u64 other"}


def test_the_address_overrides_that_of_the_map(run: Any) -> None:
    a, other, out = np.zeros((64, 32), np.int32), _other((2048, 32)), np.zeros((8, 16), np.int32)
    body = " ld.param.u64 %rd9, [other];\n" + _overriding("%rd9", "", 2, "4, 3", 512)
    r = run(body, out, TensorMap(a, box=(8, 16)), other, **NINE_FOUR)
    assert [str(f) for f in r.findings] == []
    assert (out == other[3:11, 4:20]).all()


@pytest.mark.parametrize(("move", "rows", "message"), [
    (4, 2048, "in the place of the tensor map's is no multiple of 16"),
    (128, 1024, "in the place of the tensor map's on 128 KiB must be allocated"),
])  # fmt: skip
def test_the_address_must_be_aligned_and_128_kib_allocated(run: Any, move: int, rows: int, message: str) -> None:
    a, other, out = np.zeros((64, 32), np.int32), _other((rows, 32)), np.zeros((8, 16), np.int32)
    body = f" ld.param.u64 %rd9, [other]; add.u64 %rd9, %rd9, {move};\n" + _overriding("%rd9", "", 2, "4, 3", 512)
    (finding,) = run(body, out, TensorMap(a, box=(8, 16)), other, **NINE_FOUR).findings
    assert (finding.kind, message in finding.message) == ("out-of-bounds", True)


def test_dimensions_and_strides_override_those_of_the_map(run: Any) -> None:
    """Twelve columns and five rows of 192 bytes, whose stride is 12 in units of 16 bytes; outside lies zero."""
    a, other, out = np.zeros((64, 32), np.int32), _other((1024, 48)), np.zeros((8, 16), np.int32)
    head = " ld.param.u64 %rd9, [other]; .reg .b16 %n<3>; .reg .b32 %low; mov.b16 %n0, 0x0c; mov.b16 %n1, 0x105;\n"
    head += " mov.b16 %n2, 0; mov.b32 %low, 12; .reg .b32 %four; mov.b32 %four, 4;\n"
    attribute = ".override::global_dim_stride"
    body = head + _overriding("%rd9, {%n0, %n1}, {%low}, %n2", attribute, 2, "0, 0", 512)
    r = run(body, out, TensorMap(a, box=(8, 16)), other, **NINE_FOUR)
    assert [str(f) for f in r.findings] == []
    want = np.zeros((8, 16), np.int32)
    want[:5, :12] = other[:5, :12]
    assert (out == want).all()
    body = head + _overriding("%rd9, {%n0, %n1}, {%low}, %n2", attribute, 2, "%four, 0", 512)
    (finding,) = run(body, out, TensorMap(a, box=(8, 16)), other, **NINE_FOUR).findings
    assert finding.message == "a copy whose dimensions stand in the place of the tensor map's must start at zero"


# --- prefetches (9.7.10.28.5.5) ---------------------------------------------------------------------------------------


def _prefetch(run: Any, copy: str, coordinates: str, tensor_map: TensorMap, **options: Any) -> list[str]:
    body = f" mov.u64 %rd1, map; cvta.param.u64 %rd1, %rd1; {copy} [%rd1, {{{coordinates}}}];"
    r = run(body, np.zeros(1, np.uint32), tensor_map, parameters=MAP, target="sm_100a", **options)
    return [f.message for f in r.findings]


@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
def test_a_prefetch_of_every_rank_changes_nothing(run: Any, rank: int) -> None:
    a = np.ones((4,) * (rank - 1) + (8,), np.int32)
    tensor_map = TensorMap(a, box=(2,) * (rank - 1) + (4,))
    zeros = ", ".join("0" * rank)
    assert _prefetch(run, f"cp.async.bulk.prefetch.tensor.{rank}d.L2.global.tile", zeros, tensor_map) == []
    assert (a == 1).all()


def test_a_prefetch_checks_its_map_and_where_it_starts(run: Any) -> None:
    a = np.ones((16, 32), np.int32)
    tensor_map = TensorMap(a, box=(8, 16))
    copy = "cp.async.bulk.prefetch.tensor.{}d.L2.global.tile"
    assert _prefetch(run, copy.format(3), "0, 0, 0", tensor_map) == ["a 3d copy with a tensor map of rank 2"]
    (message,) = _prefetch(run, copy.format(2), "1, 0", tensor_map)
    assert "multiples of 16" in message
    rows = TensorMap(a, box=(1, 16))
    assert _prefetch(run, "cp.async.bulk.prefetch.tensor.2d.L2.global.tile::gather4", "0, 1, 9, 2, 3", rows) == []
