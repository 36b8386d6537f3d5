"""`warpsmith probe --since`: what another version of the disassembler changed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from command_line import Run, run
from warpsmith.assembly.sass.table import FOLDER
from warpsmith.toolchain.find import require_tool

__all__ = ["run"]

LATER = """\
#!{python}
import re, subprocess, sys
done = subprocess.run([{tool!r}, *sys.argv[1:]], capture_output=True, text=True)
out = re.sub(r".* NOP ?;.*\\n", "", done.stdout.replace("SR_TID.", "SR_TID_"))
print(out.replace("V13", "V99"), end="")
print(re.sub(r".*'nop_'.*\\n", "", done.stderr.replace("'exit_'", "'leave_'")), end="", file=sys.stderr)
sys.exit(done.returncode)
"""
"""A disassembler that has no NOP, calls a class otherwise, and spells special registers otherwise."""


def test_a_later_disassembler_is_a_list_of_differences(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    lines = (FOLDER / "sm_90a.tsv").read_text().splitlines(keepends=True)
    kept = [line for line in lines if line.startswith(("#", "%", "@", "nop_\t", "exit_\t", "s2r_\t"))]
    (tmp_path / "a/sm_90a.tsv").write_text("".join(kept))
    later = tmp_path / "later"
    later.write_text(LATER.format(python=sys.executable, tool=str(require_tool("nvdisasm").path)))
    arguments = ("probe", "--arch", "sm_90a", "--since", "a", "--nvdisasm", later, "--out", "b", "--seeds-only")
    assert run(*arguments).err == f"warpsmith: error: {later} is no program; name the file of nvdisasm itself\n"
    later.chmod(0o755)
    done = run(*arguments, "--json")
    assert (done.status, done.err) == (0, "")
    found = json.loads(done.out)
    assert {(d["kind"], d["class"]) for d in found} == {
        ("illegal", "nop_"),
        ("renamed", "exit_ -> leave_"),
        ("changed", "s2r_"),
    }
    for d in found:
        if d["kind"] == "changed":
            assert d["before"].replace("SR_TID.", "SR_TID_") == d["after"] != d["before"]
    (renamed,) = (d for d in found if d["kind"] == "renamed")
    assert renamed["words"] > 1
    text = run("probe", "--arch", "sm_90a", "--diff", "a", "--out", "b").out
    assert "\nlost     nop_  0x000fe2000000000000000000000" in text  # without asking, lost and illegal are one
    assert "found by probing nvdisasm 99." in (tmp_path / "b/sm_90a.tsv").read_text()
    wrong = "warpsmith: error: --since and --inherit name two tables to start from; write one of them\n"
    assert run(*arguments, "--inherit", "sm_80").err == wrong
