"""What becomes of errors, and that `--help` stays quick."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

import warpsmith
from command_line import Run
from warpsmith.base.errors import InputError, SimulationError
from warpsmith.base.findings import Finding
from warpsmith.base.source import Place
from warpsmith.cli import doctor
from warpsmith.cli import main as module
from warpsmith.toolchain import find

SOURCE = Path(warpsmith.__file__).parents[1]


def test_help_lists_every_verb_and_imports_none(run: Run) -> None:
    outcome = run("--help")
    assert outcome.status == 0
    listed = outcome.out.split("Commands:\n")[1].split("\n")
    assert [line.split()[0] for line in listed if line.strip()] == list(module.COMMANDS)
    code = (
        "import sys\nfrom warpsmith.cli.main import main\nmain(['--help'])\n"
        "print([m for m in sys.modules if m in ('numpy', 'rich', 'ml_dtypes') or m.startswith('warpsmith.toolchain')])"
    )
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("verb", module.COMMANDS)
def test_every_verb_explains_itself(run: Run, verb: str) -> None:
    outcome = run(verb, "--help")
    assert outcome.status == 0
    assert outcome.out.startswith(f"Usage: warpsmith {verb} ")
    example = outcome.out.partition("Example: ")[2]
    assert not example or example.startswith(f"warpsmith {verb} ")


def test_the_version(run: Run) -> None:
    assert run("--version").out == f"warpsmith, version {warpsmith.__version__}\n"


def test_an_unknown_verb(run: Run) -> None:
    outcome = run("dance")
    assert outcome.status == 2
    assert outcome.err.splitlines()[-1] == "Error: No such command 'dance'."


@pytest.mark.parametrize(
    ("wrong", "meant"), [("simulat", "'simulate'"), ("sas", "'sass'"), ("comp", "'compile'"), ("Check", "'check'")]
)
def test_a_verb_spelled_wrongly(run: Run, wrong: str, meant: str) -> None:
    outcome = run(wrong, "k.ptx")
    assert outcome.status == 2
    assert outcome.err.splitlines()[-1] == f"Error: No such command '{wrong}'. Did you mean {meant}?"


def test_an_option_spelled_wrongly(run: Run) -> None:
    assert run("check", "--gird", "1", "k.ptx").err.splitlines()[-1] == "Error: No such option '--gird'. Did you mean '--grid'?"


FINDING = Finding("deadlock", "error", "all warps wait", Place("k.py", 7))


@pytest.mark.parametrize(
    ("error", "status", "out", "err"),
    [
        (InputError("f.ptx: no such file"), 2, "", "warpsmith: error: f.ptx: no such file\n"),
        (SimulationError([FINDING]), 1, "k.py:7: error[deadlock]: all warps wait\n", ""),
        (
            FileNotFoundError(errno.ENOENT, "No such file or directory", "x"),
            2,
            "",
            "warpsmith: error: x: No such file or directory\n",
        ),
        (OSError("odd"), 2, "", "warpsmith: error: odd\n"),
        (MemoryError(), 2, "", "warpsmith: error: out of memory; use a smaller grid or smaller arrays\n"),
        (KeyboardInterrupt(), 130, "", "\nwarpsmith: interrupted\n"),
        (click.Abort(), 130, "", "warpsmith: interrupted\n"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_errors_are_told_in_a_line(
    run: Run, monkeypatch: pytest.MonkeyPatch, error: BaseException, status: int, out: str, err: str
) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr(doctor, "report", fail)
    outcome = run("doctor")
    assert (outcome.status, outcome.out, outcome.err) == (status, out, err)


def test_a_fault_of_ours_says_how_to_report_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.delenv("WARPSMITH_TRACEBACK", raising=False)
    monkeypatch.setattr(doctor, "report", fail)
    outcome = run("doctor")
    assert outcome.status == 70
    line = fail.__code__.co_firstlineno + 1
    assert outcome.err == (
        "warpsmith: internal error: ZeroDivisionError: division by zero\n"
        f"  at cli/test_main.py:{line}\n"
        "  this is a fault of warpsmith: please report it with the command, its input and the output of `warpsmith doctor`\n"
        "  (WARPSMITH_TRACEBACK=1 shows where it happened)\n"
    )
    monkeypatch.setenv("WARPSMITH_TRACEBACK", "1")
    assert run("doctor").err.startswith("Traceback (most recent call last):\n")


def test_a_reader_that_goes_away_is_no_error() -> None:
    command = f"{sys.executable} -m warpsmith doctor --json | head -c 1"
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True, env=environment)
    assert (done.stdout, done.stderr) == ("{", "")


def test_doctor_finds_what_is_there(run: Run) -> None:
    outcome = run("doctor", "--json")
    assert outcome.status == 0
    entries = {e["name"]: e for e in json.loads(outcome.out)["entries"]}
    assert entries["warpsmith"]["version"] == warpsmith.__version__
    assert entries["numpy"]["found"]
    assert list(entries) == ["warpsmith", "python", "numpy", "ml_dtypes", "click", "rich", "ptxas", "nvdisasm"]


def test_doctor_says_how_to_get_what_is_missing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find, "places", tuple)
    monkeypatch.setattr(doctor, "places", find.places)
    outcome = run("doctor")
    assert outcome.status == 0
    assert outcome.out.splitlines()[-3:-1] == [
        "--  ptxas      pip install 'warpsmith[cuda]' installs it (nvidia-cuda-nvcc); it turns PTX into machine code",
        "--  nvdisasm   pip install 'warpsmith[cuda]' installs it (nvidia-cuda-nvdisasm); it lists machine code",
    ]


def test_an_output_that_takes_nothing_is_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(module.group, "main", full)
    assert run("doctor").err == "warpsmith: error: the output cannot be written: No space left on device\n"


def test_a_pipe_that_nobody_reads_is_no_finding(tmp_path):
    """Tables are printed by rich, which ends the program with status 1 where its pipe is broken; 1 means findings."""
    (tmp_path / "k.ptx").write_text(".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n ret;\n}\n")
    command = [sys.executable, "-m", "warpsmith", "simulate", "k.ptx", "--block", "32"]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, cwd=tmp_path, env=environment, check=False)
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_file_that_ends_the_program(tmp_path, capsys):
    (path := tmp_path / "k.py").write_text("import sys\nsys.exit(7)\n")
    assert module.main(["check", f"{path}:k"]) == 2
    assert capsys.readouterr().err == f"warpsmith: error: {path}:2: the file ends the program: sys.exit(7)\n"
