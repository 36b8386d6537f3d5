from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from command_line import Run
from miscompiled_cases import cases
from warpsmith.toolchain import find

PTX = """\
.version 8.0
.target sm_90a
.address_size 64
.file 1 "kern.py"
.visible .entry k(.param .u64 p) .maxntid 128
{
 .reg .b64 %rd<4>;
 .loc 1 10 0
 ld.param.u64 %rd1, [p];
 .loc 1 11 0
 setmaxnreg.inc.sync.aligned.u32 160;
 st.global.u64 [%rd1], 7;
 ret;
}
"""
NOTE = """\
kern.py:11: note[setmaxnreg-ignored]: Potential Performance Loss: 'setmaxnreg' ignored; \
unable to determine register count at entry. (C7508)
  k.ptx:11: setmaxnreg.inc.sync.aligned.u32 160;
  repair: Add `.maxnreg`, or `.minnctapersm` beside `.maxntid` or `.reqntid`.
"""


@pytest.fixture(autouse=True)
def kernel(tmp_path: Path) -> None:
    (tmp_path / "k.ptx").write_text(PTX)


def test_a_cubin_beside_you(run: Run, tmp_path: Path) -> None:
    outcome = run("compile", "k.ptx")
    size = (tmp_path / "k.cubin").stat().st_size
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out == f"k.cubin: {size:,} bytes, sm_90a\n  k: 8 registers, 0 barriers\n{NOTE}"
    assert (tmp_path / "k.cubin").read_bytes()[:4] == b"\x7fELF"


def test_a_pipe_is_read_once(run: Run, tmp_path: Path) -> None:
    read, write = os.pipe()
    os.write(write, PTX.replace("\n", "\r\n").encode())
    os.close(write)
    got = run("compile", f"/dev/fd/{read}", "-o", "p.cubin")
    os.close(read)
    assert (got.status, got.err) == (0, "")
    assert got.out.startswith("p.cubin: ")
    assert (tmp_path / "p.cubin").read_bytes()[:4] == b"\x7fELF"


def test_json(run: Run) -> None:
    result = json.loads(run("compile", "k.ptx", "--json", "-o", "x.cubin").out)
    assert (result["output"], result["arch"], result["cached"]) == ("x.cubin", "sm_90a", False)
    assert result["resources"]["k"]["registers"] == 8
    assert [f["kind"] for f in result["findings"]] == ["setmaxnreg-ignored"]
    assert json.loads(run("compile", "k.ptx", "--json").out)["cached"]


def test_a_listing_and_ptx(run: Run, tmp_path: Path) -> None:
    assert run("compile", "k.ptx", "--emit", "sass").status == 0
    assert "STG.E.64" in (tmp_path / "k.sass").read_text()
    outcome = run("compile", "k.ptx", "--emit", "ptx", "-o", "same.ptx")
    assert outcome.out == f"same.ptx: {len(PTX)} bytes\n"
    assert (tmp_path / "same.ptx").read_text() == PTX


def test_what_ptxas_rejects_leaves_no_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "bad.ptx").write_text(PTX.replace("ret;", "bra NOWHERE;"))
    outcome = run("compile", "bad.ptx")
    assert (outcome.status, outcome.out) == (2, "")
    assert "kern.py:11: error[ptxas-error]: Unknown symbol 'NOWHERE'" in outcome.err
    assert not (tmp_path / "bad.cubin").exists()


def test_without_ptxas(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find, "find_tool", lambda _: None)
    outcome = run("compile", "k.ptx")
    assert outcome.status == 2
    lines = outcome.err.splitlines()
    assert lines[0] == "warpsmith: error: ptxas was not found; looked in"
    assert lines[-1] == (
        "  install it with: pip install 'warpsmith[cuda]'   (the package is nvidia-cuda-nvcc), or set CUDA_HOME"
    )


