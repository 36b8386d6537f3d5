"""A GEMM of CUTLASS is right only where the metadata of its sparse A are read from where they are; its sums are all exact."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from programs.cutlass_kernels import PROGRAMS
from programs.program import MANY, run
from warpsmith.simulator import tensor_product
from warpsmith.simulator.sparse import Sparsity
from warpsmith.simulator.tensor_sparsity import codes_of

PLACES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "columns swapped": lambda words: words[:, ::-1],
    "rows of the next lane": lambda words: np.roll(words, 1, axis=0),
    "rows eight lanes away": lambda words: np.roll(words, 8, axis=0),
    "halves of a word swapped": lambda words: words >> np.uint32(16) | words << np.uint32(16),
    "low and high index swapped": lambda words: (
        (words & np.uint32(0x33333333)) << np.uint32(2) | words >> np.uint32(2) & np.uint32(0x33333333)
    ),
}


NAMED = {p.name: p for p in PROGRAMS}
WRONG = r"^[1-9]\d{3,}"
"""How many elements of D are not what they should be."""


@pytest.mark.parametrize("name", ["sparse_nvfp4", "sparse_mxfp8"])
@pytest.mark.parametrize("places", PLACES)
def test_other_places_in_tensor_memory_give_other_results(name: str, places: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor_product, "codes_of", lambda words, type_: codes_of(PLACES[places](words), type_))
    program = NAMED[name]
    with pytest.raises(AssertionError, match=WRONG):
        run(program, program.archs[0], MANY[0])


@pytest.mark.parametrize("lanes", [(1, 0, 3, 2), (2, 3, 0, 1), (0, 2, 1, 3)])
def test_other_lanes_of_a_quad_give_other_results(lanes: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    rows = Sparsity._rows
    monkeypatch.setattr(Sparsity, "_rows", lambda s, e, n: rows(s, e.reshape(-1, 8, 4)[..., list(lanes)].reshape(-1, 32), n))
    program = NAMED["sparse_geforce"]
    with pytest.raises(AssertionError, match=WRONG):
        run(program, program.archs[0], MANY[0])
