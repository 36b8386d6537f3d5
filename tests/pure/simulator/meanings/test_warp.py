"""Warp-level instructions in whole programs against lane-by-lane Python."""

import numpy as np
import pytest

import warpsmith as ws

FULL = 0xFFFFFFFF
WARPS = 3
N = 32 * WARPS
RNG = np.random.default_rng(7)


def run(instruction, *inputs, predicate=False, when="", arch="sm_90a", type_="b32"):
    """Run one instruction in each thread: %a, %b, %c hold the inputs, %d and %p the results."""
    loads = "".join(
        f"ld.param.u64 %p{i}, [in{i}]; mad.wide.u32 %p{i}, %t, 4, %p{i}; ld.global.b32 %{'abc'[i]}, [%p{i}];\n"
        for i in range(len(inputs))
    )
    text = f""".version 8.8
.target {arch}
.address_size 64
.visible .entry k({"".join(f".param .u64 in{i}, " for i in range(len(inputs)))}.param .u64 out, .param .u64 flags)
{{
.reg .u64 %o, %p0, %p1, %p2; .reg .{type_} %a, %d; .reg .b32 %b, %c, %t, %f; .reg .pred %p, %q;
mov.u32 %t, %tid.x;
{loads}
mov.b32 %d, 0x55;
setp.ne.b32 %p, 0, 0;
{when}
{instruction}
DONE:
selp.b32 %f, 1, 0, %p;
ld.param.u64 %o, [out]; mad.wide.u32 %o, %t, 4, %o; st.global.b32 [%o], %d;
ld.param.u64 %o, [flags]; mad.wide.u32 %o, %t, 4, %o; st.global.b32 [%o], %f;
ret;
}}
"""
    d, p = np.zeros(N, np.uint32), np.zeros(N, np.uint32)
    result = ws.simulate(ws.ptx.parse(text), kernel="k", grid=(1, 1, 1), block=(N, 1, 1), args=[*inputs, d, p])
    assert result.completed, [str(f) for f in result.findings]
    assert not result.findings, [str(f) for f in result.findings]
    return (d, p) if predicate else d


def words(n=N, high=1 << 32):
    return RNG.integers(0, high, n, dtype=np.uint64).astype(np.uint32)


def shuffled(mode, lane, a, b, c):
    """PTX ISA, shfl.sync: the pseudocode of the semantics, one lane."""
    segment, clamp, by = c >> 8 & 31, c & 31, b & 31
    low = lane & segment
    limit = low | (clamp & ~segment & 31)
    j = {"up": lane - by, "down": lane + by, "bfly": lane ^ by, "idx": low | (by & ~segment & 31)}[mode]
    inside = j >= limit if mode == "up" else j <= limit
    return int(a[j if inside else lane]), inside


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
def test_shfl(mode):
    a, b = words(), words(high=64)
    c = np.array([RNG.integers(0, 32) | (31 & ~((1 << k) - 1)) << 8 for k in RNG.integers(0, 6, N)], np.uint32)
    d, p = run(f"shfl.sync.{mode}.b32 %d|%p, %a, %b, %c, {FULL:#x};", a, b, c, predicate=True)
    for w in range(WARPS):
        for lane in range(32):
            i = 32 * w + lane
            want = shuffled(mode, lane, a[32 * w : 32 * w + 32], int(b[i]), int(c[i]))
            assert (int(d[i]), bool(p[i])) == want


def test_shfl_without_predicate_and_with_immediates():
    a = words()
    d = run(f"shfl.sync.down.b32 %d, %a, 16, 0x1f, {FULL:#x};", a)
    for i in range(N):
        assert d[i] == a[i + 16 if i % 32 < 16 else i]


