from __future__ import annotations

import errno
import os
import re
from pathlib import Path

import pytest

from warpsmith.base import whole_file
from warpsmith.base.errors import InputError
from warpsmith.base.whole_file import read_whole, write_whole


def test_a_file_appears_whole(tmp_path: Path) -> None:
    write_whole(tmp_path / "a", b"one")
    write_whole(tmp_path / "a", b"two")
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {"a": b"two"}
    assert (tmp_path / "a").stat().st_mode & 0o600 == 0o600


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"old")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(whole_file.os, "replace", full)
    with pytest.raises(OSError, match=r"No space left on device"):
        write_whole(tmp_path / "a", b"new")
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {"a": b"old"}


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"No such file") as caught:
        write_whole(tmp_path / "none" / "a", b"x")
    assert caught.value.filename == str(tmp_path / "none" / "a")


def test_a_full_disk_is_told_with_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(whole_file.os, "fdopen", full)
    with pytest.raises(OSError, match=r"No space left on device") as caught:
        write_whole(tmp_path / "a", b"new")
    assert caught.value.filename == str(tmp_path / "a")
    assert not list(tmp_path.iterdir())


def test_a_folder_is_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError) as caught:
        write_whole(tmp_path, b"x")
    assert (caught.value.filename, caught.value.strerror) == (str(tmp_path), "Is a directory")


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "link").symlink_to("a")
    write_whole(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "a").read_bytes() == b"new"


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_whole(pipe, b"data")
        assert os.read(reader, 16) == b"data"
    finally:
        os.close(reader)
    assert pipe.is_fifo()
    assert [p.name for p in tmp_path.iterdir()] == ["pipe"]


def test_files_are_read_within_a_limit(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(bytes(100))
    assert read_whole(tmp_path / "a", 100) == bytes(100)
    for path, message in (
        (tmp_path / "a", f"{tmp_path}/a: more than 99 bytes, the most that is read into memory here"),
        ("/dev/zero", "/dev/zero: more than 99 bytes, the most that is read into memory here"),
        ("", "the path is empty; name a file"),
    ):
        with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
            read_whole(path, 99)
    for path, message in ((tmp_path, "Is a directory"), (tmp_path / "none", "No such file or directory")):
        with pytest.raises(OSError, match=message) as caught:
            read_whole(path)
        assert caught.value.filename == str(path)
