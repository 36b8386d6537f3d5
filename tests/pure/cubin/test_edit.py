"""Code of another length: what holds offsets and sizes follows, checked instruction by instruction, or the edit is refused."""

from __future__ import annotations

import random
import struct
import warnings

import pytest

from cubin_corpus import cubins
from warpsmith import cubin as ws_cubin
from warpsmith.base.errors import CubinError
from warpsmith.cubin import CapsuleWarning, decode_payload, shifted
from warpsmith.cubin.debug_frame import frames
from warpsmith.cubin.edit import _table_words
from warpsmith.cubin.move_info import branch_records
from warpsmith.cubin.section import Raw, is_capsule
from warpsmith.study.moved_code import NOP, words

NAMES = [n for n in sorted(cubins()) if "debug" not in n]


def grown(code: bytes, seed: int):
    """Insert NOPs at ten places; return the code and the map. The words are moved, their branches are not."""
    rng = random.Random(seed)
    places = {16 * rng.randrange(len(code) // 16): 16 * rng.randrange(1, 4) for _ in range(10)}
    moved = shifted(places)
    out = bytearray(NOP * ((len(code) + sum(places.values())) // 16))
    for at in range(0, len(code), 16):
        out[moved(at) : moved(at) + 16] = code[at : at + 16]
    return bytes(out), moved


def offsets_of(function) -> list[int]:
    """Every code offset that the attributes of the function hold, in order."""
    out: list[int] = []
    for a in function.info:
        row = a.words()
        if a.name in ("EXIT_INSTR_OFFSETS", "COOP_GROUP_INSTR_OFFSETS", "INT_WARP_WIDE_INSTR_OFFSETS", "SYSCALL_OFFSETS"):
            out += row
        elif a.name == "UNUSED_LOAD_BYTE_OFFSET":
            out += row[::2]
        elif a.name == "INDIRECT_BRANCH_TARGETS":
            for branch, _, targets in branch_records(a.payload, ""):
                out += [branch, *targets]
    return out


def frame_places(cubin):
    """(symbol name, offset in its code, length) of every frame."""
    if ".debug_frame" not in cubin.sections:  # sm_50 to sm_62
        return []
    data = cubin.sections[".debug_frame"].data
    rows = {r.offset: r for t in cubin.relocations for r in cubin.relocations[t] if t.endswith(".debug_frame")}
    out = []
    for frame in frames(data):
        r = rows[frame.location]
        inner = int.from_bytes(data[frame.location : frame.location + 8], "little") if r.addend is None else r.addend
        out.append((cubin.symbols[r.symbol].name, inner, int.from_bytes(data[frame.length_at : frame.body], "little")))
    return out


@pytest.mark.parametrize("name", NAMES)
def test_everything_refers_to_the_same_instruction(name: str) -> None:
    old, new = (ws_cubin.open(cubins()[name]) for _ in range(2))
    before = old.functions["branches"]
    code, moved = grown(before.code, len(name))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CapsuleWarning)
        new.functions["branches"].replace(code, moved)
    new = ws_cubin.open(new.write())
    after = new.functions["branches"]
    end = len(before.code)

    def same(a: int, b: int) -> bool:
        return (a == end and b == len(code)) or (a < end and before.code[a : a + 8] == after.code[b : b + 8] and moved(a) == b)

    was, now = offsets_of(before), offsets_of(after)
    assert len(was) == len(now) > 2
    assert all(map(same, was, now))
    for (a, x), (b, y) in zip(_symbols(old, before), _symbols(new, after), strict=True):
        assert a == b
        assert same(x[0], y[0])
        assert same(x[1], y[1])
    for a, b in zip(frame_places(old), frame_places(new), strict=True):
        assert a[0] == b[0]
        if a[0] == "branches":
            assert same(a[1], b[1])
            assert same(a[1] + a[2], b[1] + b[2])
        else:
            assert a == b
    for a, b in ((before.lines, after.lines), (before.ptx_lines, after.ptx_lines)):
        assert [(r.file, r.line) for r in a] == [(r.file, r.line) for r in b]
        assert all(same(r.offset, s.offset) for r, s in zip(a, b, strict=True))
    for bank in before.constants:
        if bank != 2:
            assert before.constants[bank] == after.constants[bank]
            continue
        tables = zip(_words32(before.constants[2]), _words32(after.constants[2]), strict=True)
        targets = {
            t for b in decode_payload(before.info.get("INDIRECT_BRANCH_TARGETS")) for t in b.targets if len(b.targets) > 1
        }
        assert all(same(a, b) if a in targets else a == b for a, b in tables)
    assert new.functions["shares"].code == old.functions["shares"].code
    assert new.functions["shares"].lines == old.functions["shares"].lines


def _words32(data: bytes) -> tuple[int, ...]:
    return struct.unpack(f"<{len(data) // 4}I", data)


def _symbols(cubin, function):
    number = cubin.sections.index(function.section)
    return [(s.name, (s.value, s.value + s.size)) for s in cubin.symbols if s.section == number and s.type == 2]


@pytest.mark.parametrize("name", [n for n in NAMES if "sm_90a" in n or "sm_80" in n])
def test_relocations_follow(name: str) -> None:
    old, new = (ws_cubin.open(cubins()[name]) for _ in range(2))
    before = old.functions["branches"]
    code, moved = grown(before.code, 5)
    new.functions["branches"].replace(code, moved)
    for table in (".rela.text.branches", ".rel.text.branches"):
        for a, b in zip(old.relocations.get(table, ()), new.relocations.get(table, ()), strict=True):
            assert b.offset == moved(a.offset & ~15) + (a.offset & 15)
            assert (a.type, a.symbol) == (b.type, b.symbol)


def test_grown_and_shrunk_back_is_the_original() -> None:
    data = cubins()["ptxas-13.5-sm_90a"]
    cubin = ws_cubin.open(data)
    code = cubin.functions["branches"].code
    places = {0x40: 32, 0x200: 16}
    there = shifted(places)
    longer = bytearray(NOP * (len(code) // 16 + 3))
    for at in range(0, len(code), 16):
        longer[there(at) : there(at) + 16] = code[at : at + 16]
    cubin.functions["branches"].replace(bytes(longer), there)
    assert cubin.write() != data
    back = {there(at): at for at in range(0, len(code), 16)}
    cubin.functions["branches"].replace(code, lambda at: back.get(at))
    got = ws_cubin.open(cubin.write())
    want = ws_cubin.open(data)
    skip = (".debug_line", ".nv_debug_line_sass", ".rela.debug_line", ".rela.nv_debug_line_sass")  # coded anew, the same lines
    for a, b in zip(got.sections, want.sections, strict=True):
        assert a.name in skip or a.data == b.data, a.name
    assert got.functions["branches"].lines == want.functions["branches"].lines
    assert words(got.functions["branches"].code) == words(code)


def test_a_gone_instruction_leaves_the_lists() -> None:
    cubin = ws_cubin.open(cubins()["ptxas-13.5-sm_90a"])
    function = cubin.functions["branches"]
    exits = function.info.get("EXIT_INSTR_OFFSETS").words()
    code = function.code
    moved = shifted(removed=[exits[0]])
    function.replace(code[: exits[0]] + code[exits[0] + 16 :], moved)
    assert function.info.get("EXIT_INSTR_OFFSETS").words() == tuple(moved(e) for e in exits[1:])


def test_same_length_needs_no_map() -> None:
    data = cubins()["ptxas-13.5-sm_80"]
    cubin = ws_cubin.open(data)
    code = cubin.functions["shares"].code
    cubin.functions["shares"].replace(code[:-16] + NOP)
    assert len(cubin.write()) == len(data)
    assert cubin.functions["shares"].code[-16:] == NOP


@pytest.mark.parametrize("mode", ["drop", "keep"])
def test_capsules(mode: str) -> None:
    cubin = ws_cubin.open(cubins()["ptxas-13.5-sm_100a"])
    function = cubin.functions["shares"]
    if mode == "drop":
        with pytest.warns(CapsuleWarning) as caught:
            function.replace(NOP + function.code, shifted({0: 16}))
        assert str(caught[0].message) == (
            "shares: the capsules of the cubin were left out, because they hold the code as it was; capsule='keep' keeps them"
        )
    else:
        function.replace(NOP + function.code, shifted({0: 16}), capsule="keep")
    again = ws_cubin.open(cubin.write())
    assert any(is_capsule(s) for s in again.sections) is (mode == "keep")


def test_resources() -> None:
    for name in ("ptxas-12.8-sm_70", "ptxas-13.5-sm_80", "ptxas-13.5-sm_90a", "ptxas-13.5-sm_120a"):
        cubin = ws_cubin.open(cubins()[name])
        function = cubin.functions["shares"]
        function.registers, function.barriers, function.shared = 77, 3, 4096
        again = ws_cubin.open(cubin.write()).functions["shares"]
        assert (again.registers, again.barriers, again.shared) == (77, 3, 4096)
        assert cubin.functions["branches"].registers == ws_cubin.open(cubins()[name]).functions["branches"].registers


def test_program_headers_follow() -> None:
    cubin = ws_cubin.open(cubins()["ptxas-13.5-sm_80"])
    function = cubin.functions["branches"]
    function.replace(NOP * 64 + function.code, shifted({0: 1024}))
    data = cubin.write()
    (at,), (count,) = struct.unpack_from("<Q", data, 32), struct.unpack_from("<H", data, 56)
    loads = [struct.unpack_from("<IIQQQQQQ", data, at + 56 * i) for i in range(count)]
    place = data.find(function.code)
    assert any(
        kind == 1 and start <= place and place + len(function.code) <= start + size
        for kind, _, start, _, _, size, _, _ in loads
    )


def test_sections_are_removed() -> None:
    data = cubins()["ptxas-13.5-sm_90a"]
    cubin = ws_cubin.open(data)
    cubin.remove_sections(".debug_line", ".nv_debug_line_sass", ".nv_debug_ptx_txt")
    again = ws_cubin.open(cubin.write())
    assert not any("debug_line" in s.name or "ptx_txt" in s.name for s in again.sections)
    assert again.functions["branches"].lines == []
    assert again.functions["branches"].code == ws_cubin.open(data).functions["branches"].code


def refused(name: str, edit) -> str:
    """Return the message of an edit that must leave the cubin as it was."""
    cubin = ws_cubin.open(cubins()[name])
    with pytest.raises(CubinError) as caught:
        edit(cubin)
    assert cubin.write() == cubins()[name]
    return str(caught.value)


def _replace(function: str, *arguments, **keywords):
    return lambda cubin: cubin.functions[function].replace(*arguments, **keywords)


def test_refusals() -> None:
    sm90 = "ptxas-13.5-sm_90a"
    code = ws_cubin.open(cubins()[sm90]).functions["branches"].code
    exits = ws_cubin.open(cubins()[sm90]).functions["branches"].info.get("EXIT_INSTR_OFFSETS").words()
    assert refused(sm90, _replace("branches", b"1234567")) == "the code of 'branches' has 7 bytes, not a multiple of 16"
    assert refused(sm90, _replace("branches", NOP + code)) == (
        f"the code of 'branches' changes from {len(code)} to {len(code) + 16} bytes and `moved` does not say where "
        "instructions went; "
        "write replace(code, moved={old offset: new offset, …})"
    )
    assert refused(sm90, _replace("branches", NOP + code, {0: 16})) == (
        "symbol '$__internal_0_$__cuda_sm20_rcp_rn_f32_slowpath' refers to the instruction at "
        f"{_symbol(sm90, 'rcp'):#x} of 'branches', and `moved` has no entry for it"
    )
    assert refused(sm90, _replace("branches", NOP * 4, lambda at: at)) == (
        "symbol '$__internal_0_$__cuda_sm20_rcp_rn_f32_slowpath': `moved` sends "
        f"{_symbol(sm90, 'rcp'):#x} to {_symbol(sm90, 'rcp'):#x}, outside the 64 bytes of the new code of 'branches'"
    )
    gone = ws_cubin.open(cubins()[sm90]).functions["branches"].info.get("INDIRECT_BRANCH_TARGETS")
    target = branch_records(gone.payload, "")[0][2][0]
    assert refused(sm90, _replace("branches", code[:-16], shifted(removed=[target]))) == (
        f"INDIRECT_BRANCH_TARGETS of .nv.info.branches refers to the instruction at {target:#x} of 'branches', which "
        "`moved` says is gone"
    )
    assert refused(sm90, _replace("branches", code, capsule="burn")) == "capsule='burn'; write 'drop' or 'keep'"
    assert exits
    assert refused("ptxas-13.5-sm_90a-debug", _replace("branches", NOP * 4, lambda at: 0)) == (
        ".nv_debug_info_reg_sass, .nv_debug_info_reg_type: these describe code by its offsets, and moving them is not "
        "modelled; "
        "compile without -g, or remove them first: cubin.remove_sections('.nv_debug_info_reg_sass', '.nv_debug_info_reg_type')"
    )
    assert refused("ptxas-13.5-sm_100a", lambda c: c.remove_sections(".text.shares")) == (
        "section '.nv.info.shares' refers to section '.text.shares', which cannot be removed"
    )


def _symbol(name: str, part: str) -> int:
    return next(s.value for s in ws_cubin.open(cubins()[name]).symbols if part in s.name and s.type == 2)


def test_jump_tables_that_are_not_where_they_should_be() -> None:
    cubin = ws_cubin.open(cubins()["ptxas-13.5-sm_80"])
    bank = cubin.sections[".nv.constant2.branches"]
    bank.content = Raw(bytes(len(bank.data)))
    function = cubin.functions["branches"]
    branch = branch_records(function.info.get("INDIRECT_BRANCH_TARGETS").payload, "")[0][0]
    with pytest.raises(CubinError) as caught:
        function.replace(NOP + function.code, shifted({0: 16}))
    assert str(caught.value) == (
        f"the targets of the indirect branch at {branch:#x} of 'branches' stand 0 times in .nv.constant2.branches, not once "
        "(section '.nv.constant2.branches')"
    )


def test_an_attribute_of_unknown_layout_keeps_code_in_place() -> None:
    cubin = ws_cubin.open(cubins()["ptxas-13.5-sm_80"])
    function = cubin.functions["shares"]
    function.info.attributes.append(ws_cubin.Attribute.sized("INSTR_REG_MAP", 1, 2))
    with pytest.raises(CubinError) as caught:
        function.replace(NOP + function.code, shifted({0: 16}))
    assert str(caught.value) == (
        "INSTR_REG_MAP of .nv.info.shares holds code offsets in a layout that is not known; code whose instructions "
        "move is refused"
    )
    function.replace(function.code)  # in place it is kept


def test_tables_that_repeat_or_lie_in_one_another() -> None:
    """Two branches may have the same targets, and a short table may be a part of a longer one."""
    words = (9, 1, 2, 3, 4, 1, 2, 1, 2, 7)
    assert _table_words(words, [(0, 0, (1, 2, 3, 4)), (16, 0, (1, 2)), (32, 0, (1, 2))], "k", "b") == set(range(1, 9))
    assert _table_words(words[:5], [(0, 0, (1, 2, 3, 4)), (16, 0, (2, 3))], "k", "b") == {1, 2, 3, 4}
    with pytest.raises(CubinError) as caught:
        _table_words(words, [(0, 0, (1, 2, 3, 4)), (16, 0, (1, 2))], "k", ".nv.constant2.k")
    assert str(caught.value) == (
        "the targets of the indirect branch at 0x10 of 'k' stand 3 times in .nv.constant2.k, not once (section "
        "'.nv.constant2.k')"
    )
    assert _table_words(words, [(0, 0, (1, 2, 3, 4)), (16, 0, (5,)), (32, 0, (3,))], "k", "b") == {1, 2, 3, 4}
    with pytest.raises(CubinError) as caught:
        _table_words(words, [(0, 0, (1, 2, 3, 4)), (16, 0, (7,))], "k", "b")
    assert str(caught.value) == (
        "0x7, the one target of the indirect branch at 0x10 of 'k', stands in b; whether that is a table or a constant "
        "cannot be told (section 'b')"
    )
