from __future__ import annotations

import pytest

from warpsmith.findings import KINDS, Kind
from warpsmith.toolchain import messages


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_a_kind_says_what_is_wrong_and_how_to_mend_it(kind: Kind) -> None:
    assert kind.wrong.endswith(".")
    assert kind.repair.endswith(".")
    assert str(kind) == f"{kind.name}: {kind.wrong} {kind.repair}"


def test_the_toolchains_kinds_are_known() -> None:
    assert messages.KINDS.keys() <= KINDS.keys()