def test_a_cache_that_cannot_be_written(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("WARPSMITH_CACHE_DIR", str(tmp_path / "file"))
    outcome = run("compile", "k.ptx")
    assert outcome.status == 0
    assert outcome.out.endswith(
        f"note[cache]: {tmp_path}/file/cubins keeps no cubins: Not a directory\n"
        "  repair: Set WARPSMITH_CACHE_DIR to a folder that can be written.\n"
    )
    assert (tmp_path / "k.cubin").exists()


def test_a_read_only_cache_still_answers(run: Run, tmp_path: Path) -> None:
    run("compile", "k.ptx")
    folder = tmp_path / ".cache" / "cubins"
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        assert json.loads(run("compile", "k.ptx", "--json").out)["cached"]
        if os.geteuid():
            fresh = json.loads(run("compile", "k.ptx", "--json", "-X", "-O1").out)
            assert [f["kind"] for f in fresh["findings"]][-1] == "cache"
    finally:
        folder.chmod(stat.S_IRWXU)


def test_an_output_folder_that_is_not_there(run: Run) -> None:
    outcome = run("compile", "k.ptx", "-o", "none/k.cubin")
    assert (outcome.status, outcome.err) == (2, "warpsmith: error: none/k.cubin: No such file or directory\n")


KERNEL = """\
from warpsmith import Tile, kernel, ptx, reg
from warpsmith.types import f32


@kernel(in_specs=(Tile(32, f32),), out_specs=(), grid=(1, 1, 1), block=(32, 1, 1))
def fill(x, *, value=1.0):
    (target,) = ptx.global_ptrs(x)
    ptx.inst.setmaxnreg.inc.sync.aligned.u32(160)
    ptx.inst.st.global_.f32(ptx.addr(target + ptx.special.tid.x() * 4), reg.scalar(f32, init=value))
"""


def test_a_kernel_of_a_python_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "filling.py").write_text(KERNEL)
    outcome = run("compile", "filling.py:fill", "-p", "value=2.0")
    assert (outcome.status, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert lines[0].startswith("fill.cubin: ")
    assert lines[2].startswith("filling.py:8: note[setmaxnreg-ignored]: ")
    assert (tmp_path / "fill.cubin").exists()


def test_check_asks_ptxas(run: Run, tmp_path: Path) -> None:
    (tmp_path / "filling.py").write_text(KERNEL)
    outcome = run("check", "filling.py:fill", "--ptxas")
    assert outcome.status == 0
    assert outcome.out.startswith("filling.py:8: note[setmaxnreg-ignored]: ")
    assert outcome.out.endswith("filling.py:fill: 9 instructions, no problems, 21 schedules, no findings\n")


def test_wrong_code_is_told_and_the_status_says_so(run: Run, tmp_path: Path) -> None:
    (tmp_path / "w.ptx").write_text(cases()["returned-b128"].text("broken"))
    outcome = run("compile", "w.ptx")
    assert outcome.status == 1
    assert (tmp_path / "w.cubin").exists()
    (line,) = [n for n, text in enumerate((tmp_path / "w.ptx").read_text().splitlines(), 1) if "param::func.b128" in text]
    assert f"\nw.ptx:{line}: error[ptxas-miscompiles]: `ld.param::func.b128 %q, [back]`: ptxas " in outcome.out
    assert [f["kind"] for f in json.loads(run("compile", "w.ptx", "--json").out)["findings"]] == ["ptxas-miscompiles"]
    outcome = run("compile", "w.ptx", "-o", "-", "--emit", "sass")
    assert (outcome.status, outcome.err.count("error[ptxas-miscompiles]")) == (1, 1)
    outcome = run("compile", "w.ptx", "--suppress", "ptxas-miscompiles=only the lower half is used")
    assert (outcome.status, "passed over: ptxas-miscompiles at w.ptx:" in outcome.out) == (0, True)
    assert "portability[ptxas-miscompiles]" in run("compile", "w.ptx", "-X", "-O0").out
