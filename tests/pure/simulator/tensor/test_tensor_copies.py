"""Tensor copies against numpy slices: boxes, bounds, swizzles, strides, im2col, stores, reductions, maps made on the device."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from warpsmith.base.errors import CapabilityError, InputError
from warpsmith.simulator.swizzle import swizzle
from warpsmith.simulator.tensormap import TensorMap

MAP = ".param .u64 out, .param .align 64 .b8 map[128]"


def loading(dims: int, coordinates: list[int], size: int, mode: str = "tile", offsets: str = "", kept: int = 0) -> str:
    """One thread loads `size` bytes, a box at `coordinates` (innermost first); the CTA copies out the `kept` bytes there."""
    kept = kept or size
    c = ", ".join(map(str, coordinates))
    return f""" .shared .align 1024 .b8 buf[{max(kept, 16)}];
 .shared .align 8 .b64 bar;
 mov.u32 %r1, buf; mov.u32 %r2, bar; mov.u64 %rd1, map; cvta.param.u64 %rd1, %rd1;
 setp.ne.u32 %p1, %t, 0;
 @%p1 bra LOADED;
 mbarrier.init.shared::cta.b64 [%r2], 1; fence.mbarrier_init.release.cluster;
 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], {size};
 cp.async.bulk.tensor.{dims}d.shared::cluster.global.{mode}.mbarrier::complete_tx::bytes [%r1], [%rd1, {{{c}}}], [%r2]{offsets};
LOADED:
 bar.sync 0;
WAIT:
 mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0;
 @!%p2 bra WAIT;
 mov.u32 %r3, %t;
