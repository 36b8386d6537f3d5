"""tcgen05.cp: rows of shared memory to lanes of tensor memory, multicast and decompressed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcgen05_program import A_AT, BYTES, laid_out, wait

rng = np.random.default_rng(17)


def copied(
    run: Any, form: str, descriptor: int, image: np.ndarray, columns: int, *, lane: int = 0, **options: Any
) -> np.ndarray:
    """Fill columns with 7s, copy over them, return the words `[lane, column]`."""
    registers = ", ".join(f"%r{j}" for j in range(columns))
    text = "".join(f" mov.b32 %r{j}, 7;\n" for j in range(columns))
    text += f""" tcgen05.st.sync.aligned.32x32b.x{columns}.b32 [%mine], {{{registers}}};
 tcgen05.wait::st.sync.aligned;
 tcgen05.fence::before_thread_sync;
 bar.sync 0;
 tcgen05.fence::after_thread_sync;
 @!%first bra ISSUED;
 mov.b64 %rd10, {descriptor}; add.u32 %r230, %tmem, {lane << 16};
 tcgen05.cp.cta_group::1.{form} [%r230], %rd10;
 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];
ISSUED:
{wait()} tcgen05.fence::after_thread_sync;
 tcgen05.ld.sync.aligned.32x32b.x{columns}.b32 {{{registers}}}, [%mine];
 tcgen05.wait::ld.sync.aligned;
"""
    text += "".join(f" st.global.b32 [%out+{512 * j}], %r{j};\n" for j in range(columns))
    out = np.zeros((columns, 128), np.uint32)
    r = run(text, out, image, **options)
    assert r.completed
    assert not r.findings, str(r)
    return out.T


def source(height: int, width: int, swizzle: str = "none") -> tuple[np.ndarray, int, np.ndarray]:
    data = rng.integers(0, 256, (height, width)).astype(np.uint8)
    image = np.zeros(BYTES, np.uint8)
    return data, laid_out(data, A_AT, swizzle, False, image), image


@pytest.mark.parametrize("swizzle", ["none", "32B", "128B"])
@pytest.mark.parametrize(("form", "columns"), [("128x256b", 8), ("128x128b", 4)])
def test_whole_lanes(run: Any, form: str, columns: int, swizzle: str) -> None:
    data, descriptor, image = source(128, 4 * columns, swizzle)
    got = copied(run, form, descriptor, image, 8)
    assert np.array_equal(got[:, :columns], data.view(np.uint32))
    assert (got[:, columns:] == 7).all()


@pytest.mark.parametrize(("form", "rows"), [
    ("32x128b.warpx4", [range(32)] * 4),
    ("64x128b.warpx2::02_13", [range(32), range(32, 64), range(32), range(32, 64)]),
    ("64x128b.warpx2::01_23", [range(32), range(32), range(32, 64), range(32, 64)]),
])  # fmt: skip
def test_multicast(run: Any, form: str, rows: list[range]) -> None:
    data, descriptor, image = source(int(form[:2]), 16)
    got = copied(run, form, descriptor, image, 4)
    for warp, some in enumerate(rows):
        assert np.array_equal(got[32 * warp : 32 * warp + 32], data[list(some)].view(np.uint32))


def test_one_lane_of_each_warp(run: Any) -> None:
    data, descriptor, image = source(4, 32)
    got = copied(run, "4x256b", descriptor, image, 8, lane=31)
    assert np.array_equal(got[31::32], data.view(np.uint32))
    assert (np.delete(got, np.arange(31, 128, 32), axis=0) == 7).all()


@pytest.mark.parametrize(("bits", "form"), [(6, "b6x16_p32"), (4, "b4x16_p64")])
def test_decompression(run: Any, bits: int, form: str) -> None:
    """Sixteen elements of 16 bytes become sixteen bytes; 4-bit elements stand two bits up."""
    data, descriptor, image = source(128, 16)
    got = np.ascontiguousarray(copied(run, f"128x128b.b8x16.{form}", descriptor, image, 4)).view(np.uint8)
    for lane in (0, 5, 127):
        word = int.from_bytes(data[lane].tobytes(), "little")
        want = [(word >> bits * j & (1 << bits) - 1) << (2 if bits == 4 else 0) for j in range(16)]
        assert got[lane].tolist() == want
