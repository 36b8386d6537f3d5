"""What the core of the simulator reports: bounds, alignment, definedness, barriers, convergence, deadlock. Messages in full."""

import numpy as np
import pytest

from warpsmith.base.errors import CapabilityError
from warpsmith.simulator import simulate

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"


def kernel(body, parameters=".param .u64 out", shared="", extra=""):
    return f"""{HEAD}{extra}
.visible .entry k({parameters})
{{
.reg .b32 %r<40>; .reg .b64 %rd<20>; .reg .f32 %f<9>; .reg .pred %p<9>; {shared}
mov.u32 %r1, %tid.x;
{body}
ret;
}}"""


def findings(text, *args, block=64, grid=1, **options):
    result = simulate(text, grid=grid, block=block, args=args, **options)
    return result, [(f.kind, f.message, f.threads) for f in result.findings]


def test_a_load_past_the_end():
    text = kernel(
        "ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2;\nld.global.u32 %r2, [%rd1+8];"
    )
    result, found = findings(text, np.zeros(64, np.uint32))
    message = "load of 4 bytes at global address 0x700000000200 lies just past the end of argument 0 (`out`) (256 bytes)"
    assert found == [("out-of-bounds", message, "cta (0,0,0) warp 1 lanes 30-31")]
    assert not result.completed
    f = result.findings[0]
    assert str(f) == (
        "<string>:10: error[out-of-bounds]: " + message + "\n  threads: cta (0,0,0) warp 1 lanes 30-31\n"
        "  repair: bound the index by the size of the array, or guard the access with a predicate\n  schedule: fair"
    )


def test_a_null_pointer():
    _, found = findings(kernel("mov.u64 %rd1, 0; st.global.u32 [%rd1], %r1;", ""))
    assert found == [
        ("out-of-bounds", "store of 4 bytes at global address 0x0 is a null pointer", "cta (0,0,0) warps 0-1 lanes 0-31")
    ]


@pytest.mark.parametrize("dynamic", [0, 256])
def test_shared_memory_that_the_system_reserves(dynamic):
    result, found = findings(kernel("mov.u64 %rd1, 0; st.shared.u32 [%rd1+4], %r1;", ""), block=32, dynamic_shared=dynamic)
    message = "store of 4 bytes at shared address 0x4 lies in the first 1024 bytes, which the system reserves"
    assert found == [("out-of-bounds", message, "cta (0,0,0) warp 0 lanes 0-31")]
    assert result.findings[0].repair == (
        "take the address of a .shared variable; memory of the launch begins at an .extern .shared one, not at 0"
    )


@pytest.mark.parametrize(
    ("body", "declarations", "where", "repair"),
    [
        (
            "mov.u64 %rd1, s; st.u32 [%rd1+4], %r1;", ".shared .align 4 .b8 s[64];",
            "0x404 lies in shared variable `s`: an address of shared memory, not a generic one",
            "write .shared, or make the address generic with cvta.shared.u64",
        ),
        (
            "mov.u64 %rd1, d; st.global.u32 [%rd1], %r1;", ".extern .shared .align 4 .b8 d[];",
            "0x400 lies in dynamic shared memory: an address of shared memory, not a generic one",
            "write .shared, or make the address generic with cvta.shared.u64",
        ),
        (
            "mov.u64 %rd1, l; st.u32 [%rd1+4], %r1;", ".local .align 4 .b8 l[8];",
            "0x4 lies next to the null pointer",
            "pass an address; that of a .local or .param variable becomes generic with cvta",
        ),
    ],
)  # fmt: skip
def test_an_address_that_was_not_made_generic(body, declarations, where, repair):
    external = ".extern" in declarations
    text = kernel(body, "", extra=declarations) if external else kernel(body, "", declarations)
    result, found = findings(text, block=32, dynamic_shared=64 if external else 0)
    assert found == [("out-of-bounds", f"store of 4 bytes at global address {where}", "cta (0,0,0) warp 0 lanes 0-31")]
    assert result.findings[0].repair == repair


def test_a_misaligned_vector():
    _, found = findings(
        kernel("ld.param.u64 %rd1, [out];\nld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%rd1+4];"), np.zeros(64, np.uint32)
    )
    message = "load of 16 bytes at global address 0x700000000104, which is no multiple of 16"
    assert found == [("out-of-bounds", message, "cta (0,0,0) warps 0-1 lanes 0-31")]


