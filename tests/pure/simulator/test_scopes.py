"""Scopes and strength of what synchronises two CTAs of a cluster: a side that is too narrow or relaxed orders no memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from warpsmith.base.findings import Severity
from warpsmith.base.source import Place
from warpsmith.simulator import simulate
from warpsmith.simulator.findings import FindingLog

APART = "; it runs later, but nothing orders their memory: a side of what is between is .relaxed, or its scope too narrow"
WIDEN = "Arrive with .release and wait with .acquire, at scope .cluster between CTAs (the default is .cta)."
INIT = """ mbarrier.init.shared::cta.b64 [bar], 1;
 fence.mbarrier_init.release.cluster;
 barrier.cluster.arrive.relaxed.aligned;
 barrier.cluster.wait.aligned;
"""
END = " barrier.cluster.arrive.aligned;\n barrier.cluster.wait.aligned;\n"


def program(init: str, one: str, zero: str, end: str = END) -> str:
    """CTA 1 runs `one`, CTA 0 `zero`, one thread each.

    `%near`, `%far`: 4 bytes of the own CTA and of the other; `%bar`: the other's barrier.
    """
    return f"""
.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out)
{{
 .reg .b32 %rank, %other, %near, %far, %bar, %v; .reg .b64 %out; .reg .pred %p, %q, %first;
 .shared .align 8 .b64 bar;
 .shared .align 4 .b32 box;
 mov.u32 %rank, %cluster_ctarank; xor.b32 %other, %rank, 1; mov.u32 %v, %tid.x; setp.eq.u32 %first, %v, 0;
 ld.param.u64 %out, [out]; mov.u32 %near, box; mapa.shared::cluster.u32 %far, %near, %other;
 mov.u32 %bar, bar; mapa.shared::cluster.u32 %bar, %bar, %other; mov.u32 %v, 7;
{init} setp.eq.u32 %q, %rank, 1;
 @%q bra ONE;
{zero} bra DONE;
ONE:
{one}DONE:
{end} ret;
}}"""


def run(text: str, **order: Any) -> tuple[Any, list[str]]:
    result = simulate(text, grid=2, block=1, cluster=2, args=[np.zeros(2, np.uint32)], **order)
    assert result.completed
    return result, text.splitlines()


def arrive(words: str) -> str:
    return f" mbarrier.arrive{words}.shared::cluster.b64 _, [%bar];\n"


def wait(words: str) -> str:
    return f"W: mbarrier.try_wait.parity{words}.shared::cta.b64 %p, [bar], 0;\n @!%p bra W;\n"


FENCE = " fence.acq_rel.cluster;\n"
WRITE, READ = " st.shared::cluster.u32 [%far], %v;\n", " ld.shared.u32 %v, [%near];\n"
RELEASE, ACQUIRE, RELAXED = ".release.cluster", ".acquire.cluster", ".relaxed.cluster"
WAYS = {
    "wide": (arrive(RELEASE), wait(ACQUIRE), True),
    "the default scope": (arrive(""), wait(""), False),
    "a narrow arrival": (arrive(""), wait(ACQUIRE), False),
    "a narrow wait": (arrive(RELEASE), wait(""), False),
    "a relaxed arrival": (arrive(RELAXED), wait(ACQUIRE), False),
    "a relaxed wait": (arrive(RELEASE), wait(RELAXED), False),
    "a fence, a relaxed arrival": (FENCE + arrive(RELAXED), wait(ACQUIRE), True),
    "a narrow fence, a relaxed arrival": (" fence.acq_rel.cta;\n" + arrive(RELAXED), wait(ACQUIRE), False),
    "a relaxed wait, a fence": (arrive(RELEASE), wait(RELAXED) + FENCE, True),
    "both relaxed, with fences": (FENCE + arrive(RELAXED), wait(RELAXED) + FENCE, True),
    "an arrival that announces bytes": (
        " mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%bar], 0;\n", wait(ACQUIRE), True
    ),
}  # fmt: skip
ORDERS: list[dict[str, Any]] = [{}, {"schedule": "random", "seed": 0}, {"schedule": "adversarial", "seed": 1}]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("before", "after", "kind", "at"),
    [
        (WRITE, READ, "shared-race", "ld.shared"),
        (" st.global.u32 [%out], %v;\n", " ld.global.u32 %v, [%out];\n", "global-race", "ld.global"),
        (" ld.global.u32 %v, [%out];\n", " st.global.u32 [%out], 9;\n", "global-race", "st.global"),
    ],
)
def test_what_an_mbarrier_orders_between_two_ctas(way: str, before: str, after: str, kind: str, at: str) -> None:
    signal, waits, ordered = WAYS[way]
    for order in ORDERS:
        result, lines = run(program(INIT, before + signal, waits + after), **order)
        assert [(f.kind, f.severity) for f in result.findings] == ([] if ordered else [(kind, "error")])
        for f in result.findings:
            assert lines[f.where.line - 1].strip().startswith(at)
            assert f.message.endswith(APART)
            assert f.repair == WIDEN


@pytest.mark.parametrize("way", WAYS)
def test_bytes_that_have_been_read_before_they_are_overwritten(way: str) -> None:
    """The read of shared memory is over when its thread arrives: kernels that ship give their stages back in this way."""
    signal, waits, ordered = WAYS[way]
    result, lines = run(program(INIT, READ + signal, waits + WRITE))
    assert [(f.kind, f.severity) for f in result.findings] == ([] if ordered else [("shared-race", "portability")])
    for f in result.findings:
        assert lines[f.where.line - 1].strip().startswith("st.shared")
        assert f.message.endswith(APART)


def test_nothing_between_is_worse_than_too_little() -> None:
    """Schedules differ in who comes first; each is told that nothing orders the two."""
    result, _ = run(program(INIT, READ, WRITE))
    assert [(f.kind, f.severity) for f in result.findings] == [("shared-race", "error")]
    assert result.findings[0].message.endswith("; nothing orders the two")


@pytest.mark.parametrize(
    ("fence", "ordered"),
    [
        ("", False),
        (FENCE, True),
        (" fence.cluster.acq_rel;\n", True),
        (" fence.cluster;\n", True),
        (" fence.acq_rel.cta;\n", False),
    ],
)
def test_a_relaxed_arrival_at_the_cluster_barrier(fence: str, ordered: bool) -> None:
    """9.7.15.3: it orders memory only with a fence before it."""
    middle = fence + " barrier.cluster.arrive.relaxed.aligned;\n barrier.cluster.wait.aligned;\n"
    result, lines = run(program(END + WRITE + middle + READ, "", ""))
    assert [(f.kind, f.severity) for f in result.findings] == ([] if ordered else [("shared-race", "error")])
    for f in result.findings:
        assert lines[f.where.line - 1].strip().startswith("ld.shared")


@pytest.mark.parametrize("fence", [True, False])
@pytest.mark.parametrize("order", ORDERS)
def test_a_fence_of_initialisations_orders_them_and_nothing_else(fence: bool, order: dict[str, Any]) -> None:
    """9.7.15.4: `fence.mbarrier_init` with a relaxed arrival at the cluster barrier, as CUTLASS begins its kernels."""
    init = INIT if fence else INIT.replace(" fence.mbarrier_init.release.cluster;\n", "")
    result, lines = run(program(END + WRITE + init + READ, arrive(RELEASE), wait(ACQUIRE)), **order)
    kinds = ["shared-race"] + ["uninitialised-barrier"] * (not fence)
    found = [(f.kind, f.severity, lines[f.where.line - 1].split()[0]) for f in result.findings]
    assert [kind for kind, *_ in found] == kinds
    assert found[1:] == (
        [] if fence else [("uninitialised-barrier", "portability", "mbarrier.arrive.release.cluster.shared::cluster.b64")]
    )


def test_an_error_takes_the_place_of_a_lesser_finding() -> None:
    log, place = FindingLog("fair"), Place("k.ptx", 3, 1)
    told: list[tuple[Severity, str]]
    told = [("portability", "first"), ("error", "second"), ("portability", "third"), ("error", "fourth")]
    for severity, text in told:
        assert log.known("shared-race", place, severity) == (text in ("third", "fourth"))
        log.report("shared-race", text, place, "cta (0,0,0) warp 0 lanes 0", severity)
    assert [(f.message, f.severity) for f in log.list] == [("second", "error")]


PROXY = " fence.proxy.async.shared::cta;\n"
WIDE_WRITE = " st.shared::cluster.v4.u32 [%far], {%v, %v, %v, %v};\n"
BEHIND = {
    "fenced": (PROXY, arrive(""), [("shared-race", "portability")]),
    "not fenced": ("", arrive(""), [("shared-race", "error")]),
    "fenced too late": ("", arrive("") + PROXY, [("shared-race", "error")]),
    "fenced and wide": (PROXY, arrive(RELEASE), []),
    "wide and not fenced": ("", arrive(RELEASE), [("missing-proxy-fence", "error")]),
}


@pytest.mark.parametrize("how", BEHIND)
def test_writes_that_are_fenced_towards_the_proxy_that_reads_them(how: str) -> None:
    """CUTLASS's latent attention multiplies, by pairs, what the peer has fenced and then announced at the scope of its CTA."""
    fence, signal, expected = BEHIND[how]
    bulk = """ cp.async.bulk.global.shared::cta.bulk_group [%out], [%near], 16;
 cp.async.bulk.commit_group;
 cp.async.bulk.wait_group 0;
"""
    text = program(INIT, WIDE_WRITE + fence + signal, wait(ACQUIRE if "wide" in how else "") + bulk)
    text = text.replace(".align 4 .b32 box", ".align 16 .b8 box[16]")
    for order in ORDERS:
        out = np.zeros(4, np.uint32)
        result = simulate(text, grid=2, block=1, cluster=2, args=[out], **order)
        assert result.completed
        assert [(f.kind, f.severity) for f in result.findings] == expected, str(result)
        assert out.tolist() == [7] * 4


