"""ptxas itself: the messages we read are those it prints, and its cubins are the same every time."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpsmith.base.errors import CompilationError
from warpsmith.base.findings import Finding
from warpsmith.base.source import Place
from warpsmith.toolchain import Compilation, compile_ptx, disassemble, require_tool

HEAD = '.version 8.0\n.target sm_90a\n.address_size 64\n.file 1 "kern.py"\n'
REGISTERS = ".reg .b64 %rd<4>; .reg .b32 %r<8>; .reg .f32 %f<64>; .reg .pred %p<3>;"
LOAD = ".loc 1 10 0\nld.param.u64 %rd1, [p]; mov.u64 %rd2, %rd1; ld.param.u64 %rd3, [p];\n"
ZERO = "\n".join(f"mov.f32 %f{i}, 0f00000000;" for i in range(32))
STORE = "\n".join(f"st.global.f32 [%rd3+{4 * i}], %f{i};" for i in range(32))
ACCUMULATORS = ", ".join(f"%f{i}" for i in range(32))
WGMMA = f"wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {{{ACCUMULATORS}}}, %rd1, %rd2, 1, 1, 1, 0, 0;"
WGMMA_A = WGMMA.replace("%rd1, %rd2, 1, 1, 1, 0, 0", "{%r0, %r1, %r2, %r3}, %rd2, 1, 1, 1, 0")
FENCE, COMMIT, WAIT = (f"wgmma.{w}.sync.aligned" for w in ("fence", "commit_group", "wait_group"))
READ_A = "ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [%rd3];"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPSMITH_CACHE_DIR", str(tmp_path))


def entry(name: str, *lines: str, directives: str = ".maxntid 128") -> str:
    body = "\n".join(lines)
    return f".visible .entry {name}(.param .u64 p) {directives}\n{{\n{REGISTERS}\n{LOAD}{body}\nret;\n}}\n"


def wgmma(name: str, *middle: str, wait: str = f"{WAIT} 0;") -> str:
    return entry(name, ZERO, f"{FENCE};", ".loc 1 20 0", *middle, f"{COMMIT};", wait, ".loc 1 30 0", STORE)


def by_message(compilation: Compilation, words: str) -> Finding:
    (finding,) = [f for f in compilation.findings if words in f.message]
    return finding


def test_resources_and_a_second_time_from_the_cache() -> None:
    text = HEAD + ".shared .align 8 .b8 buffer[1024];\n" + entry("k", "mov.u64 %rd2, buffer; st.global.u64 [%rd1], %rd2;")
    first, second = compile_ptx(text), compile_ptx(text)
    assert first.findings == ()
    assert first.resources["k"].shared == 1024
    assert first.resources["k"].arch == "sm_90a"
    assert (first.cached, second.cached) == (False, True)
    assert second.cubin == first.cubin
    assert second.resources == first.resources


def test_the_same_cubin_in_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = HEAD + entry("k")
    first = compile_ptx(text)
    monkeypatch.setenv("WARPSMITH_CACHE_DIR", str(tmp_path / "other"))
    second = compile_ptx(text)
    assert not second.cached
    assert second.cubin == first.cubin


def test_setmaxnreg_is_ignored_until_the_register_count_is_known() -> None:
    setmaxnreg = (".loc 1 11 0", "setmaxnreg.inc.sync.aligned.u32 160;")
    unknown = compile_ptx(HEAD + entry("k", *setmaxnreg))
    (finding,) = unknown.findings
    assert str(finding) == (
        "kern.py:11: note[setmaxnreg-ignored]: "
        "Potential Performance Loss: 'setmaxnreg' ignored; unable to determine register count at entry. (C7508)\n"
        "  <ptx>:11: setmaxnreg.inc.sync.aligned.u32 160;\n"
        "  repair: Add `.maxnreg`, or `.minnctapersm` beside `.maxntid` or `.reqntid`."
    )
    for directives in (".maxnreg 168", ".maxntid 128 .minnctapersm 1", ".reqntid 128 .minnctapersm 1"):
        assert compile_ptx(HEAD + entry("k", *setmaxnreg, directives=directives)).findings == ()


def test_setmaxnreg_in_a_part_of_a_program() -> None:
    text = HEAD + entry("k", ".loc 1 11 0", "setmaxnreg.inc.sync.aligned.u32 160;")
    (finding,) = compile_ptx(text, options=["-c"]).findings
    assert (finding.kind, finding.where) == ("setmaxnreg-ignored", Place("kern.py", 11))
    assert finding.repair == "Compile the whole program, without -c, and keep setmaxnreg out of device functions."


def test_wgmma_serialised_and_waits_injected() -> None:
    divergent = ("mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 64;", "@%p1 bra L1;", WGMMA, "L1:")
    text = HEAD + "".join(
        [
            wgmma("correct", WGMMA),
            wgmma("reads", WGMMA, ".loc 1 21 0", "st.global.f32 [%rd3+512], %f3;", WGMMA),
            wgmma("defines", WGMMA, ".loc 1 21 0", "mov.f32 %f0, 0f3f800000;", WGMMA),
            wgmma("inputs", READ_A, WGMMA_A, READ_A, WGMMA_A),
            wgmma("divergent", *divergent),
            wgmma("unwaited", WGMMA, wait=""),
        ]
    )
    compilation = compile_ptx(text)
    assert not [f for f in compilation.findings if "'correct'" in f.message]
    found = {name: by_message(compilation, f"'{name}'") for name in ("reads", "defines", "inputs", "divergent", "unwaited")}
    assert {name: (f.kind, str(f.where), f.repair) for name, f in found.items()} == {
        "reads": ("wgmma-serialised", "kern.py:20", "Read accumulators after wgmma.wait_group."),
        "defines": (
            "wgmma-serialised",
            "kern.py:21",
            "Use fewer or smaller accumulators, or give the warpgroup more registers.",
        ),
        "inputs": ("wgmma-serialised", "kern.py:20", "Write the A fragment before wgmma.fence, or after wgmma.wait_group."),
        "divergent": (
            "wgmma-serialised",
            "kern.py:20",
            "Let all four warps of the warpgroup take one path from wgmma.fence to wgmma.wait_group.",
        ),
        "unwaited": (
            "wgmma-wait-injected",
            "kern.py:30",
            "Put wgmma.wait_group before the first use of the accumulators.",
        ),
    }


def test_spills() -> None:
    loads = [f"ld.global.f32 %f{i}, [%rd1+{4 * i}];" for i in range(64)]
    stores = [f"st.global.f32 [%rd3+{4 * i + 1024}], %f{63 - i};" for i in range(64)]
    text = HEAD + entry("k", *loads, "bar.sync 0;", *stores, directives="")
    compilation = compile_ptx(text, options=["--maxrregcount=24"])
    used = compilation.resources["k"]
    assert used.registers == 24
    assert used.spill_stores > 100
    assert str(by_message(compilation, "spilled")) == (
        f"kern.py:10: note[register-spill]: k: {used.spill_stores} bytes are spilled to local memory "
        f"and {used.spill_loads} bytes read back; it has 24 registers\n"
        "  repair: Keep fewer values alive at once, or allow more registers: a smaller block, setmaxnreg, --maxrregcount."
    )
    warned = compile_ptx(text, options=["--maxrregcount=24", "--warn-on-spills"])
    assert by_message(warned, "spilled").kind == "register-spill"


def test_several_errors_at_the_users_lines() -> None:
    text = HEAD + entry("k", ".loc 1 11 0", "add.f32 %r1, %rd1, 1;", ".loc 1 12 0", "bra NOWHERE;")
    with pytest.raises(CompilationError) as caught:
        compile_ptx(text, name="my kernel")
    assert str(caught.value) == (
        "ptxas rejects my kernel: 2 errors\n"
        "kern.py:11: error[ptxas-error]: Arguments mismatch for instruction 'add'\n"
        "  my kernel:11: add.f32 %r1, %rd1, 1;\n"
        "kern.py:12: error[ptxas-error]: Unknown symbol 'NOWHERE'\n"
        "  my kernel:13: bra NOWHERE;"
    )


def test_too_much_shared_memory() -> None:
    text = HEAD + ".shared .b8 big[300000];\n" + entry("k", "mov.u64 %rd1, big; st.global.u64 [%rd3], %rd1;")
    with pytest.raises(CompilationError) as caught:
        compile_ptx(text)
    assert str(caught.value) == (
        "ptxas rejects <ptx>: 1 error\n"
        "kern.py:10: error[ptxas-error]: Entry function 'k' uses too much shared data (0x493e0 bytes, 0x38c00 max)\n"
        "  <ptx>:6: .visible .entry k(.param .u64 p) .maxntid 128\n"
        "  repair: Use dynamic shared memory (`extern .shared`) or smaller buffers."
    )


def test_the_wrong_architecture() -> None:
    with pytest.raises(CompilationError) as caught:
        compile_ptx(HEAD + entry("k"), "sm_80")
    assert str(caught.value) == (
        "ptxas rejects <ptx>: 1 error\n"
        "error[ptxas-error]: SM version specified by .target is higher than default SM version assumed\n"
        "  repair: Give ptxas the architecture of .target."
    )


def test_the_listing_names_instructions_and_user_lines() -> None:
    cubin = compile_ptx(HEAD + entry("k", ".loc 1 11 0", "st.global.u64 [%rd1], 7;")).cubin
    assert "STG.E" in disassemble(cubin)
    assert '"kern.py", line 11' in disassemble(cubin, ["--print-code", "--print-line-info"])


def test_the_tools_say_their_versions() -> None:
    assert require_tool("ptxas").version().count(".") == 2
    assert require_tool("nvdisasm").version().count(".") == 2
