"""The tables of attributes and relocations hold what their legends say; bad ones are told."""

from __future__ import annotations

import pytest

from warpsmith.base.errors import DeclarationError
from warpsmith.cubin.attributes import COMPAT, INFO, attribute_id, attribute_name, attribute_rows, read_rows
from warpsmith.cubin.relocations import relocation_names

GOOD = "info 1c EXIT_INSTR_OFFSETS offsets seen\n"


def test_names_and_ids() -> None:
    assert len(attribute_rows()) > 100
    for (table, number), row in attribute_rows().items():
        assert attribute_name(table, number) == row.name
        assert attribute_id(table, row.name) == number
    assert (attribute_name(INFO, 0x1C), attribute_name(INFO, 0x5A)) == ("EXIT_INSTR_OFFSETS", "0x5a")
    assert attribute_id(INFO, "0x5a") == 0x5A
    assert attribute_name(COMPAT, 0x09) == "CUDA_ACCELERATOR_TARGET"


def test_what_holds_offsets_by_its_name_has_a_layout() -> None:
    """No id whose name speaks of instruction offsets may pass as one that does not hold them."""
    forgotten = [r.name for r in attribute_rows().values() if "INSTR_OFFSETS" in r.name and r.layout == "-"]
    assert forgotten == []


def test_relocations() -> None:
    names = relocation_names()
    assert (names[1], names[2], names[115]) == ("R_CUDA_32", "R_CUDA_64", "R_CUDA_CONST_FIELD22_37")
    assert len(set(names.values())) == len(names) == 115


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("info 1c EXIT offsets\n", "attributes.txt:1: five columns are needed: table, id, name, layout, evidence"),
        ("info xy EXIT offsets seen\n", "attributes.txt:1: five columns are needed: table, id, name, layout, evidence"),
        (
            "# legend\ninfos 1c EXIT offsets seen\n",
            "attributes.txt:2: the legend does not know the table, id, layout or evidence of EXIT",
        ),
        ("info 1c EXIT places seen\n", "attributes.txt:1: the legend does not know the table, id, layout or evidence of EXIT"),
        (
            "info 1c EXIT offsets heard\n",
            "attributes.txt:1: the legend does not know the table, id, layout or evidence of EXIT",
        ),
        (
            "info 100 EXIT offsets seen\n",
            "attributes.txt:1: the legend does not know the table, id, layout or evidence of EXIT",
        ),
        (GOOD + "info 1c OTHER - name\n", "attributes.txt:2: OTHER repeats an id or a name"),
        (GOOD + "info 1d EXIT_INSTR_OFFSETS - name\n", "attributes.txt:2: EXIT_INSTR_OFFSETS repeats an id or a name"),
    ],
)
def test_bad_tables(text: str, message: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        read_rows(text)
    assert str(caught.value) == message
