"""Arguments on the command line, and what is said of those that are none."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from warpsmith.base.errors import InputError
from warpsmith.cli.values import parse_value, parse_values
from warpsmith.simulator.tensormap import TensorMap


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", np.arange(6, dtype=np.uint16).reshape(2, 3))


def complaint(text: str) -> str:
    with pytest.raises(InputError) as caught:
        parse_value(text)
    return str(caught.value)


def test_numbers() -> None:
    assert [v.argument for v in parse_values(["1, 0x10,-3", "1.5,1e-3,inf"])] == [1, 16, -3, 1.5, 0.001, float("inf")]


def test_arrays_from_files() -> None:
    plain, viewed = parse_value("a.npy").array, parse_value("a.npy:bf16").array
    assert plain is not None
    assert viewed is not None
    np.testing.assert_array_equal(plain, [[0, 1, 2], [3, 4, 5]])
    assert viewed.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(viewed.view(np.uint16), plain)


def test_arrays_that_are_made() -> None:
    assert parse_value("f32[2x3]").array.tolist() == [[0, 0, 0], [0, 0, 0]]  # pyright: ignore[reportOptionalMemberAccess]
    assert parse_value("s8[4]=range").array.tolist() == [0, 1, 2, 3]  # pyright: ignore[reportOptionalMemberAccess]
    assert parse_value("bf16[2]=-1.5").array.tolist() == [-1.5, -1.5]  # pyright: ignore[reportOptionalMemberAccess]
    assert parse_value("u8[2]=ones").array.tolist() == [1, 1]  # pyright: ignore[reportOptionalMemberAccess]
    first, second, again = parse_values(["f16[8]=normal,f16[8]=normal"], seed=1) + parse_values(["f16[8]=normal"], seed=1)
    assert first.array.tolist() == again.array.tolist() != second.array.tolist()  # pyright: ignore[reportOptionalMemberAccess]


def test_numbers_of_a_type() -> None:
    numbers = [v.argument for v in parse_values(["-3:s16", "2.5f,1e3f,0.1:f64,1.5:bf16"])]
    assert [(type(n).__name__, float(n)) for n in numbers] == [  # pyright: ignore[reportArgumentType]
        ("int16", -3), ("float32", 2.5), ("float32", 1000), ("float64", 0.1), ("bfloat16", 1.5),
    ]  # fmt: skip


def test_names_and_pointers() -> None:
    x, y, p, q = parse_values(["x:f32[8]=range,tma:f16[64x64]:box=64x64", "&x+3,&0"])
    assert isinstance(y.argument, TensorMap)
    assert [name for v in (x, y, p, q) for name, _ in v.arrays] == ["x", "tma:f16[64x64]:box=64x64"]
    assert (p.argument.array is x.array, p.argument.offset) == (True, 12)  # pyright: ignore[reportAttributeAccessIssue]
    assert (q.argument.array is x.array, q.argument.offset) == (True, 0)  # pyright: ignore[reportAttributeAccessIssue]
    for texts, said in {
        "x:f32[8],x:f32[8]": "x:f32[8]: two arrays are called 'x'; give them different names",
        "x:f32[8],&y": "&y: no array before it has that name or number; there are &0 (&x)",
        "x:f32[8],&x+a": "&x+a: the offset is a number of elements, e.g. &x+16",
        "{x:f32[8],3:s32": "{x:f32[8],3:s32: a brace is not closed; a structure is written {a.npy,3:s32,1.5f}",
        "3}": "3}: a brace is closed that was not opened",
    }.items():
        with pytest.raises(InputError) as caught:
            parse_values([texts])
        assert str(caught.value) == said


def test_structures() -> None:
    one, two = parse_values(["{y:f32[4]=ones,{3:s16,1.5f},&y+1}", "7"])
    array, (number, float_), pointer = one.argument  # pyright: ignore[reportGeneralTypeIssues]
    assert (array.tolist(), int(number), float(float_), pointer.offset, two.argument) == ([1] * 4, 3, 1.5, 4, 7)
    assert [name for name, _ in one.arrays] == ["y"]


def test_bytes() -> None:
    Path("blob").write_bytes(b"\1\2")
    assert parse_value("@blob").argument == b"\1\2"


def test_tensor_maps() -> None:
    value = parse_value("map:f16[128x64]=normal:box=64x64:swizzle=128B:fill=nan")
    assert isinstance(value.argument, TensorMap)
    assert value.argument.fields(address=0x1000).box == (64, 64)
    assert value.argument.array is value.array


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "a.txt",
            "'a.txt' is no argument; write a number (128, 1.5f, 3:s16), a file a.npy (or a.npy:bf16), f32[128x64] (or "
            "f32[128x64]=normal), &0+16 for a pointer into array 0, {a.npy,3:s32} for a structure, @file for bytes, or "
            "map:ARRAY:box=64x64:swizzle=128B",
        ),
        ("b.npy", "b.npy: cannot be read: No such file or directory"),
        ("@b", "b: cannot be read: No such file or directory"),
        (
            "a.npy:f33",
            "a.npy: no array type 'f33'; known: u8, s8, u16, s16, u32, s32, u64, s64, b8, b16, b32, b64, "
            "f16, bf16, f32, f64, e4m3, e5m2",
        ),
        ("a.npy:f32", "a.npy: its elements have 2 bytes (uint16), those of f32 have 4"),
        ("f32[4]=many", "f32[4]=many: no filling 'many'; write =zeros, =ones, =range, =normal or a number"),
        ("u8[4]=300", "u8[4]=300: uint8 cannot hold 300"),
        ("s8[4]=1.5", "s8[4]=1.5: int8 cannot hold 1.5"),
        ("u32[4]=nan", "u32[4]=nan: uint32 cannot hold nan"),
        ("f16[4]=1e5", "f16[4]=1e5: float16 cannot hold 1e5"),
        ("e4m3[4]=1000", "e4m3[4]=1000: float8_e4m3fn cannot hold 1000"),
        ("f32[" + "1x" * 40 + "1]", "f32[" + "1x" * 38 + ": at most 32 extents of at most 18 digits"),
        ("map:7", "map:7: a tensor map is of an array, not of '7'"),
        ("map:a.npy:box=a", "map:a.npy:box=a: box=a is no number or list of numbers such as 64x64"),
        ("300:u8", "300:u8: uint8 cannot hold 300"),
        ("1e39f", "1e39f: float32 cannot hold 1e39"),
        ("&0", "&0: no array before it has that name or number; there are none"),
        ("{a.npy,3}", "{a.npy,3}: 3 has no type in a structure; write 3:s32 or the like"),
        ("{a.npy", "{a.npy: a structure ends with a brace, e.g. {a.npy,3:s32,1.5f}"),
        ("map:a.npy:fill=9", "tensor map: no fill '9'; zero or nan"),
    ],
)
def test_what_is_no_argument(text: str, said: str) -> None:
    assert complaint(text) == said


def test_files_that_are_no_arrays() -> None:
    Path("empty.npy").write_bytes(b"")
    Path("text.npy").write_bytes(b"hello, this is not an array")
    assert complaint("empty.npy") == "empty.npy: not a .npy file of numbers: No data left in file"
    assert complaint("text.npy").startswith("text.npy: not a .npy file of numbers: ")


def test_arrays_beyond_this_computer() -> None:
    assert complaint("f32[99999999999x999999999]").startswith(
        "f32[99999999999x999999999]: an array in memory of 399,999,999,596,000,000,004 bytes does not fit this computer: "
    )


def test_numbers_that_fill() -> None:
    assert parse_value("u64[2]=0xffffffffffffffff").array.tolist() == [2**64 - 1] * 2
    assert np.isinf(parse_value("bf16[2]=-inf").array.astype(np.float32)).all()
    assert parse_value("s16[2]=-3").array.tolist() == [-3, -3]


def test_every_array_of_a_file() -> None:
    np.savez("saved.npz", **{"q:bf16": np.full(2, 0x3F80, np.uint16), "n": np.arange(3)})
    q, n, number = parse_values(["saved.npz,7"])
    assert (q.array.dtype.name, q.array.tolist(), q.text) == ("bfloat16", [1.0, 1.0], "saved.npz[q]")
    assert (n.array.tolist(), number.argument) == ([0, 1, 2], 7)


def test_files_that_hold_no_arrays() -> None:
    Path("text.npz").write_text("hello")
    for name, said in (("text.npz", "text.npz: not a .npz file of numbers: "), ("none.npz", "none.npz: cannot be read: ")):
        with pytest.raises(InputError) as caught:
            parse_values([name])
        assert str(caught.value).startswith(said)


def test_files_that_mean_harm() -> None:
    np.save("one.npy", np.zeros(4))
    Path("one.npy").rename("one.npz")
    np.savez("several.npz", a=np.zeros(4))
    Path("several.npz").rename("several.npy")
    for name, shape in (("deep.npy", "(" * 4000), ("huge.npy", "(9999999999999,), }")):
        header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}\n".encode()
        Path(name).write_bytes(b"\x93NUMPY\x01\0" + len(header).to_bytes(2, "little") + header)
    Path("long.bin").write_bytes(bytes(32_765))
    assert complaint("deep.npy").startswith("deep.npy: not a .npy file of numbers: ")
    assert complaint("huge.npy") == "huge.npy: its arrays do not fit in this computer's memory, or its header is damaged"
    assert complaint("several.npy") == "several.npy: not a .npy file of numbers: it holds several arrays; name it .npz"
    assert complaint("@long.bin") == "long.bin: more than the 32,764 bytes that the parameters of a kernel may have"
    with pytest.raises(InputError, match=r"^one.npz: not a .npz file of numbers: it is a single array; name it .npy$"):
        parse_values(["one.npz"])


def test_nesting_and_pointers_without_sense() -> None:
    with pytest.raises(InputError, match=r"^structures are nested more than 16 deep$"):
        parse_values(["{" * 5000 + "}" * 5000])
    with pytest.raises(InputError, match=r"^&a\+: the offset is a number of elements, e.g. &a\+16$"):
        parse_values(["a:f32[4],&a+"])
