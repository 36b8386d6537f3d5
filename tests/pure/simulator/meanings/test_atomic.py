"""Atomics in whole programs: every lane's old value and the final memory equal one sequential order."""

import numpy as np
import pytest

import warpsmith as ws

N = 96
RNG = np.random.default_rng(11)
SIZES = {"b16": 2, "f16": 2, "bf16": 2, "b64": 8, "u64": 8, "s64": 8, "f64": 8}


def program(instruction, type_, space):
    """A kernel: thread t applies the instruction to cell index[t] with operands b[t], c[t]; %d is the old value."""
    size = SIZES.get(type_, 4)
    move = {2: "b16", 4: "b32", 8: "b64"}[size]
    shared = space == "shared"
    fill = (
        f"mov.u32 %c0, cells; mad.lo.u32 %c0, %t, {size}, %c0; "
        f"@%q ld.global.{move} %d, [%w]; @%q st.shared.{move} [%c0], %d; bar.sync 0;"
    )
    drain = f"bar.sync 0; @%q ld.shared.{move} %d, [%c0]; @%q st.global.{move} [%w], %d;"
    place = f"mov.u32 %c1, cells; mad.lo.u32 %c1, %i, {size}, %c1;" if shared else f"mad.wide.u32 %m, %i, {size}, %m0;"
    return f""".version 8.8
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 memory, .param .u64 index, .param .u64 b, .param .u64 c, .param .u64 old)
{{
.reg .u64 %m, %m0, %w, %x; .reg .b32 %t, %i, %c0, %c1; .reg .{move} %b, %c, %d; .reg .pred %q;
.shared .align 8 .b8 cells[{size * N}];
mov.u32 %t, %tid.x; setp.lt.u32 %q, %t, {N};
ld.param.u64 %m0, [memory]; mad.wide.u32 %w, %t, {size}, %m0;
{fill if shared else ""}
ld.param.u64 %x, [index]; mad.wide.u32 %x, %t, 4, %x; ld.global.b32 %i, [%x];
ld.param.u64 %x, [b]; mad.wide.u32 %x, %t, {size}, %x; ld.global.{move} %b, [%x];
ld.param.u64 %x, [c]; mad.wide.u32 %x, %t, {size}, %x; ld.global.{move} %c, [%x];
mov.{move} %d, 0;
{place}
{instruction.replace("@", "[%c1]" if shared else "[%m]")}
ld.param.u64 %x, [old]; mad.wide.u32 %x, %t, {size}, %x; st.global.{move} [%x], %d;
{drain if shared else ""}
ret;
}}
"""


def run(instruction, type_, index, memory, b, c, space="global"):
    dtype = np.dtype(f"u{SIZES.get(type_, 4)}")
    memory, old = memory.astype(dtype), np.zeros(N, dtype)
    arguments = [memory, index, b.astype(dtype), c.astype(dtype), old]
    module = ws.ptx.parse(program(instruction, type_, space))
    result = ws.simulate(module, kernel="k", grid=(1, 1, 1), block=(N, 1, 1), args=arguments)
    assert result.completed, [str(f) for f in result.findings]
    assert not result.findings, [str(f) for f in result.findings]
    return memory, old


def signed(x, bits):
    return x - (1 << bits) if x >> (bits - 1) else x


def step(op, type_, old, b, c):
    bits = 8 * SIZES.get(type_, 4)
    mask = (1 << bits) - 1
    x, y = (signed(old, bits), signed(b, bits)) if type_[0] == "s" else (old, b)
    return {
        "add": lambda: x + y, "and": lambda: x & y, "or": lambda: x | y, "xor": lambda: x ^ y, "exch": lambda: y,
        "min": lambda: min(x, y), "max": lambda: max(x, y), "cas": lambda: c if old == b else old,
        "inc": lambda: 0 if old >= b else old + 1, "dec": lambda: b if old == 0 or old > b else old - 1,
    }[op]() & mask  # fmt: skip