COPY:
 setp.ge.u32 %p3, %r3, {kept // 4};
 @%p3 bra DONE;
 shl.b32 %r4, %r3, 2; add.u32 %r5, %r1, %r4; ld.shared.b32 %r6, [%r5];
 cvt.u64.u32 %rd2, %r4; add.u64 %rd3, %out, %rd2; st.global.b32 [%rd3], %r6;
 add.u32 %r3, %r3, 32;
 bra COPY;
DONE:
"""


def load(run: Any, tensor_map: TensorMap, coordinates: list[int], size: int, **options: Any) -> np.ndarray:
    mode, offsets = options.pop("mode", "tile"), options.pop("offsets", "")
    kept = options.pop("kept", size)
    out = np.zeros(kept, np.uint8)
    body = loading(len(coordinates), coordinates, size, mode, offsets, kept)
    r = run(body, out, tensor_map, parameters=MAP, **options)
    assert r.completed
    assert [str(f) for f in r.findings] == []
    return out


def unswizzled(data: np.ndarray, mode: str) -> np.ndarray:
    return data[swizzle(mode, np.arange(data.size) // 16 * 16) + np.arange(data.size) % 16]


@pytest.mark.parametrize(("mode", "inner"), [("none", 16), ("32B", 16), ("64B", 32), ("128B", 64)])
def test_a_box_lies_swizzled(run: Any, mode: str, inner: int) -> None:
    a = np.arange(64 * 128, dtype=np.uint16).reshape(64, 128)
    got = load(run, TensorMap(a, box=(16, inner), swizzle=mode), [8, 20], 16 * inner * 2)
    assert (unswizzled(got, mode).view(np.uint16).reshape(16, inner) == a[20:36, 8 : 8 + inner]).all()


def test_128_byte_swizzle_by_hand(run: Any) -> None:
    a = np.arange(8 * 64, dtype=np.uint16).reshape(8, 64)
    got = load(run, TensorMap(a, box=(8, 64), swizzle="128B"), [0, 0], 1024).view(np.uint16).reshape(8, 8, 8)
    for row in range(8):
        for piece in range(8):
            assert (got[row, piece ^ row] == a[row, 8 * piece : 8 * piece + 8]).all()


@pytest.mark.parametrize("coordinates", [[-8, 3], [56, -2], [120, 61], [128, 0], [-64, 5], [8, 200]])
@pytest.mark.parametrize("fill", ["zero", "nan"])
def test_elements_outside_are_filled(run: Any, coordinates: list[int], fill: str) -> None:
    a = np.random.default_rng(0).standard_normal((64, 128)).astype(np.float16)
    got = load(run, TensorMap(a, box=(8, 16), fill=fill), coordinates, 256).view(np.float16).reshape(8, 16)
    want = np.full((8, 16), 0 if fill == "zero" else np.nan, np.float16)
    for i in range(8):
        for j in range(16):
            row, column = coordinates[1] + i, coordinates[0] + j
            if 0 <= row < 64 and 0 <= column < 128:
                want[i, j] = a[row, column]
    assert np.array_equal(got, want, equal_nan=True)


@pytest.mark.parametrize(("mode", "span"), [("32B", 32), ("64B", 64), ("128B", 128)])
def test_rows_narrower_than_the_swizzle_lie_its_width_apart(run: Any, mode: str, span: int) -> None:
    a = np.arange(64 * 128, dtype=np.uint16).reshape(64, 128)
    got = load(run, TensorMap(a, box=(16, 8), swizzle=mode), [8, 20], 256, kept=16 * span, check=False)
    rows = unswizzled(got, mode).view(np.uint16).reshape(16, span // 2)
    assert (rows[:, :8] == a[20:36, 8:16]).all()


def test_a_column_that_is_no_multiple_of_16_bytes_is_reported(run: Any) -> None:
    a = np.zeros((32, 32), np.float32)
    r = run(loading(2, [2, 3], 512, "tile", ""), np.zeros(512, np.uint8), TensorMap(a, box=(8, 16)), parameters=MAP)
    assert not r.completed
    assert [(f.kind, f.message, f.repair) for f in r.findings] == [
        (
            "out-of-bounds",
            "a tensor copy starts at innermost coordinate 2, 8 bytes from the start of its row; "
            "the GPU takes multiples of 16 bytes",
            "Start boxes at multiples of 4 elements and leave out what you do not need.",
        )
    ]


@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
def test_every_rank(run: Any, rank: int) -> None:
    shape = (3, 4, 5, 6, 32)[5 - rank :]
    box = (2, 2, 3, 2, 16)[5 - rank :]
    start = (1, 1, 2, 3, 8)[5 - rank :]
    a = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    size = int(np.prod(box)) * 4
    got = load(run, TensorMap(a, box=box), list(reversed(start)), size).view(np.int32).reshape(box)
    assert (got == a[tuple(slice(s, s + b) for s, b in zip(start, box, strict=True))]).all()


def test_element_strides_skip_rows(run: Any) -> None:
    a = np.arange(32 * 16, dtype=np.float32).reshape(32, 16)
    got = load(run, TensorMap(a, box=(10, 16), element_strides=(3, 1)), [0, 2], 4 * 16 * 4).view(np.float32).reshape(4, 16)
    assert (got == a[2:12:3]).all()


def test_tf32_is_rounded_to_nearest(run: Any) -> None:
    a = np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32)
    got = load(run, TensorMap(a, box=(4, 4), element="tf32"), [0, 0], 64).view(np.float32).reshape(4, 4)
    assert ((got.view(np.uint32) & 0x1FFF) == 0).all()
    assert (np.abs(got - a) <= np.abs(a) * 2.0**-11).all()


@pytest.mark.parametrize(("offsets", "start"), [((0, 0), (-1, -1)), ((2, 1), (-1, -1)), ((1, 2), (2, 0))])
def test_im2col_walks_the_pixel_box(run: Any, offsets: tuple[int, int], start: tuple[int, int]) -> None:
    """3x3 convolution with padding 1: the box of output pixels, one filter position at a time."""
    n, h, w, c = 2, 6, 5, 8
    a = np.random.default_rng(1).integers(0, 99, (n, h, w, c)).astype(np.float16)
    tensor_map = TensorMap(a, lower=(-1, -1), upper=(-1, -1), channels=8, pixels=40)
    got = load(
        run, tensor_map, [0, *start, 0], 40 * 16, mode="im2col", offsets=f", {{{offsets[0]}, {offsets[1]}}}"
    ).view(np.float16).reshape(40, 8)  # fmt: skip
    pixels = [(i, y, x) for i in range(n + 1) for y in range(-1, h - 1) for x in range(-1, w - 1)]
    pixels = pixels[pixels.index((0, start[1], start[0])) :][:40]
    for k, (i, y, x) in enumerate(pixels):
        y, x = y + offsets[1], x + offsets[0]
        inside = i < n and 0 <= y < h and 0 <= x < w
        assert (got[k] == (a[i, y, x] if inside else 0)).all()


@pytest.mark.parametrize("start", [(-1, -1), (0, 1), (3, 2), (4, 4)])
def test_a_column_may_start_beside_the_steps_of_its_box(run: Any, start: tuple[int, int]) -> None:
    """Where the next step would leave the box an axis begins anew at the lower corner."""
    n, h, w = 4, 6, 5
    a = np.arange(n * h * w * 8, dtype=np.uint16).reshape(n, h, w, 8)
    steps = {"w": (3, -1, w - 1), "h": (2, 0, h)}  # step, first and last position
    tensor_map = TensorMap(a, lower=(0, -1), upper=(1, 0), channels=8, pixels=30, element_strides=(1, 2, 3, 1))
    got = load(run, tensor_map, [0, *start, 0], 480, mode="im2col", offsets=", {1, 0}").view(np.uint16).reshape(30, 8)
    (x, y), image = start, 0
    for pixel in got:
        inside = image < n and 0 <= y < h and 0 <= x + 1 < w
        assert (pixel == (a[image, y, x + 1] if inside else 0)).all()
        if (x := x + steps["w"][0]) > steps["w"][2]:
            x = steps["w"][1]
            if (y := y + steps["h"][0]) > steps["h"][2]:
                y, image = steps["h"][1], image + 1


def storing(dims: int, coordinates: list[int], size: int, instruction: str) -> str:
    """Thread i fills the box with words of the input; one thread stores it."""
    c = ", ".join(map(str, coordinates))
    return f""" .shared .align 1024 .b8 buf[{size}];
 mov.u32 %r1, buf; mov.u64 %rd1, map; cvta.param.u64 %rd1, %rd1; mov.u32 %r3, %t;
FILL:
 setp.ge.u32 %p3, %r3, {size // 4};
 @%p3 bra FILLED;
 shl.b32 %r4, %r3, 2; add.u32 %r5, %r1, %r4;
 cvt.u64.u32 %rd2, %r4; add.u64 %rd3, %out, %rd2; ld.global.b32 %r6, [%rd3]; st.shared.b32 [%r5], %r6;
 add.u32 %r3, %r3, 32;
 bra FILL;
FILLED:
 fence.proxy.async.shared::cta;
 bar.sync 0;
 setp.ne.u32 %p1, %t, 0;
 @%p1 bra DONE;
 {instruction.format(dims=dims)} [%rd1, {{{c}}}], [%r1];
 cp.async.bulk.commit_group;
 cp.async.bulk.wait_group 0;
DONE:
"""


@pytest.mark.parametrize("mode", ["none", "128B"])
@pytest.mark.parametrize("coordinates", [[0, 0], [64, 9], [96, 14], [128, 2]])
def test_a_store_undoes_the_swizzle_and_leaves_out_what_lies_outside(run: Any, mode: str, coordinates: list[int]) -> None:
    a = np.zeros((16, 128), np.uint16)
    box = np.arange(8 * 64, dtype=np.uint16).reshape(8, 64) + 1
    data = np.zeros(1024, np.uint8)
    at = np.arange(1024)
    data[swizzle(mode, at // 16 * 16) + at % 16] = box.reshape(-1).view(np.uint8)
    body = storing(2, coordinates, 1024, "cp.async.bulk.tensor.{dims}d.global.shared::cta.tile.bulk_group")
    r = run(body, data, TensorMap(a, box=(8, 64), swizzle=mode), parameters=MAP)
    assert r.completed
    assert [str(f) for f in r.findings] == []
    want = np.zeros_like(a)
    for i in range(8):
        for j in range(64):
            row, column = coordinates[1] + i, coordinates[0] + j
            if 0 <= row < 16 and 0 <= column < 128:
                want[row, column] = box[i, j]
    assert (a == want).all()


@pytest.mark.parametrize(
    ("op", "dtype"), [("add", np.float32), ("add", ml_dtypes.bfloat16), ("max", np.int32), ("xor", np.uint32)]
)
def test_reductions_into_a_tensor(run: Any, op: str, dtype: Any) -> None:
    rng = np.random.default_rng(6)
    a = rng.integers(0, 50, (8, 64)).astype(dtype)
    box = rng.integers(0, 50, (4, 32)).astype(dtype)
    before = a.copy()
    body = storing(2, [16, 2], box.nbytes, f"cp.reduce.async.bulk.tensor.{{dims}}d.global.shared::cta.{op}.tile.bulk_group")
    r = run(body, box, TensorMap(a, box=(4, 32)), parameters=MAP)
    assert r.completed
    function = {"add": np.add, "max": np.maximum, "xor": np.bitwise_xor}[op]
    before[2:6, 16:48] = function(before[2:6, 16:48], box)
    assert (a == before).all()


def test_a_map_changed_on_the_device(run: Any) -> None:
    """Copy the map to shared memory, replace address, sizes and strides, publish it, and load through it."""
    a, b = np.arange(1024, dtype=np.uint32).reshape(32, 32), np.arange(4096, dtype=np.uint32).reshape(64, 64) + 5
    scratch = np.zeros(256, np.uint8)
    body = """ .shared .align 128 .b8 edit[128];
 mov.u32 %r10, edit; mov.u64 %rd10, map; cvta.param.u64 %rd10, %rd10;
 ld.param.u64 %rd11, [other]; ld.param.u64 %rd12, [scratch];
 shl.b32 %r11, %t, 2; add.u32 %r12, %r10, %r11; cvt.u64.u32 %rd13, %r11; add.u64 %rd14, %rd10, %rd13;
 ld.b32 %r13, [%rd14]; st.shared.b32 [%r12], %r13;
 bar.sync 0;
 setp.ne.u32 %p5, %t, 0;
 @%p5 bra EDITED;
 tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r10], %rd11;
 tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r10], 0, 64;
 tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r10], 1, 64;
 mov.b64 %rd15, 256;
 tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%r10], 0, %rd15;
