"""The logs here were printed by ptxas 13.5; tests/tool/toolchain makes it print them again."""

from __future__ import annotations

from warpsmith.toolchain.log import Message, Resources, parse_log

CLEAN = """\
ptxas info    : 0 bytes gmem, 16 bytes cmem[3]
ptxas info    : Compiling entry function 'k1' for 'sm_90a'
ptxas info    : Function properties for k1
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 1 barriers, 1024 bytes smem, 360 bytes cmem[0], 8 bytes cmem[2]
ptxas info    : Compile time = 2.257 ms
"""
SPILLED = """\
ptxas info    : Overriding maximum register limit 256 for 'spill' with  24 of maxrregcount option
ptxas warning : Registers are spilled to local memory in function 'spill', 232 bytes spill stores, 236 bytes spill loads
ptxas info    : 4 bytes gmem
ptxas info    : Compiling entry function 'spill' for 'sm_90a'
ptxas info    : Function properties for spill
    240 bytes stack frame, 232 bytes spill stores, 236 bytes spill loads
ptxas info    : Used 24 registers, used 1 barriers, 240 bytes cumulative stack size
"""
ERRORS = """\
ptxas kernel.ptx, line 12; error   : Arguments mismatch for instruction 'add'
ptxas my, file.ptx, line 18; fatal   : Parsing error near '}': syntax error
ptxas fatal   : Ptx assembly aborted due to errors
"""
FUNCTIONS = """\
ptxas info    : (C7519) Potential Performance Loss: wgmma.mma_async instructions are serialized due to program dependence \
on compiler-inserted WG.AR in divergent path in the function 'callf' in line 49
ptxas info    : 0 bytes gmem
ptxas info    : Function properties for noinl
    16 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Compile time = 1.670 ms
ptxas info    : Compiling entry function 'callf' for 'sm_90a'
ptxas info    : Function properties for callf
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 58 registers, used 0 barriers
"""


def test_a_clean_log_has_resources_and_no_messages() -> None:
    log = parse_log(CLEAN)
    assert log.messages == ()
    assert log.resources == {
        "k1": Resources("k1", "sm_90a", registers=8, barriers=1, shared=1024, constant={0: 360, 2: 8}),
    }


def test_spills() -> None:
    log = parse_log(SPILLED)
    assert log.global_bytes == 4
    assert log.resources["spill"] == Resources(
        "spill", "sm_90a", 24, 1, stack=240, spill_stores=232, spill_loads=236, cumulative_stack=240
    )
    assert log.messages[1] == Message(
        "warning",
        "Registers are spilled to local memory in function 'spill', 232 bytes spill stores, 236 bytes spill loads",
        function="spill",
    )


def test_errors_have_lines_and_the_closing_line_is_none() -> None:
    assert parse_log(ERRORS).messages == (
        Message("error", "Arguments mismatch for instruction 'add'", line=12),
        Message("fatal", "Parsing error near '}': syntax error", line=18),
    )


def test_functions_keep_their_own_resources() -> None:
    log = parse_log(FUNCTIONS)
    assert log.resources == {
        "noinl": Resources("noinl", stack=16),
        "callf": Resources("callf", "sm_90a", registers=58),
    }
    (message,) = log.messages
    assert (message.code, message.line, message.function) == ("C7519", 49, "callf")


def test_a_line_of_zero_is_no_line() -> None:
    (message,) = parse_log("ptxas info    : (C7514) Potential Performance Loss: in the function 'ok' in line 0").messages
    assert message.line is None


def test_a_line_that_is_not_understood_is_kept() -> None:
    assert parse_log("Segmentation fault\n\n").messages == (Message("warning", "Segmentation fault"),)
