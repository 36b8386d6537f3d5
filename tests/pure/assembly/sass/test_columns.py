"""Columns of a section say the same as its instructions one by one."""

from __future__ import annotations

from sass_sample import code
from warpsmith import sass
from warpsmith.assembly.sass.columns import group_words
from warpsmith.assembly.sass.decode import Decoder
from warpsmith.assembly.sass.row import gather
from warpsmith.assembly.sass.table import load_table

ARCH = "sm_90a"


def test_groups_cover_the_section_and_columns_hold_its_fields() -> None:
    part = code(ARCH)[: 16 * 1500] + (0xFFF).to_bytes(16, "little")
    program = sass.decode(part, ARCH)
    groups = group_words(part, Decoder(load_table(ARCH)))
    assert sorted(i for g in groups for i in g.indexes) == list(range(len(program)))
    for g in groups:
        columns = g.fields()
        for n, index in enumerate(g.indexes):
            i = program[index]
            assert g.low[n] | g.high[n] << 64 == i.raw
            assert (g.form.row.name if g.form else "") == i.form
            if g.form:
                assert [c[n] for c in columns] == [gather(i.raw, f.bits) for f in g.form.row.fields]
