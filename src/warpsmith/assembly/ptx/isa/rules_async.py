"""Rules of barriers, tensor memory and register budgets (`rule=name` in the tables)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.assembly.ptx.isa.rules import RuleProblem, rule
from warpsmith.assembly.ptx.tree import AddressOperand, Immediate, Name, PairOperand, VectorOperand

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from warpsmith.assembly.ptx.isa.row import Match
    from warpsmith.assembly.ptx.tree import Operand

__all__: list[str] = []

_WARP = 32


def _constants(match: Match, operands: Sequence[Operand]) -> Iterator[tuple[str, int, int]]:
    """Name, index and value of every operand that is an integer constant."""
    for slot, (index, operand) in zip(match.operands, enumerate(operands), strict=False):
        if isinstance(operand, Immediate) and isinstance(operand.value, int):
            yield slot.name, index, operand.value


def _multiple(value: int, step: int, low: int, high: int) -> str:
    """Say which allowed multiples of `step` are nearest to `value`."""
    below = min(max(value // step * step, low), high)
    above = min(below + step, high)
    return f"write {below}" if below == above or value < low else f"write {below} or {above}"


@rule
def barrier(match: Match, operands: Sequence[Operand]) -> Iterator[RuleProblem]:
    """A CTA has barriers 0 to 15; the threads that take part are whole warps (9.7.15.1)."""
    for name, index, value in _constants(match, operands):
        if name == "a" and not 0 <= value <= 15:
            yield RuleProblem(f"barrier {value} does not exist", index, "a CTA has the barriers 0 to 15")
        if name == "b" and (value < 0 or value % _WARP):
            hint = _multiple(value, _WARP, _WARP, 1024)
            yield RuleProblem(f"thread count {value} is not a multiple of the warp size {_WARP}", index, hint)
        if name == "b" and value == 0 and ".arrive" in match.mnemonic:
            yield RuleProblem("an arrival needs the number of threads of the barrier", index, "write a multiple of 32")


@rule
def arrivals(match: Match, operands: Sequence[Operand]) -> Iterator[RuleProblem]:
    """Arrival counts are positive; an mbarrier expects at most 2^20 - 1 of them (9.7.15.16.3)."""
    most = 2**20 - 1
    for name, index, value in _constants(match, operands):
        if name != "count":
            continue
        if value < 1:
            yield RuleProblem(f"arrival count {value} is not positive", index, "write 1 or more")
        elif value > most and match.mnemonic.startswith("mbarrier.init"):
            yield RuleProblem(f"arrival count {value} is more than an mbarrier holds", index, f"write at most {most}")


@rule
def parity(match: Match, operands: Sequence[Operand]) -> Iterator[RuleProblem]:
    """The parity of a phase is 0 or 1 (9.7.15.16.19)."""
    for name, index, value in _constants(match, operands):
        if name == "parity" and value not in (0, 1):
            yield RuleProblem(f"{value} is not a parity", index, "write 0 for even phases, 1 for odd ones")


@rule
def bulk_size(match: Match, operands: Sequence[Operand]) -> Iterator[RuleProblem]:
    """Bulk copies move multiples of 16 bytes; up to 15 bytes at either end may lie out of bounds (9.7.10.28.4.1)."""
    most = 2**20 - 16
    for name, index, value in _constants(match, operands):
        if name == "size" and (value % 16 or not 0 <= value <= most):
            problem = f"size {value} is not a multiple of 16 between 0 and {most}"
            yield RuleProblem(problem, index, _multiple(value, 16, 0, most))
        if name in ("left", "right") and not 0 <= value <= 15:
            yield RuleProblem(f"{value} bytes cannot be ignored at one end", index, "write 0 to 15")


@rule
def tensor_overrides(match: Match, operands: Sequence[Operand]) -> Iterator[RuleProblem]:
    """A tensor of one dimension has no strides to override, the others have (9.7.10.28.5.2.2).

    ptxas takes no other constant coordinates than zero beside overridden extents, except in fabric operations, and no strides
    that are all constants.
    """
    wanted = "override::global_dim" if match["dim"] == "1d" else "override::global_dim_stride"
    if match["attribute"] != wanted:
        yield RuleProblem(f"a {match['dim']} tensor cannot have .{match['attribute']}", None, f"write .{wanted}")
    for slot, (index, operand) in zip(match.operands, enumerate(operands), strict=False):
        if not isinstance(operand, AddressOperand) or len(operand.inner) != len(slot.inner):
            continue
        for part, given in zip(slot.inner, operand.inner, strict=True):
            elements = given.elements if isinstance(given, VectorOperand) else ()
            constants = [e for e in elements if isinstance(e, Immediate)]
            if part.name == "c" and match.row.opcode == "cp" and (other := [e for e in constants if e.value != 0]):
                hint = "move the address to the box and write zeros, or put the coordinates in registers"
                yield RuleProblem(f"constant coordinate {other[0].text} beside overridden extents is not 0", index, hint)
            if part.name == "l" and constants and len(constants) == len(elements):
                hint = "put one of them in a register"
                yield RuleProblem("the overridden strides are all constants", index, hint)


@rule
def fabric_order(match: Match, operands: Sequence[Operand]) -> Iterator[RuleProblem]:
    """`.relaxed` of a fabric operation wants its scope (9.7.11.5)."""
    if match["relaxed"] and not match["sys"]:
        yield RuleProblem(f"`{match.mnemonic}` has .relaxed without a scope", None, "write .relaxed.sys")


@rule
def source_size(match: Match, operands: Sequence[Operand]) -> Iterator[RuleProblem]:
    """`cp.async` reads at most as many bytes as it writes (9.7.10.28.3.1)."""
    constants = {name: (index, value) for name, index, value in _constants(match, operands)}
    if "size" in constants and "n" in constants:
        (index, value), (_, most) = constants["size"], constants["n"]
        if not 0 <= value <= most:
            yield RuleProblem(f"source size {value} exceeds the copy size {most}", index, f"write 0 to {most}")


@rule
def tensor_columns(match: Match, operands: Sequence[Operand]) -> Iterator[RuleProblem]:
    """Tensor memory is allocated in powers of two from 32 to 512 columns, exclusively in multiples of 32 (9.7.18.7.1)."""
    for name, index, value in _constants(match, operands):
        if name != "columns":
            continue
        if ".exclusive" in match.mnemonic:
            if value < 1 or value % 32:
                yield RuleProblem(f"{value} columns cannot be allocated", index, "write a multiple of 32")
        elif value not in (32, 64, 128, 256, 512):
            yield RuleProblem(f"{value} columns cannot be allocated", index, "write 32, 64, 128, 256 or 512")


@rule
def cta_mask(match: Match, operands: Sequence[Operand]) -> Iterator[RuleProblem]:
    """A constant mask of the CTAs that receive a multicast has a bit for each of 16, or of 32 (9.7.10.28.4.1)."""
    if "multicast::cluster" not in match.mnemonic:
        return
    bits = 32 if "multicast::cluster::32b" in match.mnemonic else 16
    for name, index, value in _constants(match, operands):
        if name == "mask" and not 0 <= value < 1 << bits:
            yield RuleProblem(f"{value} is no mask of {bits} CTAs", index, f"write 0 to {(1 << bits) - 1:#x}")


@rule
def whether(match: Match, operands: Sequence[Operand]) -> Iterator[RuleProblem]:
    """A constant that says whether `wgmma` adds to its accumulators is 0 or 1 (9.7.17.5.2)."""
    for name, index, value in _constants(match, operands):
        if name == "scale" and value not in (0, 1):
            yield RuleProblem(f"{value} is neither 0 nor 1", index, "write 1 to add to the accumulators, 0 to overwrite them")


@rule
def multiple_of_8(match: Match, operands: Sequence[Operand]) -> Iterator[RuleProblem]:
    """`setmaxnreg` counts registers in eights (9.7.21.5)."""
    for _, index, value in _constants(match, operands):
        if value % 8:
            yield RuleProblem(f"register count {value} is not a multiple of 8", index, _multiple(value, 8, 24, 256))


@rule
def no_sink(match: Match, operands: Sequence[Operand]) -> Iterator[RuleProblem]:
    """`tcgen05.ld` writes every register of its vector (ptxas: no result discard)."""
    for index, operand in enumerate(operands):
        if isinstance(operand, VectorOperand) and any(isinstance(e, Name) and e.name == "_" for e in operand.elements):
            yield RuleProblem("a loaded register cannot be discarded with _", index, "name a register for every element")


@rule
def scale_selectors(match: Match, operands: Sequence[Operand]) -> Iterator[RuleProblem]:
    """Which bytes of which threads hold the scale factors of a block-scaled `mma`: constants in range (9.7.16.3)."""
    if "kind::mxf8f6f4" in match.mnemonic:
        bytes_ = (0, 1, 2, 3)
    else:
        bytes_ = (0,) if "scale_vec::4X" in match.mnemonic else (0, 2)
    for slot, (index, operand) in zip(match.operands, enumerate(operands), strict=False):
        if slot.name not in ("ida", "idb") or not isinstance(operand, VectorOperand):
            continue
        threads = (0, 1) if slot.name == "ida" else (0, 1, 2, 3)
        for what, element, allowed in zip(("byte", "thread"), operand.elements, (bytes_, threads), strict=False):
            if isinstance(element, Immediate) and element.value not in allowed:
                hint = f"write {' or '.join(map(str, allowed))}"
                yield RuleProblem(f"{element.text} is no {what} that holds scale factors here", index, hint)


@rule
def kept_result(match: Match, operands: Sequence[Operand]) -> Iterator[RuleProblem]:
    """`shfl` always writes the value it passes on (9.7.10.6)."""
    first = operands[0].first if isinstance(operands[0], PairOperand) else operands[0]
    if isinstance(first, Name) and first.name == "_":
        yield RuleProblem(f"the result of `{match.mnemonic}` may not be dropped with _", 0, "name a register for it")


@rule
def sparse_span(match: Match, operands: Sequence[Operand]) -> Iterator[RuleProblem]:
    """`spdecompress` writes between 32 and 4096 bits (9.7.10.31)."""
    bits = int(str(match["num"])[1:]) * int(str(match["ratio"]).rpartition(":")[2]) * int(str(match["element"])[1:])
    if not 32 <= bits <= 4096:
        yield RuleProblem(f"{match.mnemonic} writes {bits} bits, and 32 to 4096 are possible")
