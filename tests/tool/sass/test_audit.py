"""Audits of small libraries: counts, words that are not as they should be, resuming, sharing the work, damaged input."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from command_line import Run, run
from containers import container, entry
from sass_sample import sample
from warpsmith.assembly.sass.control import NO_CONTROL
from warpsmith.assembly.sass.table import FOLDER
from warpsmith.base.errors import InputError
from warpsmith.cubin import Cubin
from warpsmith.sass.audit import Report, audit
from warpsmith.sass.audit import run as runner

__all__ = ["run"]

NOP = 0x7918 | NO_CONTROL
NUMBERS = {"sm_90a": 90, "sm_100a": 100}


def cubin(arch: str, *words: int) -> bytes:
    made = Cubin.new(arch)
    made.add_function("k", b"".join(w.to_bytes(16, "little") for w in words), registers=32)
    return made.write()


def library(path: Path, **codes: list[int]) -> Path:
    """Write a fat binary with a cubin for each architecture."""
    entries = [entry(cubin(arch, *words), arch=NUMBERS[arch], flags=0x100011) for arch, words in codes.items()]
    path.write_bytes(container(*entries))
    return path


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """Return a library of 600 words of sm_90a and 300 of sm_100a; some stand twice, once with other control bits."""
    words = [w for w, _ in sample("sm_90a")[:600]]
    again = [w ^ 3 << 116 for w in words[:100]]
    return library(tmp_path / "lib.fatbin", sm_90a=[*words, *again, *words], sm_100a=[w for w, _ in sample("sm_100a")[:300]])


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """Return a folder of tables in which ISETP is misspelt and the first class of LOP3 is missing."""
    folder = tmp_path / "tables"
    shutil.copytree(FOLDER, folder)
    table = folder / "sm_90a.tsv"
    lines = table.read_text().splitlines(keepends=True)
    kept = [line.replace("ISETP<", "ISTEP<") for line in lines if not line.startswith("lop3_lut__RRR_RRR\t")]
    assert len(kept) < len(lines)
    table.write_text("".join(kept))
    return folder


def plain(report: Report) -> dict[str, object]:
    out = report.as_json()
    del out["inputs"]
    return out


def test_every_word_is_counted_once(two: Path) -> None:
    report = audit([two])
    assert report.clean
    assert report.examples == report.unread == []
    total = report.total("sm_90a")
    texts = {w & ((1 << 105) - 1) | (w & 7 << 122 if w >> 109 & 1 else 0) for w, _ in sample("sm_90a")[:600]}
    # the padding behind the code: a branch to itself or NOPs, of control bits of their own
    assert len(texts) <= total.words == total.exact <= len(texts) + 2
    assert total.raw == total.encoded > total.words + 90
    assert total.raw >= total.canonical > total.raw * 0.9
    assert report.cubins == {"sm_90a": 1, "sm_100a": 1}
    assert report.instructions["sm_90a"] >= 1300
    assert sum(t.words for t in report.tallies["sm_90a"].values()) == total.words
    assert (report.inputs[0].path, report.inputs[0].size) == (str(two), two.stat().st_size)


def test_processes_clients_and_the_order_of_files_change_nothing(two: Path, tmp_path: Path) -> None:
    other = library(tmp_path / "other.fatbin", sm_90a=[w for w, _ in sample("sm_90a")[500:700]])
    expected = plain(audit([two, other]))
    assert plain(audit([other, two])) == expected
    assert plain(audit([other, two], jobs=2)) == expected

    with ThreadPoolExecutor(2) as threads:

        class Client:
            asked = 0

            def get_executor(self) -> ThreadPoolExecutor:
                self.asked += 1
                return threads

        client = Client()
        assert plain(audit([two, other], client=client)) == expected
        assert client.asked == 1


def test_a_sample_depends_on_the_words_and_the_seed_alone(two: Path, tmp_path: Path) -> None:
    other = library(tmp_path / "other.fatbin", sm_90a=[w for w, _ in sample("sm_90a")[:300]])
    first = audit([two], sample=200, seed=5)
    assert first.total().raw == 200
    assert set(first.tallies) == {"sm_90a", "sm_100a"}
    again = audit([other, two], sample=200, seed=5)  # `other` adds no word
    assert again.tallies == first.tallies
    assert audit([two], sample=200, seed=6).tallies != first.tallies
    assert audit([two], sample=10**9).total() == audit([two]).total()


def test_words_that_are_not_exact_are_shown_with_both_texts(two: Path, broken: Path, run: Run, tmp_path: Path) -> None:
    options = ("--wrong", "wrong", "--html", "report.html", "--tsv", "report.tsv", "--json")
    done = run("audit", two, "--tables", broken, "--arch", "sm_90a", *options)
    assert (done.status, done.err) == (1, "")
    report = json.loads(done.out)
    rows = report["tallies"]["sm_90a"]
    assert rows["ISETP"]["differing"] == rows["ISETP"]["words"] > 0
    assert 0 < rows["LOP3"]["unknown"] <= rows["LOP3"]["words"]
    assert rows["FFMA"]["exact"] == rows["FFMA"]["words"]
    by_kind = {kind: [e for e in report["examples"] if e["kind"] == kind] for kind in ("differing", "unknown", "rejected")}
    assert by_kind["rejected"] == []
    for e in by_kind["differing"]:
        assert e["theirs"].replace("ISETP", "ISTEP") == e["ours"] != e["theirs"]
        assert e["mnemonic"] == "ISETP"
    for e in by_kind["unknown"]:
        assert "LOP3" in e["theirs"]
        assert e["ours"].startswith(("bits ", "a combination ", "opcode "))
    listed = (tmp_path / "wrong/sm_90a.bin").read_bytes()
    assert len(listed) // 16 == sum(t["words"] - t["exact"] for t in rows.values())
    page = (tmp_path / "report.html").read_text()
    assert by_kind["differing"][0]["ours"].replace("&", "&amp;") in page
    lines = (tmp_path / "report.tsv").read_text().splitlines()
    assert f"# lib.fatbin  {two.stat().st_size} bytes  SHA-256 {report['inputs'][0]['sha256']}" in lines
    assert "\t".join(["sm_90a", "ISETP", *map(str, rows["ISETP"].values())]) in lines
    text = run("audit", two, "--tables", broken, "--arch", "sm_90a").out
    first = by_kind["differing"][0]
    assert f"sm_90a differing {first['word']}\n  ours   {first['ours']}\n  theirs {first['theirs']}\n" in text
    assert "\n  ISETP " in text
    assert "\n  FFMA " not in text
    assert "\n  FFMA " in run("audit", two, "--tables", broken, "--arch", "sm_90a", "--mnemonics").out


KILLED = """
import os, signal, sys
from pathlib import Path
from warpsmith.sass.audit import audit, run
run._BUCKET = 300
def tell(what, done, total):
    if what == "comparing" and done == 2:
        os.kill(os.getpid(), signal.SIGKILL)
