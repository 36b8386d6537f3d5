"""Replay sums of tensor cores, bit for bit.

`tensorcore.jsonl.gz` holds operands and results of MMA-Sim 2.1.1, whose models its authors compared bitwise with GPUs
from Volta to Blackwell: ordinary, wide, tiny, sparse and large values, and random bits with infinities and NaNs.
"""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from warpsmith.simulator.operand_values import WIDTH, values
from warpsmith.simulator.tensorcore import exact, rule_for

SAMPLES = Path(__file__).with_name("tensorcore.jsonl.gz")


def matrix(text: str, type_: str, shape: tuple[int, int]) -> np.ndarray:
    width = {"f32": 32, **WIDTH}[type_]
    bits = np.frombuffer(bytes.fromhex(text), f"<u{width // 8}").reshape(shape)
    return bits.view(np.float32) if type_ == "f32" else values(bits, type_)


def cases() -> list[dict[str, Any]]:
    with gzip.open(SAMPLES, "rt", encoding="ascii") as lines:
        return [json.loads(line) for line in lines][1:]


def wrong_elements(case: dict[str, Any]) -> int:
    shape, d, a, b, c = case["shape"].split(".")
    m, n, k = map(int, re.findall(r"\d+", shape))
    wgmma = case["kind"] == "wgmma"
    m = 16 if wgmma else m
    rule = rule_for(case["capability"], a, b, d, c, wgmma=wgmma, volta_shape=shape == "m8n8k4")
    left, right, third = matrix(case["a"], a, (m, k)), matrix(case["b"], b, (k, n)), matrix(case["c"], c, (m, n))
    with np.errstate(invalid="ignore", over="ignore"):
        got, want = exact(left, right, third, rule), matrix(case["d"], d, (m, n))
        same = (got.view(np.uint32) == np.ascontiguousarray(want).view(np.uint32)) | (np.isnan(got) & np.isnan(want))
    return int((~same).sum())


@pytest.mark.parametrize("capability", [70, 75, 80, 89, 90, 120])
def test_sums_are_bit_for_bit_those_of_the_hardware_model(capability: int) -> None:
    mine = [c for c in cases() if c["capability"] == capability]
    assert len(mine) >= 6
    assert [c["shape"] for c in mine if wrong_elements(c)] == []
