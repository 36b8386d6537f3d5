from __future__ import annotations

from pathlib import Path

import pytest

import warpsmith
from warpsmith.findings import KINDS, Kind
from warpsmith.toolchain import messages

SOURCE = Path(warpsmith.__file__).parent


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_a_kind_says_what_is_wrong_and_how_to_mend_it(kind: Kind) -> None:
    assert kind.wrong.endswith(".")
    assert kind.repair.endswith(".")
    assert str(kind) == f"{kind.name}: {kind.wrong} {kind.repair}"


def test_the_toolchains_kinds_are_known() -> None:
    assert messages.KINDS.keys() <= KINDS.keys()


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_is_reported_by_something(name: str) -> None:
    others = [path for path in SOURCE.rglob("*.py") if path != SOURCE / "findings.py"]
    assert any(f'"{name}"' in path.read_text() for path in others)
