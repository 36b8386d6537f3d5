"""Single statements with the verdict that ptxas 13.5 gave, in tests/data/ptx/statements.txt: the checker gives the same."""

from __future__ import annotations

from pathlib import Path

from warpsmith.assembly.ptx import parse
from warpsmith.assembly.ptx.check import check
from warpsmith.base.errors import PtxError

STATEMENTS = Path(__file__).parents[3] / "data" / "ptx" / "statements.txt"
HEAD = """\
.version 9.0
.target sm_90a
.address_size 64
.global .align 16 .b8 g[64];
.global .align 4 .b8 arr[64];
.global .v4 .f32 gv;
.global .f32 gf;
.const .b32 cc;
.shared .align 16 .b8 s[64];
.func fn () { ret; }
"""
TYPES = (
    "b8",
    "u8",
    "s8",
    "b16",
    "u16",
    "s16",
    "f16",
    "b32",
    "u32",
    "s32",
    "f32",
    "f16x2",
    "b64",
    "u64",
    "s64",
    "f64",
    "b128",
    "pred",
)
KERNEL = f"""\
.visible .entry k(.param .u64 p, .param .align 8 .b8 q[64])
{{
.reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .v4 .f32 v; .reg .v4 .f32 v4; .reg .v2 .b32 v2b; .reg .pred %p<4>; .reg .f32 %f<4>;
{" ".join(f".reg .{t} %{t}_<6>;" for t in TYPES)}
.local .b32 loc;
.param .b32 pp;
L0:
"""
KNOWN = {
    "lop3.b32 %b32_1, 1, 2, 3, 256;": "a table of 8 bits; ptxas takes 256 and forgets the highest bit",
    "mov.b64 {%b32_1,%b32_2}, g;": "ptxas unpacks an address; the manual unpacks registers",
    ".global .b8 zz[4] = {0f3F800000};": "ptxas takes the bits of a float for a byte",
    "mov.u32 %r1, 0x1ffffffffffffffff;": "65 bits: ptxas drops the highest here, and complains about other such constants",
    "bfe.u32 %u32_0, %u32_1, %f16x2_0, %f16x2_1;": "ptxas takes no .f16x2 register for position and length",
    "mov.f32 v2b.z, v4.w;": "a vector of two has no .z; ptxas makes it a register of its own",
}
"""Where the checker differs from ptxas, with the reason."""


def statements() -> list[tuple[bool, str, str]]:
    """Return (accepted, statement, module text)."""
    out: list[tuple[bool, str, str]] = []
    for line in STATEMENTS.read_text("utf-8").splitlines():
        if line.startswith("#"):
            continue
        verdict, where, statement = line.split(maxsplit=2)
        inside = statement.replace("\\n", "\n") + "\n"
        text = HEAD + inside + KERNEL if where == "module" else HEAD + KERNEL + inside
        out.append((verdict == "accepts", statement, text + "ret;\n}\n"))
    return out


def complaints(text: str) -> list[str]:
    try:
        return [p.message for p in check(parse(text))]
    except PtxError as error:
        return [p.message for p in error.problems]


def test_the_checker_agrees_with_ptxas() -> None:
    disagreeing = {
        statement: complaints(text) or "accepted"
        for accepted, statement, text in statements()
        if accepted == bool(complaints(text))
    }
    assert disagreeing.keys() == KNOWN.keys(), disagreeing
