"""A cubin from nothing says what ptxas's cubin of the same code says."""

from __future__ import annotations

import re

import pytest

from cubin_corpus import cubins
from warpsmith import cubin as ws_cubin
from warpsmith.base.errors import CubinError
from warpsmith.cubin import Cubin
from warpsmith.cubin.debug_frame import frames

NAMES = [n for n in sorted(cubins()) if n.startswith("ptxas-13.5") and n.count("-") == 2 and "110" not in n]


def rebuilt(name: str) -> tuple[Cubin, Cubin]:
    """Return ptxas's cubin and one built from the code, parameters and resources of its kernel."""
    theirs = ws_cubin.open(cubins()[name])
    kernel = theirs.functions["shares"]
    ours = Cubin.new(theirs.arch)
    ours.add_function(
        "shares", kernel.code, params=[p.size for p in kernel.params], registers=kernel.registers, shared=kernel.shared,
        barriers=kernel.barriers, max_threads=(256, 1, 1),
    )  # fmt: skip
    return theirs, ours


@pytest.mark.parametrize("name", NAMES)
def test_the_same_attributes(name: str) -> None:
    theirs, ours = rebuilt(name)
    ours = ws_cubin.open(ours.write())
    a, b = theirs.functions["shares"], ours.functions["shares"]
    assert (a.code, a.params, a.registers, a.shared, a.barriers) == (b.code, b.params, b.registers, b.shared, b.barriers)
    differs = {
        "PARAM_CBANK",
        "COOP_GROUP_INSTR_OFFSETS",
        "COOP_GROUP_MASK_REGIDS",
        "INT_WARP_WIDE_INSTR_OFFSETS",
        "CRS_STACK_SIZE",
    }
    want = [(x.name, x.form, x.payload) for x in a.info if x.name not in differs and x.name != "LANGUAGE"]
    got = [(x.name, x.form, x.payload) for x in b.info if x.name not in differs and x.name != "LANGUAGE"]
    assert got == want
    assert a.info.get("PARAM_CBANK").words()[1] == b.info.get("PARAM_CBANK").words()[1]
    assert ours.symbols[b.info.get("PARAM_CBANK").words()[0]].name == ".nv.constant0.shares"
    assert len(a.constants[0]) == len(b.constants[0])
    assert ours.header.flags & 0xFFFF == theirs.header.flags & 0xFFFF
    assert ours.arch == theirs.arch
    skip = {"CAN_FASTPATH_FINALIZE", "ISA_CLASS"}  # there is no capsule to finalise; the class of other code on sm_120 is 2
    assert [x.payload for x in ours.compat if x.name not in skip] == [x.payload for x in theirs.compat if x.name not in skip]


def test_several_kernels() -> None:
    theirs = ws_cubin.open(cubins()["ptxas-13.5-sm_90a"])
    ours = Cubin.new("sm_90a")
    for name in ("shares", "branches"):
        f = theirs.functions[name]
        ours.add_function(
            name, f.code, params=[p.size for p in f.params], registers=f.registers, shared=f.shared, barriers=f.barriers
        )
    data = ours.write()
    again = ws_cubin.open(data)
    assert again.write() == data
    assert again.kernels == ["shares", "branches"]
    assert [f.code for f in again.functions.values()] == [theirs.functions[n].code for n in ("shares", "branches")]
    assert len(list(frames(again.sections[".debug_frame"].data))) == 2
    assert again.sections.index(again.sections[".debug_frame"]) == 4  # cuobjdump wants it there


def test_code_is_padded() -> None:
    ours = Cubin.new("sm_80")
    function = ours.add_function("k", bytes.fromhex("4d790000000000000000800300ea0f00"), registers=8)
    assert len(function.code) == 128
    assert function.info.get("EXIT_INSTR_OFFSETS").words() == (0,)


def test_parameters_are_aligned() -> None:
    function = Cubin.new("sm_90").add_function("k", bytes(16), params=[4, 8, (128, 64), 2], registers=8)
    assert [(p.offset, p.size) for p in function.params] == [(0, 4), (8, 8), (48, 128), (176, 2)]  # bank 0 begins at 0x210
    assert function.info.get("CBANK_PARAM_SIZE").value == 178


def test_refusals() -> None:
    def message(action) -> str:
        with pytest.raises(CubinError) as caught:
            action()
        return str(caught.value)

    assert message(lambda: Cubin.new("sm_70")) == (
        "cubins for sm_70 can be read and edited, not built from nothing; build for sm_75 or later"
    )
    assert message(lambda: Cubin.new("sm_110a")) == (
        "cubins for sm_110a are not built from nothing: ptxas reserves shared memory for a workaround there"
    )
    new = Cubin.new("sm_90a")
    new.add_function("k", bytes(16), registers=8)
    assert message(lambda: new.add_function("k", bytes(16), registers=8)) == "there is a function 'k' already"
    assert (
        message(lambda: new.add_function("q", bytes(15), registers=8)) == "the code of 'q' has 15 bytes, not a multiple of 16"
    )
    assert message(lambda: new.add_function("q", bytes(16), registers=300)) == "'q': 300 registers on sm_90a: 1 to 255"
    assert message(lambda: new.add_function("q", bytes(16), registers=8, params=[(8, 3)])) == (
        "parameter 0 has 8 bytes aligned to 3; write a size, or (size, power of two)"
    )
    opened = ws_cubin.open(cubins()["ptxas-13.5-sm_90a"])
    assert (
        message(lambda: opened.add_function("q", bytes(16), registers=8))
        == "functions are added to cubins that Cubin.new began"
    )


@pytest.mark.parametrize(("arch", "most"), [("sm_75", 49_152), ("sm_90", 49_152), ("sm_90a", 232_448), ("sm_120a", 101_376)])
def test_resources_beyond_the_architecture_are_refused(arch: str, most: int) -> None:
    """The bounds of shared memory are those at which ptxas 13.5 stops."""
    new = Cubin.new(arch)
    new.add_function("k", bytes(16), registers=8, shared=most, stack=512 << 10)
    before = new.write()
    for what, text in (
        ({"shared": most + 1}, f"{most + 1:,} bytes of static shared memory on {new.arch}: 0 to {most:,}"),
        ({"shared": -1}, f"-1 bytes of static shared memory on {new.arch}: 0 to {most:,}"),
        ({"stack": (512 << 10) + 16}, f"524,304 bytes of stack for each thread on {new.arch}: 0 to 524,288"),
        ({"barriers": 17}, f"17 barriers on {new.arch}: 0 to 16"),
    ):
        with pytest.raises(CubinError, match=f"^{re.escape(repr('q') + ': ' + text)}$"):
            new.add_function("q", bytes(16), registers=8, **what)
    assert new.write() == before