def in_order(op, type_, index, memory, b, c):
    """Lane after lane."""
    memory, old = [int(m) for m in memory], []
    for i, x, y in zip(index.tolist(), b.tolist(), c.tolist(), strict=True):
        old.append(memory[i])
        memory[i] = step(op, type_, memory[i], x, y)
    return memory, old


INTEGERS = [
    *(f"add.{t}" for t in ("u32", "s32", "u64")),
    *(f"{op}.{t}" for op in ("min", "max") for t in ("u32", "s32", "u64", "s64")),
    *(f"{op}.{t}" for op in ("and", "or", "xor", "exch") for t in ("b32", "b64")),
    *("inc.u32", "dec.u32", "cas.b16", "cas.b32", "cas.b64"),
]


@pytest.mark.parametrize("form", INTEGERS)
@pytest.mark.parametrize(("cells", "space"), [(1, "global"), (7, "shared"), (N, "global")])
def test_integers(form, cells, space):
    op, type_ = form.split(".")
    bits = 8 * SIZES.get(type_, 4)
    small = op in ("inc", "dec", "cas")
    index = RNG.permutation(N).astype(np.uint32) % cells
    memory, b, c = (RNG.integers(0, 4 if small else 1 << bits, N, dtype=np.uint64) for _ in range(3))
    operands = "%b, %c" if op == "cas" else "%b"
    got, old = run(f"atom.{space}.{form} %d, @, {operands};", type_, index, memory, b, c, space)
    want, before = in_order(op, type_, index, memory, b, c)
    assert old.tolist() == before
    assert got.tolist() == want
    if op not in ("cas", "exch"):
        got, _ = run(f"red.{space}.{form} @, {operands};", type_, index, memory, b, c, space)
        assert got.tolist() == want


def test_f32_addition_rounds_after_every_lane():
    index = np.arange(N, dtype=np.uint32) % 5
    memory, b = RNG.standard_normal(N).astype(np.float32), (RNG.standard_normal(N) * 1e3).astype(np.float32)
    zero = np.zeros(N, np.uint32)
    got, old = run("atom.global.add.f32 %d, @, %b;", "f32", index, memory.view(np.uint32), b.view(np.uint32), zero)
    want, before = memory.copy(), np.zeros(N, np.float32)
    for lane in range(N):
        before[lane] = want[index[lane]]
        want[index[lane]] = want[index[lane]] + b[lane]
    assert old.tolist() == before.view(np.uint32).tolist()
    assert got.tolist() == want.view(np.uint32).tolist()


@pytest.mark.parametrize(("space", "result"), [("global", 0x80000000), ("shared", 0x80000003)])
def test_f32_addition_flushes_subnormals_in_global_memory_only(space, result):
    """PTX ISA, atom: atom.add.f32 on global memory flushes subnormal inputs and results to sign-preserving zero."""
    index = np.arange(N, dtype=np.uint32)
    memory, b = np.full(N, 0x80000001, np.uint32), np.full(N, 0x80000002, np.uint32)
    got, _ = run(f"atom.{space}.add.f32 %d, @, %b;", "f32", index, memory, b, memory, space)
    assert set(got.tolist()) == {result}


def test_packed_halves_add_each_lane():
    index = np.arange(N, dtype=np.uint32) % 3
    one, two = 0x3C003C00, 0x40003C00
    got, old = run("atom.global.add.noftz.f16x2 %d, @, %b;", "b32", index, np.zeros(N), np.full(N, one), np.zeros(N))
    assert got[:3].tolist() == [0x50005000] * 3  # 32 in both halves
    assert sorted(old.tolist())[:3] == [0, 0, 0]
    got, _ = run("red.global.add.noftz.bf16x2 @, %b;", "b32", index, np.zeros(N), np.full(N, 0x3F803F80), np.full(N, two))
    assert got[:3].tolist() == [0x42004200] * 3


