"""Arguments and sizes that mean harm or were never thought of: each refused in words, none computed wrongly."""

# ruff: noqa: E501 (messages stand in one line each)

import ml_dtypes
import numpy as np
import pytest

from warpsmith.base.errors import InputError
from warpsmith.simulator import ptr, simulate

HEAD = ".version 8.0\n.target sm_90a\n.address_size 64\n"
NOTHING = HEAD + ".entry k() { ret; }"
ONE = HEAD + ".entry k(.param .u64 p) { ret; }"


def parameter(type_):
    return f"{HEAD}.entry k(.param .{type_} p, .param .u64 o) {{ .reg .b16 %h; .reg .b32 %r; .reg .b64 %d;\nld.param.u64 %d, [o]; ld.param.b16 %h, [p]; st.global.u16 [%d], %h; ret; }}"


OPTIONS = [
    ({"grid": None}, "grid=None: give one to three ints, e.g. grid=(4, 2, 1)"),
    ({"grid": 1.5}, "grid=1.5: give one to three ints, e.g. grid=(4, 2, 1)"),
    ({"grid": True}, "grid=True: give one to three ints, e.g. grid=(4, 2, 1)"),
    ({"block": (32, 1.0)}, "block=(32, 1.0): give one to three ints, e.g. block=(4, 2, 1)"),
    ({"cluster": "22"}, "cluster='22': give one to three ints, e.g. cluster=(4, 2, 1)"),
    ({"grid": -2**70}, f"grid={-2**70}: every dimension is at least 1"),
    ({"grid": 2**70}, f"grid=({2**70}, 1, 1): at most (2147483647, 65535, 65535)"),
    ({"seed": "a"}, "seed='a': give an int"),
    ({"max_steps": 0}, "max_steps=0: give the number of blocks that may run, at least 1, or None for no limit"),
    ({"max_steps": "9"}, "max_steps='9': give the number of blocks that may run, at least 1, or None for no limit"),
    ({"dynamic_shared": True}, "dynamic_shared=True: give the bytes of dynamic shared memory"),
    ({"device": 5}, 'device=5: give a name such as "H200", or what ws.device("H200") returns'),
    ({"args": None}, "args=None: give a list of arguments, e.g. args=[array, 128]"),
    ({"args": np.zeros(2)}, "args=array([0., 0.]): give a list of arguments, e.g. args=[array, 128]"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "message"), OPTIONS, ids=range(len(OPTIONS)))
def test_options(options, message):
    with pytest.raises(InputError) as caught:
        simulate(NOTHING, **{"grid": 1, "block": 32} | options)
    assert str(caught.value) == message


def test_integers_of_numpy_are_integers():
    r = simulate(
        NOTHING, grid=(np.int32(2), 1), block=np.int64(32), dynamic_shared=np.uint16(64), seed=np.int8(3), max_steps=np.int64(9)
    )
    assert r.completed


def test_what_is_no_module():
    for given in (None, 5, b".version 8.0"):
        with pytest.raises(InputError) as caught:
            simulate(given, grid=1, block=32)
        assert str(caught.value) == f"a module is PTX text, a path or what ws.ptx.parse returns, not {type(given).__name__}"


VALUES = [
    ("f32", 1e300, "kernel `k`, argument 0 (`p`): 1e+300 is too large for .f32; pass float('inf') for infinity"),
    ("f64", 10**400, f"kernel `k`, argument 0 (`p`): 1{'0' * 59} is too large for .f64; pass float('inf') for infinity"),
    ("f16", 65520, "kernel `k`, argument 0 (`p`): 65520 is too large for .f16; pass float('inf') for infinity"),
    ("b32", 1e39, "kernel `k`, argument 0 (`p`): 1e+39 is too large for .b32; pass float('inf') for infinity"),
]


@pytest.mark.parametrize(("type_", "value", "message"), VALUES, ids=range(len(VALUES)))
def test_floats_that_do_not_fit(type_, value, message):
    with pytest.raises(InputError) as caught:
        simulate(parameter(type_), grid=1, block=32, args=[value, np.zeros(1, np.uint16)])
    assert str(caught.value) == message


@pytest.mark.parametrize(("type_", "dtype"), [("f16", np.float16), ("bf16", ml_dtypes.bfloat16)])
def test_numbers_become_the_type_of_the_parameter(type_, dtype):
    out = np.zeros(1, np.uint16)
    assert simulate(parameter(type_), grid=1, block=1, args=[1.2345, out]).completed
    assert out.view(dtype)[0] == dtype(1.2345)


