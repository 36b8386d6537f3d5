"""Litmus tests: a few threads that each run a few instructions, and what is to be said of them under every schedule.

`%x`, `%f`, `%g` are addresses of words, 128 bytes apart and zero at first; `%v`, `%w` registers of 32 bits, `%p` a predicate.
A program has a fault if a line ends in `// race`: a finding names it, and others may name lines that end in `// race?` (the
other party, where the schedule decides who is judged).
"""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np

from warpsmith.simulator import simulate

__all__ = ["SCHEDULES", "judge", "until"]

SCHEDULES: list[dict[str, Any]] = [{}, *({"schedule": s, "seed": 1} for s in ("random", "adversarial"))]
_LABELS = count()


def until(load: str, value: int) -> str:
    """Return a loop that repeats `load` (of `%w`) until it finds a value or more."""
    label = f"L{next(_LABELS)}"
    return f"{label}: {load}; // race?\n setp.lt.u32 %p, %w, {value}; @%p bra {label};"


def _text(threads: list[str], agents: str, space: str) -> str:
    """`agents`: what the threads are, `ctas` or `warps`; `space`: where the words are."""
    who = "%ctaid.x" if agents == "ctas" else "%tid.x"
    step = 1 if agents == "ctas" else 32
    bodies = "".join(f"B{i}:\n{body}\n bra DONE;\n" for i, body in enumerate(threads))
    turns = "".join(f" setp.eq.u32 %p, %v, {i * step}; @%p bra B{i};\n" for i in range(len(threads)))
    base = " ld.param.u64 %x, [m];\n" if space == "global" else " mov.u64 %x, words;\n"
    clear = "" if space == "global" else (
        " mov.u32 %v, %tid.x; setp.ne.u32 %p, %v, 0; @%p bra READY;\n"
        " st.shared.u32 [%x], 0; st.shared.u32 [%f], 0; st.shared.u32 [%g], 0;\nREADY: bar.sync 0;\n"
    )  # fmt: skip
    return f"""
.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 m)
{{
 .reg .b32 %v, %w; .reg .b64 %x, %f, %g; .reg .pred %p;
 .shared .align 128 .b8 words[384];
{base} add.u64 %f, %x, 128; add.u64 %g, %x, 256;
{clear} mov.u32 %v, {who};
{turns} bra DONE;
{bodies}DONE:
 ret;
}}"""


def judge(threads: list[str], agents: str = "ctas", space: str = "global") -> None:
    """Assert that findings stand at marked lines only, and that there are some where lines are marked."""
    text = _text([t.replace("SPACE", space) for t in threads], agents, space)
    lines = text.splitlines()
    marked = any(line.rstrip().endswith("// race") for line in lines)
    for schedule in SCHEDULES:
        memory = np.zeros(96, np.uint32)
        shape = {"grid": len(threads), "block": 1} if agents == "ctas" else {"grid": 1, "block": 32 * len(threads)}
        result = simulate(text, **shape, args=[memory], max_steps=100_000, **schedule)
        assert result.completed, str(result)
        found = [(f.kind, lines[f.where.line - 1].strip()) for f in result.findings if f.where is not None]
        if not marked:
            assert not found, (schedule, found)
            continue
        assert {kind for kind, _ in found} == {f"{space}-race"}, (schedule, found)
        assert all(line.endswith(("// race", "// race?")) for _, line in found), (schedule, found)
        assert any(line.endswith("// race") for _, line in found), (schedule, found)
