"""tcgen05.ld and st: which lane and column a register means, packing, reductions, waits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

# (shape, registers a repetition, words of a lane a repetition)
SHAPES = {"32x32b": (1, 1), "16x64b": (1, 2), "16x128b": (2, 4), "16x256b": (4, 8)}


def expected(shape: str, registers: int) -> tuple[np.ndarray, np.ndarray]:
    """Lane and column of each register `[register, 32]`, thread by thread, from figures 183 to 186."""
    lane, column = np.zeros((registers, 32), int), np.zeros((registers, 32), int)
    for i in range(registers):
        for t in range(32):
            if shape == "32x32b":
                lane[i, t], column[i, t] = t, i
            elif shape == "16x64b":  # threads 0 and 2 share lane 0; 1 and 3 lane 8; 4 and 6 lane 1
                lane[i, t] = (t >> 2) + (8 if t & 1 else 0)
                column[i, t] = 2 * i + (t >> 1 & 1)
            elif shape == "16x128b":  # four threads a lane; the odd register is 8 lanes further down
                lane[i, t], column[i, t] = (t >> 2) + (8 if i & 1 else 0), (i >> 1) * 4 + (t & 3)
            else:  # the accumulator of mma.m16n8
                lane[i, t] = (t >> 2) + (8 if i & 2 else 0)
                column[i, t] = (i >> 2) * 8 + 2 * (t & 3) + (i & 1)
    return lane, column


def vector(count: int, first: int = 0) -> str:
    return "{" + ", ".join(f"%r{first + i}" for i in range(count)) + "}"


def numbered(columns: int) -> str:
    """Store lane·1000 + column in the first columns of every lane."""
    text = " mul.lo.u32 %r310, %t, 1000;\n"
    text += "".join(f" add.u32 %r{i}, %r310, {i};\n" for i in range(columns))
    return (
        text + f" tcgen05.st.sync.aligned.32x32b.x{columns}.b32 [%mine], {vector(columns)};\n tcgen05.wait::st.sync.aligned;\n"
    )


def stored(count: int) -> str:
    return "".join(f" st.global.b32 [%out+{512 * i}], %r{i};\n" for i in range(count))


@pytest.mark.parametrize("half", [0, 16])
@pytest.mark.parametrize("repetitions", [1, 4, 8])
@pytest.mark.parametrize("shape", SHAPES)
def test_loads(run: Any, shape: str, repetitions: int, half: int) -> None:
    per, width = SHAPES[shape]
    if shape == "32x32b" and half:
        half = 0
    n = per * repetitions
    middle = numbered(128) + f" add.u32 %r311, %mine, {half << 16 | 3};\n"
    middle += f" tcgen05.ld.sync.aligned.{shape}.x{repetitions}.b32 {vector(n)}, [%r311];\n tcgen05.wait::ld.sync.aligned;\n"
    out = np.zeros((n, 128), np.uint32)
    r = run(middle + stored(n), out)
    assert r.completed
    assert not r.findings, str(r)
    lane, column = expected(shape, n)
    assert column.max() == width * repetitions - 1
    for w in range(4):
        assert np.array_equal(out[:, 32 * w : 32 * w + 32], (lane + 32 * w + half) * 1000 + column + 3)


@pytest.mark.parametrize("shape", ["16x64b", "16x128b", "16x256b", "16x32bx2"])
def test_stores_are_the_mirror_image(run: Any, shape: str) -> None:
    split = ", 40" if shape == "16x32bx2" else ""
    n = {"16x32bx2": 1}.get(shape) or SHAPES[shape][0]
    middle = " mul.lo.u32 %r310, %t, 1000;\n" + "".join(f" add.u32 %r{i}, %r310, {i};\n" for i in range(2 * n))
    middle += f" tcgen05.st.sync.aligned.{shape}.x2.b32 [%mine]{split}, {vector(2 * n)};\n tcgen05.wait::st.sync.aligned;\n"
    middle += "".join(f" mov.b32 %r{i}, 0;\n" for i in range(2 * n))
    middle += f" tcgen05.ld.sync.aligned.{shape}.x2.b32 {vector(2 * n)}, [%mine]{split};\n tcgen05.wait::ld.sync.aligned;\n"
    out = np.zeros((2 * n, 128), np.uint32)
    r = run(middle + stored(2 * n), out)
    assert not r.findings, str(r)
    assert np.array_equal(out, np.arange(128) * 1000 + np.arange(2 * n)[:, None])


def test_split_loads_read_two_ranges_of_columns(run: Any) -> None:
    middle = (
        numbered(64) + f" tcgen05.ld.sync.aligned.16x32bx2.x4.b32 {vector(4)}, [%mine], 32;\n tcgen05.wait::ld.sync.aligned;\n"
    )
    out = np.zeros((4, 128), np.uint32)
    assert not run(middle + stored(4), out).findings
    t = np.arange(128)
    assert np.array_equal(out, (t // 32 * 32 + t % 16) * 1000 + np.arange(4)[:, None] + 32 * (t % 32 // 16))


def test_packing_takes_the_low_halves_of_neighbouring_columns(run: Any) -> None:
    middle = (
        numbered(8)
        + f" tcgen05.ld.sync.aligned.32x32b.x4.pack::16b.b32 {vector(4)}, [%mine];\n tcgen05.wait::ld.sync.aligned;\n"
    )
    out = np.zeros((4, 128), np.uint32)
    assert not run(middle + stored(4), out).findings
    word = lambda c: np.arange(128) * 1000 + c & 0xFFFF  # noqa: E731
    assert np.array_equal(out, [word(2 * i) | word(2 * i + 1) << 16 for i in range(4)])


def test_unpacking_spreads_halves_over_columns(run: Any) -> None:
    middle = "".join(f" add.u32 %r{i}, %t, {0x1234_0000 + 0x1_0001 * i};\n" for i in range(2))
    middle += f" tcgen05.st.sync.aligned.32x32b.x2.unpack::16b.b32 [%mine], {vector(2)};\n tcgen05.wait::st.sync.aligned;\n"
    middle += f" tcgen05.ld.sync.aligned.32x32b.x4.b32 {vector(4)}, [%mine];\n tcgen05.wait::ld.sync.aligned;\n"
    out = np.zeros((4, 128), np.uint32)
    assert not run(middle + stored(4), out).findings
    t = np.arange(128)
    assert np.array_equal(out, [t, np.full(128, 0x1234), t + 1, np.full(128, 0x1235)])


@pytest.mark.parametrize("form", ["min.f32", "max.abs.f32", "max.NaN.f32", "min.u32", "max.s32"])
def test_reductions(run: Any, form: str) -> None:
    values = np.random.default_rng(5).standard_normal((4, 128)).astype(np.float32)
    values[1, 7], values[:, 9] = np.nan, np.nan
    image = np.zeros(98304, np.uint8)
    image[:2048] = values.view(np.uint8).reshape(-1)
    op, _, rest = form.partition(".")
    middle = " shl.b32 %r310, %t, 2; mov.u32 %r311, buf; add.u32 %r311, %r311, %r310;\n"
    middle += "".join(f" ld.shared.b32 %r{i}, [%r311+{512 * i}];\n" for i in range(4))
    middle += f" tcgen05.st.sync.aligned.32x32b.x4.b32 [%mine], {vector(4)};\n tcgen05.wait::st.sync.aligned;\n"
    middle += (
        f" tcgen05.ld.red.sync.aligned.32x32b.x4.{op}.{rest} {vector(4)}, %r4, [%mine];\n tcgen05.wait::ld.sync.aligned;\n"
    )
    out = np.zeros((5, 128), np.uint32)
    r = run(middle + stored(5), out, image, target="sm_103a")
    assert not r.findings, str(r)
    assert np.array_equal(out[:4], values.view(np.uint32))
    typed = values.view({"u32": np.uint32, "s32": np.int32}.get(form[-3:], np.float32))
    typed = np.abs(typed) if "abs" in form else typed
    if form.endswith("f32"):
        with np.errstate(all="ignore"):
            want = {"min": np.fmin, "max": np.fmax}[op].reduce(typed, axis=0)
        want[9] = np.nan
        if "NaN" in form:
            want[7] = np.nan
        got = out[4].view(np.float32)
        assert np.array_equal(got, want, equal_nan=True)
        assert out[4][9] == 0x7FFFFFFF
    else:
        assert np.array_equal(out[4], getattr(typed, op)(axis=0).view(np.uint32))


def test_cells_nobody_wrote_are_undefined(run: Any) -> None:
    middle = f" tcgen05.ld.sync.aligned.32x32b.x1.b32 {vector(1)}, [%mine];\n tcgen05.wait::ld.sync.aligned;\n"
    r = run(middle + stored(1), np.zeros((1, 128), np.uint32))
    assert [f.kind for f in r.findings] == ["uninitialised-read"]


@pytest.mark.parametrize("schedule", [{}, {"schedule": "random", "seed": 3}, {"schedule": "adversarial"}])
def test_a_store_is_visible_behind_its_wait(run: Any, schedule: dict[str, Any]) -> None:
    middle = numbered(4) + f" tcgen05.ld.sync.aligned.32x32b.x4.b32 {vector(4)}, [%mine];\n tcgen05.wait::ld.sync.aligned;\n"
    out = np.zeros((4, 128), np.uint32)
    assert not run(middle + stored(4), out, **schedule).findings
    assert np.array_equal(out, np.arange(128) * 1000 + np.arange(4)[:, None])
