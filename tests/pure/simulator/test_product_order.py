"""Products and matrix loads are reordered, and products of one A done as one: random blocks of them, with and without."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from warpsmith.simulator import blockcode, engine, simulate
from warpsmith.simulator.meanings import mma_wide

HEAD = ".version 8.7\n.target sm_89\n.address_size 64\n"
FORMS = {
    "m16n8k16.row.col.f32.f16.f16.f32": (4, 4, 2, 4),
    "m16n8k16.row.col.f16.f16.f16.f16": (2, 4, 2, 2),
    "m16n8k8.row.col.f32.bf16.bf16.f32": (4, 2, 1, 4),
    "m16n8k8.row.col.f32.tf32.tf32.f32": (4, 4, 2, 4),
    "m16n8k32.row.col.satfinite.s32.s8.s8.s32": (4, 4, 2, 4),
    "m8n8k32.row.col.s32.u4.u4.s32": (2, 1, 1, 2),
    "m16n8k32.row.col.f32.e4m3.e5m2.f32": (4, 4, 2, 4),
}
"""Form → registers of D, A, B, C."""
POOL = 24


def program(seed: int) -> str:
    """Return a random block: products on two A's and a pool of registers, loads and stores that alias, what may not move."""
    pick = random.Random(seed)
    some = pick.sample(list(FORMS), 2)
    pool = [f"%r{i}" for i in range(2, 2 + POOL)]
    lines = [
        f"mul.lo.u32 {r}, %r1, {0x9E3779B1 * (i + 3) % (1 << 32)}; and.b32 {r}, {r}, 0xb7ffb7ff;" for i, r in enumerate(pool)
    ]
    lines += [f"mov.u32 %r{30 + i}, {pool[(5 * i) % POOL]};" for i in range(8)]
    lines += [f"st.shared.u32 [%r60+{4 * i}], {pool[i]};" for i in range(16)] + ["setp.lt.u32 %p1, %r1, 32;"]

    def vector(count: int, first: int | None = None) -> str:
        at = pick.randrange(0, POOL - count + 1, count) if first is None else first
        return f"{{{', '.join(f'%r{2 + at + i}' for i in range(count))}}}"

    for _ in range(60):
        form = pick.choice(some)
        d, a, b, c = FORMS[form]
        left = f"{{{', '.join(f'%r{pick.choice((30, 34)) if i < 0 else 30 + i}' for i in range(a))}}}"
        if pick.random() < 0.3:
            left = f"{{{', '.join(f'%r{34 + i % 4}' for i in range(a))}}}"
        to = vector(d)
        product = f"mma.sync.aligned.{form} {to}, {left}, {vector(b)}, {to if pick.random() < 0.7 else vector(c)};"
        count = pick.choice((1, 2, 4))
        trans = pick.choice(("", ".trans"))
        others = [
            f"ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {vector(count)}, [%r60+{16 * pick.randrange(4)}];",
            f"st.shared.u32 [%r60+{4 * pick.randrange(16)}], {pick.choice(pool)};",
            f"ld.shared.u32 {pick.choice(pool)}, [%r60+{4 * pick.randrange(16)}];",
            f"add.u32 {pick.choice(pool)}, {pick.choice(pool)}, {pick.choice(pool)};",
            f"@%p1 mov.u32 {pick.choice(pool)}, {pick.choice(pool)};",
            f"mov.u32 %r{30 + pick.randrange(8)}, {pick.choice(pool)};",
        ]
        lines.append(product if pick.random() < 0.65 else pick.choice(others))
        if pick.random() < 0.2:  # sums taken for narrower numbers become NaN, and spread
            lines += [f"and.b32 {r}, {r}, 0xb7ffb7ff;" for r in pool]
    lines += [f"st.global.u32 [%rd4+{4 * i}], {r};" for i, r in enumerate(pool)]
    body = "\n".join(lines)
    return f"""{HEAD}.visible .entry k(.param .u64 out) {{
.reg .b32 %r<64>; .reg .b64 %rd<9>; .reg .pred %p<3>; .shared .align 16 .b8 box[4096];
ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, {4 * POOL}; add.s64 %rd4, %rd1, %rd3;
mov.u32 %r60, box; mad.lo.u32 %r60, %r1, 64, %r60;
{body}
ret; }}"""


def run(text: str) -> Any:
    out = np.zeros((64, POOL), np.uint32)
    simulate(text, grid=1, block=64, args=[out], check=False)
    return out


@pytest.mark.parametrize("seed", range(20))
def test_the_same_results_one_by_one_in_order(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    widths: list[int] = []
    together = mma_wide._together
    monkeypatch.setattr(mma_wide, "_together", lambda x, o, *more: widths.append(len(o)) or together(x, o, *more))
    text = program(seed)
    fast = run(text)
    assert max(widths) > 1
    widths.clear()
    monkeypatch.setattr(engine, "reorder", lambda operations: operations)
    monkeypatch.setattr(blockcode, "GROUPED_LANES", 0)
    assert np.array_equal(fast, run(text))
    assert (widths, len(np.unique(fast)) > 20) == ([], True)
