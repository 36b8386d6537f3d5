"""Sums by the published model of tensor cores (MMA-Sim, PyPI `mmasim`) on adversarial operands, kept as data for the tests.

    PYTHONPATH=src:tests/support python tests/support/published_models.py tests/captured/data/published-models.npz

writes the data; it needs torch and mmasim 2.1.1. Operands come from `warpsmith.hardware.tensor_values`: only hashes of results
and the first of them are kept.
"""

import importlib
import re
import sys
from typing import Any

import numpy as np

from warpsmith.hardware.scalar_store import block_hashes
from warpsmith.hardware.tensor_values import REGIMES, SUMS, codes, sums
from warpsmith.simulator.operand_values import values
from warpsmith.simulator.tensorcore import exact, rule_for

ARCHITECTURES = {75: "Turing", 80: "Ampere", 89: "Ada Lovelace", 100: "Blackwell", 120: "RTX Blackwell"}
ROWS, COLUMNS = 128, 64
HEAD = 64
_16 = ("m16n8k16.f32.f16.f16.f32", "m16n8k16.f16.f16.f16.f16", "m16n8k16.f32.bf16.bf16.f32", "m16n8k8.f32.bf16.bf16.f32")
_8 = ("m16n8k8.f32.f16.f16.f32", "m16n8k8.f16.f16.f16.f16")
_TF32 = ("m16n8k8.f32.tf32.tf32.f32", "m16n8k4.f32.tf32.tf32.f32")
_BYTES = tuple(
    f"m16n8k{k}.{d}.{a}.{b}.{d}" for k in (16, 32) for d in ("f32", "f16") for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2")
)
SHAPES = {
    75: _8,
    80: (*_16, *_8, *_TF32),
    89: (*_16, *_8, *_TF32, *_BYTES),
    100: (*_16, *_8, *_TF32),
    120: (*_16, *_8, *_TF32, *_BYTES),
}
"""Capability -> shapes and types."""


def cases() -> list[tuple[int, str]]:
    return [(capability, shape) for capability, shapes in SHAPES.items() for shape in shapes]


def _dtype(type_: str) -> str:
    return {"f16": "u2", "bf16": "u2", "e4m3": "u1", "e5m2": "u1"}.get(type_, "u4")


def operands(shape: str, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes of A `[128, k]`, B `[k, 64]`, C `[128, 64]`; half of the rows of A cancel in the second half of k."""
    size, _, a, b, c = shape.split(".")
    k = int(re.findall(r"k(\d+)", size)[0])
    left = np.arange(ROWS * k, dtype=np.uint64).reshape(ROWS, k)
    right = np.arange(COLUMNS * k, dtype=np.uint64).reshape(COLUMNS, k)
    third = np.arange(ROWS * COLUMNS, dtype=np.uint64).reshape(ROWS, COLUMNS)
    row, column = np.arange(ROWS)[:, None], np.arange(COLUMNS)[:, None]
    A = codes(a, left, np.broadcast_to(row % REGIMES, left.shape), 9000 + 4 * number)
    B = codes(b, right, np.broadcast_to(column % REGIMES, right.shape), 9001 + 4 * number)
    C = sums(c, third, np.broadcast_to((row // REGIMES + column.T // REGIMES) % SUMS, third.shape), 9002 + 4 * number)
    half, sign = k // 2, np.uint64(1 << {"f16": 15, "bf16": 15, "e4m3": 7, "e5m2": 7}.get(a, 31))
    A[ROWS // 2 :, half:] = A[ROWS // 2 :, :half] ^ sign
    B[COLUMNS // 2 :, half:] = B[COLUMNS // 2 :, :half]
    return A.astype(_dtype(a)), B.T.astype(_dtype(b)), C.astype(_dtype(c))


def ours(capability: int, shape: str, number: int) -> np.ndarray:
    """Bits of the simulator's sums."""
    _, d, a, b, c = shape.split(".")
    A, B, C = operands(shape, number)
    third = C.view(np.float32) if c == "f32" else values(C, c)
    with np.errstate(all="ignore"):
        result = exact(values(A, a), values(np.ascontiguousarray(B), b), third, rule_for(capability, a, b, d, c))
        if d != "f16":
            return result.view(np.uint32)
        half = result.astype(np.float16).view(np.uint16)
    return np.where(np.isnan(result), np.uint16(0x7FFF), half)


def published(capability: int, shape: str, number: int) -> np.ndarray:
    """Bits of the published model's sums."""
    torch, sim = importlib.import_module("torch"), importlib.import_module("mmasim.nv_ptx.sim")
    size, d, a, b, c = shape.split(".")
    name = ARCHITECTURES[capability]
    kind = f"{size}.kind::f8f6f4.{d}.{a}.{b}.{c}" if capability == 120 and "k32" in size and a[0] == "e" else shape
    model = sim.MMA(name, kind)
    types: dict[str, Any] = {
        "f16": (np.int16, torch.float16), "bf16": (np.int16, torch.bfloat16), "tf32": (np.int32, torch.float32),
        "f32": (np.int32, torch.float32), "e4m3": (np.uint8, torch.float8_e4m3fn), "e5m2": (np.uint8, torch.float8_e5m2),
    }  # fmt: skip

    def tensor(x: np.ndarray, type_: str) -> Any:
        return torch.from_numpy(np.ascontiguousarray(x).view(types[type_][0]).copy()).view(types[type_][1])

    A, B, C = operands(shape, number)
    out = model(tensor(A, a), tensor(B, b), tensor(C, c))
    return out.view(torch.int16 if d == "f16" else torch.int32).numpy().view("u2" if d == "f16" else "u4")


def main(path: str) -> None:
    kept: dict[str, np.ndarray] = {}
    for number, (capability, shape) in enumerate(cases()):
        theirs, mine = published(capability, shape, number), ours(capability, shape, number)
        kept[f"{capability}/{shape}"] = theirs.reshape(-1)[:HEAD]
        kept[f"{capability}/{shape}#"] = block_hashes(theirs.reshape(-1))
        sys.stdout.write(f"sm_{capability} {shape}: {int((theirs != mine).sum())} of {theirs.size} differ\n")
        sys.stdout.flush()
    np.savez_compressed(path, **kept)  # type: ignore[arg-type]


if __name__ == "__main__":
    main(sys.argv[1])
