"""lop3 with each of its 256 tables, against the table itself."""

import numpy as np
import pytest

from warpsmith.simulator.meanings.logic import lookup


@pytest.mark.parametrize("shape", [(64,), (1,), ()])
def test_every_table(shape):
    rng = np.random.default_rng(1)
    a, b, c = (rng.integers(0, 1 << 32, shape, dtype=np.uint32) for _ in range(3))
    bit = np.arange(32, dtype=np.uint32)
    bits = [np.asarray(x)[..., None] >> bit & 1 for x in (a, b, c)]
    index = 4 * bits[0] + 2 * bits[1] + bits[2]
    for table in range(256):
        expected = ((table >> index & 1).astype(np.uint64) << bit.astype(np.uint64)).sum(-1)
        assert (np.broadcast_to(lookup(a, b, c, table), shape) == expected).all(), f"{table:#04x}"
