"""However a PTX file is damaged, the command line says what is wrong: no internal error, no traceback."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from warpsmith.cli.main import main

TEXT = Path(__file__).parents[3].joinpath("docs/guide/scale.ptx").read_text()
SIMULATE = ["simulate", "f.ptx", "--block", "32", "--args", "f32[32],f32[32]", "--max-steps", "2000"]
STRANGE = '.reg .shared { } @%p %r1 [%rd1+4] .v4 0f3f -1 0x "a .loc call bra L: .func ( ) , ; 1.5 .param .b128 _ | !'
WORDS = f"{STRANGE} {TEXT}".split()


def truncated() -> Iterator[bytes]:
    for cut in range(0, len(TEXT), 7):
        yield TEXT[:cut].encode()


def with_words_changed() -> Iterator[bytes]:
    draw = random.Random(1)
    for _ in range(800):
        words = TEXT.partition("\n")[2].split()
        for _ in range(draw.randint(1, 3)):
            at = draw.randrange(len(words))
            words[at : at + draw.randint(0, 1)] = draw.choice([[], [draw.choice(WORDS)]])
        yield " ".join(words).encode()


def with_bytes_changed() -> Iterator[bytes]:
    draw = random.Random(2)
    for _ in range(300):
        data = bytearray(TEXT.encode())
        for _ in range(draw.randint(1, 5)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        yield bytes(data)


@pytest.mark.parametrize("damage", [truncated, with_words_changed, with_bytes_changed])
@pytest.mark.parametrize("verb", [["check", "f.ptx"], SIMULATE], ids=["check", "simulate"])
def test_damaged_ptx(
    damage: object, verb: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for data in damage():  # type: ignore[operator]
        Path("f.ptx").write_bytes(data)
        status = main(verb)
        captured = capsys.readouterr()
        assert status in (0, 1, 2), f"{data!r}\n{captured.err}"
        assert status == 0 or captured.out or captured.err