audit([sys.argv[1]], work=Path(sys.argv[2]), tell=tell)
"""


def test_a_run_that_was_killed_goes_on(two: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = tmp_path / "work"
    done = subprocess.run([sys.executable, "-c", KILLED, two, work], env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.returncode == -signal.SIGKILL
    records = sorted(work.glob("judge-*/*.json"))
    assert len(records) == 2
    records[0].with_suffix(".json.part").write_text("{")  # what a crash may leave
    times = {p: p.stat().st_mtime_ns for p in records}
    monkeypatch.setattr(runner, "_BUCKET", 300)
    told: list[tuple[str, int, int]] = []
    report = audit([two], work=work, tell=lambda *what: told.append(what))
    assert {p: p.stat().st_mtime_ns for p in records} == times
    assert ("collecting words", 1, 1) in told
    total = told[-1][2]
    assert [t for t in told if t[0] == "comparing"] == [("comparing", n, total) for n in range(2, total + 1)]
    assert plain(report) == plain(audit([two]))


def test_other_tables_or_files_do_not_take_old_results(two: Path, broken: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    assert audit([two], work=work).clean
    assert not audit([two], work=work, tables=broken).clean
    library(two, sm_90a=[NOP])
    assert 1 <= audit([two], work=work).total().words <= 2


def damaged(payload: bytes) -> bytes:
    return container(entry(payload, arch=90, flags=0x100011))


HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "no section table": (
        lambda: damaged(cubin("sm_90a", NOP)[:200]),
        "section headers at 0x",
    ),
    "another machine": (
        lambda: damaged(cubin("sm_90a", NOP)[:18] + b"\x3e\0" + cubin("sm_90a", NOP)[20:]),
        "an ELF file for machine 62 (x86-64), not for NVIDIA GPUs (190)",
    ),
    "cut container": (lambda: b"PK\x03\x04" + bytes(40), "the zip archive is damaged"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_damaged_entries_are_named_and_the_others_read(name: str, two: Path, run: Run, tmp_path: Path) -> None:
    make, message = HOSTILE[name]
    (tmp_path / "damaged.bin").write_bytes(make())
    done = run("audit", "damaged.bin", two, "--arch", "sm_90a", "--sample", "50")
    assert done.status == 1
    (line,) = (line for line in done.out.splitlines() if line.startswith("not read: "))
    assert line.startswith("not read: damaged.bin")
    assert message in line
    assert "\nsm_90a " in done.out


def test_code_that_is_no_whole_number_of_words(run: Run, tmp_path: Path) -> None:
    data = bytearray(cubin("sm_90a", NOP))
    made = Cubin.new("sm_90a")
    made.add_function("k", NOP.to_bytes(16, "little"), registers=32)
    at = next(n for n, s in enumerate(made.sections) if s.name == ".text.k")
    header = int.from_bytes(data[40:48], "little") + 64 * at
    data[header + 32 : header + 40] = (17).to_bytes(8, "little")
    (tmp_path / "odd.fatbin").write_bytes(damaged(bytes(data)))
    done = run("audit", "odd.fatbin")
    assert done.status == 1
    assert f"section {at} of 17 bytes of code is no whole number of words (byte 0x" in done.out


def test_words_that_nobody_knows_are_counted_apart(tmp_path: Path) -> None:
    report = audit([library(tmp_path / "lib.fatbin", sm_90a=[NOP, 0xFFF | NO_CONTROL, (1 << 128) - 1])])
    assert report.illegal == {"sm_90a": 2}
    assert report.clean


def test_architectures_without_a_table_are_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "old.fatbin").write_bytes(container(entry(cubin("sm_90a", NOP), arch=61)))
    done = run("audit", "old.fatbin")
    assert (done.status, done.err) == (2, "warpsmith: error: nothing was compared: there is no table for sm_61\n")
    assert "\nsm_61: 8 instructions; there is no table" in done.out


def test_an_audit_of_nothing_is_no_success(run: Run, tmp_path: Path) -> None:
    (tmp_path / "k.fatbin").write_bytes(container(entry(cubin("sm_90a", NOP), flags=0x100011)))
    (tmp_path / "tables").mkdir()
    for arguments, message in (
        (["--arch", "sm_80"], "no machine code for sm_80 was found; `warpsmith find` lists what there is"),
        (["--tables", "tables"], "there is no table for sm_90a"),
    ):
        done = run("audit", "k.fatbin", *arguments)
        assert (done.status, done.err) == (2, f"warpsmith: error: nothing was compared: {message}\n")
    done = run("audit", "k.fatbin", "--tables", "nowhere")
    assert (done.status, done.out) == (2, "")
    assert done.err.endswith("Error: Invalid value for '--tables': Directory 'nowhere' does not exist.\n")


def test_bad_arguments(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for arguments, message in (
        (["nowhere"], "nowhere: No such file or directory"),
        (["empty"], "no files to audit: name libraries, wheels, cubins, or folders that hold some"),
        (["pipe"], "pipe: a device, pipe or socket, which cannot be mapped; write what it gives to a file first"),
        ([""], "a path is empty; name libraries, wheels, cubins, or folders that hold some"),
        (["empty", "--arch", "sm_1"], "unknown architecture 'sm_1'; known: "),
    ):
        done = run("audit", *arguments)
        assert (done.status, done.out) == (2, "")
        assert done.err.startswith(f"warpsmith: error: {message}")
    wrong = r"^sample=-1 and jobs=1: the sample is 0 or more words, the jobs one or more processes$"
    with pytest.raises(InputError, match=wrong):
        audit(["empty"], sample=-1)
    monkeypatch.setitem(sys.modules, "distributed", None)
    (tmp_path / "lib.bin").write_bytes(b"")
    done = run("audit", "lib.bin", "--dask", "tcp://127.0.0.1:1")
    assert (done.status, done.err) == (2, "warpsmith: error: distributed is not installed; pip install 'warpsmith[dask]'\n")
