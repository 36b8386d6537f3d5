"""Availability of mnemonics: version, architectures, what a target lacks."""

from __future__ import annotations

import pytest

from warpsmith.assembly.ptx.isa import match, rows
from warpsmith.assembly.ptx.isa.availability import architectures, lowest, missing, version

LOWEST = {
    "bar.sync": ((2, 0), "sm_20"),
    "atom.global.add.f64": ((5, 0), "sm_60"),
    "atom.acq_rel.gpu.global.cas.b32": ((6, 0), "sm_70"),
    "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32": ((6, 5), "sm_75"),
    "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32": ((7, 0), "sm_80"),
    "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32": ((8, 4), "sm_89"),
    "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0": ((8, 7), "sm_120a"),
    "cp.async.cg.shared.global": ((7, 0), "sm_80"),
    "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes": ((8, 0), "sm_90"),
    "cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4.mbarrier::complete_tx::bytes": ((8, 6), "sm_100a"),
    "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16": ((8, 0), "sm_90a"),
    "setmaxnreg.inc.sync.aligned.u32": ((8, 0), "sm_90a"),
    "fence.acquire.gpu": ((8, 6), "sm_90"),
    "tcgen05.mma.cta_group::1.kind::i8": ((8, 6), "sm_100a"),
    "redux.sync.min.NaN.f32": ((8, 6), "sm_100a"),
    "mbarrier.expect_tx.shared::cluster.multicast::cluster::32b.b64": ((9, 4), "sm_107a"),
}


@pytest.mark.parametrize("mnemonic", LOWEST)
def test_lowest(mnemonic: str):
    assert min(x for m in match(mnemonic) if (x := lowest(m))) == LOWEST[mnemonic]


def test_lowest_among_the_architectures_a_tool_supports():
    (form,) = match("activemask.b32")
    assert lowest(form, ["sm_90", "sm_75"]) == ((6, 3), "sm_75")
    (form,) = match("wgmma.fence.sync.aligned")
    assert lowest(form, ["sm_90", "sm_100a"]) is None


def test_every_row_exists_somewhere():
    assert [row.id for row in rows() if lowest(row) is None] == []


def test_a_family_holds_its_later_members_but_no_other_family():
    (form,) = match("tcgen05.wait::ld.sync.aligned")
    held = {"sm_100a", "sm_100f", "sm_101a", "sm_101f", "sm_103a", "sm_103f", "sm_107a", "sm_107f", "sm_110a", "sm_110f"}
    assert set(architectures(form)) == held


def test_version_is_the_newest_word():
    (form,) = match("mbarrier.try_wait.parity.phase_type::conditional.relaxed.cta.shared::cta.b64")
    assert version(form) == (9, 3)


def test_what_a_target_lacks_is_named_by_word():
    (form,) = match("atom.acq_rel.cluster.global.add.u32")
    lacks = [(n.what, n.ptx, n.arch and n.arch.text) for n in missing(form, (7, 0), "sm_80")]
    assert lacks == [(".cluster", (7, 8), "sm_90+")]
    assert list(missing(form, (7, 8), "sm_90")) == []


def test_the_plain_architecture_does_not_have_what_its_suffix_has():
    (form,) = match("wgmma.fence.sync.aligned")
    assert [n.what for n in missing(form, (8, 0), "sm_90")] == ["wgmma"]
    assert list(missing(form, (8, 0), "sm_90a")) == []


def test_a_removed_form_lives_on_in_old_modules():
    (form,) = match("shfl.down.b32")
    assert lowest(form) == ((3, 0), "sm_30")
    assert lowest(form, ["sm_75", "sm_80"]) == ((6, 3), "sm_75")
    assert lowest(form, ["sm_80"]) is None
    assert list(missing(form, (9, 5), "sm_61")) == []
    assert list(missing(form, (6, 3), "sm_75")) == []
    assert [n.what for n in missing(form, (6, 4), "sm_75")] == ["older PTX for shfl"]


def test_an_architecture_may_get_a_form_later_than_the_others():
    (form,) = match("cvt.rn.satfinite.e4m3x2.f32")
    assert lowest(form) == ((8, 1), "sm_89")
    assert lowest(form, ["sm_90"]) == ((7, 8), "sm_90")
    assert [(n.what, n.ptx) for n in missing(form, (8, 0), "sm_89")] == [("cvt", (8, 1))]
    assert [(n.what, n.ptx) for n in missing(form, (7, 1), "sm_89")] == [("cvt", (7, 8))]
    assert list(missing(form, (8, 1), "sm_89")) == list(missing(form, (7, 8), "sm_90")) == []
