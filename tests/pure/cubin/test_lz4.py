"""The LZ4 block format, by hand and by a compressor of the test's own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpsmith.base.errors import CubinError
from warpsmith.cubin.lz4 import decompress


def _length(value: int) -> bytes:
    out = b""
    while value >= 255:
        out += b"\xff"
        value -= 255
    return out + bytes((value,))


def sequence(literals: bytes, distance: int = 0, count: int = 0) -> bytes:
    """Return one sequence; without a distance it is the last."""
    match = count - 4 if distance else 0
    token = min(len(literals), 15) << 4 | (min(match, 15) if distance else 0)
    out = bytes((token,)) + (_length(len(literals) - 15) if len(literals) >= 15 else b"") + literals
    return out + distance.to_bytes(2, "little") + (_length(match - 15) if match >= 15 else b"") if distance else out


@given(
    st.lists(st.tuples(st.binary(min_size=1, max_size=300), st.integers(1, 400), st.integers(4, 700)), max_size=8),
    st.binary(max_size=40),
)
def test_what_was_packed_comes_out(parts, tail: bytes) -> None:
    packed, want = b"", b""
    for literals, distance, count in parts:
        want += literals
        distance = min(distance, len(want))
        packed += sequence(literals, distance, count)
        for _ in range(count):
            want += want[-distance : len(want) - distance + 1] if distance > 1 else want[-1:]
    packed += sequence(tail)
    assert decompress(packed, len(want + tail)) == want + tail


@given(st.binary(max_size=200), st.integers(0, 1000))
def test_any_bytes_end_in_an_error_of_ours(data: bytes, size: int) -> None:
    try:
        message, length = "", len(decompress(data, size))
    except CubinError as error:
        message, length = str(error), None
    assert message.startswith("LZ4: ") or length == size


@pytest.mark.parametrize(
    ("data", "size", "message"),
    [
        (b"\x50ab", 5, "LZ4: 5 literal bytes do not fit (byte 0x1)"),
        (b"\x50abcde", 4, "LZ4: 5 literal bytes do not fit (byte 0x1)"),
        (b"\x14a\x02\x00", 9, "LZ4: a match of 8 bytes at distance 2 does not fit (byte 0x4)"),
        (b"\x14a\x00\x00", 9, "LZ4: a match of 8 bytes at distance 0 does not fit (byte 0x4)"),
        (b"\x1fa\x01\x00\xff", 99, "LZ4: the block ends inside a length (byte 0x5)"),
        (b"\x14a\x01", 9, "LZ4: the block ends inside a distance (byte 0x2)"),
        (b"\x10a", 2, "LZ4: the block holds 1 bytes, 2 were announced (byte 0x2)"),
    ],
)
def test_damage(data: bytes, size: int, message: str) -> None:
    with pytest.raises(CubinError) as caught:
        decompress(data, size)
    assert str(caught.value) == message
