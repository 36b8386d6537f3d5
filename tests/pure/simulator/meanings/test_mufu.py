"""The multi-function unit: within the manual's error bounds everywhere, exact at the points hardware gave."""

import numpy as np
import pytest

from warpsmith.simulator.meanings import mufu
from warpsmith.simulator.meanings.approx import FUNCTIONS, unary
from warpsmith.simulator.meanings.arithmetic import build_form
from warpsmith.simulator.meanings.forms import Form


def f32(*bits):
    return np.array(bits, np.uint32).view(np.float32)


# bit patterns an H200 gave (driver 580.159.04), operand and result
HARDWARE = {
    ("ex2", True): [(0x3F3FFFFE, 0x3FD744FC), (0x3F400000, 0x3FD744FD), (0xC2FC0001, 0x0), (0x42C88000, 0x719837F1)],
    ("ex2", False): [(0xC2FC0001, 0x7FFFD3), (0xC315FFFF, 0x1)],
    ("lg2", True): [(0x1, 0xFF800000), (0x807FFFFF, 0xFF800000)],
    ("lg2", False): [(0x1, 0xC3150000), (0x7FFFFF, 0xC2FC0000), (0x80000001, 0x7FFFFFFF)],
    ("rcp", True): [(0x200001, 0x7F800000), (0x7E800001, 0x0)],
    ("rcp", False): [(0x200001, 0x7F7FFFF8), (0x7FFFFF, 0x7E800001), (0x7E800001, 0x7FFFFF), (0x7F7FFFFF, 0x200000)],
    ("rsqrt", True): [(0x1, 0x7F800000), (0x807FFFFF, 0xFF800000)],
    ("rsqrt", False): [(0x1, 0x64B504F2), (0x7FFFFF, 0x5F000000), (0x807FFFFF, 0x7FFFFFFF)],
    ("sqrt", True): [(0x1, 0x0), (0x80000001, 0x80000000)],
    ("sqrt", False): [(0x1, 0x1A3504F3), (0x7FFFFF, 0x1FFFFFFF), (0x807FFFFF, 0x7FFFFFFF)],
    ("sin", True): [(0x80000000, 0x80000000), (0x7F800000, 0x7FFFFFFF), (0x4B000000, 0x3F3504F3), (0x4F000000, 0x0)],
    ("cos", True): [(0x80000000, 0x3F800000), (0x7FC00000, 0x7FFFFFFF), (0x4B000000, 0xBF3504F2), (0x7F7FFFFF, 0x3F800000)],
}  # fmt: skip


@pytest.mark.parametrize(("name", "ftz"), HARDWARE, ids=lambda x: str(x))
def test_gives_what_the_gpu_gave(name, ftz):
    with np.errstate(all="ignore"):
        for operand, result in HARDWARE[name, ftz]:
            got = int(np.asarray(FUNCTIONS[name](f32(operand), ftz), np.float32).view(np.uint32)[0])
            assert (hex(operand), hex(got)) == (hex(operand), hex(result))


@pytest.mark.parametrize(("name", "whole"), [("sin", 0.0), ("cos", 1.0)])
def test_turns_are_taken_as_they_are(name: str, whole: float):
    """`.2pi` takes turns: what `sin.approx.ftz` of radians computes after its multiplication by 1/2π, rounded to zero."""
    turns = build_form(Form.parse(f"{name}.approx.ftz.2pi.f32"))
    radians = build_form(Form.parse(f"{name}.approx.ftz.f32"))
    x = np.random.default_rng(5).uniform(-40, 40, 4096).astype(np.float32)
    x[:4] = 0, 2.0**-130, 1, -3
    out, other = np.empty_like(x), np.empty_like(x)
    turns(out, x)
    assert np.abs(out - getattr(np, name)(2 * np.pi * x.astype(np.float64))).max() < 2**-18
    assert out[:4].tolist() == [whole] * 4
    y = np.arange(-64, 64, dtype=np.float32) / 8
    radians(other[:128], y)
    turns(out[:128], mufu.turns(y))
    assert out[:128].tobytes() == other[:128].tobytes()


def ulps(got, want):
    """Distance in units of the last place of the wanted value."""
    step = np.spacing(np.abs(want).astype(np.float32)).astype(np.float64)
    return np.abs(got.astype(np.float64) - want) / step


@pytest.mark.parametrize(
    ("name", "exact", "low", "high", "bound"),
    [
        ("ex2", np.exp2, -126, 127.9, 2.5),
        ("rcp", lambda x: 1 / x, 1e-37, 8e37, 1.5),
        ("rsqrt", lambda x: x**-0.5, 1e-37, 3e38, 2.5),
        ("sqrt", np.sqrt, 1e-37, 3e38, 1.5),
        ("tanh", np.tanh, 2.0**-20, 20, 140),
    ],
)
def test_is_within_the_manuals_bound(name, exact, low, high, bound):
    rng = np.random.default_rng(5)
    x = np.exp(rng.uniform(np.log(abs(low)), np.log(high), 200_000)).astype(np.float32)
    if low < 0:
        x = np.concatenate([rng.uniform(low, high, 200_000).astype(np.float32), np.float32([low, -0.0])])
    assert ulps(FUNCTIONS[name](x, True), exact(x.astype(np.float64))).max() <= bound


