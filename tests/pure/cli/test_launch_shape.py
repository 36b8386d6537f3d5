from __future__ import annotations

import pytest

from warpsmith.assembly.ptx import parse
from warpsmith.base.errors import InputError
from warpsmith.cli.launch_shape import entry_name, extents, launch_shape

MODULE = parse("""
.version 8.0
.target sm_90a
.address_size 64
.visible .entry stated() .reqntid 128, 2, 1 .reqnctapercluster 2 { ret; }
.visible .entry bounded() .maxntid 256 { ret; }
.visible .entry open() { ret; }
.visible .func helper() { ret; }
.extern .func outside();
""")


def complaint(function: object, *arguments: object) -> str:
    with pytest.raises(InputError) as caught:
        function(*arguments)  # type: ignore[operator]
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "value"), [("8", (8, 1, 1)), ("8,2", (8, 2, 1)), ("8x2x3", (8, 2, 3)), (" 8 , 2 ", (8, 2, 1))]
)
def test_extents(text: str, value: tuple[int, int, int]) -> None:
    assert extents(text, "grid") == value


@pytest.mark.parametrize("text", ["0", "1,0", "-1", "", "a", "1,2,3,4", "1,,2", "1.5"])
def test_extents_that_are_none(text: str) -> None:
    assert complaint(extents, text, "grid") == (
        f"--grid {text}: one to three numbers of at least 1, e.g. --grid 8 or --grid 8,2,1"
    )


def test_entries() -> None:
    assert entry_name(MODULE, "open", "m.ptx") == "open"
    assert complaint(entry_name, MODULE, None, "m.ptx") == (
        "m.ptx: which kernel? write --kernel NAME; kernels there: stated, bounded, open"
    )
    assert complaint(entry_name, MODULE, "helper", "m.ptx") == (
        "m.ptx: no kernel is called 'helper'; kernels there: stated, bounded, open"
    )
    nothing = parse(".version 8.0\n.target sm_90a\n.address_size 64\n")
    assert complaint(entry_name, nothing, None, "n.ptx") == "n.ptx: which kernel? write --kernel NAME; kernels there: none"


def test_entries_by_their_name_in_the_source() -> None:
    several = ["_Z5saxpyifPKfPf", "_Z9transposeILi32EEvPK6__halfPS0_i", "_Z9transposeILi16EEvPK6__halfPS0_i", "saxpy2"]
    module = parse(
        ".version 8.0\n.target sm_90a\n.address_size 64\n" + "\n".join(f".visible .entry {n}() {{ ret; }}" for n in several)
    )
    assert entry_name(module, "saxpy", "m.ptx") == "_Z5saxpyifPKfPf"
    assert complaint(entry_name, module, "transpose", "m.ptx") == (
        f"m.ptx: 2 kernels are called 'transpose' in the source; write one of: {several[1]}, {several[2]}"
    )
    assert complaint(entry_name, module, "saxp", "m.ptx") == (
        f"m.ptx: no kernel is called 'saxp'; kernels there: {', '.join(several)}"
    )


def test_a_launch_takes_what_the_entry_states() -> None:
    assert launch_shape(MODULE, "stated", "4", None, None, "m.ptx") == {
        "grid": (4, 1, 1),
        "block": (128, 2, 1),
        "cluster": (2, 1, 1),
    }
    assert launch_shape(MODULE, "bounded", "4", None, "2", "m.ptx") == {
        "grid": (4, 1, 1),
        "block": (256, 1, 1),
        "cluster": (2, 1, 1),
    }
    assert launch_shape(MODULE, "stated", "4", "32", None, "m.ptx")["block"] == (32, 1, 1)


def test_a_block_that_nothing_states() -> None:
    assert complaint(launch_shape, MODULE, "open", "1", None, None, "m.ptx") == (
        "m.ptx: open does not state its block (.reqntid); write --block, e.g. --block 128"
    )