EDITED:
 bar.sync 0;
 tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd12], [%r10], 128;
 fence.proxy.tensormap::generic.acquire.gpu [%rd12], 128;
""" + loading(2, [40, 50], 256).replace("mov.u64 %rd1, map; cvta.param.u64 %rd1, %rd1;", "mov.u64 %rd1, %rd12;")
    out = np.zeros(256, np.uint8)
    parameters = MAP + ", .param .u64 other, .param .u64 scratch"
    r = run(body, out, TensorMap(a, box=(4, 16)), b, scratch, parameters=parameters)
    assert r.completed
    assert [str(f) for f in r.findings] == []
    assert (out.view(np.uint32).reshape(4, 16) == b[50:54, 40:56]).all()


def test_gather4(run: Any) -> None:
    a = np.arange(64 * 64, dtype=np.uint16).reshape(64, 64)
    body = loading(2, [16, 3, 60, 7, 99], 4 * 32, "tile::gather4")
    out = np.zeros(128, np.uint8)
    r = run(body, out, TensorMap(a, box=(1, 16)), parameters=MAP, target="sm_100a")
    assert r.completed
    got = out.view(np.uint16).reshape(4, 16)
    assert (got == np.stack([a[3, 16:32], a[60, 16:32], a[7, 16:32], np.zeros(16, np.uint16)])).all()


def test_a_tensor_may_reach_beyond_its_array_where_no_box_does(run: Any) -> None:
    """Maps of sequences one behind the other, as CUTLASS and Triton make them, describe more than there is."""
    a = np.arange(64 * 64, dtype=np.uint16).reshape(64, 64)
    tall = np.lib.stride_tricks.as_strided(a, (1000, 64), (128, 2))
    tensor_map = TensorMap(tall, box=(16, 64), memory=a)
    assert (load(run, tensor_map, [0, 48], 2048).view(np.uint16).reshape(16, 64) == a[48:]).all()
    assert not load(run, tensor_map, [0, 1000], 2048).any()
    r = run(loading(2, [0, 49], 2048), np.zeros(2048, np.uint8), tensor_map, parameters=MAP)
    assert [(f.kind, f.severity) for f in r.findings] == [("out-of-bounds", "error")]
    start, _, end = r.findings[0].message.partition(" bytes from ")
    assert start == "the tensor map describes 128000"
    assert end.endswith(" on, and this box reaches beyond `the array of argument 1 (`map`)`")


def test_maps_of_the_wrong_rank_or_mode_are_named(run: Any) -> None:
    a = np.zeros((8, 8, 16), np.float16)
    r = run(loading(2, [0, 0], 256), np.zeros(256, np.uint8), TensorMap(a, box=(1, 8, 16)), parameters=MAP)
    assert [(f.kind, f.message) for f in r.findings] == [("out-of-bounds", "a 2d copy with a tensor map of rank 3")]
    pixels = TensorMap(a, channels=8, pixels=8, lower=(0,), upper=(0,))
    r = run(loading(3, [0, 0, 0], 256), np.zeros(256, np.uint8), pixels, parameters=MAP)
    assert [f.message for f in r.findings] == ["a copy in tile mode with a tensor map in im2col mode"]


def test_bytes_that_are_no_map_are_named(run: Any) -> None:
    r = run(loading(2, [0, 0], 256), np.zeros(256, np.uint8), b"\xff" * 128, parameters=MAP)
    assert "are no tensor map: word 2 is 0xffffffff" in r.findings[0].message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"box": (8, 300)}, r"^tensor map: box dimension 0 is 300; 1 to 256 are possible$"),
        ({"box": (8, 128), "swizzle": "128B"}, r"^tensor map: the box's innermost dimension has 256 bytes, more than the 128"),
        ({"box": (8, 4)}, r"^tensor map: the box's innermost dimension has 8 bytes; it must be a multiple of 16$"),
        ({"box": (8,)}, r"^tensor map: the box has 1 dimensions, the tensor 2$"),
        ({"box": (8, 8), "fill": "ones"}, r"^tensor map: no fill 'ones'; zero or nan$"),
        ({"box": (8, 8), "swizzle": "12B"}, r"^tensor map: no swizzle '12B'; known: none, 32B, 64B, 128B, "),
    ],
)
def test_what_the_driver_refuses_is_refused_with_a_reason(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        TensorMap(np.zeros((64, 256), np.float16), **options)


PAIRED = """ .shared .align 1024 .b8 buf[256]; .shared .align 8 .b64 bar;
 mov.u32 %r1, buf; mov.u32 %r2, bar; mov.u64 %rd1, map; cvta.param.u64 %rd1, %rd1;
 mov.u32 %r20, %cluster_ctarank; setp.ne.u32 %p1, %t, 0;
 @!%p1 mbarrier.init.shared::cta.b64 [%r2], 1;
 fence.mbarrier_init.release.cluster;
 barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
 @%p1 bra W;
{issue}
W: {skip}
V: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r2], 0;
 @!%p2 bra V;
