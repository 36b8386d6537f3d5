"""Replay of all results of the captures of which tests/captured replays a share and no file beside this one the rest."""

from pathlib import Path

import pytest

from warpsmith.hardware.differences import read_replays
from warpsmith.hardware.everything import KINDS

DATA = Path(__file__).parents[1] / "captured" / "data"


@pytest.mark.parametrize("kind", [k for k in KINDS if k.name in ("scalar", "tensor", "programs")], ids=lambda k: k.name)
def test_what_differs_is_what_is_listed(kind):
    path = DATA / kind.kept("sm_90a")
    total, found = kind.differing(path)
    replay = read_replays(DATA)[path.name]
    assert (total, sorted(found)) == (replay.forms, sorted(replay.differing))