@pytest.mark.parametrize(("name", "exact"), [("sin", np.sin), ("cos", np.cos)])
def test_sine_and_cosine_within_2_to_the_minus_20(name, exact):
    x = np.random.default_rng(6).uniform(-3.2, 3.2, 200_000).astype(np.float32)
    assert np.abs(FUNCTIONS[name](x, True).astype(np.float64) - exact(x.astype(np.float64))).max() <= 2.0**-20.5


def test_logarithm_within_2_to_the_minus_22():
    x = np.random.default_rng(7).uniform(0.5, 2, 200_000).astype(np.float32)
    assert np.abs(FUNCTIONS["lg2"](x, True).astype(np.float64) - np.log2(x.astype(np.float64))).max() <= 2.0**-22
    x = np.exp(np.random.default_rng(8).uniform(-80, 80, 200_000)).astype(np.float32)
    want = np.log2(x.astype(np.float64))
    assert ulps(FUNCTIONS["lg2"](x, True), want)[np.abs(want) > 2].max() <= 2


def test_integers_are_exact_powers():
    n = np.arange(-126, 128)
    assert (mufu.ex2(n.astype(np.float32)) == 2.0**n).all()
    up = n[n >= 0]  # below one the unit truncates, and not every power is exact
    assert (mufu.lg2((2.0**up).astype(np.float32)) == up).all()


def test_tanh_is_the_operand_when_small_and_one_when_large():
    x = f32(0x1, 0x3B7FFFFF, 0x41000000, 0xC1000000, 0x7F800000, 0xFF800000)
    assert mufu.tanh(x).view(np.uint32).tolist() == [0x1, 0x3B7FFFFF, 0x3F800000, 0xBF800000, 0x3F800000, 0xBF800000]


SEEDS = [  # operation, operand, what an H200 gave
    ("rcp.approx.ftz.f64", 0x405F76B90A0200CE, 0x3F8045CF00000000),
    ("rcp.approx.ftz.f64", 0x97D9DBBFA18695A4, 0xE803CCD700000000),
    ("rsqrt.approx.ftz.f64", 0x5EDF7238B4A760D4, 0x3076D36800000000),
    ("rsqrt.approx.ftz.f64", 0x3FCC378E31704DF1, 0x400109F000000000),
    ("rsqrt.approx.f64", 0x3FEFFFFFFFFFFFFF, 0x3FF0000000000000),
    ("rsqrt.approx.f64", 0x05F89C762FEBE7E1, 0x5CE9CD2A790BBEE9),
    ("rsqrt.approx.f64", 0x3FB797C400000000, 0x400A5A35D5770141),
    ("rsqrt.approx.f64", 0xC000000000000000, 0xFFF8000000000000),
]


@pytest.mark.parametrize(("operation", "operand", "result"), SEEDS)
def test_functions_of_doubles_give_what_the_gpu_gave(operation, operand, result):
    out = np.empty(1)
    with np.errstate(all="ignore"):
        unary(Form.parse(operation))(out, np.array([operand], np.uint64).view(np.float64))
    assert int(out.view(np.uint64)[0]) == result


def test_ex2_of_ordinary_operands_is_that_of_any() -> None:
    """The short way, in 32 bits, against the long one: around integers, zero, ±126, among operands that need the long way."""
    integers = np.arange(-130, 131, dtype=np.float32)
    bits = np.random.default_rng(3).integers(0, 1 << 32, 200_000, dtype=np.uint32)
    near = [np.nextafter(integers, np.float32(side)) for side in (-1000, 1000)]
    special = np.array([0, -0.0, 1e-45, -1e-45, 1e-38, -1e-38, np.inf, -np.inf, np.nan], np.float32)
    uniform = np.random.default_rng(4).uniform(-130, 130, 200_000).astype(np.float32)
    x = np.concatenate([integers, *near, special, bits.view(np.float32), uniform])
    with np.errstate(all="ignore"):
        assert (mufu.ex2(x).view(np.uint32) == mufu._ex2_any(x).view(np.uint32)).all()
        ordinary = x[np.abs(x) < 126]
        assert (mufu.ex2(ordinary).view(np.uint32) == mufu._ex2_any(ordinary).view(np.uint32)).all()
        assert (mufu.ex2(integers[4:-4]) == 2.0 ** integers[4:-4].astype(np.float64)).all()
