"""What is known of the results a launch computed: which were compared with hardware, on which architecture.

docs/design/hardware-capture.md says what was captured and how it is compared; the levels here follow it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.base.arch import parse_arch
from warpsmith.simulator.program import Address, Pair, Special, Vector

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warpsmith.simulator.fidelity import Fidelity
    from warpsmith.simulator.program import Block, Lowered, Operation, Program

__all__ = ["note_executed"]

_CAPTURED = 90
"""The compute capability whose scalar instructions were captured."""
_FLOATS = ("f16", "f16x2", "bf16", "bf16x2", "f32", "f64")
_ROUNDINGS = frozenset(("rn", "rz", "rm", "rp"))
_SCALAR_VIDEO = ("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr", "vmad", "vset")
_TENSOR_COPIES = ("cp.async.bulk.tensor.", "cp.reduce.async.bulk.tensor.")
_PLACES = ("%smid", "%nsmid", "%warpid", "%nwarpid")


def note_executed(fidelity: Fidelity, program: Program, runs: list[int], arch: str) -> None:
    """Add to `fidelity` what is known of the instructions of the blocks that ran (`runs[block]` times) on `arch`."""
    operations = [op for block, n in zip(program.blocks, runs, strict=True) if n for op in _operations(block)]
    executed = {op.text: op for op in operations}
    number = parse_arch(arch).number
    for op in executed.values():
        words = op.text.split(".")
        if op.kind == "pure" and ("approx" in words or "full" in words):
            _note_approximate(fidelity, words, number)
        elif op.kind == "pure" and op.opcode in _SCALAR_VIDEO:
            fidelity.note(
                "scalar video instructions", "exact",
                "as the code that ptxas 13.5 builds for sm_90 computes; compared with an H200, but for results merged into h1",
            )  # fmt: skip
        elif op.kind == "pure":
            _note_elementwise(fidelity, number)
        elif op.text.startswith(_TENSOR_COPIES):
            _note_tensor_copy(fidelity, number)
        elif op.opcode in ("atom", "red") and "add" in words and words[-1] in _FLOATS:
            fidelity.note(
                "floating atomics", "exact", "in the order of this schedule; hardware's order varies, and its rounding with it"
            )
    _note_contraction(fidelity, [op.text.split(".") for op in executed.values()])
    for op in operations:
        _note_special(fidelity, op)


def _operations(block: Block) -> list[Operation]:
    """Return the operations of a block, that of its ending included."""
    last: Operation | None = getattr(block.ending, "operation", None)
    return block.operations if last is None else [*block.operations, last]


def _note_elementwise(fidelity: Fidelity, number: int) -> None:
    if number == _CAPTURED:
        fidelity.note("elementwise instructions", "hardware-checked", "bit for bit what an H200 gave")
    else:
        fidelity.note(
            "elementwise instructions", "exact", f"as the manual defines them; compared with sm_90, not with sm_{number}"
        )


def _note_approximate(fidelity: Fidelity, words: list[str], number: int) -> None:
    subject = ".".join(w for w in words if w != "ftz")
    if number != _CAPTURED:
        fidelity.note(subject, "approximate", f"what sm_90 gives; sm_{number} may differ within the manual's bound")
    else:
        every = words[0] != "div" and words[-1] != "f64"
        which = "every operand" if every else "captured operands"
        fidelity.note(subject, "hardware-checked", f"bit for bit what an H200 gave, for {which}")


def _note_tensor_copy(fidelity: Fidelity, number: int) -> None:
    if number == _CAPTURED:
        fidelity.note(
            "tensor copies", "hardware-checked",
            "bit for bit what an H200 gave: tiles and im2col, every swizzle and interleaving, loads, stores and reductions",
        )  # fmt: skip
    else:
        fidelity.note("tensor copies", "exact", "as the manual defines them; what sm_90 has was compared with an H200")


def _note_contraction(fidelity: Fidelity, executed: list[list[str]]) -> None:
    """Products and sums of one floating type, neither with a rounding: ptxas may fuse them."""
    free = {(w[0], w[-1]) for w in executed if w[-1] in _FLOATS and not _ROUNDINGS.intersection(w)}
    for kind in _FLOATS:
        if ("mul", kind) in free and (("add", kind) in free or ("sub", kind) in free):
            fidelity.note(
                f"mul.{kind} and add.{kind}", "exact",
                "computed unfused; ptxas may contract them: write .rn or compile with --fmad=false to compare bits",
            )  # fmt: skip


def _specials(operand: Lowered) -> Iterator[Special]:
    if isinstance(operand, Special):
        yield operand
    elif isinstance(operand, Vector):
        for item in operand.items:
            yield from _specials(item)
    elif isinstance(operand, Pair):
        yield from _specials(operand.first)
        yield from _specials(operand.second)
    elif isinstance(operand, Address):
        yield from _specials(operand.base)


def _note_special(fidelity: Fidelity, op: Operation) -> None:
    for operand in op.operands:
        for special in _specials(operand):
            if special.name.startswith(("%clock", "%globaltimer")):
                fidelity.note("clocks", "not modelled", "they count what was simulated, not the time hardware takes")
            elif special.name in _PLACES:
                fidelity.note(special.name, "not modelled", "hardware places CTAs and warps as it likes")
