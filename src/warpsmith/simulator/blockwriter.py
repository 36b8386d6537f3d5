"""Write the Python source of a block. Names are closure variables bound once per rectangle; `run` holds numpy calls only.

@%p1 add.s32 %r3, %r1, %r2;        def make(a0, a1, …):
ld.global.f32 %f1, [%rd1+4];   →       def run(x):
                                           a0(a3, a1, a2); copyto(a4, a3, where=a5)
                                           x.op = a6; a7(x, a8, add(a9, 4))
                                       return run
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, final

import numpy as np

from warpsmith.simulator import tracking
from warpsmith.simulator.binding import (
    destination,
    register_row,
    rows,
    scratch,
    source,
    special,
    special_moving,
    whole_row,
    wide_dtype,
    width_of,
)
from warpsmith.simulator.collectives import COLLECTIVES, is_collective
from warpsmith.simulator.compiled_source import compiled_source
from warpsmith.simulator.definedness import cuts, rule_of, says_itself
from warpsmith.simulator.grouping import Group, groups, is_product, load_registers
from warpsmith.simulator.program import Address, Const, Lowered, Operation, Reg, Special, Vector
from warpsmith.simulator.special import is_moving

if TYPE_CHECKING:
    from collections.abc import Callable

    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.program import Block

__all__ = ["Writer"]

_PLAIN = {"ld", "st", "ldu", "atom", "red", "shfl", "vote", "ldmatrix", "stmatrix", "mma", "wgmma", "isspacep", "cvta"}
"""Opcodes whose meanings keep no operand beyond the call: they get live views. Others get copies of addresses and values."""


@final
class Writer:
    """Writes the source of one variant."""

    def __init__(self, operations: list[Operation], masked: bool, tracked: bool, start: int) -> None:
        self.operations, self.masked, self.tracked, self.start = operations, masked, tracked, start
        self.names: dict[Any, str] = {}
        self.binds: list[Callable[[Lanes], Any]] = []
        self.lines: list[str] = []
        self.at = {id(op): start + i for i, op in enumerate(operations)}
        self.kept: list[Group] = []  # their identity names closure variables, so they live while the source is written
        self.mask = "m" if masked else ""
        self.cut: frozenset[tuple[str, int]] = frozenset()
        """Registers that hold a value with some of its bits masked off, at this point of the block."""

    def compile(self, block: Block, *, grouped: bool) -> tuple[Callable[..., Any], list[Any]]:
        """Return (make, binds): `make(*[b(x) for b in binds])` is the bound code."""
        if self.masked:
            self.lines.append("m = x.mask")
        for group in groups(self.operations, enabled=grouped and not self.tracked, products=not self.masked):
            self.group(group)
        return self.finish(block, "return 0")

    def compile_sync(self, block: Block) -> tuple[Callable[..., Any], list[Any]]:
        """Return (make, binds) of a switch point, whose code returns its outcome."""
        op = self.operations[0]
        self.emit(f"x.op = {self.constant(op)}")
        aligned = op.opcode in COLLECTIVES or op.opcode == "bar" or ".aligned" in op.text
        if (aligned and self.masked) or op.opcode == "wgmma":
            self.emit(f"if x.short({self.members(op)}):")
            self.emit(" return None")
        arguments = [self.argument(op, i) for i in range(len(op.operands))]
        if self.tracked:
            tracking.address_checks(self, op)
        return self.finish(block, f"return {self.constant(op.fn)}({', '.join(['x', *arguments])})")

    def finish(self, block: Block, last: str) -> tuple[Callable[..., Any], list[Any]]:
        """Compile the lines."""
        lines = "".join(f"  {line}\n" for line in [*self.lines, last])
        text = f"def make({', '.join(self.names.values())}):\n def run(x):\n{lines} return run\n"
        environment: dict[str, Any] = {
            "copyto": np.copyto, "add": np.add, "where": np.where, "logical_not": np.logical_not, "greater": np.greater,
            "logical_and": np.logical_and, "bitwise_or": np.bitwise_or, "bitwise_and": np.bitwise_and, "array": np.array,
            "not_equal": np.not_equal, "negative": np.negative,
        }  # fmt: skip
        exec(compiled_source(text, f"<block {block.index} of {block.function}>"), environment)
        return environment["make"], self.binds

    def name(self, key: Any, bind: Callable[[Lanes], Any]) -> str:
        """Return the closure variable for `key`, bound by `bind`."""
        if (known := self.names.get(key)) is not None:
            return known
        self.names[key] = name = f"a{len(self.names)}"
        self.binds.append(bind)
        return name

    def constant(self, value: Any) -> str:
        """Return the closure variable of a constant object."""
        return self.name(("object", id(value)), lambda _: value)

    def emit(self, line: str) -> None:
        """Add a line."""
        self.lines.append(line)

    # --- operations -----------------------------------------------------------------------------------------------

    def group(self, g: Group) -> None:
        """Write one group of operations."""
        op = g.operations[0]
        restore = self.mask
        if op.guard is not None:
            self.guard(op.guard)
        if op.kind == "machine" and g.count > 1:
            (self.products if is_product(op) else self.loads)(g)
        elif op.kind == "machine":
            self.machine(op, restore)
        elif op.kind == "copy":
            self.copy(g)
        else:
            self.pure(g)
        self.mask = restore
        if self.tracked:
            self.cut = self.cut | op.writes() if cuts(op) else self.cut - op.writes()

    def guard(self, p: Reg) -> None:
        """Combine the mask with a guard predicate into the name `self.mask`."""
        row = self.name(("row", p.bank, p.slot, p.dtype, 0, 1), register_row(p))
        if self.tracked:
            self.emit(f"x.machine.check.undefined_use(x, {tracking.undefined_name(self, p)}, 'guard predicate')")
        if not self.mask and not p.negated:
            self.mask = row
            return
        out = self.name(("scratch", np.bool_, 90), scratch(np.bool_, 90))
        if not self.mask:
            self.emit(f"logical_not({row}, {out})")
        else:
            self.emit(f"{'greater' if p.negated else 'logical_and'}({self.mask}, {row}, {out})")
        self.mask = out

    def read(self, operand: Lowered, g: Group | None = None, index: int = 0, slot: int = 0) -> str:
        """Return an expression for a read operand; in a group of several, `[k, C, T]`."""
        if isinstance(operand, Reg):
            if g is not None and g.count > 1:
                step = g.steps[index]
                key = ("rows", operand.bank, operand.slot, operand.dtype, operand.byte, g.count, step)
                return self.name(key, rows(operand, g.count, step))
            key = ("row", operand.bank, operand.slot, operand.dtype, operand.byte, operand.count)
            row = self.name(key, register_row(operand))
            if not operand.negated:
                return row
            out = self.name(("scratch", np.bool_, 80 + slot), scratch(np.bool_, 80 + slot))
            self.emit(f"logical_not({row}, {out})")
            return out
        if isinstance(operand, Const):
            return self.constant(operand.value)
        if isinstance(operand, Special):
            if is_moving(operand.name):
                return f"{self.name(('now', operand), special_moving(operand))}()"
            return self.name(("special", operand), special(operand))
        if operand is None:
            return "None"
        raise TypeError(f"operand {operand} of an elementwise instruction")

    def pure(self, g: Group) -> None:
        """Write an elementwise operation, or several on consecutive registers."""
        op = g.operations[0]
        outs: list[str] = []
        after: list[str] = []
        many = g.count if g.count > 1 else None
        for i, (operand, written) in enumerate(zip(op.operands, op.written, strict=True)):
            if not written:
                continue
            if operand is None:
                outs.append("None")
                continue
            assert isinstance(operand, Reg)
            step = g.steps[i] if many else 1
            whole = width_of(operand) == np.dtype(operand.dtype).itemsize
            row = self.name(
                ("whole", operand.bank, operand.slot, operand.dtype, operand.count, many, step),
                self._whole(operand, many, step),
            )
            if whole and not self.mask and (not g.overlaps or _safe(op.fn)):
                outs.append(row)
                continue
            shape = operand.count if operand.count > 1 else many
            temporary = self.name(("scratch", operand.dtype, i, shape), scratch(operand.dtype, i, shape))
            outs.append(temporary)
            after.append(
                f"copyto({row}, {temporary}{self.where()}, casting='unsafe')"
                if not whole
                else f"copyto({row}, {temporary}{self.where()})"
            )
        ins = [self.read(o, g, i, i) for i, o in enumerate(op.operands) if not op.written[i]]
        rule = rule_of(op) if self.tracked else None
        flags = tracking.decide(self, op, rule, ins) if rule is not None else None
        fn = self.constant(op.fn)
        order = [*ins, *outs] if isinstance(op.fn, np.ufunc) else [*outs, *ins]
        self.emit(f"{fn}({', '.join(order)})")
        self.lines += after
        if self.tracked:
            tracking.propagate(self, op, decided=flags)

    def _whole(self, operand: Reg, many: int | None, step: int) -> Callable[[Lanes], Any]:
        return whole_row(operand) if many is None else rows(replace(operand, dtype=wide_dtype(operand)), many, step)

    def where(self) -> str:
        """Return the `where=` argument of the current mask."""
        return f", where={self.mask}" if self.mask else ""

    def copy(self, g: Group) -> None:
        """Write a `mov`."""
        op = g.operations[0]
        d, a = op.operands
        assert isinstance(d, Reg)
        if g.count > 1:
            to = self.name(("rows", d.bank, d.slot, d.dtype, d.byte, g.count, g.steps[0]), rows(d, g.count, g.steps[0]))
        else:
            to = self.name(("row", d.bank, d.slot, d.dtype, d.byte, d.count), register_row(d))
        self.emit(f"copyto({to}, {self.read(a, g, 1)}{self.where()}, casting='unsafe')")
        if self.tracked:
            tracking.copied(self, d, a)

    def machine(self, op: Operation, restore: str) -> None:
        """Write a call of a machine meaning."""
        indent = ""
        if op.guard is not None:
            self.emit(f"if {self.mask}.any():")
            self.emit(f" x.mask = {self.mask}")
            indent = " "
        before = len(self.lines)
        self.emit(f"x.op = {self.constant(op)}")
        if (self.mask or op.opcode == "wgmma") and is_collective(op):
            self.rendezvous(op, restore)
        arguments = [self.argument(op, i) for i in range(len(op.operands))]
        if self.tracked:
            tracking.address_checks(self, op)
        self.emit(f"{self.constant(op.fn)}({', '.join(['x', *arguments])})")
        if self.tracked and not says_itself(op):
            tracking.propagate(self, op, keep=True)
        elif not self.tracked and any(op.written):
            self.emit("if x.machine.tracking_began:")
            if indent:
                self.emit(f" x.mask = {restore or 'None'}")
            self.emit(f" return {self.at[id(op)] + 1}")
        if indent:
            for i in range(before, len(self.lines)):
                self.lines[i] = indent + self.lines[i]
            self.emit(f" x.mask = {restore or 'None'}")

    def loads(self, g: Group) -> None:
        """Write several loads by one base register as one access."""
        op = g.operations[0]
        found = load_registers(g.operations)
        assert found is not None
        first, count, step, each = found
        addresses = [next(o for o in one.operands if isinstance(o, Address)) for one in g.operations]
        offsets = np.array([a.offset for a in addresses], np.int64).reshape(-1, 1, 1)
        base = addresses[0].base
        if base is None:
            text = self.name(("offsets", id(g)), lambda x: np.broadcast_to(offsets, (len(offsets), *x.shape)))
        else:
            text = f"add({self.read(base)}, {self.name(('offsets', id(g)), lambda _: offsets)})"

        def registers(x: Lanes) -> Any:
            array = rows(first, count, step)(x)
            return array if each == 1 else array.reshape(count // each, each, *x.shape)

        array = self.name(("loaded", id(g)), registers)
        dests = self.name(("dests", id(g)), lambda x: [destination(one.operands[0])(x) for one in g.operations])
        operations = self.constant(g.operations)
        self.kept.append(g)
        self.emit(f"x.op = {self.constant(op)}")
        fn: Any = op.fn
        self.emit(f"{self.constant(fn.many)}(x, {operations}, {dests}, {array}, {text})")
        self.emit("if x.machine.tracking_began:")
        self.emit(f" return {self.at[id(g.operations[-1])] + 1}")

    def products(self, g: Group) -> None:
        """Write several products of one A as one."""
        op = g.operations[0]
        fn: Any = op.fn
        self.emit(f"x.op = {self.constant(op)}")
        d, _, b, c = ([self.argument(one, i) for one in g.operations] for i in range(4))
        lists = [f"[{', '.join(each)}]" for each in (d, b, c)]
        self.emit(f"{self.constant(fn.wide)}(x, {lists[0]}, {self.argument(op, 1)}, {lists[1]}, {lists[2]})")

    def rendezvous(self, op: Operation, restore: str) -> None:
        """Write: return before the operation while lanes of its member mask are missing."""
        self.emit(f"if x.short({self.members(op)}):")
        if op.guard is not None:
            self.emit(f" x.mask = {restore or 'None'}")
        self.emit(f" return {-1 - self.at[id(op)]}")

    def members(self, op: Operation) -> str:
        """Return the expression of the lanes that execute a collective together."""
        position = COLLECTIVES.get(op.opcode)
        if position is None:
            return self.constant_int(0xFFFFFFFF)
        present = [i for i, o in enumerate(op.operands) if o is not None]
        return self.argument(op, present[position])

    def argument(self, op: Operation, i: int) -> str:
        """Return the expression of one operand of a machine meaning."""
        operand = op.operands[i]
        if op.written[i]:
            if isinstance(operand, Address):
                return self.address(operand, op)
            return self.name(("destination", id(operand), id(op), i), destination(operand))
        if isinstance(operand, Address):
            return self.address(operand, op)
        if isinstance(operand, Vector) and not all(isinstance(r, Reg) for r in operand.items):
            return f"[{', '.join(self.plain(r, op, i) for r in operand.items)}]"
        return self.plain(operand, op, i)

    def plain(self, operand: Lowered, op: Operation, i: int) -> str:
        """Return the expression of a value; a copy where the meaning may keep it."""
        if isinstance(operand, Reg):
            text = self.read(operand, None, 0, i)
            return text if op.opcode in _PLAIN or operand.negated else f"{text}.copy()"
        if isinstance(operand, Special):
            return self.read(operand)
        return self.name(("source", id(operand), id(op)), source(operand))

    def address(self, a: Address, op: Operation) -> str:
        """Return the expression of an address operand."""
        if a.base is None:
            text = self.name(("address", a.offset), source(a))
        elif isinstance(a.base, Reg):
            row = self.read(a.base)
            offset = self.constant_int(a.offset)
            keep = a.wide and a.offset == 0
            text = (row if op.opcode in _PLAIN else f"{row}.copy()") if keep else f"add({row}, {offset})"
        else:
            text = f"add({self.read(a.base)}, {self.constant_int(a.offset)})"
        if not a.inner:
            return text
        return f"({text}, [{', '.join(self.plain(c, op, 0) for c in a.inner)}])"

    def constant_int(self, value: int) -> str:
        """Return the closure variable of an int64."""
        return self.name(("int64", value), lambda _: np.int64(value))


def _safe(fn: Any) -> bool:
    return isinstance(fn, np.ufunc) or getattr(fn, "in_place", False)