class Raising:
    """What says it is a tensor and raises what it likes."""

    def __dlpack__(self, **options):
        raise LookupError("nothing to see")

    __dlpack_device__ = __dlpack__


ARRAYS = [
    (lambda: np.zeros(4, ">f4"), "kernel `k`, argument 0 (`p`): the array has the byte order of another machine (>f4); pass array.astype(array.dtype.newbyteorder(\"=\"))"),
    (lambda: memoryview(np.zeros(8, np.int32)), "kernel `k`, argument 0 (`p`): 32 bytes given for a parameter of 8"),
    (lambda: np.ma.masked_array(np.zeros(4), mask=[1, 0, 0, 0]), "kernel `k`, argument 0 (`p`): a masked array has no place for its mask; pass array.filled(value), or array.data"),
    (lambda: Raising(), "kernel `k`, argument 0 (`p`): Raising is no numpy array and no CPU tensor that can be viewed as one (nothing to see)"),
    (lambda: ptr(np.zeros(4), 1.5), "ptr: offset=1.5: give the offset as an int, in elements"),
    (lambda: ptr(np.zeros(4), 2**62), f"ptr: offset={2**62}: no array has so many elements"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "message"), ARRAYS, ids=range(len(ARRAYS)))
def test_arrays(make, message):
    with pytest.raises(InputError) as caught:
        simulate(ONE, grid=1, block=32, args=[make()])
    assert str(caught.value) == message


VIEWS = (
    HEAD
    + """.entry k(.param .u64 a, .param .u64 b) { .reg .b64 %d<3>; .reg .b32 %r<2>;
ld.param.u64 %d1, [a]; ld.param.u64 %d2, [b]; st.global.u32 [%d2], 7; ld.global.u32 %r1, [%d1+16]; st.global.u32 [%d2+4], %r1; ret; }"""
)


def test_a_view_of_another_argument_is_the_same_memory():
    a = np.arange(16, dtype=np.uint32)
    assert simulate(VIEWS, grid=1, block=1, args=[a, a[4:8]]).completed
    assert a.tolist() == [0, 1, 2, 3, 7, 7, *range(6, 16)]
    with pytest.raises(InputError) as caught:
        simulate(VIEWS, grid=1, block=1, args=[a[4:], a[:12]])
    assert (
        str(caught.value)
        == "kernel `k`, argument 1 (`b`): the array overlaps another argument in part; pass views of one array with ws.ptr"
    )


SIZES = [
    (".const .b8 c[65537]; .entry k() { ret; }", "<string>:4:1: the module's constants take 65,537 bytes with `c`; 65,536 is the most"),
    (".entry k() {\n.local .b8 l[524289]; ret; }", "<string>:5:1: the local variables of `k` take 524,289 bytes with `l`; 524,288 is the most"),
    (".entry k() {\n.reg .b32 %r<999999999>; ret; }", "<string>:5:1: `k` declares 999,999,999 registers; the simulator takes 262,144 of a function; declare those that are used"),
    (".global .u32 a<999999999>; .entry k() { ret; }", "<string>:4:1: `a<999999999>`: at most 262,144 variables; declare an array"),
    (".entry k(.param .b8 p[32765]) { ret; }", "<string>:4:1: the parameters of `k` take 32,765 bytes; 32,764 is the most"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), SIZES, ids=range(len(SIZES)))
def test_declarations_beyond_what_a_gpu_has(text, message):
    with pytest.raises(InputError) as caught:
        simulate(HEAD + text, grid=1, block=32)
    assert str(caught.value) == message


def test_global_memory_beyond_this_computer():
    with pytest.raises(InputError) as caught:
        simulate(HEAD + ".global .u8 a[65536][65536][65536]; .entry k() { ret; }", grid=1, block=32)
    assert str(caught.value).startswith(
        "global memory of 281,474,976,718,848 bytes does not fit this computer: with its shadow it takes twice that, and there are "
    )


def test_a_module_is_given_as_a_path(tmp_path):
    text = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\nret;\n}\n"
    (path := tmp_path / "k.ptx").write_text(text)
    assert simulate(path, grid=1, block=32).completed
    assert simulate(str(path), grid=1, block=32).completed
    with pytest.raises(InputError, match=r"^nowhere\.ptx: cannot be read: No such file or directory$"):
        simulate("nowhere.ptx", grid=1, block=32)
