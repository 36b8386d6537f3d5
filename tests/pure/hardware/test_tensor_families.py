"""Forms of tensor cores: enough results of each, operands in every regime, a capture that finds what was changed."""

from collections import Counter

import numpy as np
import pytest

from warpsmith.base.errors import InputError
from warpsmith.hardware import family_capture as capture
from warpsmith.hardware.scalar_store import block_hashes
from warpsmith.hardware.tensor_families import OUTPUTS, families
from warpsmith.hardware.tensor_values import REGIMES, codes, metadata
from warpsmith.simulator.operand_values import values

EVERY = families("sm_90a")


def test_every_row_has_enough_results():
    total = Counter()
    for f in EVERY:
        total[f.row] += f.ctas * f.words_out * (2 if f.types[0] == "f16" else 1)
    assert min(total.values()) >= OUTPUTS
    assert len({f.key for f in EVERY}) == len(EVERY) > 2500


def test_the_first_ctas_compute_the_same_whatever_the_grid():
    f = next(f for f in EVERY if f.mnemonic == "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
    assert (f.arguments(3)[1] == f.arguments(5)[1][: 3 * f.words_in]).all()
    assert (capture.simulated(f, 2) == capture.simulated(f, 3)[: 2 * f.words_out]).all()


@pytest.mark.parametrize("type_", ["f16", "bf16", "tf32", "e4m3", "e5m2"])
def test_regimes_are_what_they_are_called(type_):
    index = np.arange(4096, dtype=np.uint64)
    width = 4 if type_ == "tf32" else 1 if type_[0] == "e" else 2
    found = [values(codes(type_, index, np.full(4096, r), 9).astype(f"u{width}"), type_) for r in range(REGIMES)]
    finite = [np.abs(x[np.isfinite(x) & (x != 0)]) for x in found]
    assert finite[0].min() >= 2.0**-3
    assert finite[0].max() < 2.0**4
    assert finite[3].max() < finite[0].min()
    assert finite[5].min() > finite[0].max()
    assert np.isnan(found[4]).any()
    assert (found[7] == 0).mean() > 0.2


def test_metadata_are_the_codes_the_manual_defines():
    words = metadata("f16", np.arange(512, dtype=np.uint64), 3)
    nibbles = words[:, None] >> (4 * np.arange(8, dtype=np.uint32)) & 15
    assert set(np.unique(nibbles).tolist()) == {4, 8, 9, 12, 13, 14}


def test_a_capture_comes_back_and_shows_what_differs(tmp_path):
    items = []
    for f in (EVERY[20], EVERY[150], EVERY[-1]):
        results = capture.simulated(f, f.ctas)
        items.append(capture.Captured(f, results[:256].copy(), block_hashes(results)))
    items[1].hashes[-1] ^= 1
    items[2].head[7] ^= 1
    path = tmp_path / "x.capture"
    capture.FamilyCapture({"arch": "sm_90a"}, items).write(path)
    lines = capture.compare(path).splitlines()
    assert lines[0] == "3 forms, 2 differ"
    assert lines[1] == f"{EVERY[150].key}: 1 of {items[1].hashes.size} blocks of 64 words differ"
    assert lines[2].startswith(f"{EVERY[-1].key}: 1 of the first 256 words differ: [7] ")


def test_a_file_that_is_none_is_refused(tmp_path):
    path = tmp_path / "x"
    path.write_text("no")
    with pytest.raises(InputError, match=r"^.*x is not a capture of tensor cores: File is not a zip file$"):
        capture.FamilyCapture.read(path)
