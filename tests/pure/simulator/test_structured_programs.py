"""Random structured programs (branches, loops, break, continue, calls, barriers) against a thread-by-thread interpreter."""

from __future__ import annotations

import random

import numpy as np
import pytest

from warpsmith.simulator import simulate

VARIABLES = 6
MASK = 0xFFFFFFFF


class BreakLoopError(Exception):
    """Leaves the innermost loop."""


class ContinueLoopError(Exception):
    """Goes on with the next round of the innermost loop."""


def generate(pick: random.Random, depth: int, in_loop: bool):
    """Return a list of statements: tuples whose first item names the form."""
    out = []
    for _ in range(pick.randrange(1, 5)):
        kinds = (
            ["assign"] * 4 + (["if", "if", "loop", "call"] if depth else ["call"]) + (["break", "continue"] if in_loop else [])
        )
        kind = pick.choice(kinds)
        v = [pick.randrange(VARIABLES) for _ in range(3)]
        if kind == "assign":
            out.append(("assign", *v, pick.choice(["add", "xor", "sub"]), pick.randrange(1, 9)))
        elif kind == "if":
            out.append(
                ("if", v[0], pick.randrange(2, 6), generate(pick, depth - 1, in_loop), generate(pick, depth - 1, in_loop))
            )
        elif kind == "loop":
            out.append(("loop", v[0], pick.randrange(2, 6), generate(pick, depth - 1, True)))
        elif kind == "call":
            out.append(("call", v[0], v[1]))
        else:
            out.append((kind, v[0], pick.randrange(3, 7)))
    return out


def interpret(body, x):
    """Run statements on the variables `x` of one thread."""
    for s in body:
        if s[0] == "assign":
            a, b = x[s[2]], x[s[3]]
            x[s[1]] = ({"add": a + b, "xor": a ^ b, "sub": a - b}[s[4]] + s[5]) & MASK
        elif s[0] == "if":
            interpret(s[3] if x[s[1]] % s[2] == 0 else s[4], x)
        elif s[0] == "loop":
            for _ in range(x[s[1]] % s[2]):
                try:
                    interpret(s[3], x)
                except ContinueLoopError:
                    continue
                except BreakLoopError:
                    break
        elif s[0] == "call":
            x[s[1]] = (x[s[2]] // 2 if x[s[2]] % 2 == 0 else 3 * x[s[2]] + 1) & MASK
        elif x[s[1]] % s[2] == 0:
            raise BreakLoopError if s[0] == "break" else ContinueLoopError


class Emitter:
    """Writes PTX of a program."""

    def __init__(self):
        self.lines: list[str] = []
        self.labels = 0
        self.counters = 0

    def label(self):
        self.labels += 1
        return f"L{self.labels}"

    def test(self, v, modulus, target, *, when_zero):
        self.lines.append(
            f"rem.u32 %t1, %v{v}, {modulus}; setp.eq.u32 %p1, %t1, 0; @{'' if when_zero else '!'}%p1 bra {target};"
        )

    def body(self, statements, loop=None):
        for s in statements:
            getattr(self, s[0] if s[0] not in ("break", "continue", "if") else "jump" if s[0] != "if" else "choose")(s, loop)

    def assign(self, s, _):
        self.lines.append(
            f"{s[4]}{'.b32' if s[4] == 'xor' else '.u32'} %t1, %v{s[2]}, %v{s[3]}; add.u32 %v{s[1]}, %t1, {s[5]};"
        )

    def choose(self, s, loop):
        other, end = self.label(), self.label()
        self.test(s[1], s[2], other, when_zero=False)
        self.body(s[3], loop)
        self.lines.append(f"bra {end};\n{other}:")
        self.body(s[4], loop)
        self.lines.append(f"{end}:")

    def loop(self, s, _):
        head, end, following = self.label(), self.label(), self.label()
        n = self.counters = self.counters + 1
        self.lines.append(
            f"rem.u32 %n{n}, %v{s[1]}, {s[2]};\n{head}: setp.eq.u32 %p1, %n{n}, 0; @%p1 bra {end}; sub.u32 %n{n}, %n{n}, 1;"
        )
        self.body(s[3], (following, end))
        self.lines.append(f"{following}: bra {head};\n{end}:")

    def jump(self, s, loop):
        self.test(s[1], s[2], loop[1] if s[0] == "break" else loop[0], when_zero=True)

    def call(self, s, _):
        self.lines.append(
            "{ .param .b32 a; .param .b32 r; st.param.b32 [a], %v"
            + f"{s[2]}; call (r), step, (a); ld.param.b32 %v{s[1]}, [r]; }}"
        )


def text_of(statements, collective):
    e = Emitter()
    e.body(statements)
    tail = "bar.sync 0; shfl.sync.bfly.b32 %t1, %v0, 1, 31, 0xffffffff; add.u32 %v0, %v0, %t1;" if collective else ""
    stores = "\n".join(f"st.global.u32 [%rd4+{4 * i}], %v{i};" for i in range(VARIABLES))
    starts = "\n".join(f"mad.lo.u32 %v{i}, %r1, {2 * i + 1}, {i * i};" for i in range(VARIABLES))
    return f""".version 8.0
.target sm_90
.address_size 64
.func (.param .b32 r) step(.param .b32 a)
{{ .reg .b32 %x<4>; .reg .pred %q; ld.param.b32 %x1, [a]; and.b32 %x2, %x1, 1; setp.eq.u32 %q, %x2, 0; @%q bra EVEN;
  mad.lo.u32 %x3, %x1, 3, 1; st.param.b32 [r], %x3; ret;
EVEN: shr.u32 %x3, %x1, 1; st.param.b32 [r], %x3; ret; }}
.visible .entry k(.param .u64 out)
{{ .reg .b32 %v<{VARIABLES}>; .reg .b32 %n<{e.counters + 2}>; .reg .b32 %t<3>;
.reg .b32 %r<3>; .reg .b64 %rd<5>; .reg .pred %p<3>;
ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mad.lo.u32 %r1, %r2, 64, %r1;
mul.wide.u32 %rd3, %r1, {4 * VARIABLES}; add.s64 %rd4, %rd1, %rd3;
{starts}
{chr(10).join(e.lines)}
{tail}
{stores}
ret; }}"""


@pytest.mark.parametrize("seed", range(24))
def test_every_thread_computes_what_the_interpreter_says(seed):
    pick = random.Random(seed)
    statements = generate(pick, 4, False)
    want = np.zeros((128, VARIABLES), np.uint32)
    for t in range(128):
        x = [(t * (2 * i + 1) + i * i) & MASK for i in range(VARIABLES)]
        interpret(statements, x)
        want[t] = x
    want[:, 0] += want[np.arange(128) ^ 1, 0]
    text = text_of(statements, True)
    for order in ({}, {"schedule": "random", "seed": seed}):
        out = np.zeros((128, VARIABLES), np.uint32)
        result = simulate(text, grid=2, block=64, args=[out], max_steps=100_000, **order)
        assert not result.findings, str(result)
        assert np.array_equal(out, want)
