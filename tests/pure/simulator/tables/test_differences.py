"""Tables of first differences: round trip, and damage named."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpsmith.base.errors import InputError
from warpsmith.simulator.tables.differences import load, save


@given(st.lists(st.integers(-(2**40), 2**40), max_size=50))
def test_round_trip(tmp_path_factory, values):
    path = tmp_path_factory.mktemp("table") / "x.table"
    save(path, "x", np.array(values, np.int64), "by a test")
    assert load(path).tolist() == values
    assert [p.name for p in path.parent.iterdir()] == ["x.table"]


def test_first_line_says_what_it_is(tmp_path):
    save(tmp_path / "x.table", "x", np.arange(3), "captured on a bench")
    assert (tmp_path / "x.table").read_bytes().split(b"\n")[0] == (
        b"warpsmith table 1; x; 3 entries; crc32 4f8c5ccc; captured on a bench"
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: b"something else\n", "x.table: not a table: the first line must read 'warpsmith table 1; …'"),
        (lambda d: d[:-9], "x.table: damaged table: Compressed data ended before the end-of-stream marker was reached"),
        (lambda d: d.replace(b"; 4 entries", b"; 5 entries"), "x.table: damaged table: 4 bytes do not hold 5 entries"),
        (lambda d: _other_sum(d), "x.table: damaged table: its checksum is not 00000000"),
    ],
)  # fmt: skip
def test_damage_is_named(tmp_path, change, message):
    path = tmp_path / "x.table"
    save(path, "x", np.arange(4), "by a test")
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(InputError) as caught:
        load(path)
    assert str(caught.value) == message


def _other_sum(data):
    at = data.index(b"crc32 ") + 6
    return data[:at] + b"00000000" + data[at + 8 :]
