"""`warpsmith check` names what ptxas makes wrong code of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import Run
from miscompiled_cases import cases
from warpsmith.assembly.ptx.miscompiled import at_hand
from warpsmith.toolchain.find import Tool

SAID = """\
k.ptx:18: error[ptxas-miscompiles]: `cvt.rzi.s16.f16 %h2, %h1`: ptxas 13.0 takes `.ftz` and the sign into the conversion \
and loses `.rzi`: it rounds to nearest [rzi-of-ftz]
  k.ptx:17: `neg.ftz.f16 %h1, %h0`
  repair: Convert by way of f32: `cvt.f32.f16`, then `cvt.rzi` of that.
k.ptx: 11 instructions, no problems; not run: give it --block and --args
"""


@pytest.fixture(autouse=True)
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "k.ptx").write_text(cases()["rzi-of-ftz"].text("broken"))
    script = tmp_path / "ptxas"
    script.write_text("#!/bin/sh\necho 'Cuda compilation tools, release 13.0, V13.0.88'\n")
    script.chmod(0o755)
    monkeypatch.setattr(at_hand, "find_tool", lambda _: Tool("ptxas", script, "PATH"))


def test_it_is_an_error(run: Run) -> None:
    outcome = run("check", "k.ptx")
    assert (outcome.status, outcome.out, outcome.err) == (1, SAID, "")
    (finding,) = json.loads(run("check", "k.ptx", "--json").out)["findings"]
    assert (finding["kind"], finding["severity"], finding["where"]["line"]) == ("ptxas-miscompiles", "error", 18)


def test_without_ptxas_it_is_a_matter_of_portability(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(at_hand, "find_tool", lambda _: None)
    outcome = run("check", "k.ptx")
    assert outcome.status == 0
    assert outcome.out.startswith(
        "k.ptx:18: portability[ptxas-miscompiles]: `cvt.rzi.s16.f16 %h2, %h1`: ptxas takes `.ftz` and the sign into the "
        "conversion and loses `.rzi`: it rounds to nearest (seen with 12.0 to 13.5) [rzi-of-ftz]\n"
    )


def test_it_can_be_passed_over(run: Run) -> None:
    outcome = run("check", "k.ptx", "--suppress", "ptxas-miscompiles@k.ptx:18=inputs are whole numbers")
    assert outcome.status == 0
    assert outcome.out == (
        "passed over: ptxas-miscompiles at k.ptx:18: inputs are whole numbers\n"
        "k.ptx: 11 instructions, no problems; not run: give it --block and --args\n"
    )
    told = json.loads(run("check", "k.ptx", "--json", "--suppress", "ptxas-miscompiles=known").out)
    assert (told["findings"], [(f["kind"], f["reason"]) for f in told["suppressed"]]) == ([], [("ptxas-miscompiles", "known")])


def test_sarif_has_it(run: Run, tmp_path: Path) -> None:
    run("check", "k.ptx", "--sarif", "out.sarif")
    (result,) = json.loads((tmp_path / "out.sarif").read_text())["runs"][0]["results"]
    assert (result["ruleId"], result["level"]) == ("ptxas-miscompiles", "error")
