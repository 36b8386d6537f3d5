"""The table of what was captured is fresh, and its last column is what replays of these very files found.

`data/differences.txt` lists every form that differs; that it lists no other and none less, the replays beside this file
show on a share of the forms, those in tests/slow on all.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from warpsmith.base.errors import InputError
from warpsmith.hardware import program_capture
from warpsmith.hardware.__main__ import main
from warpsmith.hardware.differences import FILE, Replay, differing_forms, digest, read_replays, write_replays
from warpsmith.hardware.everything import KINDS
from warpsmith.hardware.summary import Line, lines, table

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "captured" / "data"


def test_the_page_is_fresh():
    page = (ROOT / "docs" / "design" / "captured.md").read_text(encoding="utf-8")
    assert page.partition("\n\n|")[2] == table(DATA).partition("|")[2]


def test_every_capture_was_replayed_whole():
    replays = read_replays(DATA)
    assert set(replays) == {k.kept("sm_90a") for k in KINDS}
    for name, replay in replays.items():
        assert replay.sha256 == digest(DATA / name), f"{name} changed: run `replay {DATA} --record` again"


def test_every_form_that_differs_is_counted_in_a_line_of_the_table():
    counted = {f for line in lines(DATA) if line.differing for f in line.forms & line.differing}
    assert counted == {f for replay in read_replays(DATA).values() for f in replay.differing}


def test_forms_that_came_later_have_their_own_date():
    about = {"date": "2026-01-01", "added": {"2026-02-02": ["b", "c"], "2026-03-03": ["d"]}}
    dates = {forms: Line("x", about, set(forms)).dates for forms in ("a", "b", "ab", "bc", "abd", "cd")}
    assert dates == {
        "a": "2026-01-01", "b": "2026-02-02", "ab": "2026-01-01, 2026-02-02", "bc": "2026-02-02",
        "abd": "2026-01-01, 2026-02-02, 2026-03-03", "cd": "2026-02-02, 2026-03-03",
    }  # fmt: skip
    assert Line("x", {"date": "2026-01-01"}, {"a"}).dates == "2026-01-01"


@pytest.fixture
def folder(tmp_path):
    """A folder with one small capture: warp-level programs."""
    name = "programs-sm_90a.npz"
    (tmp_path / name).write_bytes((DATA / name).read_bytes())
    return tmp_path


def test_what_a_replay_finds_reaches_the_table(folder, monkeypatch, capsys):
    assert table(folder).endswith("| not replayed |\n")
    real = program_capture.simulated
    # the simulator gets one result of one program wrong
    wrong = lambda p: [o ^ 1 if p.name.startswith("shfl") and not k else o for k, o in enumerate(real(p))]  # noqa: E731
    first = next(p for p in program_capture.programs() if p.name.startswith("shfl"))
    monkeypatch.setattr(program_capture, "programs", lambda: [first])
    assert main(["replay", str(folder), "--record"]) == 0
    monkeypatch.setattr(program_capture, "simulated", wrong)
    assert main(["replay", str(folder), "--record"]) == 1
    assert capsys.readouterr().out.splitlines()[:2] == [
        "programs-sm_90a.npz: 1 forms, 0 differ",
        "programs-sm_90a.npz: 1 forms, 1 differ",
    ]
    assert differing_forms(folder / "programs-sm_90a.npz") == {first.name}
    assert table(folder).endswith("| 1 |\n")


def test_a_replay_of_another_file_does_not_count(folder):
    (path,) = folder.glob("*.npz")
    replay = Replay(digest(path), 105, ())
    write_replays(folder, {path.name: replay})
    assert differing_forms(path) == frozenset()
    write_replays(folder, {path.name: replace(replay, sha256="0" * 64)})
    assert differing_forms(path) is None


def test_what_is_no_list_of_differences_is_refused(folder):
    path = folder / FILE
    path.write_text("three differ\n", encoding="utf-8")
    with pytest.raises(InputError) as error:
        read_replays(folder)
    assert str(error.value) == (f"{path}:1: `three differ` is neither a capture nor a form; write it with `replay --record`")
    path.write_text(f"x.capture {'0' * 64}: 3 forms, 2 differ\n    12\n", encoding="utf-8")
    with pytest.raises(InputError) as error:
        read_replays(folder)
    assert str(error.value) == f"{path}: x.capture has 2 forms that differ, 1 are listed"
