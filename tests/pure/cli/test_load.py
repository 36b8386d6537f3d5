"""Targets: PTX files that are none, Python files without the kernel that was asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import Run
from warpsmith.base.errors import InputError
from warpsmith.cli.load import is_python, load_kernel, parse_parameters, stem_of

KERNELS = """\
class Kernel:
    def ptx(self, **parameters):
        return ""
    def simulate(self):
        return None

one = Kernel()
two = Kernel()
other = 3
"""


def test_targets() -> None:
    assert [is_python(t) for t in ("k.py", "dir/k.py:name", "k.ptx", "k.py:not a name", "k.ptx:name")] == [
        True,
        True,
        False,
        False,
        False,
    ]
    assert [stem_of(t) for t in ("dir/k.ptx", "dir/k.py:name", "dir/k.py")] == ["k", "name", "k"]


def message(target: str) -> str:
    with pytest.raises(InputError) as caught:
        load_kernel(target)
    return str(caught.value)


def test_kernels_by_name(tmp_path: Path) -> None:
    path = tmp_path / "kernels_by_name.py"
    path.write_text(KERNELS)
    assert type(load_kernel(f"{path}:two")).__name__ == "Kernel"
    assert message(f"{path}:three") == f"{path}: no kernel is called 'three'; kernels there: one, two"
    assert message(str(path)) == f"{path}: which kernel? write {path}:NAME; kernels there: one, two"
    path.write_text("from warpsmith import ptx\nx = 1\ncopy = ptx.inst.cp.async_.bulk\n")
    assert message(f"{path}:x") == f"{path}: no kernel is called 'x'; kernels there: none"


def test_files_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "faulty_kernels.py"
    path.write_text("def f(:\n")
    assert message(f"{path}:k") == f"{path}:1: SyntaxError: invalid syntax"
    assert message(f"{tmp_path}/none.py:k") == f"{tmp_path}/none.py: no such file"
    (tmp_path / "folder.py").mkdir()
    assert message(f"{tmp_path}/folder.py:k") == f"{tmp_path}/folder.py: is a folder"


ONE_OVER_ZERO = "import math\n\ndef f():\n    return 1 / 0\n\n"
IN_A_KERNEL = """\
from warpsmith import kernel
import numpy as np


@kernel(grid=(1, 1, 1), block=(32, 1, 1))
def k():
    np.zeros(3).reshape(2)
"""


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("at_import.py", ONE_OVER_ZERO + "f()\n", "at_import.py:4: ZeroDivisionError: division by zero"),
        ("at_trace.py", IN_A_KERNEL, "at_trace.py:7: ValueError: cannot reshape array of size 3 into shape (2,)"),
        (
            "no_module.py",
            "import no_such_thing\n",
            "no_module.py:1: ModuleNotFoundError: No module named 'no_such_thing'",
        ),
    ],
    ids=["import", "trace", "module"],
)
def test_errors_of_the_users_own_code(run: Run, tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / name).write_text(text)
    outcome = run("check", f"{name}:k")
    assert (outcome.status, outcome.out, outcome.err) == (2, "", f"warpsmith: error: {said}\n")


def test_parameters() -> None:
    assert parse_parameters(["a=1", "b=True", "c=x=y", "d=(1, 2)"]) == {"a": 1, "b": True, "c": "x=y", "d": (1, 2)}
    with pytest.raises(InputError) as caught:
        parse_parameters(["1=2"])
    assert str(caught.value) == "'1=2' is no parameter; write NAME=VALUE, e.g. causal=True"


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("none.ptx", None, "warpsmith: error: none.ptx: cannot be read: No such file or directory"),
        (
            "elf.ptx",
            b"\x7fELF\2\1\1\0",
            "warpsmith: error: elf.ptx: an ELF file (cubin or object), not PTX text; "
            "`warpsmith extract --kind ptx` writes what PTX it holds",
        ),
        (
            "binary.ptx",
            b".version 8.0\0\1\2\3 x",
            "warpsmith: error: binary.ptx: a binary file (it has zero bytes), not PTX text",
        ),
        ("empty.ptx", b"", "empty.ptx:1:1: error: the text is empty: no PTX in it\n  \n  ^"),
        (
            "prose.ptx",
            b"hello\n",
            "prose.ptx:1:1: error: PTX begins with `.version`, not `hello`\n  hello\n  ^^^^^\n"
            "  hint: write e.g. `.version 8.0` and `.target sm_90a` first",
        ),
    ],
)
def test_ptx_that_is_none(run: Run, tmp_path: Path, name: str, content: bytes | None, complaint: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    outcome = run("compile", name)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err == f"{complaint}\n"
    assert {p.name for p in tmp_path.iterdir()} <= {name}


def test_ptx_of_a_hundred_megabytes(run: Run, tmp_path: Path) -> None:
    with (tmp_path / "big.ptx").open("wb") as file:
        file.truncate(100_000_000)
    outcome = run("compile", "big.ptx")
    assert outcome.status == 2
    assert (
        outcome.err
        == "warpsmith: error: big.ptx: more than 67,108,864 bytes, over the limit for PTX; pass limit= to read it anyway\n"
    )


def test_json_and_dash_together(run: Run) -> None:
    outcome = run("compile", "k.ptx", "--json", "-o", "-")
    assert (outcome.status, outcome.err) == (
        2,
        "warpsmith: error: --json and --output - both want the standard output; name a file\n",
    )


def test_parameters_for_ptx(run: Run) -> None:
    outcome = run("compile", "k.ptx", "-p", "a=1")
    assert (outcome.status, outcome.err) == (
        2,
        "warpsmith: error: k.ptx: PTX has no parameters to set; -p is for kernels written in Python\n",
    )
