"""Conversions whose result is narrower than its register extend it, also where several become one call (PTX ISA 9.4.1)."""

from __future__ import annotations

import numpy as np
import pytest

from warpsmith.simulator import simulate

TEXT = """.version 8.0
.target sm_90
.address_size 64
.entry k(.param .u64 given, .param .u64 out)
{{
    .reg .b32 %r<12>;
    .reg .b64 %d<8>;
    .reg .b16 %h<8>;
    .reg .pred %p;
    ld.param.u64 %d0, [given];
    ld.param.u64 %d1, [out];
    mov.u32 %r0, %tid.x;
    mad.wide.u32 %d0, %r0, 16, %d0;
    mad.wide.u32 %d1, %r0, 32, %d1;
    ld.global.v4.b32 {{%r4, %r5, %r6, %r7}}, [%d0];
    mov.b64 %d4, -1;
    mov.b64 %d5, -1;
    mov.b64 %d6, -1;
    mov.b64 %d7, -1;
    {before}
    {body}
    {after}
    st.global.v2.b64 [%d1], {{%d4, %d5}};
    st.global.v2.b64 [%d1+16], {{%d6, %d7}};
    ret;
}}
"""
GIVEN = np.random.default_rng(0).integers(0, 1 << 32, (32, 4), dtype=np.uint32)
NARROW = [(f"{s}{bits}", width) for s in "su" for bits in (8, 16, 32) for width in (16, 32, 64) if bits <= width]
ORDERS = {"up": (0, 1, 2, 3), "down": (3, 2, 1, 0), "every other": (0, 2), "one": (1,)}
WHERE = {"all lanes": ("", ""), "some lanes": ("and.b32 %r1, %r0, 3; setp.ne.u32 %p, %r1, 0; @%p bra done;", "done:")}


def extended(values: np.ndarray, kind: str) -> np.ndarray:
    """The low part of words as a type, extended to 64 bits by its sign."""
    return values.astype(np.uint32).astype(f"{'i' if kind[0] == 's' else 'u'}{int(kind[1:]) // 8}").astype(np.int64)


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("lanes", WHERE)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("kind", "width"), NARROW)
def test_conversions_extend_to_the_register(kind: str, width: int, order: str, lanes: str, check: bool) -> None:
    name = {16: "%h{}", 32: "%r{}", 64: "%d{}"}[width]
    places = [name.format(i + (8 if width == 32 else 4)) for i in range(4)]
    convert = [f"cvt.{kind}.s32 {places[i]}, %r{4 + i};" for i in ORDERS[order]]
    fill = [] if width == 64 else [f"mov.b{width} {p}, -1;" for p in places]
    show = [] if width == 64 else [f"cvt.s64.s{width} %d{4 + i}, {p};" for i, p in enumerate(places)]
    before, after = WHERE[lanes]
    text = TEXT.format(before="\n".join([*fill, before]), body="\n".join(convert), after="\n".join([after, *show]))
    out = np.zeros((32, 4), np.int64)
    result = simulate(text, kernel="k", grid=1, block=32, args=[GIVEN, out], check=check)
    assert not result.findings, str(result)
    want = np.full((32, 4), -1, np.int64)
    taking = np.arange(32) % 4 == 0 if before else np.ones(32, np.bool_)
    for i in ORDERS[order]:
        values = extended(GIVEN[:, i], kind)
        shown = values if width == 64 else values.astype(f"i{width // 8}").astype(np.int64)
        want[taking, i] = shown[taking]
    assert np.array_equal(out, want)
