"""Shared memory between the warps of a warpgroup that multiply it together: CUTLASS (example 88) has no barrier there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from wgmma_program import A_AT, B_AT, BYTES, PARAMETERS, body, tile

ORDERS: list[dict[str, Any]] = [{}, {"schedule": "random", "seed": 0}, {"schedule": "adversarial", "seed": 1}]
FENCE, MEET = "fence.proxy.async.shared::cta;", "bar.sync 0;"
COMMIT = " wgmma.commit_group.sync.aligned;\n"
WAIT = " wgmma.wait_group.sync.aligned 0;\n"
WROTE = "; nothing but that their warpgroup issues the product together orders the two"
PART = "before its thread can know that `wgmma.mma_async` has read it: it has waited for the part of its own warp"


def findings(run: Any, text: str, order: dict[str, Any]) -> list[tuple[str, str, bool]]:
    """Return (kind, severity, whether the message says what orders it) of what is found; the sums are right but for errors."""
    image = np.zeros(BYTES, np.uint8)
    da, db = (tile(np.ones((n, 16), np.float16), 1024 + at, "128B", False, image) for n, at in ((64, A_AT), (32, B_AT)))
    out = np.zeros((16, 128), np.float32)
    result = run(text, out, image, da, db, np.zeros((4, 128), np.uint32), parameters=PARAMETERS, block=128, **order)
    assert result.completed
    found = [(f.kind, f.severity, WROTE in f.message or PART in f.message) for f in result.findings]
    assert any(severity == "error" for _, severity, _ in found) or (out == 16).all()
    return found


TEXT = body("m64n32k16.f32.f16.f16", 16, 0, ", 1, 1, 0, 0")
BARRIER = f"{FENCE} {MEET}"


@pytest.mark.parametrize("order", ORDERS)
def test_what_a_warp_has_fenced_and_its_warpgroup_multiplies(run: Any, order: dict[str, Any]) -> None:
    assert BARRIER in TEXT
    assert findings(run, TEXT, order) == []
    assert findings(run, TEXT.replace(BARRIER, FENCE), order) == [("shared-race", "portability", True)]
    assert findings(run, TEXT.replace(BARRIER, MEET), order) == [("missing-proxy-fence", "error", False)]
    nothing = findings(run, TEXT.replace(BARRIER, ""), order)
    assert nothing == [("shared-race", "error", False), ("missing-proxy-fence", "error", False)]


@pytest.mark.parametrize("order", ORDERS)
def test_what_a_warpgroup_has_multiplied_and_a_warp_writes_again(run: Any, order: dict[str, Any]) -> None:
    again = " xor.b32 %r251, %r251, 512; add.u32 %r252, %r250, %r251; st.shared.b32 [%r252], %r251;\n"
    head, tail = TEXT.split(WAIT)
    assert findings(run, head + WAIT + f" {MEET}\n" + again + tail, order) == []
    assert findings(run, head + WAIT + again + tail, order) == [("async-overwrite", "portability", True)]
    found = findings(run, head + again + WAIT + tail, order)
    assert ("async-overwrite", "error", False) in found
