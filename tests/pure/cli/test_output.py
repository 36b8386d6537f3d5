from __future__ import annotations

import errno
from pathlib import Path

import pytest

from warpsmith.cli import output
from warpsmith.cli.output import write_whole


def test_a_file_appears_whole(tmp_path: Path) -> None:
    write_whole(tmp_path / "a", b"one")
    write_whole(tmp_path / "a", b"two")
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {"a": b"two"}
    assert (tmp_path / "a").stat().st_mode & 0o600 == 0o600


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"old")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(output.os, "replace", full)
    with pytest.raises(OSError, match=r"No space left on device"):
        write_whole(tmp_path / "a", b"new")
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {"a": b"old"}


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"No such file") as caught:
        write_whole(tmp_path / "none" / "a", b"x")
    assert caught.value.filename == str(tmp_path / "none" / "a")
