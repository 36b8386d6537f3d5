"""The programs of tests/data/miscompiled: one that ptxas makes wrong code of, and one repaired, for each pattern.

ptx 8.0            the PTX version that has its instructions
== before          what stands before the kernel (optional)
== broken          lines of the kernel: input at %rd1, output at %rd2, 32 bytes a thread; %r11 is the thread
== repaired
== wrong           machine code of the broken kernel that shows it is wrong: every expression is found …
== missing         … and none of these
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parents[1] / "data" / "miscompiled"
FIRST = {"sm_100a": (8, 6), "sm_120a": (8, 7)}
"""Target -> the PTX version that has it, where that is later than the cases'."""
ENTRY = """\
.visible .entry {name}(.param .u64 x, .param .u64 out)
{{
 .reg .pred %p<8>;
 .reg .b16 %h<12>;
 .reg .b32 %r<12>;
 .reg .b64 %rd<12>;
 mov.u32 %r11, %tid.x;
 ld.param.u64 %rd1, [x];
 ld.param.u64 %rd2, [out];
 mul.wide.u32 %rd3, %r11, 32;
 add.u64 %rd1, %rd1, %rd3;
 add.u64 %rd2, %rd2, %rd3;
{body}
 ret;
}}
"""


@dataclass(frozen=True)
class Case:
    """A pattern's programs."""

    name: str
    version: tuple[int, int]
    before: str
    broken: str
    repaired: str
    wrong: tuple[str, ...]
    missing: tuple[str, ...]

    def text(self, which: str, arch: str = "sm_90a") -> str:
        """Return the module of the broken or the repaired program; the kernel is `k`."""
        return module_text([(self, which, "k")], arch)


def module_text(kernels: Sequence[tuple[Case, str, str]], arch: str) -> str:
    """Return a module of several kernels: (case, `broken` or `repaired`, name)."""
    major, minor = max([FIRST.get(arch, (8, 0)), *(case.version for case, _, _ in kernels)])
    before = dict.fromkeys(case.before for case, _, _ in kernels if case.before)
    entries = [ENTRY.format(name=name, body=getattr(case, which)) for case, which, name in kernels]
    return "\n".join([f".version {major}.{minor}", f".target {arch}", ".address_size 64", *before, *entries])


@cache
def cases() -> dict[str, Case]:
    """Return every case by name."""
    return {path.stem: _read(path) for path in sorted(ROOT.glob("*.case"))}


def _read(path: Path) -> Case:
    head, *sections = path.read_text("utf-8").split("\n== ")
    parts = {name: body.rstrip("\n") for name, _, body in (s.partition("\n") for s in sections)}
    major, _, minor = head.removeprefix("ptx ").partition(".")
    wrong, missing = (tuple(parts.get(n, "").splitlines()) for n in ("wrong", "missing"))
    version = (int(major), int(minor))
    return Case(path.stem, version, parts.get("before", ""), parts["broken"], parts["repaired"], wrong, missing)
