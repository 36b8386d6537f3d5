"""`open(x).write() == x` for every architecture and both ELF styles, and what the model says about them."""

from __future__ import annotations

import gc

import pytest

from cubin_corpus import cubins, read_everything
from warpsmith import cubin as ws_cubin
from warpsmith.base.errors import CubinError
from warpsmith.cubin import Attribute, BarrierUse, Line, Parameter, decode_payload
from warpsmith.cubin.section import Raw, is_capsule

NAMES = sorted(cubins())


@pytest.mark.parametrize("name", NAMES)
def test_written_as_read_without_the_source(name: str) -> None:
    data = bytearray(cubins()[name])
    cubin = ws_cubin.open(data)
    read_everything(cubin)
    want = bytes(data)
    data[:] = bytes(len(data))  # nothing of the source is looked at again
    gc.collect()
    assert cubin.write() == want


@pytest.mark.parametrize("name", NAMES)
def test_architecture(name: str) -> None:
    assert ws_cubin.open(cubins()[name]).arch == name.split("-")[2]


@pytest.mark.parametrize("name", NAMES)
def test_what_the_functions_say(name: str) -> None:
    """The numbers are those of `kernels.cu`: its parameters, its 1 KiB of shared memory, its one barrier."""
    functions = ws_cubin.open(cubins()[name]).functions
    assert {"branches", "shares"} <= functions.keys()
    branches, shares = functions["branches"], functions["shares"]
    assert branches.params == [Parameter(0, 0, 8), Parameter(1, 8, 8), Parameter(2, 16, 4), Parameter(3, 20, 4)]
    assert shares.params == [Parameter(0, 0, 8), Parameter(1, 8, 8), Parameter(2, 16, 4)]
    assert (branches.shared, shares.shared, branches.barriers, shares.barriers) == (0, 1024, 0, 1)
    assert branches.is_entry
    assert shares.is_entry
    assert 8 < branches.registers < 40
    assert len(branches.code) % 16 == 0 or "sm_5" in name or "sm_6" in name
    assert set(branches.constants) >= {0}
    source = {(line.file, line.line) for line in branches.lines}
    assert ("kernels.cu", 12) in source  # `float x = in[i]`
    offsets = [line.offset for line in branches.lines]
    assert offsets == sorted(offsets)
    assert offsets[-1] < len(branches.code)


def test_registers_agree_with_ptxas() -> None:
    """`ptxas -v` of 13.5 printed these."""
    functions = ws_cubin.open(cubins()["ptxas-13.5-sm_90a"]).functions
    assert {name: f.registers for name, f in functions.items()} == {"branches": 15, "shares": 12}


def test_the_rest_of_the_model() -> None:
    cubin = ws_cubin.open(cubins()["ptxas-13.5-sm_90a-relocatable"])
    assert cubin.kernels == ["shares", "branches"]
    assert "helper" in cubin.functions
    assert not cubin.functions["helper"].is_entry
    assert ("branches", "helper") in cubin.callgraph
    assert {r.name for r in cubin.relocations[".rela.text.branches"]} >= {"R_CUDA_ABS55_16_34"}
    tool = cubin.tools[0]
    assert (tool.name, tool.arguments.split()) == ("ptxas", ["-arch", "sm_90a", "-c"])
    assert cubin.compat.get("CUDA_ACCELERATOR_TARGET").value == 1
    assert [a.name for a in cubin.functions["branches"].info][:2] == ["LANGUAGE", "CUDA_API_VERSION"]


def test_lines() -> None:
    lines = ws_cubin.open(cubins()["ptxas-13.5-sm_80"]).functions["shares"].lines
    assert lines[0] == Line(0, "kernels.cu", 24)
    assert {line.line for line in lines} >= {24, 27, 28}


def test_the_line_of_an_instruction() -> None:
    function = ws_cubin.open(cubins()["ptxas-13.5-sm_90a"]).functions["branches"]
    first, second = function.lines[:2]
    assert function.line_at(second.offset) == function.line_at(second.offset + 8) == second
    assert function.line_at(second.offset - 1) == first
    size = len(function.code)
    with pytest.raises(CubinError) as caught:
        function.line_at(size)
    assert str(caught.value) == f"offset {size:#x} lies outside the {size} bytes of code of 'branches'"


