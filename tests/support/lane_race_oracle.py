"""Random programs of lanes that share memory, and which of them race, found the slow way.

The oracle keeps every access of every thread and a vector clock for each (PTX ISA 8.7, 8.9): two accesses race when they
share a byte, one is a write, they are of different threads, not both strong, and no barrier orders them.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import NamedTuple

from race_table import THREADS, arguments

__all__ = ["BYTES", "LINES_BEFORE", "THREADS", "Step", "arguments", "program", "races", "text_of"]

BYTES, TIMES, LINES_BEFORE = 48, 2, 1
_HEAD = (
    ".version 8.0 .target sm_90 .address_size 64 .visible .entry k(.param .u64 table) { .reg .b32 %r<20>; .reg .b64 %rd<6>; "
    ".reg .b16 %h<4>; .reg .pred %p<9>; .shared .align 16 .b8 s[256]; ld.param.u64 %rd1, [table]; mov.u32 %r1, %tid.x; "
    "mul.wide.u32 %rd2, %r1, 8; add.s64 %rd1, %rd1, %rd2; mov.u32 %r2, s; mov.u32 %r3, 0; shl.b32 %r4, %r1, 2; "
    "add.u32 %r4, %r4, %r2; st.shared.b32 [%r4], 0; bar.sync 0; LOOP: shl.b32 %r10, %r3, 5;"
)
_TAIL = f" add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, {TIMES}; @%p2 bra LOOP; ret; }}"
_SIZES = {"b8": 1, "b16": 2, "b32": 4, "v2.b32": 8}


class Step(NamedTuple):
    """One instruction: kind, type, the threads that execute it and the first byte each accesses (sync: its warp's mask)."""

    kind: str
    type: str
    at: dict[int, int]


def _addresses(rng: random.Random, size: int, *, apart: bool) -> dict[int, int]:
    places = list(range(0, BYTES, size))
    threads = rng.sample(range(THREADS), rng.choice([1, 2, 3, 6, 20, THREADS]))
    if rng.random() < 0.6:
        threads = [t for t in threads if t < 32] or [0]
    if not apart and rng.random() < 0.4:
        return {t: places[t // 4 % len(places)] for t in threads}
    if not apart:
        return {t: rng.choice(places) for t in threads}
    return dict(zip(threads, rng.sample(places, len(places)), strict=False))


def program(seed: int) -> list[Step]:
    """Return a random program: barriers of the CTA around every store but one, where a warp or nobody waits."""
    rng = random.Random(seed)
    steps: list[Step] = []
    kinds = rng.choice([["ld"], ["ld", "ld", "volatile"]])
    phases = rng.randint(1, 3)
    weak = rng.randrange(2 * phases)
    for phase in range(phases):
        for _ in range(rng.randint(1, 3)):
            type_ = rng.choice(list(_SIZES))
            steps.append(Step(rng.choice(kinds), type_, _addresses(rng, _SIZES[type_], apart=False)))
        steps += _barrier(rng, weak=weak == 2 * phase)
        kind = rng.choice(["st", "st", "atom", "st.volatile" if len(kinds) > 1 else "st"])
        type_ = "b32" if kind == "atom" else rng.choice(list(_SIZES))
        steps.append(Step(kind, type_, _addresses(rng, _SIZES[type_], apart=kind != "atom")))
        steps += _barrier(rng, weak=weak == 2 * phase + 1)
    return steps


def _barrier(rng: random.Random, *, weak: bool) -> list[Step]:
    if not weak:
        return [Step("bar", "", dict.fromkeys(range(THREADS), 0))]
    mask = rng.choice([0, 0xFFFFFFFF, 0xFFFFFFFF, rng.getrandbits(32) | 1])
    return [Step("warp", "", {t: mask for t in range(THREADS) if mask >> t % 32 & 1})] if mask else []


def text_of(steps: list[Step]) -> str:
    """Return the program, one step a line after `LINES_BEFORE` lines."""
    lines = [_HEAD]
    for i, (kind, type_, _) in enumerate(steps):
        at = i * THREADS * 8
        take = f"ld.global.v2.u32 {{%r5, %r6}}, [%rd1+{at}]; setp.ne.u32 %p1, %r6, 0; add.u32 %r7, %r5, %r2;"
        fill = f"add.u32 %r8, %r10, {i + 1}; mul.lo.u32 %r9, %r8, 0x01010101; cvt.u16.u32 %h1, %r8; cvt.u16.u32 %h2, %r9;"
        space = ".shared" + (".v2" if type_.startswith("v2") else "") + "." + type_.rpartition(".")[2]
        value = {"b8": "%h1", "b16": "%h2", "b32": "%r9", "v2.b32": "{%r9, %r9}"}.get(type_, "")
        taken = {"b32": "%r11", "v2.b32": "{%r11, %r12}"}.get(type_, value)
        do = {
            "ld": f"@%p1 ld{space} {taken}, [%r7];",
            "volatile": f"@%p1 ld.volatile{space} {taken}, [%r7];",
            "st": f"{fill} @%p1 st{space} [%r7], {value};",
            "st.volatile": f"{fill} @%p1 st.volatile{space} [%r7], {value};",
            "atom": "@%p1 atom.shared.add.u32 %r11, [%r7], 1;",
            "bar": "bar.sync 0;",
            "warp": "@%p1 bar.warp.sync %r5;",
        }[kind]
        lines.append(f"{take} {do}")
    return "\n".join([*lines, _TAIL])


@dataclass
class _Access:
    step: int
    thread: int
    clock: int
    write: bool
    strong: bool


def races(steps: list[Step]) -> set[tuple[int, int]]:
    """Return the pairs of steps (earlier, later) that race."""
    clocks = [[0] * THREADS for _ in range(THREADS)]
    own = [1] * THREADS
    seen: dict[int, list[_Access]] = {}
    found: set[tuple[int, int]] = set()
    for _ in range(TIMES):
        for i, step in enumerate(steps):
            if step.kind in ("bar", "warp"):
                groups = [list(step.at)] if step.kind == "bar" else [[t for t in step.at if t // 32 == w] for w in (0, 1)]
                for members in groups:
                    _meet(clocks, own, members)
                continue
            write, strong = step.kind.startswith(("st", "atom")), step.kind not in ("ld", "st")
            for thread, at in step.at.items():
                mine = _Access(i, thread, own[thread], write, strong)
                for byte in range(at, at + _SIZES[step.type]):
                    for other in seen.get(byte, ()):
                        if (
                            other.thread != thread
                            and (write or other.write)
                            and not (strong and other.strong)
                            and clocks[thread][other.thread] < other.clock
                        ):
                            found.add((other.step, i))
                    seen.setdefault(byte, []).append(mine)
    return found


def _meet(clocks: list[list[int]], own: list[int], members: list[int]) -> None:
    joined = [max(clocks[t][u] for t in members) for u in range(THREADS)] if members else []
    for t in members:
        joined[t] = own[t]
    for t in members:
        clocks[t] = list(joined)
        own[t] += 1