OVER = {
    "a store": WIDE_WRITE,
    "a copy": """ mov.u32 %v, full; mapa.shared::cluster.u32 %bar, %v, %other;
 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%far], [%near], 16, [%bar];
""",
}


@pytest.mark.parametrize("over", OVER)
@pytest.mark.parametrize("waited", [True, False])
def test_a_copy_whose_completion_was_seen_is_over_when_its_bytes_are_written_again(over: str, waited: bool) -> None:
    """A stage that was filled, waited for and given back at too narrow a scope, to a CTA that fills it again."""
    fill = """ mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 16;
 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%near], [%out], 16, [full];
"""
    seen = "V: mbarrier.try_wait.parity.shared::cta.b64 %p, [full], 0;\n @!%p bra V;\n"
    signal = arrive(RELEASE)
    one = fill + (seen + signal if waited else signal + seen)
    text = program(INIT.replace("1;\n", "1;\n mbarrier.init.shared::cta.b64 [full], 1;\n", 1), one, wait("") + OVER[over])
    text = text.replace(".align 4 .b32 box", ".align 16 .b8 box[16];\n .shared .align 8 .b64 full")
    result = simulate(text, grid=2, block=1, cluster=2, args=[np.zeros(4, np.uint32)], schedule="adversarial", seed=1)
    (found,) = [f for f in result.findings if f.kind in ("async-overwrite", "shared-race")]
    assert found.severity == ("portability" if waited else "error")
    assert found.message.endswith(APART) == waited