def test_shared_memory_beyond_its_variables():
    text = kernel("mov.u32 %r2, s; st.shared.u32 [%r2+64], %r1;", "", ".shared .align 4 .b8 s[64];")
    _, found = findings(text, block=32)
    message = "store of 4 bytes at shared address 0x440 lies just past the end of shared variable `s` (64 bytes)"
    assert found == [("out-of-bounds", message, "cta (0,0,0) warp 0 lanes 0-31")]


def test_kernels_without_shared_memory_have_none():
    result, found = findings(kernel("mov.u32 %r2, 1024; ld.shared.u32 %r3, [%r2];", ""), block=32)
    assert found[0][1] == "load of 4 bytes at shared address 0x400 lies outside: the kernel has no shared memory"
    (finding,) = result.findings
    assert (
        finding.repair == "declare shared memory, or give the launch its bytes: dynamic_shared=, on the command line --shared"
    )


def test_undefined_shared_memory_that_reaches_a_store():
    text = kernel(
        "mov.u32 %r2, s; ld.shared.u32 %r3, [%r2+4]; add.u32 %r4, %r3, 1; ld.param.u64 %rd1, [out];\n"
        "st.global.u32 [%rd1], %r4;",
        shared=".shared .align 4 .b8 s[64];",
    )
    result, found = findings(text, np.zeros(64, np.uint32), block=32)
    message = "`st.global.u32`: a value that comes from memory or registers nobody wrote is stored to global memory"
    assert found == [("uninitialised-read", message, "cta (0,0,0) warp 0 lanes 0-31")]
    assert result.findings[0].where.line == 10
    assert result.completed


def test_copying_undefined_bytes_around_is_no_fault():
    body = """
setp.ne.u32 %p1, %r1, 0; @%p1 bra END;
mov.u32 %r2, s; ld.shared.u32 %r3, [%r2]; st.shared.u32 [%r2+4], %r3; ld.shared.u32 %r5, [%r2+4]; mov.u32 %r5, 3;
st.shared.u32 [%r2], %r5; ld.shared.u32 %r6, [%r2]; setp.eq.u32 %p1, %r6, 3; @!%p1 bra END;
ld.param.u64 %rd1, [out]; st.global.u32 [%rd1], %r6;
END:"""
    out = np.zeros(64, np.uint32)
    _, found = findings(kernel(body, shared=".shared .align 4 .b8 s[64];"), out, block=32)
    assert found == []
    assert out[0] == 3


@pytest.mark.parametrize(
    ("body", "how"),
    [
        ("setp.eq.u32 %p1, %r3, 0; @%p1 bra END; mov.u32 %r4, 0; END:", "used as a branch predicate"),
        ("cvt.u64.u32 %rd2, %r3; ld.global.u32 %r4, [%rd2];", "used as an address"),
    ],
)
def test_undefined_values_that_steer(body, how):
    text = kernel(f"mov.u32 %r2, s; ld.shared.u32 %r3, [%r2];\n{body}", "", ".shared .align 4 .b8 s[64];")
    _, found = findings(text, block=32)
    assert found[0][0] == "uninitialised-read"
    assert found[0][1].endswith(how)


def test_a_register_nobody_wrote():
    text = kernel(
        "setp.lt.u32 %p1, %r1, 7;\n@%p1 mov.u32 %r2, 5;\nld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r1, 4;\n"
        "add.s64 %rd1, %rd1, %rd2; st.global.u32 [%rd1], %r2;"
    )
    _, found = findings(text, np.zeros(64, np.uint32), block=32)
    assert [(k, t) for k, _, t in found] == [("uninitialised-read", "cta (0,0,0) warp 0 lanes 7-31")]


def test_check_false_looks_at_bounds_only():
    text = kernel(
        "mov.u32 %r2, s; ld.shared.u32 %r3, [%r2]; setp.eq.u32 %p1, %r3, 0; @%p1 bra END; END:", "", ".shared .b8 s[64];"
    )
    _, found = findings(text, block=32, check=False)
    assert found == []


def test_a_barrier_one_warp_skips():
    text = kernel("setp.lt.u32 %p1, %r1, 32; @%p1 bra SKIP;\nbar.sync 0;\nSKIP: mov.u32 %r2, 1;\nbar.sync 1;", "")
    result, found = findings(text, block=96)
    assert found == [("deadlock", "3 warps wait and nothing in flight can release them", "cta (0,0,0) warp 0 lanes 0-31")]
    assert not result.completed
    related = [str(r) for r in result.findings[0].related]
    assert related == [
        "<string>:12: cta (0,0,0) warp 0 lanes 0-31 at `bar.sync` waits for barrier 1 of cta (0,0,0): 1 of 3 warps arrived; "
        "not arrived: warps 1, 2",
        "<string>:10: cta (0,0,0) warps 1-2 lanes 0-31 at `bar.sync` waits for barrier 0 of cta (0,0,0): 2 of 3 warps arrived; "
        "not arrived: warp 0",
    ]