def test_wide_exchange_and_compare():
    text = """.version 8.8
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 memory, .param .u64 out)
{
.reg .u64 %m, %o, %t, %z; .reg .b32 %i; .reg .b128 %b, %c, %d;
mov.u32 %i, %tid.x; cvt.u64.u32 %t, %i; mov.u64 %z, 7;
ld.param.u64 %m, [memory]; ld.param.u64 %o, [out]; mad.wide.u32 %o, %i, 16, %o;
mov.b128 %b, {%t, %z};
add.u64 %t, %t, 1;
mov.b128 %c, {%t, %z};
atom.global.cas.b128 %d, [%m], %b, %c;
mov.b128 {%t, %z}, %d;
st.global.v2.u64 [%o], {%t, %z};
ret;
}
"""
    memory, out = np.array([0, 7], np.uint64), np.zeros((32, 2), np.uint64)
    result = ws.simulate(ws.ptx.parse(text), kernel="k", grid=(1, 1, 1), block=(32, 1, 1), args=[memory, out])
    assert result.completed, [str(f) for f in result.findings]
    assert out[:, 0].tolist() == list(range(32))
    assert memory.tolist() == [32, 7]


def test_vectors_are_atomic_element_by_element():
    text = """.version 8.8
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 memory)
{
.reg .u64 %m; .reg .f32 %a, %b, %c, %d;
ld.param.u64 %m, [memory];
atom.global.v2.f32.add {%a, %b}, [%m], {0f3F800000, 0f40000000};
red.global.v4.f32.add [%m], {0f3F800000, 0f3F800000, 0f3F800000, 0f3F800000};
ret;
}
"""
    memory = np.zeros(4, np.float32)
    result = ws.simulate(ws.ptx.parse(text), kernel="k", grid=(1, 1, 1), block=(32, 1, 1), args=[memory])
    assert result.completed, [str(f) for f in result.findings]
    assert memory.tolist() == [64, 96, 32, 32]


UNWRITTEN = """.version 8.8
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out)
{{
.reg .u64 %m; .reg .b32 %a, %b, %d, %u, %c; .reg .b128 %w, %x; .reg .b64 %q; .shared .align 16 .b8 cells[64];
ld.param.u64 %m, [out]; mov.u32 %c, cells; mov.u32 %a, 1; st.shared.v4.b32 [%c], {{%a, %a, %a, %a}};{before}
{line}
ret;
}}
"""


@pytest.mark.parametrize(
    "line",
    [
        "red.global.add.u32 [%m], %u;",
        "atom.global.exch.b32 %d, [%m], %u;",
        "atom.global.cas.b32 %d, [%m], %a, %u;",
        "atom.global.cas.b32 %d, [%m], %u, %a;",
        "red.global.add.v2.f32 [%m], {%a, %u};",
        "atom.global.exch.b128 %w, [%m], %x;",
        "red.shared.add.u32 [%c], %u; ld.shared.u32 %d, [%c]; st.global.u32 [%m], %d;",
        "atom.shared.exch.b32 %d, [%c], %u; ld.shared.u32 %d, [%c]; st.global.u32 [%m], %d;",
    ],
)
def test_operands_that_nobody_wrote_are_found_where_they_reach_global_memory(line):
    text, out = UNWRITTEN.format(line=line, before=""), np.zeros(16, np.uint32)
    result = ws.simulate(text, grid=1, block=1, args=[out])
    assert [f.kind for f in result.findings] == ["uninitialised-read"]
    assert "a value that comes from memory or registers nobody wrote is stored to global memory" in result.findings[0].message
    text = UNWRITTEN.format(line=line, before=" mov.u32 %u, 1; mov.b64 %q, 1; mov.b128 %x, {%q, %q};")
    assert ws.simulate(text, grid=1, block=1, args=[out]).findings == []
