"""Complaints of ptxas become findings at the user's line; the texts are ptxas 13.5's."""

from __future__ import annotations

import pytest

from warpsmith.base.source import Place
from warpsmith.toolchain.log import parse_log
from warpsmith.toolchain.messages import findings_of
from warpsmith.toolchain.places import place_lines

PTX = """\
.version 8.0
.target sm_90a
.address_size 64
.file 1 "kern.py"
.visible .entry k1(.param .u64 p)
{
 .reg .b32 %r<8>;
 .loc 1 10 5
 setmaxnreg.inc.sync.aligned.u32 160;
 .loc 1 11 0
 add.f32 %r1, %rd1, 1;
 ret;
}
.visible .entry bare(.param .u64 p)
{
 ret;
}
"""
SERIALISED = "ptxas info    : (C7514) Potential Performance Loss: wgmma.mma_async instructions are serialized due to"


def say(log: str, text: str = PTX) -> str:
    return "\n".join(map(str, findings_of(parse_log(log), text)))


def test_loc_directives_give_the_users_lines() -> None:
    places = place_lines(PTX)
    assert places[9] == Place("kern.py", 10, 5)
    assert places[12] == Place("kern.py", 11)
    assert not {1, 5, 7, 14, 16} & places.keys()


def test_a_file_that_was_never_declared_is_named_by_its_number() -> None:
    assert place_lines(".loc 7 3 1")[1] == Place("<file 7>", 3, 1)


def test_an_error_stands_at_the_users_line_and_shows_the_ptx() -> None:
    assert say("ptxas kernel.ptx, line 11; error   : Arguments mismatch for instruction 'add'") == (
        "kern.py:11: error[ptxas-error]: Arguments mismatch for instruction 'add'\n  <ptx>:11: add.f32 %r1, %rd1, 1;"
    )


def test_without_loc_the_ptx_line_is_named() -> None:
    assert say("ptxas kernel.ptx, line 16; error   : Unknown symbol 'q'") == (
        "<ptx>:16: error[ptxas-error]: Unknown symbol 'q'\n  <ptx>:16: ret;"
    )


def test_places_that_are_given_win() -> None:
    log = parse_log("ptxas kernel.ptx, line 16; error   : Unknown symbol 'q'")
    (finding,) = findings_of(log, PTX, {16: Place("mine.py", 3)}, "k.ptx")
    assert str(finding) == "mine.py:3: error[ptxas-error]: Unknown symbol 'q'\n  k.ptx:16: ret;"


def test_setmaxnreg_ignored_stands_at_the_instruction() -> None:
    said = "(C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to determine register count at entry."
    assert say(f"ptxas info    : {said}") == (
        "kern.py:10: note[setmaxnreg-ignored]: "
        "Potential Performance Loss: 'setmaxnreg' ignored; unable to determine register count at entry. (C7508)\n"
        "  <ptx>:9: setmaxnreg.inc.sync.aligned.u32 160;\n"
        "  repair: Add `.maxnreg`, or `.minnctapersm` beside `.maxntid` or `.reqntid`."
    )


@pytest.mark.parametrize(
    ("reason", "repair"),
    [
        ("non wgmma instructions reading accumulator registers of  a wgmma", "Read accumulators after wgmma.wait_group."),
        (
            "non wgmma instructions defining input registers of a wgmma",
            "Write the A fragment before wgmma.fence, or after wgmma.wait_group.",
        ),
        (
            "insufficient register resources for the wgmma pipeline",
            "Use fewer or smaller accumulators, or give the warpgroup more registers.",
        ),
        (
            "ill formed pipeline stage",
            "Put wgmma.fence before, and commit_group and wait_group after, on every path.",
        ),
    ],
)
def test_wgmma_serialised_says_how_to_mend_it(reason: str, repair: str) -> None:
    (finding,) = findings_of(parse_log(f"{SERIALISED} {reason} in the function 'k1' in line 11"), PTX)
    assert (finding.kind, finding.severity, finding.where, finding.repair) == (
        "wgmma-serialised",
        "note",
        Place("kern.py", 11),
        repair,
    )


def test_a_complaint_about_a_function_stands_at_its_first_line() -> None:
    assert say("ptxas error   : Entry function 'k1' uses too much shared data (0x493e0 bytes, 0x38c00 max)") == (
        "kern.py:10: error[ptxas-error]: Entry function 'k1' uses too much shared data (0x493e0 bytes, 0x38c00 max)\n"
        "  <ptx>:5: .visible .entry k1(.param .u64 p)\n"
        "  repair: Use dynamic shared memory (`extern .shared`) or smaller buffers."
    )


def test_spills_are_read_from_the_resources() -> None:
    log = (
        "ptxas info    : Compiling entry function 'k1' for 'sm_90a'\nptxas info    : Function properties for k1\n"
        "    232 bytes stack frame, 232 bytes spill stores, 236 bytes spill loads\nptxas info    : Used 24 registers\n"
    )
    assert say(log) == (
        "kern.py:10: note[register-spill]: "
        "k1: 232 bytes are spilled to local memory and 236 bytes read back; it has 24 registers\n"
        "  repair: Keep fewer values alive at once, or allow more registers: a smaller block, setmaxnreg, --maxrregcount."
    )


def test_a_clean_log_has_no_findings() -> None:
    assert say("ptxas info    : 0 bytes gmem") == ""


def test_long_lines_are_cut() -> None:
    text = PTX.replace(" ret;\n}\n.visible", f" mov.b32 {{{', '.join(['%r1'] * 60)}}}, %r2;\n}}\n.visible", 1)
    (finding,) = findings_of(parse_log("ptxas k.ptx, line 12; error   : no"), text)
    assert len(finding.related[0].message) == 100
    assert finding.related[0].message.endswith("...")
