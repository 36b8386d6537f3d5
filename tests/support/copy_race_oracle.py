"""Random programs that copy to shared memory (`cp.async`) and read matrices there (`ldmatrix`), and which of them race.

As `lane_race_oracle`, with every access and a vector clock for each party kept. Copies are parties of their own, by warp: a
thread knows of its warp's when it has waited for its groups, or someone has told it (PTX ISA 9.7.10.28.3). Matrices are read
by a warp as one: its later writes come after that.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import NamedTuple

from race_table import THREADS, arguments

__all__ = ["LINES_BEFORE", "THREADS", "Step", "arguments", "program", "races", "text_of"]

BYTES, TIMES, LINES_BEFORE = 256, 3, 1
_WARPS = THREADS // 32
_HEAD = (
    ".version 8.0 .target sm_80 .address_size 64 .visible .entry k(.param .u64 table) { .reg .b32 %r<20>; .reg .b64 %rd<6>; "
    ".reg .b16 %h<4>; .reg .pred %p<9>; .shared .align 16 .b8 s[256]; ld.param.u64 %rd3, [table]; mov.u32 %r1, %tid.x; "
    "mul.wide.u32 %rd2, %r1, 8; add.s64 %rd1, %rd3, %rd2; mov.u32 %r2, s; mov.u32 %r3, 0; shl.b32 %r4, %r1, 2; "
    "add.u32 %r4, %r4, %r2; st.shared.b32 [%r4], 0; bar.sync 0; LOOP: shl.b32 %r10, %r3, 5;"
)
_TAIL = f" add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, {TIMES}; @%p2 bra LOOP; cp.async.wait_all; ret; }}"
_SIZES = {"b8": 1, "b16": 2, "b32": 4, "v2.b32": 8, "v4.b32": 16}
_LANES = range(32)


class Step(NamedTuple):
    """One instruction: kind, type, the threads that execute it and the address each gives (sync: its warp's mask)."""

    kind: str
    type: str
    at: dict[int, int]


def program(seed: int) -> list[Step]:
    """Return a random program: copies, a wait and a barrier, reads, a barrier; here and there something is left out."""
    rng = random.Random(seed)
    least = rng.choice(["b8", "b16", "b32", "v2.b32", "v4.b32"])
    steps: list[Step] = []
    phases = rng.randint(1, 3)
    gap = rng.randrange(12 * phases)
    for phase in range(phases):
        wait = Step(rng.choice(["wait", "committed"]), "", _all())
        reads = [_read(rng) for _ in range(rng.randint(1, 3))]
        parts = [_copies(rng), [wait], _barrier(), reads, [], _barrier()]
        parts[4] = [_store(rng, least)] if rng.random() < 0.5 else []
        if parts[4] and rng.random() < 0.9:
            parts[4] = [*_barrier(), *parts[4]]
        if gap // 6 == phase:  # in half of the programs
            parts[gap % 6] = _less(rng, parts[gap % 6])
        steps += [step for part in parts for step in part]
    return steps


def _all() -> dict[int, int]:
    return dict.fromkeys(range(THREADS), 0)


def _less(rng: random.Random, part: list[Step]) -> list[Step]:
    """Return less than a part: nothing, or a barrier of some lanes in place of one of all."""
    if [s.kind for s in part] != ["bar"] or rng.random() < 0.4:
        return part[1:]
    mask = rng.choice([0xFFFFFFFF, 0xFFFFFFFF, rng.getrandbits(32) | 1])
    return [Step("warp", "", {t: mask for t in range(THREADS) if mask >> t % 32 & 1})]


def _barrier() -> list[Step]:
    return [Step("bar", "", _all())]


def _some(rng: random.Random) -> list[int]:
    threads = list(range(THREADS))
    return rng.choice([threads, threads, threads[:32], rng.sample(threads, rng.choice([1, 3, 16]))])


def _copies(rng: random.Random) -> list[Step]:
    out: list[Step] = []
    for _ in range(rng.choice([1, 1, 1, 2])):
        size = rng.choice([4, 8, 16, 16])
        places = list(range(0, BYTES, size))
        rng.shuffle(places)
        at = dict(zip(_some(rng), places, strict=False))
        out.append(Step("copy", str(size), at))
        if rng.random() < 0.5:
            out.append(Step("commit", "", _all()))
    return out


def _read(rng: random.Random) -> Step:
    if rng.random() < 0.35:
        type_ = rng.choice(list(_SIZES))
        places = list(range(0, BYTES, _SIZES[type_]))
        return Step("ld", type_, {t: rng.choice(places) if rng.random() < 0.3 else places[t % len(places)] for t in _some(rng)})
    count = rng.choice([1, 2, 4])
    warps = rng.choice([range(_WARPS), range(_WARPS), [0], [1]])
    at: dict[int, int] = {}
    for w in warps:
        rows = [16 * r for r in range(16)]
        given = rng.sample(rows, 16) * 2 if rng.random() < 0.7 else [rng.choice(rows) for _ in _LANES]
        at |= {32 * w + lane: given[lane] for lane in _LANES}
    return Step("matrix", f"x{count}{rng.choice(['', '.trans'])}", at)


def _store(rng: random.Random, least: str) -> Step:
    type_ = rng.choice([t for t in _SIZES if _SIZES[t] >= _SIZES[least]])
    places = list(range(0, BYTES, _SIZES[type_]))
    return Step("st", type_, dict(zip(_some(rng), rng.sample(places, len(places)), strict=False)))


def text_of(steps: list[Step]) -> str:
    """Return the program, one step a line after `LINES_BEFORE` lines."""
    lines = [_HEAD]
    for i, step in enumerate(steps):
        at = i * THREADS * 8
        take = f"ld.global.v2.u32 {{%r5, %r6}}, [%rd1+{at}]; setp.ne.u32 %p1, %r6, 0; add.u32 %r7, %r5, %r2;"
        guard = "" if len(step.at) == THREADS else "@%p1 "
        lines.append(f"{take} {_instruction(step, i, guard)}")
    return "\n".join([*lines, _TAIL])


def _instruction(step: Step, i: int, guard: str) -> str:
    kind, type_, _ = step
    fill = f"add.u32 %r8, %r10, {i + 1}; mul.lo.u32 %r9, %r8, 0x01010101; cvt.u16.u32 %h1, %r8; cvt.u16.u32 %h2, %r9;"
    vector, _, element = type_.rpartition(".")
    space = f".shared{'.' + vector if vector else ''}.{element}"
    value = {"b8": "%h1", "b16": "%h2", "b32": "%r9", "v2.b32": "{%r9, %r9}", "v4.b32": "{%r9, %r9, %r9, %r9}"}.get(type_, "")
    taken = {"b32": "%r11", "v2.b32": "{%r11, %r12}", "v4.b32": "{%r11, %r12, %r13, %r14}"}.get(type_, value)
    count, _, trans = type_.partition(".")
    into = ", ".join(f"%r{11 + k}" for k in range(int(count[1:]))) if kind == "matrix" else ""
    return {
        "copy": f"{guard}cp.async.ca.shared.global [%r7], [%rd3], {type_};",
        "commit": "cp.async.commit_group;",
        "committed": "cp.async.commit_group; cp.async.wait_group 0;",
        "wait": "cp.async.wait_all;",
        "ld": f"{guard}ld{space} {taken}, [%r7];",
        "st": f"{fill} {guard}st{space} [%r7], {value};",
        "matrix": f"{guard}ldmatrix.sync.aligned.m8n8.{count}{'.trans' if trans else ''}.shared.b16 {{{into}}}, [%r7];",
        "bar": "bar.sync 0;",
        "warp": "@%p1 bar.warp.sync %r5;",
    }[kind]


@dataclass
class _Access:
    step: int
    party: int
    """A thread, or the copies of a warp: `THREADS + warp`."""
    clock: int
    write: bool
    together: bool
    """A warp reads as one."""


class _Machine:
    def __init__(self) -> None:
        self.clocks = [[0] * (THREADS + _WARPS) for _ in range(THREADS)]
        self.own = [1] * THREADS
        self.group = 1
        """Number of the open group, the same for all threads: all of them commit."""
        self.seen: dict[int, list[_Access]] = {}
        self.found: set[tuple[int, int]] = set()

    def meet(self, members: list[int]) -> None:
        if not members:
            return
        joined = [max(self.clocks[t][u] for t in members) for u in range(THREADS + _WARPS)]
        for t in members:
            joined[t] = self.own[t]
        for t in members:
            self.clocks[t] = list(joined)
            self.own[t] += 1

    def wait(self) -> None:
        for t in range(THREADS):
            self.clocks[t][THREADS + t // 32] = self.group
        self.group += 1

    def access(self, thread: int, mine: _Access, where: list[int]) -> None:
        for byte in where:
            before = self.seen.setdefault(byte, [])
            for other in before:
                warp = other.together and other.party // 32 == thread // 32
                known = other.party == thread or self.clocks[thread][other.party] >= other.clock
                if (mine.write or other.write) and not known and not warp:
                    self.found.add((other.step, mine.step))
            if not mine.write:  # a later read of a thread tells all that an earlier one does
                before[:] = [a for a in before if a.write or a.party != mine.party]
        for byte in where:
            self.seen[byte].append(mine)


def races(steps: list[Step]) -> set[tuple[int, int]]:
    """Return the pairs of steps (earlier, later) that race."""
    m = _Machine()
    for _ in range(TIMES):
        for i, step in enumerate(steps):
            if step.kind == "bar":
                m.meet(list(step.at))
            elif step.kind == "warp":
                for w in range(_WARPS):
                    m.meet([t for t in step.at if t // 32 == w])
            elif step.kind in ("wait", "committed"):
                m.wait()
            elif step.kind == "commit":
                m.group += 1
            else:
                _accesses(m, i, step)
    return m.found


def _accesses(m: _Machine, i: int, step: Step) -> None:
    for thread, at in step.at.items():
        if step.kind == "copy":
            mine = _Access(i, THREADS + thread // 32, m.group, write=True, together=False)
            m.access(thread, mine, list(range(at, at + int(step.type))))
            continue
        mine = _Access(i, thread, m.own[thread], step.kind == "st", step.kind == "matrix")
        where = list(range(at, at + _SIZES[step.type])) if step.kind != "matrix" else _matrix_bytes(step, thread)
        m.access(thread, mine, where)


def _matrix_bytes(step: Step, thread: int) -> list[int]:
    """Return the bytes that a thread gets of the matrices of its warp."""
    count, _, trans = step.type.partition(".")
    first, lane, out = thread // 32 * 32, thread % 32, []
    for matrix in range(int(count[1:])):
        rows = [step.at[first + 8 * matrix + r] for r in range(8)]
        if trans:
            out += [rows[2 * (lane % 4) + k] + 2 * (lane // 4) + b for k in (0, 1) for b in (0, 1)]
        else:
            out += [rows[lane // 4] + 4 * (lane % 4) + b for b in range(4)]
    return list(dict.fromkeys(out))
