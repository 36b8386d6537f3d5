from __future__ import annotations

import errno
import multiprocessing
import os
import shutil
from pathlib import Path

import pytest

from warpsmith.base.errors import InputError
from warpsmith.toolchain import cache as module
from warpsmith.toolchain.cache import CubinCache, Entry, default_cache, default_folder

ENTRY = Entry(b"\x7fELF cubin", "ptxas info    : été\n")


@pytest.fixture
def cache(tmp_path: Path) -> CubinCache:
    return CubinCache(tmp_path / "deep" / "cubins")


def test_what_was_put_comes_back(cache: CubinCache) -> None:
    assert cache.get("a") is None
    cache.put("a", ENTRY)
    assert cache.get("a") == ENTRY
    assert cache.trouble == ""
    assert cache.size()[0] == 1
    assert [p.name for p in cache.folder.iterdir()] == ["a.cubin"]


def test_the_key_tells_parts_apart() -> None:
    assert CubinCache.key("ab", "c") != CubinCache.key("a", "bc")
    assert CubinCache.key("a", b"b") == CubinCache.key("a", "b")


@pytest.mark.parametrize("damage", ["truncate", "flip", "empty", "foreign"])
def test_a_damaged_entry_is_removed(cache: CubinCache, damage: str) -> None:
    cache.put("a", ENTRY)
    path = cache.folder / "a.cubin"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes({"truncate": data[:-4], "flip": data, "empty": b"", "foreign": b"hello" * 40}[damage])
    assert cache.get("a") is None
    assert not path.exists()


def test_what_was_used_longest_ago_goes_first(cache: CubinCache) -> None:
    big = Entry(bytes(1000), "")
    for age, name in enumerate("abc"):
        cache.put(name, big)
        os.utime(cache.folder / f"{name}.cubin", (1000 + age, 1000 + age))
    assert cache.get("a") == big
    cache.limit = 3300
    cache.put("d", big)
    assert sorted(p.stem for p in cache.folder.iterdir()) == ["a", "d"]


def test_files_left_behind_are_swept(cache: CubinCache) -> None:
    cache.put("a", ENTRY)
    stale, fresh = cache.folder / "x.part", cache.folder / "y.part"
    for path in (stale, fresh):
        path.write_bytes(b"half")
    os.utime(stale, (1000, 1000))
    cache.put("b", ENTRY)
    assert sorted(p.name for p in cache.folder.iterdir()) == ["a.cubin", "b.cubin", "y.part"]


def test_a_full_disk_keeps_nothing_and_says_so_once(
    cache: CubinCache, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    cache.folder.mkdir(parents=True)
    monkeypatch.setattr(module.os, "replace", full)
    cache.put("a", ENTRY)
    cache.put("b", ENTRY)
    assert list(cache.folder.iterdir()) == []
    assert cache.trouble == f"{cache.folder} keeps no cubins: No space left on device"
    assert caplog.messages == [f"{cache.trouble}; set WARPSMITH_CACHE_DIR to another folder"]


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = CubinCache(tmp_path / "file" / "cubins")
    cache.put("a", ENTRY)
    assert cache.trouble == f"{tmp_path}/file/cubins keeps no cubins: Not a directory"
    assert cache.get("a") is None
    assert cache.size() == (0, 0)


def hammer(folder: Path, limit: int) -> bool:
    cache = CubinCache(folder, limit)
    good = True
    for i in range(60):
        key = str(i % 7)
        found = cache.get(key)
        good &= found is None or found == Entry(key.encode() * 500, "")
        cache.put(key, Entry(key.encode() * 500, ""))
        good &= cache.trouble == ""
        if i % 13 == 0:
            shutil.rmtree(folder / "nothing", ignore_errors=True)
    return good


def test_processes_may_share_it(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        assert pool.starmap(hammer, [(tmp_path, 2000)] * 3) == [True] * 3
    assert not list(tmp_path.glob("*.part"))


def test_the_folder_is_the_users_choice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WARPSMITH_CACHE_DIR", str(tmp_path))
    assert default_cache().folder == tmp_path / "cubins"
    monkeypatch.delenv("WARPSMITH_CACHE_DIR")
    monkeypatch.setattr(module.sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert default_folder() == Path("/x/warpsmith")
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setenv("HOME", "/h")
    assert default_folder() == Path("/h/.cache/warpsmith")
    monkeypatch.setattr(module.sys, "platform", "darwin")
    assert default_folder() == Path("/h/Library/Caches/warpsmith")


@pytest.mark.parametrize(("text", "limit"), [("", 1 << 30), ("123", 123), ("5k", 5 << 10), ("2G", 2 << 30)])
def test_the_limit_is_the_users_choice(monkeypatch: pytest.MonkeyPatch, text: str, limit: int) -> None:
    monkeypatch.setenv("WARPSMITH_CACHE_SIZE", text)
    assert default_cache().limit == limit


def test_a_limit_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPSMITH_CACHE_SIZE", "lots")
    with pytest.raises(InputError) as caught:
        default_cache()
    assert str(caught.value) == "WARPSMITH_CACHE_SIZE='lots' is not a size; write bytes, or e.g. 500M or 2G"
