"""The Blackwell attention kernels: small checked runs, the options, what is refused, the builders' signatures."""

from __future__ import annotations

import inspect
from collections import Counter

import numpy as np
import pytest

from blackwell_attention import findings_and_error, inputs, simulated
from warpsmith.base.errors import InputError
from warpsmith.debugkit import WAITMAP_MAX_SITES
from warpsmith.kernels.attention.blackwell import builders, one_cta, two_per_sm
from warpsmith.kernels.attention.reference import attention


def test_two_items_masks_and_rescales_against_float64():
    how = {"sequence": 300, "multiprocessors": 1, "causal": True, "dim": 64, "rescale_threshold": 0.5}
    found, error = findings_and_error(how, 12.0)
    assert found == []
    assert error < 0.015


def test_two_ctas_a_multiprocessor_against_float64():
    how = {"sequence": 200, "causal": True, "dim": 64, "dtype": "f16", "rescale_threshold": 0.5}
    found, error = findings_and_error(how, 12.0, two_per_sm)
    assert found == []
    assert error < 0.015


@pytest.mark.parametrize("module", [one_cta, two_per_sm])
def test_scores_in_halves_masks_and_rescales(module):
    how = {"sequence": 300, "dim": 64, "dtype": "f16", "half_scores": True, "causal": True, "rescale_threshold": 0.0}
    found, error = findings_and_error({"multiprocessors": 1, **how}, 12.0, module)
    assert found == []
    assert error < 0.01


def test_without_exponentials_the_output_is_the_product_of_scaled_scores_and_values():
    how = {"sequence": 200, "dim": 64, "dtype": "f16", "half_scores": True, "no_exponentials": True, "lse": False}
    config = one_cta.Config(heads=1, **how)
    q, k, v = inputs(config)
    result = one_cta.build(config).simulate(q, k, v)
    assert result.findings == []
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    expected = config.scale_log2 * (q @ np.swapaxes(k, -1, -2)) @ v
    assert np.abs(result.outputs[0] - expected).max() < 2e-3 * np.abs(expected).max()


def test_loads_without_wait_are_as_portable_as_the_checker_says():
    result, error, _ = simulated({"sequence": 200, "dim": 64, "scoreboard_loads": True}, 6.0)
    assert {(f.kind, f.severity) for f in result.findings} == {("missing-tcgen05-wait", "portability")}
    assert error < 0.015


@pytest.mark.parametrize("who", [True, "no_mma"])
def test_lockstep(who):
    how = {"sequence": 128, "heads": 2, "dim": 64, "multiprocessors": 1, "lockstep": who}
    found, error = findings_and_error(how)
    assert found == []
    assert error < 0.015


# --- the builders -----------------------------------------------------------------------------------------------------


def test_the_builder_by_numbers_gives_the_output_alone():
    kernel = builders.build_attention(128, 2, 64, sm_scale=0.2, num_sms=1, emu_pairs=(0,), dbg_epi_gate="mma")
    q, k, v = inputs(one_cta.Config(heads=2, sequence=128, dim=64, dtype="bf16"))
    output = kernel(*(x.reshape(256, 64) for x in (q, k, v)))
    expected, _ = attention(q, k, v, scale=0.2)
    assert output.shape == (256, 64)
    assert np.abs(output.astype(np.float64) - expected.reshape(256, 64)).max() < 0.015
    assert kernel.grid == (1, 1, 1)


def test_the_builder_for_two_ctas_a_multiprocessor():
    kernel = builders.build_attention_occ2(128, 1, dtype="f16", lse=True)
    q, k, v = inputs(one_cta.Config(heads=1, sequence=128, dim=128, dtype="f16"))
    output, lse = kernel(*(x.reshape(128, 128) for x in (q, k, v)))
    expected, expected_lse = attention(q, k, v)
    assert np.abs(output.astype(np.float64) - expected[0]).max() < 4e-3
    assert np.abs(lse - expected_lse).max() < 2e-4


def test_the_signature_of_the_builder():
    parameters = inspect.signature(builders.build_attention).parameters.values()
    named = {p.name: p.default for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}
    assert [p.name for p in parameters if p.kind is not inspect.Parameter.KEYWORD_ONLY] == ["seqlen", "batch_heads", "head_dim"]
    assert named == {
        "sm_scale": None, "arch": "sm_100a", "rescale_threshold": 8.0, "num_sms": 148, "emu_pairs": (1, 3, 5, 7),
        "s_f16": False, "dbg_f16_noexp": False, "waitmap": False, "dbg_scoreboard_ld": False, "dbg_lockstep": False,
        "dbg_epi_gate": "softmax", "dtype": None, "causal": False, "lse": False,
    }  # fmt: skip


def test_options_reach_the_kernel():
    text = builders.build_attention(256, 1, 64, s_f16=True, dbg_f16_noexp=True, dbg_lockstep="no_mma").ptx()
    assert ".pack::16b" in text
    assert "ex2.approx.f16x2" not in text
    assert "wait::ld" not in builders.build_attention(256, 1, 64, dbg_scoreboard_ld=True).ptx().partition("bar.sync")[0]


