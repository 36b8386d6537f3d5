"""Arguments of `simulate`: what is accepted, and the message for everything that is not."""

# ruff: noqa: E501 (messages stand in one line each)

import numpy as np
import pytest

from warpsmith.base.errors import CapabilityError, InputError
from warpsmith.simulator import ptr, simulate

TEXT = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry add(.param .u64 p, .param .u32 n, .param .f32 x, .param .align 8 .b8 s[16])
{ .reg .b64 %rd<3>; .reg .b32 %r<4>; .reg .f32 %f<4>;
  ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [n]; ld.param.f32 %f1, [x]; ld.param.u32 %r2, [s+8];
  st.global.u32 [%rd1], %r1; st.global.f32 [%rd1+4], %f1; st.global.u32 [%rd1+8], %r2; ret; }
.visible .entry big() { .shared .b8 s[40000]; ret; }
.visible .entry fixed() .reqntid 64, 1, 1 { ret; }
.visible .entry pair() .reqnctapercluster 2, 1, 1 { ret; }
"""
STRUCT = np.array([1, 2, 77, 4], np.int32).tobytes()


def call(*args, kernel="add", grid=1, block=32, **options):
    return simulate(TEXT, kernel=kernel, grid=grid, block=block, args=args, **options)


def test_numbers_bytes_and_pointers_with_offsets():
    out = np.zeros(8, np.uint32)
    result = call(ptr(out, 4), -3, 1.5, STRUCT)
    assert result.completed
    assert out.view(np.int32).tolist() == [0, 0, 0, 0, -3, np.float32(1.5).view(np.int32), 77, 0]
    assert result.outputs[0] is out


def test_transposed_arrays_and_other_dtypes():
    out = np.zeros((4, 3), np.float16).T
    call(out, 5, np.float32(2), STRUCT)
    assert out.T.reshape(-1).view(np.uint32).tolist() == [5, np.float32(2).view(np.uint32), 77, 0, 0, 0]


A = np.zeros(4, np.uint32)
BAD = [
    ((A, 1, 2.0), {}, "kernel `add` takes 4 arguments (p, n, x, s); 3 were given"),
    ((A, "1", 2.0, STRUCT), {}, "kernel `add`, argument 1 (`n`): str given for a parameter of type .u32; pass an array, a number or bytes"),
    ((A, 1.5, 2.0, STRUCT), {}, "kernel `add`, argument 1 (`n`): a float given for a parameter of type .u32; pass an int, or a numpy scalar of 4 bytes"),
    ((A, 2**32, 2.0, STRUCT), {}, "kernel `add`, argument 1 (`n`): 4294967296 does not fit .u32"),
    ((A, A, 2.0, STRUCT), {}, "kernel `add`, argument 1 (`n`): an array is a pointer of 8 bytes, and the parameter has 4; pass a number"),
    ((A, 1, None, STRUCT), {}, "kernel `add`, argument 2 (`x`): NoneType given for a parameter of type .f32; pass a number"),
    ((A, 1, 2.0, b"123"), {}, "kernel `add`, argument 3 (`s`): 3 bytes given for a parameter of 16"),
    ((A, 1, 2.0, 3), {}, "kernel `add`, argument 3 (`s`): the parameter is 16 bytes; pass bytes, or a TensorMap for 128"),
    ((np.zeros((4, 4))[:, :2], 1, 2.0, STRUCT), {}, "kernel `add`, argument 0 (`p`): the array is not contiguous; pass np.ascontiguousarray(array), and copy the result back"),
    ((np.array([None]), 1, 2.0, STRUCT), {}, "kernel `add`, argument 0 (`p`): an array of Python objects cannot be passed; convert it to a numeric dtype"),
    ((), {"kernel": "nope"}, "<string>: no kernel `nope`; the module has: add, big, fixed, pair"),
    ((), {"kernel": None}, "<string>: say which kernel to run with kernel=; the module has: add, big, fixed, pair"),
    ((), {"kernel": "fixed", "grid": 0, "block": 64}, "grid=0: every dimension is at least 1"),
    ((), {"kernel": "fixed", "grid": (1, 2, 3, 4), "block": 64}, "grid=(1, 2, 3, 4): give one to three ints, e.g. grid=(4, 2, 1)"),
    ((), {"kernel": "fixed"}, "block=(32, 1, 1): kernel `fixed` requires (64, 1, 1) (.reqntid)"),
    ((), {"kernel": "big", "block": 2048}, "block=(2048, 1, 1): 2048 threads; H200 has at most 1024 per CTA and 64 in z"),
    ((), {"kernel": "big", "dynamic_shared": 200_000}, "kernel `big` needs 240000 bytes of shared memory (40000 static, 200000 dynamic); H200 has 232448 per CTA"),
    ((), {"kernel": "big", "grid": 3, "cluster": 2}, "grid=(3, 1, 1) is no multiple of cluster=(2, 1, 1); round the grid up"),
    ((), {"kernel": "pair", "grid": 3}, "grid=(3, 1, 1) is no multiple of cluster=(2, 1, 1); round the grid up"),
    ((), {"kernel": "big", "grid": 32, "cluster": 32}, "cluster=(32, 1, 1): H200 has clusters of at most 16 CTAs"),
    ((), {"kernel": "big", "schedule": "wild"}, 'schedule=\'wild\': "fair", "random" or "adversarial"'),
    ((), {"kernel": "big", "numerics": "rough"}, 'numerics=\'rough\': "exact" or "fast"'),
    ((), {"kernel": "big", "device": "H9000"}, "unknown device 'H9000'; known: V100, T4, A100, RTX3090, Orin, RTX4090, H100, H200, B200, B300, Thor, RTX5090, GB10"),
    ((), {"kernel": "big", "dynamic_shared": -1}, "dynamic_shared=-1: give the bytes of dynamic shared memory"),
]  # fmt: skip


@pytest.mark.parametrize(("args", "options", "message"), BAD, ids=range(len(BAD)))
def test_unusable_arguments(args, options, message):
    with pytest.raises(InputError) as caught:
        call(*args, **options)
    assert str(caught.value) == message


def test_read_only_arrays_may_be_read_but_not_written():
    out = np.zeros(8, np.uint32)
    out.flags.writeable = False
    with pytest.raises(InputError) as caught:
        call(out, 1, 2.0, STRUCT)
    assert str(caught.value) == "the kernel wrote to an array that is read-only; pass a copy of it"


def test_what_is_not_modelled_is_refused_by_name():
    text = TEXT.replace("ret; }", "multimem.red.global.add.u32 [%rd1], %r1; ret; }", 1).replace(".version 8.0", ".version 8.1")
    with pytest.raises(CapabilityError) as caught:
        simulate(text, kernel="add", grid=1, block=32, args=[A, 1, 2.0, STRUCT])
    assert str(caught.value).startswith("<string>:8:")
    assert "simulator: `multimem.red.global.add.u32` is not modelled" in str(caught.value)


def test_progress_is_told_and_an_interrupt_leaves_a_partial_result():
    seen = []

    def progress(done, total):
        seen.append((done, total))
        raise KeyboardInterrupt

    out = np.zeros(8, np.uint32)
    result = call(out, 9, 2.0, STRUCT, grid=3, progress=progress)
    assert seen == [(1, 3)]
    assert not result.completed
    assert out[0] == 9


STRUCTURE = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .align 8 .b8 s[32], .param .align 8 .b8 p[8]) {
.reg .b64 %rd<5>; .reg .b32 %r<3>; .reg .b16 %h<2>; .reg .f32 %f<2>;
ld.param.u64 %rd1, [s]; ld.param.u16 %h1, [s+8]; ld.param.f32 %f1, [s+12]; ld.param.u64 %rd2, [s+16]; ld.param.u8 %r1, [s+24];
ld.param.u64 %rd3, [p];
cvt.u32.u16 %r2, %h1; add.u32 %r1, %r1, %r2;
st.global.u32 [%rd1], %r1; st.global.f32 [%rd2], %f1; st.global.f32 [%rd3], %f1;
ret; }"""


