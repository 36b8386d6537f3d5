"""Registers of a load from tensor memory used before its wait: reported where a warp has done so, and only there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

ZEROS = "".join(f" mov.b32 %r{i}, 0;\n" for i in range(4)) + (
    " tcgen05.st.sync.aligned.32x32b.x4.b32 [%mine], {%r0, %r1, %r2, %r3};\n tcgen05.wait::st.sync.aligned;\n"
)
LOAD = " tcgen05.ld.sync.aligned.32x32b.x4.b32 {%r0, %r1, %r2, %r3}, [%mine];\n"
WAIT = " tcgen05.wait::ld.sync.aligned;\n"
USE = " st.global.b32 [%out], %r1;\n"
ALL = " setp.eq.u32 %p3, 0, 0;\n"
NONE = " setp.ne.u32 %p3, 0, 0;\n"
SECOND = " setp.lt.u32 %p3, %t, 64;\n"
"""In the first two warps of four."""
PAST = f" @%p3 bra PAST;\n{WAIT}PAST:\n"
TWO_WAYS = f""" @%p3 bra RIGHT;
 mov.b32 %r1, 5;
 bra MET;
RIGHT:
 mov.b32 %r2, 5;
MET:
{USE}{WAIT}"""
"""Of the ways to the use one has overwritten the register, the other a neighbour of it."""

CASES: dict[str, tuple[str, str | None]] = {
    "a wait": (LOAD + WAIT + USE, None),
    "no wait": (LOAD + USE + WAIT, "cta (0,0,0) warps 0-3 lanes 0-31"),
    "a way past the wait that nobody takes": (NONE + LOAD + PAST + USE + WAIT, None),
    "a way past the wait that all take": (ALL + LOAD + PAST + USE + WAIT, "cta (0,0,0) warps 0-3 lanes 0-31"),
    "a way past the wait that two warps take": (SECOND + LOAD + PAST + USE + WAIT, "cta (0,0,0) warps 0-1 lanes 0-31"),
    "two ways, the overwritten one taken": (NONE + LOAD + TWO_WAYS, None),
    "two ways, the other taken": (ALL + LOAD + TWO_WAYS, "cta (0,0,0) warps 0-3 lanes 0-31"),
    "a use that no lane executes": (NONE + LOAD + USE.replace(" st", " @%p3 st") + WAIT, None),
    "a use that lanes execute": (ALL + LOAD + USE.replace(" st", " @%p3 st") + WAIT, "cta (0,0,0) warps 0-3 lanes 0-31"),
    "a register written since": (LOAD + " mov.b32 %r1, 5;\n" + USE + WAIT, None),
    "a loop that waits at its end": (
        f" mov.b32 %r9, 0;\nL:\n{LOAD} add.u32 %r9, %r9, 1; setp.lt.u32 %p4, %r9, 3;\n{WAIT}{USE} @%p4 bra L;\n", None
    ),
    "a loop that uses what its last turn has loaded": (
        f" mov.b32 %r9, 0;\nL:\n{USE}{LOAD} add.u32 %r9, %r9, 1; setp.lt.u32 %p4, %r9, 3;\n @%p4 bra L;\n{WAIT}",
        "cta (0,0,0) warps 0-3 lanes 0-31",
    ),
}  # fmt: skip
"""Program -> the threads of its finding."""


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("order", [{}, {"schedule": "random", "seed": 0}])
def test_what_a_warp_has_executed_decides(run: Any, case: str, order: dict[str, Any]) -> None:
    middle, threads = CASES[case]
    out = np.zeros(128, np.uint32)
    result = run(ZEROS + middle, out, columns=32, **order)
    found = [(f.kind, f.severity, f.message) for f in result.findings]
    message = "`st.global.b32` uses registers of `tcgen05.ld.sync.aligned.32x32b.x4.b32` without tcgen05.wait::ld between them"
    assert found == ([] if threads is None else [("missing-tcgen05-wait", "portability", message)])
    if threads is not None and not order:
        assert result.findings[0].threads == threads
    assert result.completed


def test_a_use_is_named_in_every_place(run: Any) -> None:
    """Two loads, each used early at a line of its own."""
    again = LOAD.replace("%r0, %r1, %r2, %r3", "%r4, %r5, %r6, %r7")
    result = run(ZEROS + LOAD + again + USE + USE.replace("%r1", "%r5") + WAIT, np.zeros(128, np.uint32), columns=32)
    assert [f.kind for f in result.findings] == ["missing-tcgen05-wait"] * 2
    first, second = result.findings
    assert (second.where.line - first.where.line, second.related[0].where.line - first.related[0].where.line) == (1, 1)