E: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
 shl.b32 %r4, %t, 3; add.u32 %r5, %r1, %r4; mad.lo.u32 %r6, %r20, 256, %r4; cvt.u64.u32 %rd2, %r6; add.u64 %rd3, %out, %rd2;
 ld.shared.b64 %rd5, [%r5]; st.global.b64 [%rd3], %rd5;
 barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
"""
GROUPED = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"


@pytest.mark.parametrize("leader", [0, 1])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_pair_of_ctas_signals_one_barrier(run: Any, leader: int, seed: int) -> None:
    """Each CTA of a pair loads its own box; the leader alone expects the bytes of both and waits."""
    a, out = np.arange(16 * 16, dtype=np.uint16).reshape(16, 16), np.zeros((2, 256), np.uint8)
    issue = f""" setp.ne.u32 %p3, %r20, {leader};
 @!%p3 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 512;
 mapa.shared::cluster.u32 %r22, %r2, {leader}; shl.b32 %r23, %r20, 3;
 {GROUPED}.cta_group::2 [%r1], [%rd1, {{0, %r23}}], [%r22];"""
    body = PAIRED.format(issue=issue, skip=f"setp.ne.u32 %p3, %r20, {leader}; @%p3 bra E;")
    options = {"target": "sm_100a", "grid": 2, "cluster": (2, 1, 1), "schedule": "random", "seed": seed}
    r = run(body, out, TensorMap(a, box=(8, 16)), parameters=MAP, **options)
    assert r.completed, [str(f) for f in r.findings]
    assert [str(f) for f in r.findings] == []
    assert (out.view(np.uint16).reshape(16, 16) == a).all()


@pytest.mark.parametrize(("group", "rank", "waiting"), [
    (2, 0, {0: 512, 2: 256}), (2, 1, {1: 512, 3: 256}), (2, 2, {0: 512, 2: 256}), (1, 0, {0: 256, 1: 256, 3: 256}),
])  # fmt: skip
def test_a_multicast_signals_one_cta_of_each_pair(run: Any, group: int, rank: int, waiting: dict[int, int]) -> None:
    """CTA 0 sends a box to CTAs 0, 1 and 3 of four; the barrier it names lies in CTA `rank`."""
    a, out = np.arange(8 * 16, dtype=np.uint16).reshape(8, 16) + 1, np.zeros((4, 256), np.uint8)
    expects = "".join(
        f" setp.eq.u32 %p4, %r20, {r}; @%p4 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], {n};\n"
        for r, n in waiting.items()
    )
    issue = f"""{expects} setp.ne.u32 %p3, %r20, 0; mapa.shared::cluster.u32 %r22, %r2, {rank}; mov.b16 %h1, 11;
 @!%p3 {GROUPED}.multicast::cluster.cta_group::{group} [%r1], [%rd1, {{0, 0}}], [%r22], %h1;"""
    waits = "".join(f" setp.eq.u32 %p4, %r20, {r}; @%p4 bra V;\n" for r in waiting) + " bra E;"
    zero = """ shl.b32 %r4, %t, 3; add.u32 %r5, %r1, %r4; mov.b64 %rd5, 0; st.shared.b64 [%r5], %rd5;
 fence.proxy.async.shared::cta;
