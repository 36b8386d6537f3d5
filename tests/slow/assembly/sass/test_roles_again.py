"""The rows of registers are what the disassembler says of their forms now."""

from __future__ import annotations

import pytest

from warpsmith.assembly.sass.operands import RegisterModel
from warpsmith.assembly.sass.probe.liveness import LifeRanges
from warpsmith.assembly.sass.probe.oracle import Oracle
from warpsmith.assembly.sass.probe.roles import learn_roles
from warpsmith.assembly.sass.table import load_table


@pytest.mark.parametrize(
    ("arch", "classes"),
    [
        ("sm_90a", ("iadd3_noimm__RRR_RRR", "ldg_memdesc__Ra64", "hmma_x8_", "isetp__RRR_RRR_noEX")),
        ("sm_120a", ("lds_uniform_", "ldsm_uniform_")),
    ],
)
def test_rows_are_found_again(arch: str, classes: tuple[str, ...]) -> None:
    """The files are what the disassembler says of these forms now."""
    table = load_table(arch)
    rows = [r for r in table.rows if r.name in classes]
    model = RegisterModel(table)
    assert rows
    for row, roles, _ in learn_roles(rows, Oracle(arch), LifeRanges(arch), alone=False):
        mine = model.roles(row)
        assert mine is not None
        assert {str(s) for s in mine.slots} == {str(s) for s in roles.slots}
