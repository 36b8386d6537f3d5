"""tests/data/cuda/synchronisation.cu: correct programs with faulty twins, and what is to be said of each twin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ptx_corpus import sample
from warpsmith.simulator import simulate

__all__ = ["CORRECT", "FAULTY", "HARMLESS", "judge", "run"]

_SOURCE = (Path(__file__).parents[1] / "data" / "cuda" / "synchronisation.cu").read_text().splitlines()
_FILE = "nvcc/synchronisation.sm_90a.lines"
_THREADS = {"last_block": 32, "named_barriers": 64, "once": 64}

_TWINS = """
spin_lock            global-race global-race
cas_lock             - -
ticket_lock          global-race global-race
sequence_lock        global-race
peterson             global-race
last_block           global-race global-race global-race
look_back            global-race global-race global-race
packed_status
aggregated_atomics
double_buffer        shared-race
volatile_reduction   -
warp_reduction       shared-race shared-race
named_barriers       shared-race
grid_barrier         global-race global-race
stream_k             - global-race
histogram            shared-race shared-race
barrier_phases       shared-race
async_stages         async-read-before-complete async-read-before-complete async-overwrite
peer_exchange        shared-race cluster-exit
ring                 global-race global-race
scopes               global-race
transpose            shared-race
counter_chain        global-race
block_scan           shared-race shared-race
once                 shared-race shared-race
readers_and_writers  global-race global-race
"""
"""Program, then the kind of finding that its variants 1, 2, … must give; -: no fault after all, as the source says."""

_FOLLOWS = {
    "named_barriers": {"uninitialised-read"},
    "histogram": {"uninitialised-read"},
    "async_stages": {"uninitialised-read", "leftover", "shared-race", "async-read-before-complete"},
    "peer_exchange": {"peer-lifetime", "uninitialised-read"},
    "transpose": {"uninitialised-read"},
    "block_scan": {"uninitialised-read"},
}
"""Kinds that a fault may give besides, wherever it shows."""

_ROWS = [line.split() for line in _TWINS.split("\n") if line]
CORRECT = [f"{name}_0" for name, *_ in _ROWS]
FAULTY = {f"{name}_{i}": kind for name, *kinds in _ROWS for i, kind in enumerate(kinds, 1) if kind != "-"}
HARMLESS = [f"{name}_{i}" for name, *kinds in _ROWS for i, kind in enumerate(kinds, 1) if kind == "-"]


def run(kernel: str, **options: Any) -> Any:
    """Run a variant on four CTAs."""
    arrays = [np.zeros(2048, np.uint32), np.zeros(2048, np.uint32)]
    threads = _THREADS.get(kernel.rpartition("_")[0], 128)
    return simulate(sample(_FILE), kernel=kernel, grid=4, block=threads, args=arrays, max_steps=200_000, **options)


def judge(kernel: str, findings: list[Any]) -> list[str]:
    """Return what is wrong with the findings of a faulty variant: its kind and line are named, and nothing else."""
    name, _, variant = kernel.rpartition("_")
    kind = FAULTY[kernel]
    marked = {i for i, line in enumerate(_SOURCE, 1) if f"fault {variant}" in line}
    wrong: list[str] = []
    named = False
    for f in findings:
        here = f.where.file.endswith("synchronisation.cu")
        if f.kind == kind and (f.where.line in marked if here else f.where.file.startswith("cuda/include/")):
            named = True
        elif f.kind not in _FOLLOWS.get(name, ()):
            wrong.append(f"{kernel}: {f.kind} at {f.where}")
    return wrong if named else [*wrong, f"{kernel}: no {kind} at a marked line"]