def member_masks():
    """Every lane names the lanes of its own quarter: groups take part side by side."""
    lanes = np.arange(N) % 32
    return np.array([0xFF << (lane // 8 * 8) for lane in lanes], np.uint32)


def members_of(mask, w):
    return [32 * w + lane for lane in range(32) if int(mask) >> lane & 1]


@pytest.mark.parametrize("mode", ["all", "any", "uni", "ballot"])
@pytest.mark.parametrize("bias", [1, 2, 64])
def test_vote(mode, bias):
    a, masks = (words(high=bias) == 0).astype(np.uint32), member_masks()
    test = "setp.ne.u32 %q, %a, 0;"
    kind, to = ("b32", "%d") if mode == "ballot" else ("pred", "%p")
    d, p = run(f"{test} vote.sync.{mode}.{kind} {to}, %q, %b;", a, masks, predicate=True)
    for i in range(N):
        votes = [int(a[j]) for j in members_of(masks[i], i // 32)]
        if mode == "ballot":
            assert d[i] == sum(int(a[j]) << j % 32 for j in members_of(masks[i], i // 32))
        else:
            want = {"all": all(votes), "any": any(votes), "uni": len(set(votes)) == 1}[mode]
            assert bool(p[i]) == want


def test_vote_of_a_negated_predicate():
    a = np.arange(N, dtype=np.uint32)
    d = run(f"setp.lt.u32 %q, %a, 40; vote.sync.ballot.b32 %d, !%q, {FULL:#x};", a)
    assert d.tolist() == [0] * 32 + [0xFFFFFF00] * 32 + [FULL] * 32


@pytest.mark.parametrize("few", [1, 3, 1 << 32])
def test_match(few):
    a, masks = words(high=few), member_masks()
    d = run("match.any.sync.b32 %d, %a, %b;", a, masks)
    every, p = run("match.all.sync.b32 %d|%p, %a, %b;", a, masks, predicate=True)
    for i in range(N):
        members = members_of(masks[i], i // 32)
        assert d[i] == sum(1 << j % 32 for j in members if a[j] == a[i])
        equal = len({int(a[j]) for j in members}) == 1
        assert (every[i], bool(p[i])) == (masks[i] if equal else 0, equal)


@pytest.mark.parametrize(
    "op", ["add.u32", "add.s32", "min.u32", "min.s32", "max.u32", "max.s32", "and.b32", "or.b32", "xor.b32"]
)
def test_redux(op):
    a, masks = words(), member_masks()
    d = run(f"redux.sync.{op} %d, %a, %b;", a, masks)
    name, type_ = op.split(".")
    for i in range(N):
        values = [int(a[j]) - (1 << 32) * (type_ == "s32" and int(a[j]) >> 31) for j in members_of(masks[i], i // 32)]
        total = values[0]
        for v in values[1:]:
            total = {
                "add": total + v,
                "min": min(total, v),
                "max": max(total, v),
                "and": total & v,
                "or": total | v,
                "xor": total ^ v,
            }[name]
        assert int(d[i]) == total & FULL


@pytest.mark.parametrize("modifiers", ["", ".abs", ".NaN", ".abs.NaN"])
@pytest.mark.parametrize("op", ["min", "max"])
def test_redux_of_floats(op, modifiers):
    values = RNG.standard_normal(N).astype(np.float32)
    values[3], values[40:48] = np.nan, np.nan
    masks = member_masks()
    d = run(f"redux.sync.{op}{modifiers}.f32 %d, %a, %b;", values, masks, arch="sm_100a", type_="f32").view(np.float32)
    for i in range(N):
        members = [float(values[j]) for j in members_of(masks[i], i // 32)]
        numbers = [abs(v) if "abs" in modifiers else v for v in members if v == v]
        if not numbers or ("NaN" in modifiers and len(numbers) < len(members)):
            assert d[i : i + 1].view(np.uint32)[0] == 0x7FFFFFFF
        else:
            assert d[i] == (min if op == "min" else max)(numbers)


def test_activemask_and_elect_in_a_branch():
    a = np.arange(N, dtype=np.uint32) % 32
    branch = "setp.lt.u32 %q, %a, 5; @%q bra DONE;"
    d = run("activemask.b32 %d;", a, when=branch)
    assert d.tolist() == ([0x55] * 5 + [0xFFFFFFE0] * 27) * WARPS
    d, p = run("elect.sync %d|%p, 0xffffffe0;", a, when=branch, predicate=True)
    assert d.tolist() == ([0x55] * 5 + [5] * 27) * WARPS
    assert p.tolist() == ([0] * 5 + [1] + [0] * 26) * WARPS


def test_lanes_outside_their_mask_are_reported():
    text = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry k()
{
.reg .b32 %d;
redux.sync.add.u32 %d, 1, 0xffff;
ret;
}
"""
    result = ws.simulate(ws.ptx.parse(text), kernel="k", grid=(1, 1, 1), block=(32, 1, 1), args=[])
    assert [f.kind for f in result.findings] == ["divergent-collective"]
