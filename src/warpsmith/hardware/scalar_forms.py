"""Every executable form of the elementwise instructions for one architecture, from the declarations."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

from warpsmith.assembly.ptx.isa import Match, OperandSlot, Row, match, rows
from warpsmith.base.arch import Arch, parse_arch
from warpsmith.simulator.meanings import registry
from warpsmith.simulator.meanings.extended import carry_operands
from warpsmith.simulator.meanings.forms import Form

__all__ = ["ScalarForm", "mnemonics", "scalar_forms"]

_LUTS = (0x00, 0x01, 0x1E, 0x3C, 0x80, 0x96, 0xB1, 0xC0, 0xCA, 0xE8, 0xFE, 0xFF)


def _widths(types: tuple[str, ...]) -> list[str]:
    """Return the types without their kind: a declaration may take a number for signed at one time and for bits at another."""
    return [t.lstrip("bsu") if t[0] in "bsu" else t for t in types]


@final
@dataclass(frozen=True, slots=True)
class ScalarForm:
    """One instruction form: `key` names it, with `#imm` for its immediate."""

    key: str
    mnemonic: str
    row: str
    reads: tuple[str, ...]
    """Types of the read operands, the carry flag last."""
    writes: tuple[str, ...]
    """Types of the written ones, the carry flag last."""
    immediate: int | None = None
    carry_in: bool = False
    carry_out: bool = False

    def match(self) -> Match:
        """Return the match of the row this form comes from, or of one with the same operands, or of the same widths."""
        fitting = match(self.mnemonic)
        same = [m for m in fitting if any(f.reads == self.reads for f in _forms_of(m))]
        alike = [m for m in fitting if any(_widths(f.reads) == _widths(self.reads) for f in _forms_of(m))]
        return next((m for m in same if m.row.id == self.row), (same or alike)[0])

    def json(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {f: getattr(self, f) for f in self.__slots__}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> ScalarForm:
        """Undo `json`."""
        fields: dict[str, Any] = {**data, "reads": tuple(data["reads"]), "writes": tuple(data["writes"])}
        return cls(**fields)


def mnemonics(row: Row) -> Iterator[str]:
    """Yield every mnemonic of a row, in the manual's order of modifiers."""
    options: list[list[str]] = []
    for e in row.elements:
        words = [e.name] if e.kind != "choice" else list(e.words)
        options.append(["", *words] if e.optional else words)
    for words in itertools.product(*options):
        yield ".".join([row.opcode, *(w for w in words if w)])


def _available(m: Match, arch: Arch) -> bool:
    return all(need.arch is None or need.arch.allows(arch) for need in m.needs)


def _type(slot: OperandSlot) -> str | None:
    """Type name of a plain register operand; None for anything else."""
    if slot.type is None or slot.count is not None or slot.kind not in ("value", "predicate") or slot.type.bits > 64:
        return None
    return slot.type.name


def _forms_of(m: Match) -> Iterator[ScalarForm]:
    reads: list[str] = []
    writes: list[str] = []
    immediates: tuple[int | None, ...] = (None,)
    for slot in m.operands:
        if slot.kind == "immediate":
            immediates = _LUTS
            continue
        # ptxas takes no second predicate from setp of one half, whatever the manual's grammar says
        lone = slot.pair is None or (slot.pair.optional and m.mnemonic.endswith((".f16", ".bf16")))
        for part in (slot,) if lone else (slot, slot.pair):
            assert part is not None
            name = _type(part)
            if name is None or part.direction == "update":
                return
            (writes if part.direction == "write" else reads).append(name)
    carry_out, carry_in = carry_operands(Form.parse(m.mnemonic))
    reads += ["pred"] if carry_in else []
    writes += ["pred"] if carry_out else []
    for value in immediates:
        key = m.mnemonic if value is None else f"{m.mnemonic}#{value:#04x}"
        yield ScalarForm(key, m.mnemonic, m.row.id, tuple(reads), tuple(writes), value, carry_in, carry_out)


def scalar_forms(arch: str) -> list[ScalarForm]:
    """Return the forms that `arch` executes and the simulator computes elementwise."""
    target = parse_arch(arch)
    out: dict[str, ScalarForm] = {}
    for row in rows():
        meaning = registry.find(row)
        if row.refused or meaning is None or not meaning.module.endswith(".arithmetic"):
            continue
        for mnemonic in mnemonics(row):
            m = next(m for m in match(mnemonic) if m.row is row)
            if not _available(m, target) or isinstance(registry.build(m), registry.Refused):
                continue
            for form in _forms_of(m):
                out.setdefault(f"{form.key} {','.join(form.reads)}", form)
    return list(out.values())
