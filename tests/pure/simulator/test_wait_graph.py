"""The report of a hang: the root of the chain first, who should arrive, and where that code is. Messages in full."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from warpsmith import Tile, kernel, ptx, reg, smem
from warpsmith.simulator import simulate
from warpsmith.specs import Layout
from warpsmith.types import u32

PIPELINE = (Path(__file__).parent / "mutants" / "kernels" / "pipeline.ptx").read_text()
ARRIVE = " mbarrier.arrive.shared::cta.b64 _, [%r11];\n"
WORDS = np.arange(512, dtype=np.uint32)


def hang(text: str) -> list[str]:
    result = simulate(text, grid=1, block=160, args=[WORDS, np.zeros(128, np.uint32)])
    (finding,) = [f for f in result.findings if f.kind == "deadlock"]
    return [f"{finding.where}: {finding.message}", *map(str, finding.related)]


def test_the_root_of_the_chain_comes_first() -> None:
    """Nobody gives a stage back: the consumers wait for the producer, the producer for nobody who could."""
    free, full = "`mbarrier.try_wait.parity.shared::cta.b64`", "mbarrier [0x800] phase 1 lacks 1 of 1 arrivals"
    assert hang(PIPELINE.replace(ARRIVE, "")) == [
        "<string>:66: 5 warps wait and nothing in flight can release them",
        f"<string>:66: cta (0,0,0) warp 4 lanes 0 at {free} waits for mbarrier [0x810] phase 0 lacks 128 of 128 arrivals; "
        "nobody arrived in it",
        "<string>:23:   the barrier is shared variable `free`",
        "<string>:23:   nobody has ever arrived on it, and nobody who waits elsewhere has an arrival before him that might",
        f"<string>:39: cta (0,0,0) warps 0-3 lanes 0-31 at {free} waits for {full}; nobody arrived in it",
        "<string>:21:   the barrier is shared variable `full`",
        "<string>:68:   should arrive: `mbarrier.arrive.expect_tx.shared::cta.b64` has arrived on it in other phases "
        "(cta (0,0,0) warp 4)",
        "<string>:71:   should arrive: `cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes` has arrived on it "
        "in other phases (cta (0,0,0) warp 4)",
    ]


def test_an_arrival_that_was_not_reached() -> None:
    """A consumer waits twice: what it should do for the producer stands behind its wait."""
    again = " @!%p3 bra FULL;\n xor.b32 %r20, %r7, 1;\nAGAIN:\n mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r10], %r20;\n"
    found = hang(PIPELINE.replace(" @!%p3 bra FULL;\n", again + " @!%p3 bra AGAIN;\n"))
    assert found[0] == "<string>:43: 5 warps wait and nothing in flight can release them"
    assert "<string>:51:   should arrive, perhaps: `mbarrier.arrive.shared::cta.b64`, which has never run" in found


def test_bytes_that_nobody_expected() -> None:
    """The copies come and no arrival does: neither more bytes nor who brought them would help."""
    full = "mbarrier [0x800] phase 0 lacks 1 of 1 arrivals, and 512 bytes that nobody expected have come"
    found = hang(PIPELINE.replace(" mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r10], 512;\n", ""))
    waits = next(i for i, line in enumerate(found) if full in line)
    assert found[waits + 1 : waits + 3] == [
        "<string>:21:   the barrier is shared variable `full`",
        "<string>:21:   nobody has ever arrived on it, and nobody who waits elsewhere has an arrival before him that might",
    ]


def test_bytes_that_lack_are_not_laid_on_arrivals() -> None:
    found = hang(PIPELINE.replace("[%r10], 512;\n", "[%r10], 768;\n", 1))
    assert any("mbarrier [0x800] phase 0 lacks 256 bytes; last: 512 bytes completed by" in line for line in found)
    assert not any("should arrive: `mbarrier.arrive.expect_tx" in line for line in found)
    assert (
        "<string>:72:   should arrive: `cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes` has arrived on it "
        "(cta (0,0,0) warp 4)"
    ) in found


def test_a_named_barrier_names_who_came_before() -> None:
    text = (Path(__file__).parent / "mutants" / "kernels" / "ping_pong.ptx").read_text()
    broken = text.replace(" bar.arrive 2, 128;\n bar.sync 1", " @!%p3 bar.arrive 2, 128;\n bar.sync 1").replace(
        "READER:\n", "READER:\n setp.gt.u32 %p3, %r5, 0;\n"
    )
    result = simulate(broken, grid=1, block=128, args=[np.zeros(64, np.uint32)])
    (finding,) = [f for f in result.findings if f.kind == "deadlock"]
    assert any(
        "should arrive: `bar.arrive` has arrived on it before (cta (0,0,0) warps 2, 3)" in str(r) for r in finding.related
    )


def circle(counts: tuple[int, int, int]) -> Any:
    """Run a kernel in which one lane of each of three warps arrives for the next."""

    @kernel(
        arch="sm_90a", in_specs=(), out_specs=(Tile(96, u32, Layout.ROW),), grid=(1, 1, 1), block=(96, 1, 1), smem=64,
        extern_smem=True,
    )  # fmt: skip
    def chain(out: Any) -> None:
        base = smem.base()
        thread = reg.scalar(u32)
        ptx.inst.mov.u32(thread, ptx.special.tid.x())
        with ptx.if_(thread == 0):
            for i, count in enumerate(counts):
                ptx.mbarrier.init(base + 8 * i, count)
        ptx.bar.sync(0)
        with ptx.if_(thread == 0):
            ptx.mbarrier.arrive(base)
            ptx.mbarrier.wait(base + 16, 0)
        with ptx.if_(thread == 32):
            ptx.mbarrier.wait(base, 0)
            ptx.mbarrier.arrive(base + 8)
        with ptx.if_(thread == 64):
            ptx.mbarrier.wait(base + 8, 0)
            ptx.mbarrier.arrive(base + 16)
        ptx.bar.sync(0)

    return chain.simulate()


def here(text: str) -> str:
    """Return the place of the first line of this file that reads so."""
    lines = Path(__file__).read_text().splitlines()
    return f"{__file__}:{next(n for n, line in enumerate(lines, 1) if line.strip() == text)}"


def test_a_chain_of_lanes_ends() -> None:
    result = circle((1, 1, 1))
    assert result.completed
    assert [f for f in result.findings if f.severity != "note"] == []


@pytest.mark.parametrize(("wrong", "place", "waits"), [(0, "base", 1), (1, "base + 8", 2), (2, "base + 16", 0)])
def test_in_a_circle_the_phase_that_has_begun_comes_first(wrong: int, place: str, waits: int) -> None:
    """One count is too high. All barriers are initialised at one line; the lanes that wait for the others are no fault."""
    result = circle((1 + (wrong == 0), 1 + (wrong == 1), 1 + (wrong == 2)))
    (finding,) = result.findings
    assert finding.kind == "deadlock"
    arrives = here(f"ptx.mbarrier.arrive({place})")
    assert [str(r) for r in finding.related[:2]] == [
        f"{here(f'ptx.mbarrier.wait({place}, 0)')}: cta (0,0,0) warp {waits} lanes 0 at "
        f"`mbarrier.try_wait.parity.shared::cta.b64` waits for mbarrier [{0x400 + 8 * wrong:#x}] phase 0 lacks 1 of 2 "
        f"arrivals; last: arrive (1) by cta (0,0,0) warp {wrong} lanes 0 at {arrives}",
        f"{arrives}:   should arrive: `mbarrier.arrive.shared::cta.b64` has arrived on it (cta (0,0,0) warp {wrong})",
    ]
    assert str(finding.related[-1]).endswith(" at `bar.sync` waits for the other lanes of the warp")


def test_a_barrier_nobody_has_come_to_names_the_arrivals_of_its_address() -> None:
    """Of the arrivals that have never run only that on the barrier itself is named."""
    (finding,) = circle((2, 1, 1)).findings
    texts = [str(r) for r in finding.related]
    at = next(i for i, text in enumerate(texts) if "waits for mbarrier [0x408]" in text)
    arrives = here("ptx.mbarrier.arrive(base + 8)")
    assert texts[at + 1] == f"{arrives}:   should arrive, perhaps: `mbarrier.arrive.shared::cta.b64`, which has never run"
    assert "should arrive" not in texts[at + 2]
