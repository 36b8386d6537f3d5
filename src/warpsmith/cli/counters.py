"""What a run counted, as tables."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table

from warpsmith.cli.output import near

if TYPE_CHECKING:
    from warpsmith.base.source import Place
    from warpsmith.simulator.counters import Counters, Line
    from warpsmith.simulator.timeline import Timeline

__all__ = [
    "CLASSES",
    "by_class",
    "counters_json",
    "counters_rows",
    "counters_table",
    "lines_table",
    "waits_json",
    "waits_table",
]

CLASSES: dict[str, frozenset[str]] = {
    "tensor core": frozenset({"wgmma", "mma", "wmma", "tcgen05", "ldmatrix", "stmatrix", "movmatrix"}),
    "memory": frozenset(
        {"ld", "ldu", "st", "atom", "red", "prefetch", "prefetchu", "multimem", "tex", "tld4", "suld", "sust", "sured"}
    ),
    "asynchronous copy": frozenset({"cp"}),
    "barrier and fence": frozenset({"bar", "barrier", "mbarrier", "fence", "membar", "griddepcontrol", "setmaxnreg"}),
    "across lanes": frozenset({"shfl", "vote", "match", "redux", "activemask", "elect"}),
    "control": frozenset({"bra", "brx", "call", "ret", "exit", "trap", "brkpt", "nanosleep", "pmevent"}),
}
"""Class of instructions -> their opcodes; every other opcode computes."""

COMPUTE = "arithmetic"


def by_class(instructions: Counter[str]) -> dict[str, int]:
    """Add up warp-instructions by class, the most frequent first.

    >>> by_class(Counter({"wgmma": 2, "add": 5, "bar": 1}))
    {'arithmetic': 5, 'tensor core': 2, 'barrier and fence': 1}
    """
    totals: Counter[str] = Counter()
    for opcode, count in instructions.items():
        word = opcode.partition(".")[0]
        totals[next((name for name, opcodes in CLASSES.items() if word in opcodes), COMPUTE)] += count
    return dict(totals.most_common())


def counters_rows(counters: Counters) -> list[tuple[str, str, int, str]]:
    """Return (group, what, number, unit) for everything that was counted."""
    rows = [("instructions", name, count, "warp-instructions") for name, count in by_class(counters.instructions).items()]
    rows += [("data", what, count, "bytes") for what, count in counters.bytes.most_common()]
    if counters.tensor_flops:
        rows.append(("tensor cores", "matrix arithmetic", counters.tensor_flops, "FLOPs"))
    rows += [("waits", what, count, "by a warp") for what, count in counters.waits.most_common()]
    rows += [("asynchronous", what, count, "operations") for what, count in counters.async_operations.most_common()]
    return rows


def counters_json(counters: Counters) -> dict[str, object]:
    """Return what was counted as plain values."""
    return {
        "warp_instructions": counters.warp_instructions,
        "instructions": dict(counters.instructions.most_common()),
        "classes": by_class(counters.instructions),
        "bytes": dict(counters.bytes),
        "tensor_flops": counters.tensor_flops,
        "waits": dict(counters.waits),
        "async_operations": dict(counters.async_operations),
        "lines": [{"where": str(place), **asdict(line)} for place, line in _in_order(counters)],
    }


def _in_order(counters: Counters) -> list[tuple[Place | None, Line]]:
    return sorted(counters.lines.items(), key=lambda i: ("", 0, 0) if i[0] is None else (i[0].file, i[0].line, i[0].column))


def lines_table(counters: Counters, title: str = "by source line") -> Table:
    """Return what the lines did: instructions, waits, wavefronts of shared memory beyond the fewest, and how full sectors are.

    >>> lines_table(Counters()).row_count
    0
    """
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    table.add_column("line", no_wrap=True)
    for name in ("instructions", "waits", "shared requests", "wavefronts", "conflicts", "global requests", "sectors", "used"):
        table.add_column(name, justify="right")
    parts = Counter(str(place) for place in counters.lines)
    for place, line in _in_order(counters):
        used = f"{100 * line.global_bytes / (32 * line.sectors):.0f} %" if line.sectors else ""
        numbers = (
            line.instructions, line.waits, line.shared_requests, line.wavefronts, line.wavefronts - line.ideal_wavefronts,
            line.global_requests, line.sectors,
        )  # fmt: skip
        column = f":{place.column}" if place and parts[str(place)] > 1 else ""
        table.add_row(f"{near(place)}{column}", *(f"{n:,}" if n else "" for n in numbers), used)
    return table


def waits_json(timeline: Timeline) -> list[dict[str, object]]:
    """Return how often and how long each role waited at each instruction as plain values."""
    return [{**r._asdict(), "place": str(r.place)} for r in timeline.waits_by_site()]


def waits_table(timeline: Timeline, title: str = "waits by site and role") -> Table:
    """Return who waited where: times, and instructions of the clock in all and each time."""
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    table.add_column("line", no_wrap=True)
    table.add_column("instruction", no_wrap=True)
    table.add_column("role", no_wrap=True)
    for name in ("times", "in all", "each"):
        table.add_column(name, justify="right")
    for r in timeline.waits_by_site():
        table.add_row(str(near(r.place)), r.instruction, r.role, f"{r.times:,}", f"{r.total:,}", f"{r.total / r.times:,.0f}")
    return table


def counters_table(counters: Counters, title: str = "what the launch did") -> Table:
    """Return the rows as a table; a group's name stands at its first row."""
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    table.add_column("group")
    table.add_column("what")
    table.add_column("number", justify="right")
    table.add_column("unit")
    group = ""
    for name, what, number, unit in counters_rows(counters):
        table.add_row(name if name != group else "", what, f"{number:,}", unit)
        group = name
    return table
