"""Values of the wrong kind given to the kernel language and to what stands beside it; each message in full."""

# ruff: noqa: E501 (messages stand in one line each)

from collections.abc import Callable

import numpy as np
import pytest

import warpsmith as ws
from warpsmith import Tile, kernel, ptx, reg
from warpsmith.base.errors import WarpsmithError
from warpsmith.types import f32, u32

TILES = {"in_specs": (Tile(64, f32),), "out_specs": (Tile(64, f32),), "grid": (1, 1, 1), "block": (64, 1, 1)}
M = np.zeros((64, 64), np.float16)
A = np.zeros(64, np.float32)


@kernel(**TILES)
def nothing(x, y):
    pass


def decorated(**options: object) -> Callable[[], object]:
    return lambda: kernel(**TILES, **options)(lambda x, y: None)


CALLS = {
    "arch": (decorated(arch=None), 'kernel: arch is a name such as "sm_90a", not None'),
    "version": (decorated(version="8.0"), "kernel: version is a pair such as (8, 0), not '8.0'"),
    "raw": (decorated(raw_params=5), "kernel: raw_params is a list of pairs, not 5"),
    "device": (lambda: ws.device(5), "5 is no device; give a name such as \"H200\""),
    "Device": (lambda: ws.Device(None), "None is no device; give a name such as \"H200\""),
    "path": (lambda: ws.ptx.parse("a\0b"), "'a\\x00b': the name of a file has no zero characters"),
    "box": (lambda: ws.TensorMap(M, box=5), "tensor map: box=5: give ints, one for each dimension, e.g. box=(64, 64)"),
    "boxes": (lambda: ws.TensorMap(M, box=("a", 1)), "tensor map: box=('a', 1): give ints, one for each dimension, e.g. box=(64, 64)"),
    "strides": (lambda: ws.TensorMap(M, box=(8, 8), element_strides=5), "tensor map: element_strides=5: give ints, one for each dimension, e.g. element_strides=(64, 64)"),
    "progress": (lambda: nothing.simulate(A, progress=5), "progress=5: give a function of (CTAs ended, CTAs of the grid)"),
    "schedules": (lambda: ws.testing.assert_clean(nothing, A, schedules=-1), "schedules=-1: give how many schedules besides the fair one to try"),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_calls(name: str) -> None:
    run, message = CALLS[name]
    with pytest.raises(WarpsmithError) as caught:
        run()
    assert str(caught.value) == message


def test_an_array_of_a_billion_registers() -> None:
    @kernel(**TILES)
    def many(x, y):
        reg.array(f32, 10**9)

    with pytest.raises(WarpsmithError) as caught:
        many.ptx()
    assert "a register array of 1,000,000,000 registers; 65,536 is the most" in str(caught.value)


def test_template_values_that_look_alike_are_traced_apart() -> None:
    @kernel(**TILES)
    def look(x, y, *, n):
        value = int(n[1500]) if isinstance(n, np.ndarray) else {bool: 1, int: 2, float: 3, list: 4, tuple: 5}[type(n)]
        ptx.inst.mov.b32(reg.scalar(u32), value)

    table = np.zeros(3000, int)
    other = table.copy()
    other[1500] = 9
    texts = [look.ptx(n=n, loc=False) for n in (True, 1, 1.0, [1], (1,), table, other)]
    assert len(set(texts)) == 7
    assert look.ptx(n=True, loc=False) == texts[0]
