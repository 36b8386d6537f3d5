"""What `printf` of device code prints, against the C library's."""

from __future__ import annotations

import ctypes
import math
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warpsmith.base.errors import CapabilityError
from warpsmith.simulator.printf import Buffer, formatted

LIBC = ctypes.CDLL(None)
FLAGS = st.text("-+ #0", max_size=3)
WIDTH = st.one_of(st.just(""), st.integers(0, 30).map(str))
PRECISION = st.one_of(st.just(""), st.just("."), st.integers(0, 20).map(".{}".format))
SPECIAL = st.sampled_from([0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, 1.7976931348623157e308, 0.5, 1.5, 2.5, -1e-7])


def reference(text: str, *values: object) -> str:
    out = ctypes.create_string_buffer(4096)
    LIBC.snprintf(out, ctypes.c_size_t(4096), text.encode(), *values)
    return out.value.decode("latin-1")


def ours(text: str, data: bytes, string: str = "") -> str:
    buffer = Buffer(lambda at, size: data[at : at + size])
    return formatted(text, buffer, lambda _: string)


@settings(max_examples=600)
@given(
    FLAGS,
    WIDTH,
    PRECISION,
    st.sampled_from(["hh", "h", "", "l", "ll", "z"]),
    st.sampled_from("diouxX"),
    st.integers(-(2**63), 2**63 - 1),
)
def test_integers(flags: str, width: str, precision: str, length: str, kind: str, value: int) -> None:
    text = f"<%{flags}{width}{precision}{length}{kind}>"
    size = 8 if length in ("l", "ll", "z") else 4
    data = (value & (1 << 8 * size) - 1).to_bytes(size, "little")
    number = ctypes.c_longlong(value) if size == 8 else ctypes.c_int(ctypes.c_int32(value & 0xFFFFFFFF).value)
    assert ours(text, data) == reference(text, number)


@settings(max_examples=600)
@given(FLAGS, WIDTH, PRECISION, st.sampled_from("fFeEgGaA"), st.one_of(SPECIAL, st.floats(), st.floats(-1e6, 1e6)))
def test_floats(flags: str, width: str, precision: str, kind: str, value: float) -> None:
    text = f"<%{flags}{width}{precision}{kind}>"
    assert ours(text, struct.pack("<d", value)) == reference(text, ctypes.c_double(value))


@given(st.text("-", max_size=1), WIDTH, PRECISION, st.text("abc%d", max_size=9))
def test_strings(flags: str, width: str, precision: str, value: str) -> None:
    text = f"<%{flags}{width}{precision}s>"
    assert ours(text, struct.pack("<Q", 1), value) == reference(text, ctypes.c_char_p(value.encode()))


@pytest.mark.parametrize(
    ("text", "data", "said"),
    [
        ("100%%", b"", "100%"),
        ("%c%5c%-3c|", struct.pack("<iii", 65, 66, 67), "A    BC  |"),
        ("%p %p", struct.pack("<QQ", 0, 0x7000_0000_0100), "(nil) 0x700000000100"),
        ("%s", struct.pack("<Q", 0), "(null)"),
        ("%*d|%*d|%.*f|%.*d", struct.pack("<iiiiiidii", 5, 1, -5, 2, 2, 0, 2.5, -1, 7), "    1|2    |2.50|7"),
        ("%d %f %c", struct.pack("<iidi", -1, 0, 0.25, 33), "-1 0.250000 !"),
        ("%y %", b"", "%y %"),
    ],
)
def test_the_rest(text: str, data: bytes, said: str) -> None:
    assert ours(text, data) == said


@pytest.mark.parametrize("text", ["%999999999d", "%.2147483648d"])
def test_widths_that_fill_the_memory_are_refused(text: str) -> None:
    with pytest.raises(CapabilityError) as caught:
        ours(text, struct.pack("<i", 1))
    said = f"simulator: printf of more than 65536 characters for one value: '{text}' asks for it"
    assert str(caught.value) == said
