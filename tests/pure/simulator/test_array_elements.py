"""`variable[index]`: the address of an element of the fundamental type, whatever the shape (PTX ISA 6.4.2; so does ptxas)."""

from __future__ import annotations

import numpy as np
import pytest

from warpsmith.simulator import simulate

HEAD = ".version 8.5\n.target sm_90\n.address_size 64\n.global .align 8 .f64 table[4] = {1.5, 2.5, 3.5, 4.5};\n"


def run(declaration: str, *body: str) -> np.ndarray:
    """What the body leaves in `out`, eight doublewords; it may use %rd0 to %rd9, %r0 and %fd0."""
    out = np.zeros(8, np.uint64)
    text = (
        f"{HEAD}.visible .entry k(.param .u64 out, .param .u32 steps[4]) {{\n"
        ".reg .u64 %rd<10>;\n.reg .u32 %r<4>;\n.reg .f64 %fd<2>;\n"
        f"{declaration}\nld.param.u64 %rd0, [out];\n" + "\n".join(body) + "\nst.global.u64 [%rd0], %rd9;\nret;\n}\n"
    )
    args = [out, (np.uint32(5), np.uint32(6), np.uint32(7), np.uint32(8))]
    assert simulate(text, kernel="k", grid=1, block=1, args=args).findings == []
    return out


@pytest.mark.parametrize("space", ["shared", "local"])
@pytest.mark.parametrize(
    ("declared", "index", "bytes_"),
    [(".b8 v[64]", 3, 3), (".b32 v[8]", 3, 12), (".b32 v[4][8]", 3, 12), (".v4 .f32 v[4]", 1, 4), (".f64 v[4]", 2, 16)],
)
def test_address_of_an_element(space: str, declared: str, index: int, bytes_: int) -> None:
    body = "mov.u64 %rd1, v;", f"mov.u64 %rd2, v[{index}];", "sub.u64 %rd9, %rd2, %rd1;"
    assert run(f".{space} .align 16 {declared};", *body)[0] == bytes_


def test_of_a_global_variable() -> None:
    out = run("", "mov.u64 %rd1, table[2];", "ld.global.u64 %rd9, [%rd1];")
    assert out.view(np.float64)[0] == 3.5


def test_in_brackets() -> None:
    out = run(
        "",
        "ld.param.u32 %r1, [steps[3]];",
        "ld.global.f64 %fd0, [table[1]];",
        "cvt.u64.u32 %rd9, %r1;",
        "st.global.f64 [%rd0+8], %fd0;",
    )
    assert out[0] == 8
    assert out.view(np.float64)[1] == 2.5
