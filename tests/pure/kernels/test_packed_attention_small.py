"""Attention over packed sequences of different lengths, on the simulator, each sequence against float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from packed_attention import Lengths, agrees, inputs
from warpsmith.base.errors import InputError
from warpsmith.kernels.attention import hopper, hopper_packed

CASES: dict[str, tuple[dict[str, Any], Lengths, Lengths | None]] = {
    "lengths": ({}, [100, 1, 200, 0, 129], None),
    "causal": ({"causal": True, "staged": 1, "ordered": 1}, [100, 1, 128], None),
    "keys": ({"causal": True}, [100, 3, 60], [130, 200, 0]),
    "window": ({"causal": True, "window": 50, "kv_heads": 1}, [130, 10], [130, 150]),
    "widths": ({"dim": 96, "value_dim": 32, "staged": 1}, [70, 5], [40, 90]),
}


@pytest.mark.parametrize(("options", "lengths", "key_lengths"), CASES.values(), ids=CASES)
def test_every_sequence_agrees_with_float64(options: dict[str, Any], lengths: Lengths, key_lengths: Lengths | None) -> None:
    agrees(hopper.Config(2, 1, packed=1, multiprocessors=3, **options), lengths, key_lengths)


def test_rows_behind_a_sequence_are_left_alone() -> None:
    """Outputs that are there already stay where no query is: the table may cover a part of the batch."""
    config = hopper.Config(1, 1, packed=1)
    q, k, v = inputs(config, [70, 30], [70, 30])
    o, lse = np.full((100, 1, 64), 7, np.float16), np.full((1, 100), 7, np.float32)
    hopper_packed.build(config)(q, k, v, hopper_packed.plan(config, [70]), o, lse)
    assert (o[70:] == 7).all()
    assert (lse[:, 70:] == 7).all()
    assert (lse[:, :70] != 7).all()


@pytest.mark.parametrize(("lengths", "key_lengths"), [([60, 50], [60, 40]), ([60, 40], [60, 50])])
def test_a_plan_of_longer_sequences_traps(lengths: Lengths, key_lengths: Lengths) -> None:
    config = hopper.Config(1, 1, packed=1)
    q, k, v = inputs(config, [60, 40], [60, 40])
    result = hopper_packed.build(config).simulate(q, k, v, hopper_packed.plan(config, lengths, key_lengths))
    assert {f.kind for f in result.findings} == {"trap"}


def test_a_plan_holds_every_row_once_and_is_even() -> None:
    config = hopper.Config(3, 1, 64, causal=True, packed=1, multiprocessors=8)
    lengths = [700, 1, 0, 130, 2000, 64]
    table = hopper_packed.plan(config, lengths)
    items = table[table[..., 0] != 0]
    assert (table[:, -1] == 0).all()
    assert (table[:, 0, 0] != 0).all()
    starts = np.cumsum([0, *lengths])
    rows = [(int(head), int(token) + i) for left, token, head, *_ in items for i in range(min(int(left), config.rows))]
    assert sorted(rows) == [(head, row) for head in range(3) for row in range(sum(lengths))]
    assert {int(x) for x in items[:, 3]} <= set(starts.tolist())
    work = (table[..., 7] - table[..., 6] + (table[..., 0] != 0)).sum(axis=1)
    assert work.max() <= 1.1 * work.mean()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: hopper.build(c), "attention: packed sequences are for hopper_packed.build"),
        (lambda c: hopper_packed.plan(c, []), "attention: lengths are not negative, and a batch has at least one query"),
        (
            lambda c: hopper_packed.plan(c, [0, 0], [3, 4]),
            "attention: lengths are not negative, and a batch has at least one query",
        ),
        (lambda c: hopper_packed.plan(c, [3, -1]), "attention: lengths are not negative, and a batch has at least one query"),
        (
            lambda c: hopper_packed.plan(c, [3], [3, 4]),
            "attention: 1 lengths of queries and 2 of keys; give one each a sequence",
        ),
        (
            lambda c: hopper_packed.build(hopper.Config(1, 64)),
            "attention: packed sequences have the lengths of their plan; give packed=1, sequence=1, kv_sequence=0",
        ),
    ],
)
def test_refusals(call: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        call(hopper.Config(1, 1, packed=1))
    assert str(caught.value) == message