# --- the wait map and the timeline ------------------------------------------------------------------------------------


@pytest.mark.parametrize("module", [one_cta, two_per_sm])
def test_every_wait_is_a_site_of_the_map_and_nothing_else_changes(module):
    how = {"heads": 2, "sequence": 128, "dim": 64, "dtype": "bf16", "multiprocessors": 1}
    plain, mapped = module.build(module.Config(**how)), module.build(module.Config(**how, waitmap=True))
    arrays = inputs(module.Config(**how))
    without, result = plain.simulate(*arrays), mapped.simulate(*arrays)
    assert result.findings == []
    for a, b in zip(without.outputs, result.outputs, strict=False):
        assert a.tobytes() == b.tobytes()
    record = result.outputs[2]
    assert record.shape == (mapped.block[0], WAITMAP_MAX_SITES)
    waits = Counter(line for line in plain.ptx(loc=False).split() if line.startswith("mbarrier.try_wait"))
    sites = mapped._waitmap.site_names()
    assert len(sites) == waits.total()
    decoded = mapped._waitmap.decode(record, mapped.block[0], roles=mapped.roles)
    assert list(decoded) == ["softmax", "correction", "products", "loads"]
    for role, file in (("softmax", "softmax.py"), ("correction", "correction.py"), ("loads", "loader.py")):
        for site, cycles in decoded[role].items():
            assert cycles == 0 or f"/{file}:" in site
        assert sum(decoded[role].values()) > 0


def test_the_timeline_names_the_roles():
    result, _, _ = simulated({"heads": 2, "sequence": 128, "dim": 64, "multiprocessors": 1})
    roles = ("softmax",) * 8 + ("correction",) * 4 + ("products", "warps 13,15", "loads", "warps 13,15")
    assert result.timeline.roles == roles
    waited = {(row.role, row.place.file.rpartition("/")[2]) for row in result.timeline.waits_by_site() if row.place}
    assert waited >= {
        ("softmax", "softmax.py"), ("correction", "correction.py"), ("products", "products.py"), ("loads", "loader.py")
    }  # fmt: skip


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"dim": 96}, "attention: head dimension 96 is not supported; use 64 or 128"),
        ({"arch": "sm_120a"}, "attention: arch 'sm_120a' has no tensor memory; use sm_100a, sm_103a or sm_110a"),
        ({"emulated_pairs": (16,)}, "attention: emulated_pairs are numbers from 0 to 15, not (16,)"),
        (
            {"epilogue_gate": ""},
            "attention: epilogue_gate is 'softmax' or 'mma', not ''; without a gate the softmax of an item disturbs the "
            "epilogue of the one before",
        ),
        ({"rescale_threshold": 9.0, "dtype": "f16"}, "attention: rescale_threshold is 0 to 8 with f16, not 9.0"),
        (
            {"fresh_maximum": False, "dtype": "f16"},
            "attention: f16 needs fresh_maximum: probabilities behind a stale basis exceed 65504",
        ),
        ({"scale": -1.0}, "attention: scale is greater than 0, not -1.0"),
        ({"multiprocessors": 0}, "attention: multiprocessors is at least 1, not 0"),
        (
            {"lockstep": "no_loads"},
            "attention: lockstep is False, True, 'no_softmax', 'no_corr', 'no_mma' or 'no_load', not 'no_loads'",
        ),
        (
            {"half_scores": True},
            "attention: half_scores needs f16 tensors, not bf16: products of bf16 accumulate in f32",
        ),
        (
            {"half_scores": True, "dtype": "f16", "scale": 1.0},
            "attention: half_scores needs a scale of at most ln 2, not 1.0: scaled scores exceed 65504",
        ),
        (
            {"half_scores": True, "dtype": "f16", "no_exponentials": True},
            "attention: no_exponentials goes with half_scores=True and lse=False: there are no sums",
        ),
        (
            {"flat": True, "sequence": 300},
            "attention: tensors of two dimensions need a sequence that is a multiple of 128, not 300: the last tile of a head "
            "would hold rows of the next; give [heads, sequence, dim]",
        ),
    ],
)
def test_what_is_refused(how, message):
    with pytest.raises(InputError) as caught:
        one_cta.build(one_cta.Config(**{"heads": 1, "sequence": 256, "dim": 128, "dtype": "bf16", **how}))
    assert str(caught.value) == message


@pytest.mark.parametrize("gate", ["softmax", "mma"])
def test_the_epilogue_is_over_when_the_next_softmax_begins(gate):
    how = {"heads": 2, "sequence": 128, "dim": 64, "multiprocessors": 1, "epilogue_gate": gate, "order_probe": True}
    found, error = findings_and_error(how)
    assert found == []
    assert error < 0.015
