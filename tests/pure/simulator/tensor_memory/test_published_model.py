"""Products as the published model of Blackwell's tensor cores computes them, bit for bit (tests/data/mmasim)."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from warpsmith.simulator.block_scaled import Scaled, scaled_product
from warpsmith.simulator.counters import Counters
from warpsmith.simulator.fidelity import Fidelity
from warpsmith.simulator.multiply import multiply
from warpsmith.simulator.operand_values import values
from warpsmith.simulator.scale_factors import byte_values

DATA = np.load(Path(__file__).parents[3] / "data" / "mmasim" / "tcgen05.npz")
FORMS = sorted({key.rpartition("/")[0] for key in DATA.files})


def machine() -> Any:
    return SimpleNamespace(
        numerics="exact", counters=Counters(), fidelity=Fidelity(), device=SimpleNamespace(arch="sm_100")
    )  # fmt: skip


def same(got: np.ndarray, want: np.ndarray) -> None:
    """The bits agree; any NaN counts as the model's."""
    nan = np.isnan(want.view({2: np.float16, 4: np.float32}[want.itemsize]))
    assert np.array_equal(got[~nan], want[~nan])
    assert np.isnan(got.view({2: np.float16, 4: np.float32}[got.itemsize])[nan]).all()


@pytest.mark.parametrize("form", [f for f in FORMS if "::mx" not in f])
def test_dense(form: str) -> None:
    _, _, d, a, b = form.split(".")
    left, right, c, want = (DATA[f"{form}/{key}"] for key in "abcd")
    third = c.view(np.float16).astype(np.float32) if d == "f16" else c.view(np.float32)
    got = multiply(machine(), values(left, a)[None], values(right, b).T[None], third[None], (d, a, b, d))[0]
    same(got.astype(np.float16).view(np.uint16) if d == "f16" else got.view(np.uint32), want)


@pytest.mark.parametrize("form", [f for f in FORMS if "::mx" in f])
def test_block_scaled(form: str) -> None:
    _, kind, _, _, a, b, factor = form.split(".")
    left, right, c, want, sa, sb = (DATA[f"{form}/{key}"] for key in ("a", "b", "c", "d", "sa", "sb"))
    packed = "f4" in kind and "f8" not in kind
    shift = 2 if packed else 0
    table = byte_values(factor)
    got = scaled_product(
        machine(), values(left << shift, a)[None], np.ascontiguousarray(values(right << shift, b).T)[None],
        c.view(np.float32)[None], table[sa][None], table[sb][None], Scaled(a, b, factor, packed),
    )[0]  # fmt: skip
    same(got.view(np.uint32), want)


def test_the_data_cover_what_they_should() -> None:
    assert len(FORMS) == 13
    results = DATA["m64n8k16.kind::f16.f32.f16.f16/d"].view(np.float32)
    assert np.isnan(results).any()  # rows of random bits bring infinities and NaNs
    assert np.isfinite(results).any()
