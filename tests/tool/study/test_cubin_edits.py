"""Code grown and shrunk by its listing, and code assembled from nothing, are cubins that the disassembler takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.cubin import open as open_cubin
from warpsmith.sass import decode
from warpsmith.study import cubin_edits

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def texts(path: Path) -> list[str]:
    return [i.text for i in decode(open_cubin(path).functions["vectors"].code, "sm_90a")]


def test_grown_shrunk_and_built(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cubin_edits.main(["--keep", str(tmp_path)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in said] == ["compiled", "grown", "shrunk", "built"]
    assert all("nvdisasm accepts" in line for line in said)
    compiled, grown, shrunk, built = (texts(tmp_path / f"{name}.cubin") for name in ("compiled", "grown", "shrunk", "built"))
    assert len(grown) == len(compiled) + 33
    back = next(i for i, text in enumerate(grown) if "@!P0 BRA" in text)
    assert grown[back].split()[-1] == compiled[back - 33].split()[-1], "the loop begins where it did"
    assert sum(text.startswith("STG") for text in compiled) == 2
    assert sum(text.startswith("STG") for text in shrunk) == 1
    assert not any(text.startswith(("FMUL", "NOP")) for text in shrunk)
    code = [text for text in built if text != "NOP"]
    assert code[-1] == f"BRA {16 * (len(code) - 1):#x}"