"""
    body = PAIRED.format(issue=issue, skip=waits).replace(" fence.mbarrier_init", zero + " fence.mbarrier_init")
    r = run(body, out, TensorMap(a, box=(8, 16)), parameters=MAP, target="sm_100a", grid=4, cluster=(4, 1, 1))
    assert r.completed, [str(f) for f in r.findings]
    assert [str(f) for f in r.findings] == []
    for cta, got in enumerate(out.view(np.uint16).reshape(4, 8, 16)):
        assert (got == (a if cta in (0, 1, 3) else 0)).all()


@pytest.mark.parametrize(("group", "rank"), [("", 1), (".cta_group::1", 1), (".cta_group::2", 2)])
def test_a_barrier_of_a_cta_that_is_no_peer_is_named(run: Any, group: str, rank: int) -> None:
    issue = f""" setp.ne.u32 %p3, %r20, 0; @%p3 bra W; mapa.shared::cluster.u32 %r22, %r2, {rank};
 {GROUPED}{group} [%r1], [%rd1, {{0, 0}}], [%r22];"""
    a, out = np.zeros((8, 16), np.uint16), np.zeros((4, 256), np.uint8)
    body = PAIRED.format(issue=issue, skip="bra E;")
    r = run(body, out, TensorMap(a, box=(8, 16)), parameters=MAP, target="sm_100a", grid=4, cluster=(4, 1, 1))
    assert (r.findings[0].kind, r.findings[0].message) == (
        "out-of-bounds", f"a tensor copy to CTA 0 of the cluster signals an mbarrier of CTA {rank}"
    )  # fmt: skip


def test_a_copy_to_its_own_cta_cannot_signal_a_mapped_barrier(run: Any) -> None:
    copy = GROUPED.replace("shared::cluster", "shared::cta")
    issue = f""" setp.ne.u32 %p3, %r20, 0; @%p3 bra W; mapa.shared::cluster.u32 %r22, %r2, 1;
 {copy}.cta_group::2 [%r1], [%rd1, {{0, 0}}], [%r22];"""
    a, out = np.zeros((8, 16), np.uint16), np.zeros((2, 256), np.uint8)
    body = PAIRED.format(issue=issue, skip="bra E;")
    r = run(body, out, TensorMap(a, box=(8, 16)), parameters=MAP, target="sm_100a", grid=2, cluster=(2, 1, 1))
    assert [(f.kind, f.message, f.repair) for f in r.findings] == [
        (
            "out-of-bounds",
            "a tensor copy to .shared::cta signals an mbarrier by a cluster address; such copies signal their own CTA only",
            "Write .shared::cluster as destination: the barrier may then lie in the peer with .cta_group::2.",
        )
    ]


@pytest.mark.parametrize(("mode", "pixels", "count"), [("im2col::w", 40, 40), ("im2col::w::128", 16, 128)])
@pytest.mark.parametrize(("start", "offset", "step"), [((3, 2), 0, 1), ((-1, 0), 0, 1), ((-3, 5), 2, 2), ((4, 1), 1, 3)])
def test_im2col_w_walks_along_w_and_the_images(
    run: Any, mode: str, pixels: int, count: int, start: tuple[int, int], offset: int, step: int
) -> None:
    """H stays; past the upper corner the walk goes on at the lower corner of the next image."""
    n, h, w, c = 30, 6, 9, 16
    a = np.random.default_rng(1).integers(0, 99, (n, h, w, c)).astype(np.float16)
    corners = {"lower": (-1,), "upper": (-1,), "element_strides": (1, 1, step, 1)}
    tensor_map = TensorMap(a, channels=16, pixels=pixels, swizzle="32B", mode="im2col_w", **corners)
    got = load(
        run, tensor_map, [0, *start, 1], count * 32, mode=mode, offsets=f", {{0, {offset}}}", target="sm_100a"
    )  # fmt: skip
    first, *rest = (list(range(at, w - 1, step)) for at in (start[0], *[-1] * n))
    walk = [(1, x) for x in first] + [(2 + i, x) for i, xs in enumerate(rest) for x in xs]
    want = np.zeros((count, c), np.float16)
    for k, (image, x) in enumerate(walk[:count]):
        if image < n and 0 <= x + offset < w:
            want[k] = a[image, start[1], x + offset]
    assert (unswizzled(got, "32B").view(np.float16).reshape(count, c) == want).all()


@pytest.mark.parametrize(("start", "offsets", "message"), [
    (0, "{2, 0}", r"tensor copies in im2col::w mode with a halo \(wHalo = 2\) are not modelled$"),
    (0, "{0, 32}", r"wOffset = 32 is not modelled; use 0 to 31$"),
    (9, "{0, 0}", r"that starts right of its bounding box is not modelled$"),
])  # fmt: skip
def test_im2col_w_copies_that_the_manual_leaves_open_are_refused(run: Any, start: int, offsets: str, message: str) -> None:
    a = np.zeros((2, 4, 9, 16), np.float16)
    tensor_map = TensorMap(a, channels=16, pixels=8, swizzle="32B", mode="im2col_w", lower=(0,), upper=(0,))
    with pytest.raises(CapabilityError, match=message):
        load(run, tensor_map, [0, start, 0, 0], 256, mode="im2col::w", offsets=f", {offsets}", target="sm_100a")


def test_an_im2col_w_copy_needs_a_swizzle(run: Any) -> None:
    a = np.zeros((2, 4, 9, 16), np.float16)
    tensor_map = TensorMap(a, channels=16, pixels=8, mode="im2col_w", lower=(0,), upper=(0,))
    body = loading(4, [0, 0, 0, 0], 256, "im2col::w", ", {0, 0}")
    r = run(body, np.zeros(256, np.uint8), tensor_map, parameters=MAP, target="sm_100a")
    assert r.findings[0].message == "a copy in im2col::w mode with a tensor map of swizzle none, which this mode has not"