@pytest.mark.parametrize(
    ("name", "there"), [("ptxas-13.5-sm_90a", False), ("ptxas-13.5-sm_100a", True), ("ptxas-12.8-sm_120a", True)]
)
def test_capsules(name: str, there: bool) -> None:
    cubin = ws_cubin.open(cubins()[name])
    assert any(is_capsule(s) for s in cubin.sections) is there
    cubin.drop_capsules()
    again = ws_cubin.open(cubin.write())
    assert not any(is_capsule(s) or "merc" in s.name for s in again.sections)
    assert again.functions["branches"].code == ws_cubin.open(cubins()[name]).functions["branches"].code
    assert [s.name for s in again.symbols] == [s.name for s in cubin.symbols]


def test_sections_that_share_bytes_are_written_once() -> None:
    """A capsule's constants are those of the code; both headers point at the same bytes, changed or not."""
    name = next(n for n in NAMES if len(_shared(ws_cubin.open(cubins()[n]))) > 0)
    cubin = ws_cubin.open(cubins()[name])
    first, second = _shared(cubin)[0]
    first.content = second.content = Raw(first.data + b"more")
    again = ws_cubin.open(cubin.write())
    a, b = (again.sections[s.name] for s in (first, second))
    assert a.data == b.data == first.data
    assert len(cubin.write()) < len(cubins()[name]) + 600


def _shared(cubin):
    return [(p.same_as, p.part) for p in cubin.pieces if p.same_as is not None]


def test_a_path_is_read(tmp_path) -> None:
    path = tmp_path / "k.cubin"
    path.write_bytes(cubins()["ptxas-13.5-sm_80"])
    assert ws_cubin.open(path).write() == ws_cubin.open(str(path)).write() == path.read_bytes()


def test_payloads_by_their_layout() -> None:
    cubin = ws_cubin.open(cubins()["ptxas-13.5-sm_90a"])
    info = cubin.functions["branches"].info
    branches = decode_payload(info.get("INDIRECT_BRANCH_TARGETS"))
    assert [len(b.targets) for b in branches] == [4, 3]
    assert all(t % 16 == 0 and t < len(cubin.functions["branches"].code) for b in branches for t in b.targets)
    assert decode_payload(info.get("EXIT_INSTR_OFFSETS")) == info.get("EXIT_INSTR_OFFSETS").words()
    assert decode_payload(info.get("KPARAM_INFO")) == Parameter(3, 20, 4)
    assert decode_payload(info.get("CUDA_API_VERSION")) == 135
    assert decode_payload(cubin.functions["shares"].info.get("MAX_THREADS")) == (256, 1, 1)
    symbol, registers = decode_payload(cubin.info.get("REGCOUNT"))
    assert registers == cubin.functions[cubin.symbols[symbol].name].registers
    assert decode_payload(Attribute(4, 0x5A, b"\1\2\3")) == b"\1\2\3"


def test_barrier_records() -> None:
    """The bytes are ptxas's for SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR17+0x28020]; the meaning is what cuobjdump prints."""
    payload = bytes.fromhex("80040000 ff000000 20800200 0a011100".replace(" ", ""))
    (use,) = decode_payload(Attribute(4, 0x39, payload))
    assert use == BarrierUse(0x480, "try_wait.parity", 255, 17, 0x28020, 4)
    with pytest.raises(CubinError) as caught:
        decode_payload(Attribute(4, 0x39, payload[:-1]))
    assert str(caught.value) == "MBARRIER_INSTR_OFFSETS has 15 bytes, not a multiple of 16"


def test_every_attribute_of_the_corpus_has_its_layout() -> None:
    for data in cubins().values():
        cubin = ws_cubin.open(data)
        for table in (cubin.info, cubin.compat, *(f.info for f in cubin.functions.values())):
            for attribute in table:
                decode_payload(attribute)
