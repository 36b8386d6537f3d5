"""The ends of each space: no address behind an allocation is let through, however near the end of what numpy holds."""

from __future__ import annotations

import numpy as np
import pytest

from warpsmith.base.errors import InputError, PtxError
from warpsmith.simulator import simulate
from warpsmith.simulator.memory import GLOBAL_BASE, SAFE
from warpsmith.simulator.tensormap import TensorMap

PTX = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p, .param .u64 q)
{{
 .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .pred %p1; .shared .align 16 .b8 s[64]; .local .align 16 .b8 l[16];
 ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; mov.u32 %r1, %tid.x; setp.ne.u32 %p1, %r1, {lane};
 {guard}bra END;
 {body}
END:
 ret;
}}"""


def found(body: str, *, masked: bool, check: bool = True) -> list[str]:
    text = PTX.format(body=body, lane=5, guard="@%p1 " if masked else "@!%p1 bra GO; GO: setp.eq.u32 %p1, %r1, 99; @%p1 ")
    x, y = np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)
    result = simulate(text, grid=1, block=32, args=[x, y], check=check)
    return [f.message for f in result.findings if f.kind == "out-of-bounds"]


def places() -> list[tuple[str, str]]:
    """(address and access, what is said): the first and the last item of the bytes at the end of each row, and what follows."""
    out: list[tuple[str, str]] = []
    for at in (2048 - SAFE, 2044, 2048):
        said = f"4 bytes at shared address {at:#x} lies {at - 1088} bytes past the end of shared variable `s` (64 bytes)"
        out += [(f"mov.u32 %r2, {at}; ld.shared.u32 %r3, [%r2];", f"load of {said}")]
        out += [(f"mov.u32 %r2, {at}; st.shared.u32 [%r2], %r1;", f"store of {said}")]
    for at in (64 - SAFE, 60, 64):
        said = f"4 bytes at local address {at:#x} lies {at - 16} bytes past the end of local variable `l` (16 bytes)"
        out += [(f"mov.u32 %r2, {at}; ld.local.u32 %r3, [%r2];", f"load of {said}")]
    for at in (128 - SAFE, 124, 128):
        said = f"4 bytes at param address {at:#x} lies {at - 16} bytes past the end of the kernel's parameters (16 bytes)"
        out += [(f"ld.param.u32 %r3, [p+{at}];", f"load of {said}")]
    for at in (12288 - SAFE, 12284, 12288, 13000, 16380, 16384):
        where = f"{0x700000000000 + at:#x} lies {at - 1024} bytes past the end of argument 1 (`q`) (256 bytes)"
        there = f"add.u64 %rd3, %rd1, {at - 256};"
        out += [(f"{there} ld.global.u32 %r3, [%rd3];", f"load of 4 bytes at global address {where}")]
        out += [(f"{there} st.global.u32 [%rd3], %r1;", f"store of 4 bytes at global address {where}")]
        out += [(f"{there} ld.u32 %r3, [%rd3];", f"load of 4 bytes at global address {where}")]
        out += [(f"{there} atom.global.add.u32 %r3, [%rd3], 1;", f"atomic operation of 4 bytes at global address {where}")]
    return out


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("body", "message"), places())
def test_behind_the_last_allocation(body, message, masked):
    assert found(body, masked=masked) == [message]


@pytest.mark.parametrize("masked", [False, True])
def test_unchecked_runs_look_as_well(masked):
    for body, message in places():
        assert found(body, masked=masked, check=False) == [message]


def test_lanes_that_take_no_part_may_hold_any_address():
    shared = "setp.ne.u32 %p1, %r1, 5; mov.u32 %r2, s; @%p1 mov.u32 %r2, 2044; @!%p1 st.shared.u32 [%r2], %r1;"
    global_ = "mov.u64 %rd3, -4; @!%p1 mov.u64 %rd3, %rd1; @!%p1 ld.global.u32 %r3, [%rd3];"
    text = PTX.format(body=shared + global_, lane=99, guard="@!%p1 ")
    args = [np.zeros(64, np.uint32), np.zeros(64, np.uint32)]
    assert simulate(text, grid=1, block=32, args=args).findings == []


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("sub.u32 %r2, %r1, 2000; ld.shared.u32 %r3, [%r2+2000];", 7),
        ("sub.u32 %r2, %r1, 2000; ld.shared::cluster.u32 %r3, [%r2+2000];", 7),
        ("sub.u32 %r2, %r1, 2000; atom.shared.add.u32 %r3, [%r2+2000], 1;", 7),
        ("ld.shared.u32 %r3, [%r1+4294967296];", 7),
        ("ld.shared.u32 %r3, [s+18446744069414584320];", 7),
        ("mov.u32 %r2, -8; st.local.u32 [%r2+8], 9; ld.local.u32 %r3, [%r2+4294967304];", 9),
        ("add.u64 %rd3, %rd1, 8; ld.global.u32 %r3, [%rd3+18446744073709551608];", 5),
        ("add.u64 %rd3, %rd1, 0x8000000000000001; ld.u32 %r3, [%rd3+-9223372036854775809];", 5),
    ],
)
def test_sums_of_addresses_wrap(body, value):
    """As in the machine code of ptxas 13.5 for sm_90a: offsets of shared and local addresses are of 32 bits, others of 64."""
    before = "mov.u32 %r1, s; st.shared.u32 [%r1], 7;"
    text = PTX.format(body=f"{before} {body} st.global.u32 [%rd2], %r3;", lane=99, guard="@!%p1 ")
    x, y = np.full(64, 5, np.uint32), np.zeros(64, np.uint32)
    result = simulate(text, grid=1, block=1, args=[x, y])
    assert ([str(f) for f in result.findings], int(y[0])) == ([], value)


def test_an_address_far_off_is_not_cut():
    text = PTX.format(body="mov.u64 %rd3, 0x10000000400; ld.shared.u32 %r3, [%rd3];", lane=99, guard="@!%p1 ")
    result = simulate(text, grid=1, block=1, args=[np.zeros(64, np.uint32)] * 2)
    assert [f.kind for f in result.findings] == ["out-of-bounds"]


COPY = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .align 64 .b8 map[128])
{
 .reg .b32 %r<4>; .reg .b64 %rd<2>; .reg .pred %p1; .shared .align 128 .b8 tile[256]; .shared .b64 full;
 mov.b64 %rd0, map; cvta.param.u64 %rd1, %rd0; mov.u32 %r1, %tid.x; mov.u32 %r2, tile;
 mov.u32 %r3, full; setp.ne.u32 %p1, %r1, 0;
 @%p1 bra END;
 mbarrier.init.shared.b64 [%r3], 1;
 cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r2], [%rd1, {%r1}], [%r3];
END:
 ret;
}"""