def test_structures_of_pointers_and_numbers() -> None:
    x, y, z = np.zeros(1, np.uint32), np.zeros(4, np.float32), np.zeros(1, np.float32)
    members = (x, (np.int16(300), np.float32(1.5)), ptr(y, 2), b"\5")
    result = simulate(STRUCTURE, grid=1, block=1, args=[members, z])
    assert not result.findings
    assert (x.tolist(), y.tolist(), z.tolist()) == ([305], [0, 0, 1.5, 0], [1.5])
    for wrong, said in [
        ((x, 3), ", member 1: int has no width in a structure; write np.int32(3), np.float32(1.5), an array or bytes"),
        ((x, np.int32(3)), ": the members of the tuple make a structure of 16 bytes, the parameter has 32"),
    ]:
        with pytest.raises(InputError) as caught:
            simulate(STRUCTURE, grid=1, block=1, args=[wrong, z])
        assert str(caught.value) == "kernel `k`, argument 0 (`s`)" + said


def test_an_output_that_nothing_is_written_to_is_noted():
    text = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b)
{ .reg .b64 %rd<3>; ld.param.u64 %rd1, [a]; st.global.u32 [%rd1], 7; ret; }
"""
    a, b = np.zeros(4, np.uint32), np.zeros(4, np.uint32)
    result = simulate(text, grid=1, block=32, args=[a, b], undefined=[a, b])
    assert [str(f) for f in result.findings] == [
        "note[uninitialised-read]: argument 1 (`b`) is an output, and nothing was written to it: zeros here, on a GPU what its memory held before\n"
        "  repair: Store the result, or pass an array whose contents are meant."
    ]
    assert simulate(text, grid=1, block=32, args=[a, b]).findings == []
    assert simulate(text, grid=1, block=32, args=[a, b], undefined=[a, b], check=False).findings == []
