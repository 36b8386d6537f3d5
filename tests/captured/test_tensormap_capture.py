"""Replay what the driver encoded: the same bytes, and the same parameter sets refused.

`tensormap.jsonl.gz` was written by `warpsmith.hardware.tensormap_capture` on an NVIDIA H200, driver 580.159.04 (CUDA 13.0).
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from warpsmith.base.errors import InputError
from warpsmith.base.tensormap import ELEMENTS, INTERLEAVES, L2_PROMOTIONS, SWIZZLES, TensorMapFields, check
from warpsmith.base.tensormap_bits import decode, encode

CAPTURE = Path(__file__).with_name("tensormap.jsonl.gz")
MODES = {"tiled": ("tiled",), "replace_address": ("tiled",), "im2col": ("im2col",), "im2col_wide": ("im2col_w", "im2col_w128")}


@pytest.fixture(scope="module")
def captured() -> list[dict[str, Any]]:
    with gzip.open(CAPTURE, "rt", encoding="ascii") as lines:
        head, *cases = map(json.loads, lines)
    assert head["device"] == "NVIDIA H200"
    return cases


def fields(case: dict[str, Any]) -> TensorMapFields | None:
    """The case as fields; None where a number is outside what the fields can say."""
    enumerations = (
        (case["dtype"], ELEMENTS),
        (case["interleave"], INTERLEAVES),
        (case["swizzle"], SWIZZLES),
        (case["l2"], L2_PROMOTIONS),
    )
    if any(value >= len(names) for value, names in enumerations) or case["fill"] > 1 or case["rank"] != len(case["dim"]):
        return None
    if case["mode"] >= len(MODES[case["call"]]):
        return None
    return TensorMapFields(
        list(ELEMENTS)[case["dtype"]], case["new_address"] or case["address"], tuple(case["dim"]), tuple(case["stride"]),
        tuple(case["box"]), tuple(case["element_stride"]), INTERLEAVES[case["interleave"]], SWIZZLES[case["swizzle"]],
        L2_PROMOTIONS[case["l2"]], case["fill"] == 1, MODES[case["call"]][case["mode"]],
        tuple(case["lower"]), tuple(case["upper"]), case["channels"], case["pixels"],
    )  # fmt: skip


def test_bytes_are_those_of_the_driver(captured: list[dict[str, Any]]) -> None:
    accepted = [c for c in captured if c["rc"] == 0]
    assert len(accepted) > 5000
    wrong = [c for c in accepted if (f := fields(c)) is None or encode(f).hex() != c["hex"]]
    assert wrong == []


def test_decoding_gives_the_fields_back(captured: list[dict[str, Any]]) -> None:
    for case in captured:
        if case["rc"] == 0:
            assert encode(decode(bytes.fromhex(case["hex"]))).hex()[:128] == case["hex"][:128]


def test_the_same_sets_are_refused(captured: list[dict[str, Any]]) -> None:
    wrong: list[tuple[dict[str, Any], str]] = []
    for case in captured:
        f = fields(case)
        if f is None:
            assert case["rc"] != 0
            continue
        try:
            check(f, capability=90)
            message = ""
        except InputError as error:
            message = str(error)
        if (message == "") != (case["rc"] == 0):
            wrong.append((case, message))
    assert wrong == []