@pytest.mark.parametrize("address", [1 << 56, 1 << 63, (1 << 64) - 4096])
def test_tensor_maps_of_addresses_that_are_none(address):
    here = TensorMap(np.zeros(64, np.float32), box=(64,)).encode(GLOBAL_BASE)
    assert here[:8] == GLOBAL_BASE.to_bytes(8, "little")
    there = address.to_bytes(8, "little") + here[8:]
    (found,) = simulate(COPY, grid=1, block=32, args=[there]).findings
    beyond = f"the tensor map describes 256 bytes from {address:#x} on, and this box reaches beyond any allocation"
    assert (found.kind, found.message) == ("out-of-bounds", beyond)


# --- declarations -----------------------------------------------------------------------------------------------------

ALIGNED = ".version 8.0\n.target sm_90a\n.address_size 64\n{outer}\n.visible .entry k({parameter})\n{{\n{inner}\n ret;\n}}"


def declared(outer: str = "", parameter: str = ".param .u64 p", inner: str = "", args: list[object] | None = None) -> object:
    text = ALIGNED.format(outer=outer, parameter=parameter, inner=inner)
    return simulate(text, grid=1, block=32, args=[0] if args is None else args)


@pytest.mark.parametrize(
    ("align", "message"),
    [
        (3, "alignment 3 is not a power of two"),
        (0, "alignment 0 is not a power of two"),
        (4294967295, "alignment 4294967295 is not a power of two"),
        (1 << 32, "alignment 4294967296 is no number of 32 bits"),
    ],
)
@pytest.mark.parametrize(
    "where",
    [
        {"parameter": ".param .align {} .b8 p[8]"},
        {"parameter": ".param .u64 .ptr .global .align {} p"},
        {"inner": " .shared .align {} .b8 s[8];"},
        {"outer": ".global .align {} .b8 g[8];"},
    ],
)
def test_alignments_that_are_none(where, align, message):
    with pytest.raises(PtxError) as caught:
        declared(**{name: text.format(align) for name, text in where.items()})
    assert [p.message for p in caught.value.problems] == [message]


@pytest.mark.parametrize(
    ("where", "message"),
    [
        (
            {"parameter": ".param .u32 a, .param .align 65536 .b8 p[8]", "args": [1, bytes(8)]},
            "<string>:5:1: the parameters of `k` take 65,544 bytes; 32,764 is the most",
        ),
        (
            {"inner": " .local .b8 a;\n .local .align 524288 .b8 b[8];"},
            "<string>:8:2: the local variables of `k` take 524,296 bytes with `b`; 524,288 is the most",
        ),
        (
            {"outer": ".const .b8 a = 1;\n.const .align 65536 .b8 b = 2;"},
            "<string>:5:1: the module's constants take 65,537 bytes with `b`; 65,536 is the most",
        ),
        (
            {"outer": ".global .align 2147483648 .b8 g[8];"},
            "<string>:4:1: `g` is aligned to 2,147,483,648 bytes; the simulator takes 1,048,576 at most",
        ),
    ],
)  # fmt: skip
def test_alignments_that_take_more_than_there_is(where, message):
    with pytest.raises(InputError) as caught:
        declared(**where)
    assert str(caught.value) == message


def test_global_variables_are_aligned_as_declared():
    outer = ".global .b8 a[4];\n.global .align 4096 .b8 g[8];\n.global .u64 there = g;"
    result = declared(outer=outer)
    assert int(result.globals["there"].view(np.uint64)[0]) % 4096 == 0
