"""Functions that call themselves: registers, parameters and local variables of their own for each call."""

from __future__ import annotations

import numpy as np
import pytest

from warpsmith.simulator import simulate

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
FRAME = """
.func (.reg .b32 %out) sum(.reg .b32 %n, .reg .b64 %up)
{{
    .local .align 16 .b8 own[{bytes}];
    .reg .b32 %r<8>;
    .reg .b64 %d<8>;
    .reg .pred %p;
    {body}
}}
"""
KERNEL = """
.entry k(.param .u64 out)
{{
    .local .align 8 .b8 top[16];
    .reg .b32 %r<8>;
    .reg .b64 %d<4>;
    mov.u32 %r1, %tid.x;
    rem.u32 %r2, %r1, {most};
    mov.u64 %d1, top;
    st.local.u32 [top], 0;
    call (%r3), sum, (%r2, %d1);
    ld.local.u32 %r4, [top];
    ld.param.u64 %d2, [out];
    mad.wide.u32 %d2, %r1, 8, %d2;
    st.global.v2.u32 [%d2], {{%r3, %r4}};
    ret;
}}
"""
# every call stores n in its own variable, adds n to its caller's, and returns n + what the inner call gives
ADDRESSES = [
    ("mov.u64 %d1, own;", "[own]", "[own+4]"),
    ("mov.u64 %d1, own;", "[%d1]", "[%d1+4]"),
    ("mov.u64 %d1, own+8; sub.u64 %d1, %d1, 8;", "[own]", "[%d1+4]"),
    ("{ .reg .b32 %x; mov.u32 %x, own; cvt.u64.u32 %d1, %x; }", "[%d1]", "[own+4]"),
    ("mov.b64 %d1, own;", "own[0]", "own[4]"),
]
BODY = """
    {address}
    st.local.u32 {inner}, 0;
    st.local.u32 {mine}, %n;
    mov.u32 %r2, 0;
    setp.eq.u32 %p, %n, 0;
    @%p bra done;
    sub.u32 %r1, %n, 1;
    call (%r2), sum, (%r1, %d1);
done:
    ld.local.u32 %r3, {mine};
    ld.local.u32 %r4, {inner};
    ld.local.u32 %r5, [%up];
    add.u32 %r5, %r5, %r3;
    add.u32 %r5, %r5, %r4;
    st.local.u32 [%up], %r5;
    add.u32 %out, %r2, %r3;
    ret;"""


def text(body: str, most: int = 9, size: int = 16) -> str:
    return HEAD + FRAME.format(body=body, bytes=size) + KERNEL.format(most=most)


@pytest.mark.parametrize("schedule", ["fair", "random", "adversarial"])
@pytest.mark.parametrize(("address", "inner", "mine"), ADDRESSES, ids=[a[0] for a in ADDRESSES])
def test_each_call_has_its_own_variables_and_reaches_those_of_outer_calls(address, inner, mine, schedule):
    out = np.zeros((96, 2), np.uint32)
    body = BODY.format(address=address, inner=inner, mine=mine)
    result = simulate(text(body), grid=1, block=96, args=[out], schedule=schedule)
    assert result.completed
    assert not result.findings, str(result)
    n = np.arange(96) % 9
    assert np.array_equal(out, np.stack([n * (n + 1) // 2] * 2, axis=1))


def test_elements_of_variables_are_counted_from_the_frame():
    body = BODY.format(address="mov.u64 %d1, own;", inner="[own]", mine="[own+4]")
    typed = text(body).replace(".local .align 16 .b8 own[16]", ".local .align 16 .b32 own[4]").replace("[own+4]", "own[1]")
    out = np.zeros((32, 2), np.uint32)
    result = simulate(typed, grid=1, block=32, args=[out])
    assert not result.findings, str(result)
    assert out[:, 0].tolist() == [t % 9 * (t % 9 + 1) // 2 for t in range(32)]


def test_a_generic_address_of_a_frame():
    body = BODY.format(address="cvta.local.u64 %d1, own;", inner="[own]", mine="[own+4]")
    body = body.replace("ld.local.u32 %r5, [%up]", "ld.u32 %r5, [%up]").replace("st.local.u32 [%up]", "st.u32 [%up]")
    generic = text(body).replace("mov.u64 %d1, top;", "cvta.local.u64 %d1, top;")
    out = np.zeros((32, 2), np.uint32)
    result = simulate(generic, grid=1, block=32, args=[out])
    assert not result.findings, str(result)
    assert out[:, 1].tolist() == [t % 9 * (t % 9 + 1) // 2 for t in range(32)]


def test_a_variable_that_a_call_has_not_written_is_named():
    body = BODY.format(address="mov.u64 %d1, own;", inner="[own]", mine="[own+4]").replace("st.local.u32 [own], 0;", "")
    result = simulate(text(body), grid=1, block=32, args=[np.zeros((32, 2), np.uint32)])
    assert {f.kind for f in result.findings} == {"uninitialised-read"}


def test_too_deep():
    body = BODY.format(address="mov.u64 %d1, own;", inner="[own]", mine="[own+4]")
    result = simulate(text(body, most=32, size=1000), grid=1, block=32, args=[np.zeros((32, 2), np.uint32)])
    assert not result.completed
    finding = next(f for f in result.findings if f.severity == "error")
    assert (finding.kind, finding.repair) == ("out-of-bounds", "bound the depth of the recursion")
    assert finding.message == (
        "the local variables of `sum` (1000 bytes), active 17 times, need more than the 16400 bytes of local memory of a thread"
    )


ALLOCATES = """
.func take(.reg .b32 %n)
{
    .reg .b64 %d<3>;
    cvt.u64.u32 %d1, %n;
    alloca.u64 %d2, %d1;
    st.local.u32 [%d2], %n;
    ret;
}
.entry k()
{
    .reg .b32 %r<3>;
    .reg .pred %p;
    mov.u32 %r1, 0;
again:
    call take, (512);
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p, %r1, 20;
    @%p bra again;
    ret;
}
"""


def test_what_alloca_took_is_given_back_at_the_return():
    result = simulate(HEAD + ALLOCATES, grid=1, block=32)
    assert result.completed
    assert not result.findings, str(result)
