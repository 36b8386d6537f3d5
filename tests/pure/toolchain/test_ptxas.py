"""`compile_ptx` and `disassemble` against a script that stands in for the tool."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from warpsmith.base.errors import CompilationError, InputError, ToolError
from warpsmith.toolchain import compile_ptx, disassemble, target_of

PTX = '.version 8.0\n.target sm_90a\n.address_size 64\n.file 1 "k.py"\n.loc 1 7 0\nadd;\n'
WORKS = "printf CUBIN > kernel.cubin; echo 'ptxas info    : 0 bytes gmem' >&2"

FakeTool = Callable[[str], Path]


def test_it_runs_once_and_then_the_cache_answers(fake_tool: FakeTool) -> None:
    calls = fake_tool(WORKS)
    first, second = compile_ptx(PTX), compile_ptx(PTX)
    assert (first.cubin, first.arch, first.log, first.findings, first.cached) == (
        b"CUBIN",
        "sm_90a",
        "ptxas info    : 0 bytes gmem\n",
        (),
        False,
    )
    assert second.cached
    assert (second.cubin, second.log) == (first.cubin, first.log)
    assert calls.read_text() == "-v --gpu-name=sm_90a --generate-line-info kernel.ptx -o kernel.cubin\n"


def test_text_architecture_and_options_are_in_the_key(fake_tool: FakeTool) -> None:
    calls = fake_tool(WORKS)
    compile_ptx(PTX)
    compile_ptx(PTX + " ")
    compile_ptx(PTX, "sm_100a")
    compile_ptx(PTX, options=["--fmad=false"])
    compile_ptx(PTX, options=["-g"])
    assert calls.read_text().splitlines()[2:] == [
        "-v --gpu-name=sm_100a --generate-line-info kernel.ptx -o kernel.cubin",
        "-v --gpu-name=sm_90a --generate-line-info --fmad=false kernel.ptx -o kernel.cubin",
        "-v --gpu-name=sm_90a -g kernel.ptx -o kernel.cubin",
    ]


def test_bytes_that_are_no_unicode_go_through(fake_tool: FakeTool) -> None:
    fake_tool("cp kernel.ptx kernel.cubin")
    text = (PTX + "// caf\xe9").encode("latin-1").decode("utf-8", "surrogateescape")
    assert compile_ptx(text).cubin.endswith(b"caf\xe9")


def test_a_rejection_names_the_users_line(fake_tool: FakeTool, tmp_path: Path) -> None:
    fake_tool(
        "{ echo \"ptxas kernel.ptx, line 6; error   : Arguments mismatch for instruction 'add'\"\n"
        'echo "ptxas fatal   : Ptx assembly aborted due to errors"; } >&2; exit 255'
    )
    with pytest.raises(CompilationError) as caught:
        compile_ptx(PTX, name="attention")
    assert str(caught.value) == (
        "ptxas rejects attention: 1 error\n"
        "k.py:7: error[ptxas-error]: Arguments mismatch for instruction 'add'\n"
        "  attention:6: add;"
    )
    assert caught.value.log.endswith("Ptx assembly aborted due to errors\n")
    assert not (tmp_path / "cache").exists()


def test_a_crash_says_what_there_is(fake_tool: FakeTool) -> None:
    fake_tool("echo oops >&2; kill -SEGV $$")
    with pytest.raises(ToolError) as caught:
        compile_ptx(PTX)
    assert str(caught.value).startswith("ptxas was ended by SIGSEGV and said why only as: 'oops'; run it by hand: /")


def test_a_tool_that_writes_nothing(fake_tool: FakeTool) -> None:
    fake_tool("exit 0")
    with pytest.raises(ToolError) as caught:
        compile_ptx(PTX)
    assert str(caught.value).startswith("ptxas failed (exit status 0) and said why only as: ''; run it by hand: /")


def test_a_tool_that_hangs_is_stopped(fake_tool: FakeTool, tmp_path: Path) -> None:
    fake_tool("exec sleep 60")
    with pytest.raises(ToolError) as caught:
        compile_ptx(PTX, timeout=0.3)
    assert str(caught.value) == (
        f"ptxas was stopped after 0.3 s ({tmp_path}/ptxas); give it more time with timeout=, or a smaller kernel"
    )


def test_a_damaged_entry_is_compiled_again(fake_tool: FakeTool, tmp_path: Path) -> None:
    fake_tool(WORKS)
    compile_ptx(PTX)
    (path,) = (tmp_path / "cache" / "cubins").iterdir()
    path.write_bytes(path.read_bytes()[:-1])
    again = compile_ptx(PTX)
    assert (again.cubin, again.cached) == (b"CUBIN", False)
    assert compile_ptx(PTX).cached


def test_without_a_cache_it_works_and_says_so(fake_tool: FakeTool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_tool(WORKS)
    monkeypatch.setenv("WARPSMITH_CACHE_DIR", str(tmp_path / "ptxas"))
    compilation = compile_ptx(PTX)
    assert compilation.cubin == b"CUBIN"
    (note,) = compilation.findings
    assert str(note) == (
        f"note[cache]: {tmp_path}/ptxas/cubins keeps no cubins: Not a directory\n"
        "  repair: Set WARPSMITH_CACHE_DIR to a folder that can be written."
    )


def test_no_place_for_temporary_files(fake_tool: FakeTool, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_tool(WORKS)
    monkeypatch.setattr("tempfile.tempdir", "/nonexistent")
    with pytest.raises(ToolError, match=r"^no temporary folder can be made: .*; set TMPDIR to a folder that can be written$"):
        compile_ptx(PTX)


def test_the_target_is_read_from_the_text() -> None:
    assert target_of("// x\n.version 8.0\n.target sm_80, debug\n") == "sm_80"


def test_a_text_without_a_target() -> None:
    with pytest.raises(InputError) as caught:
        target_of("int main() {}")
    assert str(caught.value) == ("the PTX text has no .target directive; it starts with .version, .target and .address_size")


def test_an_unknown_architecture() -> None:
    with pytest.raises(InputError, match=r"^unknown architecture 'sm_999'; known: sm_20, .*, sm_121f$"):
        compile_ptx(PTX, "sm_999")


def test_a_listing_is_what_the_tool_prints(fake_tool: FakeTool) -> None:
    calls = fake_tool("echo LISTING")
    assert disassemble(b"\x7fELF....", ["--print-line-info"]) == "LISTING\n"
    assert calls.read_text() == "--print-line-info kernel.cubin\n"


def test_nvdisasm_fails(fake_tool: FakeTool) -> None:
    fake_tool("echo 'nvdisasm fatal   : bad file' >&2; exit 1")
    with pytest.raises(ToolError) as caught:
        disassemble(b"\x7fELF....")
    assert str(caught.value) == "nvdisasm failed (exit status 1): nvdisasm fatal   : bad file"


def test_a_listing_of_something_else() -> None:
    with pytest.raises(InputError) as caught:
        disassemble(b"PK\3\4zip")
    assert str(caught.value) == "not a cubin: 7 bytes that start with b'PK\\x03\\x04' instead of b'\\x7fELF'"