def test_warps_that_have_ended_are_not_awaited():
    text = kernel("setp.lt.u32 %p1, %r1, 32; @%p1 bra END;\nbar.sync 0;\nEND:", "")
    assert findings(text, block=96)[1] == []


def test_a_polled_value_that_never_comes():
    text = kernel(
        "ld.param.u64 %rd1, [out];\nWAIT: ld.volatile.global.u32 %r2, [%rd1]; setp.eq.u32 %p1, %r2, 0;\n@%p1 bra WAIT;"
    )
    result, found = findings(text, np.zeros(64, np.uint32), block=32)
    assert found[0][:2] == ("deadlock", "1 warp waits and nothing in flight can release it")
    assert str(result.findings[0].related[0]).endswith(
        "at `bra` waits for memory to change: its loop repeats with the same registers"
    )


def test_max_steps_ends_an_endless_loop():
    text = kernel("LOOP: add.u32 %r2, %r1, %r2;\nbra LOOP;".replace("LOOP: ", "mov.u32 %r2, 0;\nLOOP: "), "")
    result, found = findings(text, block=32, max_steps=500)
    assert found == [("livelock", "the launch was ended after max_steps=500 blocks", "cta (0,0,0) warp 0 lanes 0-31")]
    assert not result.completed


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("mov.u32 %r2, 40; bar.sync 0, %r2;", "`bar.sync`: thread count 40 of barrier 0 is not a positive multiple of 32"),
        ("mov.u32 %r2, -32; bar.sync 0, %r2;", "`bar.sync`: thread count -32 of barrier 0 is not a positive multiple of 32"),
        ("mov.u32 %r2, 0; bar.sync 0, %r2;", "`bar.sync`: thread count 0 of barrier 0 is not a positive multiple of 32"),
        (
            "mov.u32 %r2, -32; bar.arrive 3, %r2;",
            "`bar.arrive`: thread count -32 of barrier 3 is not a positive multiple of 32",
        ),
        (
            "mov.u32 %r2, 2048; bar.sync 0, %r2;",
            "`bar.sync`: thread count 2048 of barrier 0 is more than the 1024 threads that a CTA has at most",
        ),
        ("mov.u32 %r2, 16; bar.sync %r2;", "`bar.sync` names barrier 16"),
        (
            "setp.lt.u32 %p1, %r1, 32; @%p1 bra A; bar.sync 1, 64; bra END; A: bar.sync 1, 32; bar.sync 1, 64; END:",
            "barrier 1 is used for 32 threads, while others wait on it for 64 threads",
        ),
    ],
)
def test_named_barriers(body, message):
    seen = []
    for options in ({}, *({"schedule": "random", "seed": s} for s in range(6))):
        result = simulate(kernel(body, ""), grid=1, block=64, **options)
        seen += [f.message for f in result.findings if f.kind == "named-barrier"]
    assert (
        message in seen
        or message.replace("32 threads, while others wait on it for 64", "64 threads, while others wait on it for 32") in seen
    )


def test_an_arrival_nobody_waits_for():
    result, found = findings(kernel("bar.arrive 3, 128;", ""), block=64)
    assert [f.severity for f in result.findings] == ["portability"]
    result, _ = findings(kernel("bar.sync 3, 64; bar.arrive 3, 128;", ""), block=64)
    assert [(f.kind, f.severity) for f in result.findings] == [("leftover", "error")]
    assert found == [
        ("leftover", "cta (0,0,0) ended with arrivals on barrier 3 that no thread waited for (`bar.arrive`)", "cta (0,0,0)")
    ]


def test_a_shuffle_without_its_lanes():
    text = kernel(
        "setp.lt.u32 %p1, %r1, 16; @!%p1 bra END;\nshfl.sync.idx.b32 %r2, %r1, 0, 31, 0xffffffff;\nEND: bar.sync 0;", ""
    )
    _, found = findings(text, block=32)
    assert [k for k, _, _ in found] == ["divergent-collective"]
    assert found[0][2] == "cta (0,0,0) warp 0 lanes 0-15"


