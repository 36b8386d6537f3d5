"""Reordering and grouping keep the meaning: random straight-line programs, with and without them."""

import random

import numpy as np
import pytest

from warpsmith.simulator import blockcode, blockwriter, engine, simulate

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"


def program(seed):
    """Return a random program on 12 registers, with shared memory whose accesses often alias."""
    pick = random.Random(seed)
    r = [f"%r{i}" for i in range(2, 14)]
    lines = [f"mad.lo.u32 {x}, %r1, {i * 7 + 3}, {i};" for i, x in enumerate(r)]
    lines += [f"st.shared.u32 [%r20+{4 * i}], {x};" for i, x in enumerate(r)]
    lines.append("setp.lt.u32 %p1, %r2, 100;")
    for _ in range(120):
        a, b, c, d = (pick.choice(r) for _ in range(4))
        at = 4 * pick.randrange(12)
        lines.append(pick.choice([
            f"add.u32 {a}, {b}, {c};", f"xor.b32 {a}, {b}, {c};", f"mad.lo.u32 {a}, {b}, {c}, {d};", f"mov.u32 {a}, {b};",
            f"ld.shared.u32 {a}, [%r20+{at}];", f"st.shared.u32 [%r20+{at}], {a};", f"@%p1 add.u32 {a}, {b}, 1;",
            f"@!%p1 mov.u32 {a}, {b};", f"setp.lt.u32 %p1, {a}, {b};", f"selp.u32 {a}, {b}, {c}, %p1;",
            f"@%p1 st.shared.u32 [%r20+{at}], {a};", f"shfl.sync.bfly.b32 {a}, {b}, 1, 31, 0xffffffff;",
            f"ld.shared.v2.u32 {{{a}, {b if b != a else '%r30'}}}, [%r20+{at // 8 * 8}];",
        ]))  # fmt: skip
    lines += [f"st.global.u32 [%rd4+{4 * i}], {x};" for i, x in enumerate(r)]
    body = "\n".join(lines)
    return f"""{HEAD}.visible .entry k(.param .u64 out) {{
.reg .b32 %r<40>; .reg .b64 %rd<9>; .reg .pred %p<3>; .shared .align 16 .b8 box[4096];
ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 48; add.s64 %rd4, %rd1, %rd3;
mov.u32 %r20, box; mad.lo.u32 %r20, %r1, 64, %r20;
{body}
ret; }}"""


def run(text):
    out = np.zeros((64, 12), np.uint32)
    result = simulate(text, grid=1, block=64, args=[out])
    assert not result.findings, str(result)
    return out


@pytest.mark.parametrize("seed", range(25))
def test_the_same_results_without_reordering(seed, monkeypatch):
    text = program(seed)
    fast = run(text)
    monkeypatch.setattr(engine, "reorder", lambda operations: operations)
    monkeypatch.setattr(blockcode, "GROUPED_LANES", 0)
    assert np.array_equal(fast, run(text))
    assert len(np.unique(fast)) > 50


def test_like_operations_become_one_call(monkeypatch):
    text = program(1)
    lines = "\n".join(f"fma.rn.f32 %f{i}, %f{i}, %f40, %f41;" for _ in range(4) for i in range(8))
    text = f"""{HEAD}.visible .entry k(.param .u64 out) {{ .reg .f32 %f<48>; .reg .b64 %rd<3>;
{"".join(f"mov.f32 %f{i}, 0f3F800000;" for i in range(48))}
{lines}
ld.param.u64 %rd1, [out]; st.global.v4.f32 [%rd1], {{%f0, %f1, %f2, %f7}}; ret; }}"""
    calls = []
    compiled = blockwriter.compiled_source
    monkeypatch.setattr(blockwriter, "compiled_source", lambda source, name: calls.append(source) or compiled(source, name))
    result = simulate(text, grid=1, block=32, args=[np.zeros(4, np.float32)])
    assert not result.findings
    body = calls[0].split("def run(x):")[1]
    assert len([line for line in body.splitlines() if line.strip()]) < 14
