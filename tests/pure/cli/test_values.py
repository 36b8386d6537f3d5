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
            "'a.txt' is no argument; write a number, a file a.npy (or a.npy:bf16), f32[128x64] (or f32[128x64]=normal), "
            "@file for bytes, or map:ARRAY:box=64x64:swizzle=128B",
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
