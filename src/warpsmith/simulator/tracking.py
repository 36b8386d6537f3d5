"""What the tracked variant of a block does besides: keep the masks of undefined bytes of registers (see `definedness`).

add.s32 %r3, %r1, %r2;   →   bitwise_or(u1, u2, v); not_equal(v, 0, some); negative(bits of some, v); copyto(u3, v)
and.b32 %r3, %r1, %r2;   →   rule(v, r1, r2, u1, u2) if u1.any() or u2.any() else v.fill(0); …; copyto(u3, v)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from warpsmith.simulator.binding import scratch, undefined_rows
from warpsmith.simulator.definedness import copy_mask, registers_of
from warpsmith.simulator.definedness_bytes import ALL, NONE
from warpsmith.simulator.program import Address, Reg

if TYPE_CHECKING:
    from warpsmith.simulator.blockwriter import Writer
    from warpsmith.simulator.definedness import Rule
    from warpsmith.simulator.program import Lowered, Operation

__all__ = ["address_checks", "copied", "decide", "propagate", "undefined_name"]

_some = scratch(np.bool_, 72)


def undefined_name(w: Writer, reg: Reg) -> str:
    """Return the closure variable of a register's mask of undefined bytes."""
    return w.name(("undefined", reg.bank, reg.slot), undefined_rows(reg))


def decide(w: Writer, op: Operation, rule: Rule, ins: list[str]) -> str:
    """Write, before the operation overwrites its operands: a rule says which bytes of the result are undefined."""
    out = w.name(("scratch", np.uint8, 71), scratch(np.uint8, 71))
    given = [o for i, o in enumerate(op.operands) if not op.written[i]]
    none = w.constant(NONE)
    masks = [undefined_name(w, o) if isinstance(o, Reg) else none for o in given]
    cut = [isinstance(o, Reg) and (o.bank, o.slot) in w.cut for o in given]
    if op.opcode == "or" and any(cut):  # word & mask | field: the other bits of the word may never be used
        fields = masks if all(cut) else [masks[cut[0]], w.constant(ALL)]
        w.emit(f"bitwise_and({', '.join([*fields, out])})")
        return out
    some = " or ".join(f"{m}.any()" for m in dict.fromkeys(masks) if m != none) or "False"
    w.emit(f"{w.constant(rule)}({', '.join([out, *ins, *masks])}) if {some} else {out}.fill(0)")
    return out


def propagate(w: Writer, op: Operation, *, keep: bool = False, decided: str | None = None) -> None:
    """Write: a result is undefined where an operand is; with `keep` also where the meaning has said so."""
    read = sorted({undefined_name(w, r) for i, o in enumerate(op.operands) if not op.written[i] for r in registers_of(o)})
    to = [undefined_name(w, r) for i, o in enumerate(op.operands) if op.written[i] for r in registers_of(o)]
    if not to or (keep and not read):
        return
    value = decided or "0"
    if op.opcode == "wgmma":  # its results come later, defined
        read, keep = [], False
    if decided is None and read:
        value = w.name(("scratch", np.uint8, 70), scratch(np.uint8, 70))
        if len(read) > 1:
            w.emit(f"bitwise_or({read[0]}, {read[1]}, {value})")
        for r in read[2:]:
            w.emit(f"bitwise_or({value}, {r}, {value})")
        some = w.name(("scratch", np.bool_, 72), _some)
        bits = w.name(("bits", 72), lambda x: _some(x).view(np.uint8))
        w.emit(f"not_equal({read[0] if len(read) == 1 else value}, {w.constant(NONE)}, {some})")
        w.emit(f"negative({bits}, {value})")
    for t in to:
        w.emit(f"bitwise_or({t}, {value}, {t}{w.where()})" if keep else f"copyto({t}, {value}{w.where()})")


def copied(w: Writer, d: Reg, a: Lowered) -> None:
    """Write: the undefined bytes of a `mov` go with it."""
    mask = undefined_name(w, a) if isinstance(a, Reg) else "0"
    to, part = undefined_name(w, d), copy_mask(d, a)
    if part is None:
        w.emit(f"copyto({to}, {mask}{w.where()})")
    else:
        w.emit(f"{w.constant(part)}({to}, {mask}, {w.mask or 'True'})")


def address_checks(w: Writer, op: Operation) -> None:
    """Write: an undefined address is a fault."""
    for o in op.operands:
        if isinstance(o, Address) and isinstance(o.base, Reg):
            w.emit(f"x.machine.check.undefined_use(x, {undefined_name(w, o.base)}, 'address')")
