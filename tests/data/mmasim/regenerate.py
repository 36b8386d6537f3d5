"""Write tcgen05.npz: operands and results of the published model of Blackwell's tensor cores (MMA-Sim, arXiv 2511.10909).

Needs torch and `pip install mmasim` (2.1.1). Run: `python tests/data/mmasim/regenerate.py`. For each form the file holds the
bits of A `[m, k]`, B `[n, k]`, C and D `[m, n]`, and of scale factors `[m or n, s]`. Four-bit elements of `mxf4` and `mxf4nvf4`
have a byte each here.
"""

from pathlib import Path

import numpy as np
import torch
from mmasim.nv_ptx.sim import TCGen05MMA, TCGen05MMABlockScale

rng = np.random.default_rng(2026)
BITS = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "e2m3": 8, "e3m2": 8, "e2m1": 8}
DENSE = [
    "m64n8k16.kind::f16.f32.f16.f16", "m64n8k16.kind::f16.f16.f16.f16", "m64n8k16.kind::f16.f32.bf16.bf16",
    "m64n8k8.kind::tf32.f32.tf32.tf32", "m64n8k32.kind::f8f6f4.f32.e4m3.e5m2", "m64n8k32.kind::f8f6f4.f16.e5m2.e5m2",
    "m64n8k32.kind::f8f6f4.f32.e2m3.e3m2", "m64n8k32.kind::f8f6f4.f32.e2m1.e4m3",
]  # fmt: skip
SCALED = [
    "m128n8k32.kind::mxf8f6f4.block32.f32.e4m3.e5m2.ue8m0", "m128n8k32.kind::mxf8f6f4.block32.f32.e3m2.e2m1.ue8m0",
    "m128n8k64.kind::mxf4.block32.f32.e2m1.e2m1.ue8m0", "m128n8k64.kind::mxf4nvf4.block16.f32.e2m1.e2m1.ue8m0",
    "m128n8k64.kind::mxf4nvf4.block16.f32.e2m1.e2m1.ue4m3",
]  # fmt: skip


def elements(type_: str, shape: tuple[int, int]) -> np.ndarray:
    """Bits of elements: random ones, with a row of extreme and a row of special values."""
    if type_ in ("e2m3", "e3m2"):
        return rng.integers(0, 64, shape).astype(np.uint8)
    if type_ == "e2m1":
        return (rng.integers(0, 16, shape) << 2).astype(np.uint8)
    dtype = f"u{BITS[type_] // 8}"
    wild = rng.integers(0, 1 << BITS[type_], shape, dtype=np.uint64).astype(dtype)
    tame = torch.from_numpy(rng.standard_normal(shape).astype(np.float32))
    torch_type = {"f16": torch.float16, "bf16": torch.bfloat16, "e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}
    narrow = tame if type_ == "tf32" else tame.to(torch_type[type_])
    out = narrow.contiguous().view({8: torch.uint8, 16: torch.int16, 32: torch.int32}[BITS[type_]]).numpy().view(dtype).copy()
    out[1::4] = wild[1::4]
    out[2::8, ::3] = 0
    return out


def typed(bits: np.ndarray, dtype: torch.dtype) -> torch.Tensor:
    """The tensor of a type with these bits."""
    return torch.from_numpy(bits.view(f"i{bits.itemsize}" if bits.itemsize > 1 else "u1").copy()).view(dtype)


def accumulators(dtype: torch.dtype, shape: tuple[int, int]) -> np.ndarray:
    """Bits of C, some of them zero, large or tiny."""
    c = rng.standard_normal(shape) * 10.0 ** rng.integers(-6, 6, shape)
    c[rng.random(shape) < 0.2] = 0
    t = torch.from_numpy(c.astype(np.float32)).to(dtype)
    return t.view(torch.int16 if dtype == torch.float16 else torch.int32).numpy().view("u2" if dtype == torch.float16 else "u4")


def main() -> None:
    """Compute all forms."""
    out: dict[str, np.ndarray] = {}
    for name in DENSE:
        op = TCGen05MMA("Blackwell", name)
        a, b = elements(op.a_type_ptx, (op.m, op.k)), elements(op.b_type_ptx, (op.n, op.k))
        c = accumulators(op.c_type, (op.m, op.n))
        d = op(typed(a, op.a_type), typed(b, op.b_type).T, typed(c, op.c_type))
        result = d.view(torch.int16 if d.dtype == torch.float16 else torch.int32).numpy().view(c.dtype)
        out |= {f"{name}/{key}": value for key, value in (("a", a), ("b", b), ("c", c), ("d", result))}
    for name in SCALED:
        op = TCGen05MMABlockScale("Blackwell", name)
        a, b = elements(op.a_type_ptx, (op.m, op.k)), elements(op.b_type_ptx, (op.n, op.k))
        count = op.k // op.block_size
        low, high = (100, 150) if op.s_type == torch.float8_e8m0fnu else (0, 127)
        sa, sb = (rng.integers(low, high, (rows, count)).astype(np.uint8) for rows in (op.m, op.n))
        c = accumulators(torch.float32, (op.m, op.n))
        left, right = a, b
        if op.packing == 2:  # the model packs the first of two in the upper half
            a, b = a >> 2, b >> 2
            left, right = (x[:, ::2] << 4 | x[:, 1::2] for x in (a, b))
        d = op(
            typed(left, op.a_type), typed(right, op.b_type).T, typed(c, torch.float32), typed(sa, op.s_type),
            typed(sb, op.s_type).T,
        )  # fmt: skip
        result = d.view(torch.int32).numpy().view(np.uint32)
        out |= {f"{name}/{k}": v for k, v in (("a", a), ("b", b), ("c", c), ("sa", sa), ("sb", sb), ("d", result))}
    np.savez_compressed(Path(__file__).with_name("tcgen05.npz"), **out)


if __name__ == "__main__":
    main()
