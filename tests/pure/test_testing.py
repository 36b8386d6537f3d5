"""`warpsmith.testing`: kernels that are clean, and what is said of those that are not."""

from __future__ import annotations

import numpy as np
import pytest

import warpsmith as ws
from warpsmith import Tile, kernel, ptx, reg, smem
from warpsmith.assembly.ptx.miscompiled import at_hand
from warpsmith.base.errors import InputError
from warpsmith.types import f32, s32

N = 64
X = np.arange(N, dtype=np.float32)


@kernel(in_specs=(Tile(N, f32),), out_specs=(Tile(N, f32),), grid=(1, 1, 1), block=(N, 1, 1))
def reverse(x, y, *, wait=True):
    source, target = ptx.global_ptrs(x, y)
    tile, full = smem.alloc(f32, (N,)), smem.mbarrier(1)[0]
    thread = ptx.special.tid.x()
    with ptx.if_(thread == 0):
        ptx.mbarrier.init(full, 1)
        ptx.fence.mbarrier_init()
        ptx.mbarrier.arrive_expect_tx(full, N * 4)
        copy = ptx.inst.cp.async_.bulk.shared__cluster.global_.mbarrier__complete_tx__bytes
        copy(ptx.addr(tile), ptx.addr(source), N * 4, full)
    ptx.bar.sync()
    if wait:
        ptx.mbarrier.wait(full, 0)
    ptx.inst.st.global_.f32(ptx.addr(target + thread * 4), tile[N - 1 - thread])


def test_a_clean_kernel_gives_its_result() -> None:
    result = ws.testing.assert_clean(reverse, X, schedules=5)
    np.testing.assert_array_equal(result.outputs[0], X[::-1])


def test_findings_are_told_once_each_with_their_schedule() -> None:
    with pytest.raises(AssertionError, match=r"^reverse: \d+ findings\n") as caught:
        ws.testing.assert_clean(reverse, X, schedules=3, wait=False)
    text = str(caught.value)
    assert text.count("error[async-read-before-complete]") == 1
    assert "  schedule: fair" in text


def test_kinds_are_passed_over_with_a_reason() -> None:
    reasons = dict.fromkeys(("async-read-before-complete", "uninitialised-read", "leftover"), "the copy is not waited for")
    ws.testing.assert_clean(reverse, X, schedules=3, wait=False, suppress=reasons)


@pytest.mark.parametrize(
    ("suppress", "said"),
    [
        ({"leftover": " "}, "suppress: say why 'leftover' is passed over"),
        ({"hunger": "x"}, f"suppress: no kind of finding is called 'hunger'; known: {', '.join(ws.findings.KINDS)}"),
    ],
)
def test_what_cannot_be_passed_over(suppress: dict[str, str], said: str) -> None:
    with pytest.raises(InputError) as caught:
        ws.testing.assert_clean(reverse, X, suppress=suppress)
    assert str(caught.value) == said


@kernel(arch="sm_90a", in_specs=(Tile(N, f32),), out_specs=(Tile(N, f32),), grid=(1, 1, 1), block=(N, 1, 1))
def selected(x, y):
    source, target = ptx.global_ptrs(x, y)
    thread = ptx.special.tid.x()
    value = reg.scalar(f32)
    ptx.inst.ld.global_.f32(value, ptx.addr(source + thread * 4))
    chosen = reg.scalar(s32)
    ptx.inst.slct.s32.s32(chosen, thread, 7, 2147483647)
    ptx.inst.st.global_.f32(ptx.addr(target + thread * 4), value)


def test_wrong_code_of_ptxas_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(at_hand, "find_tool", lambda _: Old())
    with pytest.raises(
        AssertionError, match=r"^selected: 1 findings\n.*test_testing\.py:\d+: error\[ptxas-miscompiles\]: `slct\.s32\.s32 "
    ):
        ws.testing.assert_clean(selected, X, schedules=0)
    ws.testing.assert_clean(selected, X, schedules=0, suppress={"ptxas-miscompiles": "the result is not used"})


class Old:
    """A ptxas of another release."""

    def version(self) -> str:
        return "13.0.88"
