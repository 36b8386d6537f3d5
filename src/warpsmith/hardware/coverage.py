"""Which forms of the declarations the captures execute, and which they do not, with the reason.

A form is a mnemonic of a row in which each word and each pair of words occurs (`isa/generate.py`), executable on the
architecture and modelled by the simulator.
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from warpsmith.assembly.ptx.isa import match, rows
from warpsmith.assembly.ptx.isa.generate import mnemonics
from warpsmith.base.arch import parse_arch
from warpsmith.hardware.family_capture import FamilyCapture
from warpsmith.hardware.machine_capture import MachineCapture, machine_programs
from warpsmith.hardware.machine_case import NEWEST, VERSION
from warpsmith.hardware.program_capture import programs
from warpsmith.hardware.scalar_store import Capture
from warpsmith.hardware.tensor_programs import tensor_programs
from warpsmith.simulator.meanings import registry

if TYPE_CHECKING:
    from pathlib import Path

    from warpsmith.assembly.ptx.isa import Match

__all__ = ["captured_forms", "executable_forms", "listing", "reason", "uncaptured"]

ARCH = "sm_90a"
_STATEMENT = re.compile(r"(?:^|[;{}:]|@!?%\w+)\s*([a-z][\w.:]*)", re.MULTILINE)

REASONS: tuple[tuple[str, str], ...] = (
    (r"(bra|brx|call|ret|exit)\b", "control flow: programs with loops execute it; it has no result of its own"),
    (r"(trap|brkpt)\b", "ends the kernel"),
    (r"setmaxnreg\b", "needs a kernel built for a count of registers; the attention kernels execute it"),
    (r"mov\.v[24]\b", "copies whole vectors, which only GCC writes; its programs were compared with a GPU (programs.md)"),
    (r"mov\b", "copies registers: every program executes it"),
    (r"discard\b", "leaves memory undefined"),
    (r"ld\.(.*\.)?param::func\.(.*\.)?b128", "ptxas 13.0 and 13.5 load its lower half only"),
    (r"st\.(.*\.)?v8\.", "ptxas 13.0 and 13.5 store one element of it, or none"),
    (r"(isspacep|mapa|getctarank)\b", "32-bit generic addresses, which this architecture has not"),
    (r"prefetch\..*tensormap", "a hint without a result, of a tensor map"),
    (r"griddepcontrol\b", "needs a launch that depends on another"),
)  # fmt: skip
"""Pattern of a mnemonic -> why no capture executes it."""


def executable_forms(arch: str = ARCH) -> dict[str, list[Match]]:
    """Return the forms by opcode."""
    target = parse_arch(arch)
    out: dict[str, list[Match]] = defaultdict(list)
    for row in rows():
        if row.refused or registry.find(row) is None:
            continue
        meaning = registry.find(row)
        for name in mnemonics(row):
            for m in match(name):
                exists = all(n.arch is None or n.arch.allows(target) for n in m.needs)
                engine = meaning is not None and meaning.kind == "control"
                if m.row is row and exists and (engine or not isinstance(registry.build(m), registry.Refused)):
                    out[row.opcode].append(m)
    return out


def captured_forms(folder: Path, arch: str = ARCH) -> frozenset[str]:
    """Return the mnemonics that some program in the captures of a folder executes."""
    machine_items = MachineCapture.read(folder / f"machine-{arch}.capture").items
    found = {c.form.mnemonic for c in Capture.read(folder / f"scalar-{arch}.capture").items}
    found |= {c.family.mnemonic for c in FamilyCapture.read(folder / f"families-{arch}.capture").items}
    found |= {name for c in machine_items for names, _ in c.covers for name in names}
    with np.load(folder / f"programs-{arch}.npz") as z:
        kept = {name.rpartition("/")[0] for name in z.files}
    with np.load(folder / f"tensor-{arch}.npz") as z:
        kept |= set(z.files)
    texts = [p.body for p in programs() if p.name in kept] + [p.text for p in tensor_programs() if p.name in kept]
    for text in [*texts, *(c.text for c in machine_items)]:
        found |= set(_STATEMENT.findall(text))
    return frozenset(found)


_MACHINE = (
    "atom", "bar", "barrier", "cp", "fence", "ld", "ldmatrix", "mbarrier", "membar", "prefetch", "red", "st", "stmatrix",
)  # fmt: skip
"""Opcodes of which newer forms have programs of their own."""


@cache
def _planned() -> frozenset[str]:
    tensor = {name for p in tensor_programs() for name in _STATEMENT.findall(p.text)}
    return frozenset(tensor | {name for p in machine_programs() for c in p.cases for name in c.covers})


def reason(m: Match) -> str:
    """Return why no capture executes a form; "" if there is none."""
    newest: tuple[int, int] = max((n.ptx for n in m.needs if n.ptx is not None), default=(9, 0))
    limit = NEWEST if m.row.opcode in _MACHINE else VERSION
    if max(newest, limit) != limit:
        return f"spelled in PTX {newest[0]}.{newest[1]}, newer than the captured programs ({limit[0]}.{limit[1]})"
    why = next((why for pattern, why in REASONS if re.match(pattern, m.mnemonic)), "")
    return why or ("declared since the capture, or in a program that was changed since" if m.mnemonic in _planned() else "")


def uncaptured(folder: Path, arch: str = ARCH) -> dict[str, list[str]]:
    """Return reason -> the mnemonics that no capture executes; "" for those without a reason."""
    captured = captured_forms(folder, arch)
    out: dict[str, list[str]] = defaultdict(list)
    for forms in executable_forms(arch).values():
        for m in forms:
            if m.mnemonic not in captured and m.mnemonic not in out[reason(m)]:
                out[reason(m)].append(m.mnemonic)
    return {why: names for why, names in out.items() if names}


def listing(folder: Path, arch: str = ARCH) -> str:
    """Return the page that lists the forms no capture executes, by reason."""
    executable = {m.mnemonic for forms in executable_forms(arch).values() for m in forms}
    missing = uncaptured(folder, arch)
    count = sum(map(len, missing.values()))
    lines = [
        "# Forms that no capture executes",
        "",
        f"Of {len(executable):,} forms of {arch} (mnemonics in which each word and each pair of words of a declaration",
        f"occurs), {len(executable) - count:,} are executed by a capture (hardware-capture.md); {count:,} are not: they",
        "stand here.",
        "`python -m warpsmith.hardware coverage tests/captured/data` writes this page.",
    ]
    for why, names in sorted(missing.items()):
        lines += ["", f"## {why[:1].upper()}{why[1:]}", "", "```", *names, "```"]
    return "\n".join(lines) + "\n"
