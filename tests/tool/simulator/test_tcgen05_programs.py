"""ptxas takes the programs that the tests of tensor memory run (tests/pure/simulator/tensor_memory)."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tcgen05_program import module
from warpsmith.toolchain import compile_ptx

PURE = Path(__file__).parents[2] / "pure" / "simulator"


class Caught(BaseException):
    """Carries the text of a program in place of running it."""


def load(path: str) -> Any:
    spec = importlib.util.spec_from_file_location(path.replace("/", "_"), PURE / f"{path}.py")
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def run(middle: str, *_: Any, **options: Any) -> Any:
    raise Caught(module(middle, **{k: v for k, v in options.items() if k in ("columns", "group", "target", "head", "tail")}))


ACCESS, PRODUCTS, COPIES, SCALING, PAIRS, FAULTS, SPARSE = (
    load(f"tensor_memory/test_{name}")
    for name in ("access", "products", "copies", "block_scaling", "pairs", "faults", "sparse")
)
PROGRAMS: dict[str, Callable[[], Any]] = {
    **{f"ld {s} x{n}": lambda s=s, n=n: ACCESS.test_loads(run, s, n, 0) for s in ACCESS.SHAPES for n in (1, 8)},
    **{f"st {s}": lambda s=s: ACCESS.test_stores_are_the_mirror_image(run, s) for s in ("16x64b", "16x256b", "16x32bx2")},
    "pack": lambda: ACCESS.test_packing_takes_the_low_halves_of_neighbouring_columns(run),
    "unpack": lambda: ACCESS.test_unpacking_spreads_halves_over_columns(run),
    **{f"red {f}": lambda f=f: ACCESS.test_reductions(run, f) for f in ("min.f32", "max.abs.f32", "max.NaN.f32", "max.s32")},
    **{
        f"mma {a} {d}": lambda a=a, b=b, d=d: PRODUCTS.test_types(run, a, b, d, 0, 128)
        for a, b, d in (("f16", "f16", "f16"), ("tf32", "tf32", "f32"), ("e4m3", "e5m2", "f32"), ("s8", "u8", "s32"))
    },
    "mma from tensor memory": lambda: PRODUCTS.test_a_in_tensor_memory(run, "bf16", 128),
    "mma masked": lambda: PRODUCTS.test_masked_lanes_keep_their_values(run),
    "mma scaled D": lambda: PRODUCTS.test_accumulate_scaled_and_negated(run),
    "mma.sp": lambda: SPARSE.test_sparse_products(run, "f16", "f32", 1),
    "mma.ws": lambda: PRODUCTS.test_weight_stationary(run, 64),
    **{
        f"cp {f}": lambda f=f: COPIES.test_multicast(run, f, [])
        for f in ("32x128b.warpx4", "64x128b.warpx2::02_13", "64x128b.warpx2::01_23")
    },
    "cp 128x256b": lambda: COPIES.test_whole_lanes(run, "128x256b", 8, "128B"),
    "cp 4x256b": lambda: COPIES.test_one_lane_of_each_warp(run),
    "cp decompressed": lambda: COPIES.test_decompression(run, 6, "b6x16_p32"),
    "mxf8f6f4": lambda: SCALING.test_eight_bit_floats(run, 16, (0, 0)),
    "mxf4": lambda: SCALING.test_four_bit_floats(run, "kind::mxf4.block_scale", 2, 1, (0, 0)),
    "K = 96": lambda: SCALING.test_a_depth_of_96(run, "kind::mxf4nvf4.block_scale.block16", 6, (0, 2), 96),
    "mxf4nvf4": lambda: SCALING.test_four_bit_floats(run, "kind::mxf4nvf4.block_scale.scale_vec::4X", 4, 0, (0, 0)),
}
TEXTS = {
    "pair": lambda: module(PAIRS.middle(256, 32, 0, 0, 32), group=2, head=PAIRS.MEET, tail=PAIRS.MEET),
    "product": lambda: module(FAULTS.PRODUCT),
    "P in tensor memory": lambda: module(FAULTS.FROM_P),
    "mutation kernel": lambda: (PURE / "mutants" / "kernels" / "tensor.ptx").read_text(),
}


@pytest.mark.parametrize("name", [*PROGRAMS, *TEXTS])
def test_ptxas_takes_it(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPSMITH_CACHE_DIR", str(tmp_path))
    if name in TEXTS:
        text = TEXTS[name]()
    else:
        with pytest.raises(Caught) as caught:
            PROGRAMS[name]()
        text = str(caught.value)
    assert compile_ptx(text).cubin