def test_an_aligned_barrier_in_a_branch_of_a_warp():
    text = kernel("setp.lt.u32 %p1, %r1, 16; @!%p1 bra ELSE;\nbar.sync 0;\nbra END;\nELSE: bar.sync 0;\nEND:", "")
    _, found = findings(text, block=32)
    assert {k for k, _, _ in found} == {"divergent-collective"}


def test_a_correct_member_mask_in_a_branch_is_fine():
    text = kernel("setp.lt.u32 %p1, %r1, 16; @!%p1 bra END;\nshfl.sync.idx.b32 %r2, %r1, 0, 31, 0xffff;\nEND:", "")
    assert findings(text, block=32)[1] == []


def test_ended_lanes_need_not_take_part():
    text = kernel("setp.lt.u32 %p1, %r1, 16; @!%p1 bra END;\nshfl.sync.idx.b32 %r2, %r1, 0, 31, 0xffffffff;\nEND:", "")
    assert findings(text, block=32)[1] == []


@pytest.mark.parametrize("body", ["wgmma.fence.sync.aligned;", "wgmma.commit_group.sync.aligned;"])
def test_a_warpgroup_instruction_by_a_part_of_the_warpgroup(body):
    text = kernel(f"setp.lt.u32 %p1, %r1, 64; @!%p1 bra END;\n{body}\nEND: bar.sync 0;", "").replace("sm_90", "sm_90a")
    result, found = findings(text, block=128)
    name = body[:-1]
    message = f"`{name}` is executed by a part of a warpgroup"
    assert found == [("divergent-collective", message, "cta (0,0,0) warps 0-1 lanes 0-31")]
    assert result.completed


def test_mma_in_a_branch_of_a_warp():
    mma = "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r2,%r3}, {%r4}, {%f1,%f2,%f3,%f4};"
    start = "".join(f"mov.f32 %f{i}, 0f00000000; mov.u32 %r{i + 1}, 0; " for i in range(1, 5))
    text = kernel(f"{start} setp.lt.u32 %p1, %r1, 5; @!%p1 bra END;\n{mma}\nEND: bar.sync 0;", "")
    _, found = findings(text, block=32)
    name = mma.partition(" ")[0]
    message = f"`{name}` is executed without lanes 5-31 of the warp, which its member mask names"
    assert found == [("divergent-collective", message, "cta (0,0,0) warp 0 lanes 0-4")]


def test_the_same_fault_is_told_once_and_names_its_schedule():
    loop = "LOOP: bar.arrive 3, %r3;\nadd.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 5; @%p1 bra LOOP;"
    text = kernel(f"mov.u32 %r2, 0; mov.u32 %r3, 40;\n{loop}", "")
    result, found = findings(text, block=64, schedule="random", seed=7)
    assert len(found) == 1
    assert result.findings[0].schedule == "random seed 7"


@pytest.mark.parametrize(
    "word",
    ["tex.1d.v4.f32.s32 {%f1,%f2,%f3,%f4}, [t, {%r1}];", "multimem.red.relaxed.sys.global.add.u32 [%rd1], %r1;"],
)
def test_refusals_name_the_instruction_and_the_reason(word):
    extra = ".global .texref t;" if word.startswith("tex") else ""
    text = kernel(word, "", ".reg .b128 %q<2>;", extra).replace("sm_90", "sm_100").replace("version 8.0", "version 8.7")
    with pytest.raises(CapabilityError) as caught:
        findings(text)
    name = word.split()[0]
    assert f"simulator: `{name}` is not modelled: " in str(caught.value)


def test_a_jump_to_itself_is_a_deadlock():
    text = f"{HEAD}.visible .entry k() {{\nL: bra L;\n}}"
    result = simulate(text, grid=1, block=32)
    assert not result.completed
    assert [(f.kind, str(f.where).rpartition(":")[2]) for f in result.findings] == [("deadlock", str(HEAD.count("\n") + 2))]


def test_more_threads_at_a_barrier_than_it_counts():
    text = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k() { bar.sync 1, 96; ret; }"""
    found = simulate(text, grid=1, block=128, args=[]).findings[0]
    assert (found.kind, found.message) == ("named-barrier", "128 threads arrive on barrier 1, which is used for 96 threads")
    assert not simulate(text, grid=1, block=96, args=[]).findings


def test_a_barrier_counts_arrivals_not_warps():
    """Hardware counts: a warp that arrives and then waits is two of the four warps a barrier of 128 threads awaits."""
    body = "bar.arrive 3, 128; bar.sync 3, 128;"
    result = simulate(kernel(body, ""), kernel="k", grid=1, block=64, args=[])
    assert result.completed
    assert not result.findings, str(result)
