"""How fine the shadow of a space has to be, read off the instructions of a program.

A race needs a write. A cell that no write touches in part is as good as its bytes: whoever reads some of them meets every
write of any of them. So where the readers of a cell are all kept (shared memory), cells are as large as the smallest write;
in global memory, where two are kept, as the smallest access. At most 16 bytes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from warpsmith.simulator.check.sites import operations_of
from warpsmith.simulator.program import Const, Vector

if TYPE_CHECKING:
    from collections.abc import Callable

    from warpsmith.simulator.program import Operation, Program

__all__ = ["LARGEST", "smallest_access", "smallest_write"]

LARGEST = 16
_WIDTH = re.compile(r"(?:\.v([248]))?\.(?:[bsuf]|bf)(\d+)(?:x(2))?$")
_FRAGMENTS = {"f16": 2, "f32": 4, "s32": 4, "f64": 8}


def smallest_access(program: Program, space: str) -> int:
    """Return the smallest access that instructions which may touch a space make, as far as their names tell."""
    plain = (op for op in operations_of(program) if op.opcode in ("ld", "ldu", "st", "atom", "red"))
    return min((_plain(op) or LARGEST for op in plain if _may_touch(op, space)), default=LARGEST)


def smallest_write(program: Program) -> int:
    """Return the smallest piece that a program may write of shared memory at once."""
    return min((_written(op) for op in operations_of(program)), default=LARGEST)


def _written(op: Operation) -> int:
    """Return the smallest piece of shared memory that an instruction may write; `LARGEST` if none."""
    writes = _WRITES.get(op.opcode)
    return LARGEST if writes is None else min(LARGEST, writes(op, op.text.split(".")))


def _stored(op: Operation, _: list[str]) -> int:
    if not _may_touch(op, "shared"):
        return LARGEST
    return _plain(op) or 1


def _matrix(_: Operation, words: list[str]) -> int:
    """Return what a lane holds of a row, or of a column: stores of matrices are judged by that."""
    return 1 if "b8" in words else 2 if "trans" in words else 4


def _fragment(_: Operation, words: list[str]) -> int:
    return _FRAGMENTS.get(words[-1], 1) if words[1] == "store" else LARGEST


def _copy(op: Operation, words: list[str]) -> int:
    if words[2] not in ("ca", "cg"):  # bulk copies come in units of 16 bytes
        return LARGEST
    size = op.operands[2]
    return int(size.value) if isinstance(size, Const) else 4


def _allocation(_: Operation, words: list[str]) -> int:
    return 4 if words[1] == "alloc" else LARGEST


_WRITES: dict[str, Callable[[Operation, list[str]], int]] = {
    "st": _stored, "atom": _stored, "red": _stored, "stmatrix": _matrix, "wmma": _fragment, "cp": _copy, "tcgen05": _allocation,
}  # fmt: skip
"""Opcodes that may write shared memory in pieces of less than 16 bytes that the checker follows (an mbarrier is none)."""


def _may_touch(op: Operation, space: str) -> bool:
    spaces = {word.partition("::")[0] for word in op.text.split(".")} & {"shared", "global", "local", "param", "const"}
    return not spaces or space in spaces


def _plain(op: Operation) -> int | None:
    """Return the bytes of one access of a load, store or atomic operation; None where its name does not tell."""
    found = _WIDTH.search(op.text)
    if found is None:
        return None
    alone = op.opcode in ("atom", "red") or _has_gaps(op)  # elements of vectors one by one
    together = 1 if alone else int(found[1] or 1)
    return max(1, together * int(found[2]) * int(found[3] or 1) // 8)


def _has_gaps(op: Operation) -> bool:
    """Say whether a store leaves out elements of its vector (`_`)."""
    return op.opcode == "st" and any(isinstance(o, Vector) and None in o.items for o in op.operands)
