"""tcgen05.mma: D = A·B (+ D) between shared and tensor memory (PTX ISA 9.7.18.10)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from warpsmith.base.arch import parse_arch
from warpsmith.simulator.block_scaled import Scaled, scaled_product, sparse_scaled_product
from warpsmith.simulator.data_path import Part, parts_of
from warpsmith.simulator.multiply import multiply
from warpsmith.simulator.operand_tiles import Operand, from_bytes, read
from warpsmith.simulator.scale_factors import byte_values
from warpsmith.simulator.sparse import sparse_product
from warpsmith.simulator.tensor_sparsity import codes_of, columns_of, meaningful, metadata_columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.base.instruction_descriptor import InstructionDescriptor
    from warpsmith.simulator.machine import Machine
    from warpsmith.simulator.tensor_memory import TensorMemory

    Flags = NDArray[np.bool_] | None

__all__ = ["Product"]

_A_WORDS = 8
"""Columns of an A in tensor memory: 32 bytes of each row."""


@final
@dataclass(frozen=True, slots=True)
class Product:
    """One product in flight. `rows` are the CTAs: one, or the even and the odd one of a pair."""

    memory: TensorMemory
    rows: tuple[int, ...]
    how: InstructionDescriptor
    d: int
    """Address of D."""
    a: int
    """Descriptor of A, or its address."""
    a_in_tensor_memory: bool
    b: int
    accumulate: bool
    scale: int
    """D is multiplied with 2^-scale first."""
    ws: bool
    skipped: tuple[int, ...]
    """Words of the mask of lanes that keep their values; empty: none do."""
    factors: tuple[int, int] | None = None
    """Addresses of the scale factors of A and B."""
    count: int = 0
    """Scale factors of a row."""
    metadata: int | None = None
    """Address of the metadata of a sparse A."""

    @property
    def pair(self) -> bool:
        """Whether two CTAs work together."""
        return len(self.rows) == 2

    @property
    def metadata_column(self) -> int:
        """First column of the metadata: of 16-bit and tf32 elements the selector says which of two neighbours."""
        return (self.metadata or 0) + self.how.selector & 0xFFFF

    @property
    def operand_a(self) -> Operand:
        """A as each CTA holds it."""
        k = self.how.k // (2 if self.how.sparse else 1)
        return Operand(self.how.a, self.how.m // len(self.rows), k, self.how.a_mn_major, self.how.packed)

    @property
    def operand_b(self) -> Operand:
        """B as each CTA holds it: of a pair, the even one has the first half of the columns."""
        return Operand(self.how.b, self.how.n // len(self.rows), self.how.k, self.how.b_mn_major, self.how.packed)

    def parts(self) -> tuple[Part, ...] | None:
        """Return where D stands; None: nowhere."""
        return parts_of(
            self.how.m, self.how.n, pair=self.pair, ws=self.ws, sparse=self.how.sparse, lane=self.d >> 16
        )  # fmt: skip

    # --- carrying out -----------------------------------------------------------------------------------------------

    def complete(self, machine: Machine) -> None:
        """Read the operands, multiply, and write D."""
        parts = self.parts()
        assert parts is not None
        read_b = [read(machine, row, self.b, self.operand_b) for row in self.rows]
        b = np.concatenate([v for v, _ in read_b])
        bad_b = _joined([f for _, f in read_b], self.operand_b.mn)
        left: list[tuple[NDArray[Any], Flags]] = []
        if not self.a_in_tensor_memory:
            left = [read(machine, row, self.a, self.operand_a) for row in self.rows]
        self._note(machine)
        for part in parts:
            if self.a_in_tensor_memory:
                a, bad_a = self._from_tensor_memory(part)
            else:
                whole, flags = left[part.cta]
                at = part.row - part.cta * self.operand_a.mn
                rows = slice(at, at + len(part.lanes))
                a, bad_a = whole[rows], None if flags is None else flags[rows]
            columns = slice(part.n0, part.n1)
            bad = None if bad_b is None else bad_b[columns]
            self._part(machine, part, a, bad_a, b[columns], bad)

    def _note(self, machine: Machine) -> None:
        number, how_sparse = parse_arch(machine.device.arch).number, self.how.sparse
        outside = [
            w
            for w, yes in ((".sp", how_sparse), (".ws", self.ws), (".cta_group::2", self.pair), (f"sm_{number}", number != 100))
            if yes
        ]
        if outside and self.how.kind != "i8":
            machine.fidelity.note(
                f"tcgen05.mma {', '.join(outside)}", "published model",
                "the model was tested on dense products of sm_100, without .ws and of one CTA; it is taken to hold here too",
            )  # fmt: skip

    def _from_tensor_memory(self, part: Part) -> tuple[NDArray[Any], Flags]:
        sm = self.memory.multiprocessor(self.rows[part.cta])
        column = self.a & 0xFFFF
        where = (sm, part.lanes, slice(column, column + _A_WORDS))
        data = np.ascontiguousarray(self.memory.words[where]).view(np.uint8)
        flags: Any = None if self.memory.undefined is None else self.memory.undefined[where].any(axis=1)
        return from_bytes(data, self.operand_a), flags

    def _where(self, part: Part) -> tuple[int, NDArray[np.intp], slice]:
        column = self.d & 0xFFFF
        return (
            self.memory.multiprocessor(self.rows[part.cta]), part.lanes, slice(column, column + part.n1 - part.n0)
        )  # fmt: skip

    def _part(
        self, machine: Machine, part: Part, a: NDArray[Any], bad_a: Flags, b: NDArray[Any], bad_b: Flags
    ) -> None:  # fmt: skip
        how, where = self.how, self._where(part)
        words = self.memory.words[where]
        c = self._accumulator(words) if self.accumulate else None
        a, b = -a if how.negate_a else a, -b if how.negate_b else b
        kept_of = self._kept_of(machine, part)
        third = None if c is None else c[None]
        types = (how.d, how.a, how.b, how.d)
        if self.factors is not None:
            d = self._scaled(machine, part, a, b, c, kept_of)
        elif kept_of is not None:
            d = sparse_product(machine, a[None], b.T[None], third, types, kept_of[None], saturate=how.saturate)[0]
        else:
            d = multiply(machine, a[None], b.T[None], third, types, saturate=how.saturate)[0]
        out = d.astype(np.float16).view(np.uint16).astype(np.uint32) if how.d == "f16" else d.view(np.uint32)
        undefined = None
        if self.memory.undefined is not None:
            undefined = self.memory.undefined[where] if self.accumulate else np.zeros(out.shape, np.bool_)
            for flags, deep in ((bad_a, (slice(None), None)), (bad_b, (None, slice(None)))):
                if flags is not None:
                    undefined = undefined | flags[deep]
        kept = self._kept(part)
        if kept is not None:
            out = np.where(kept[:, None], words, out)
        self.memory.words[where] = out
        if undefined is not None and self.memory.undefined is not None:
            if kept is not None:
                undefined = np.where(kept[:, None], self.memory.undefined[where], undefined)
            self.memory.undefined[where] = undefined

    def _kept_of(self, machine: Machine, part: Part) -> NDArray[np.intp] | None:
        """Return the column of each stored element of a sparse A, from the metadata in the part's own lanes."""
        if self.metadata is None:
            return None
        sm, column = self.memory.multiprocessor(self.rows[part.cta]), self.metadata_column
        words = self.memory.words[sm, part.lanes, column : column + metadata_columns(self.how.a)]
        codes = codes_of(words, self.how.a)
        if not meaningful(codes, self.how.a):
            machine.fidelity.note(
                f"metadata of sparse {self.how.a} operands", "not modelled",
                "metadata that the manual calls undefined were used; each stored element met the element of B they name",
            )  # fmt: skip
        return columns_of(codes, self.how.a, packed=self.how.packed)

    def _accumulator(self, words: NDArray[np.uint32]) -> NDArray[Any]:
        if self.how.d == "s32":
            return words.view(np.int32)
        half = (words & np.uint32(0xFFFF)).astype(np.uint16).view(np.float16).astype(np.float32)
        c = half if self.how.d == "f16" else np.ascontiguousarray(words).view(np.float32)
        return np.ldexp(c, -self.scale).astype(np.float32) if self.scale else c

    def _kept(self, part: Part) -> NDArray[np.bool_] | None:
        """Return the lanes of a part whose values stay; None: all change."""
        if not any(self.skipped):
            return None
        words = np.array(self.skipped[4 * part.cta : 4 * part.cta + 4], np.uint32)
        return (words[part.lanes // 32] >> (part.lanes % 32).astype(np.uint32) & 1).astype(np.bool_)

    # --- block scaling ------------------------------------------------------------------------------------------------

    def _scaled(
        self, machine: Machine, part: Part, a: NDArray[Any], b: NDArray[Any], c: NDArray[Any] | None,
        kept: NDArray[np.intp] | None,
    ) -> NDArray[np.float32]:  # fmt: skip
        """Multiply with scale factors: each warp's lanes of the data path have theirs in the same lanes (9.7.18.10.7)."""
        how = self.how
        types = Scaled(how.a, how.b, how.factor, how.packed)
        out = np.zeros((len(a), len(b)), np.float32)
        base = part.row - part.cta * (how.m // len(self.rows))
        third = np.zeros_like(out) if c is None else c
        for start in range(0, len(a), 32):
            rows = slice(start, start + 32)
            quarter = int(part.lanes[start]) // 32
            sa = self._factors(part, quarter, 0, base + start + np.arange(32))
            sb = self._factors(part, quarter, 1, np.arange(part.n1 - part.n0))
            operands = a[None, rows], np.ascontiguousarray(b.T)[None], third[None, rows], sa[None], sb[None], types
            if kept is None:
                out[rows] = scaled_product(machine, *operands)[0]
            else:
                out[rows] = sparse_scaled_product(machine, *operands, kept[None, rows])[0]
        return out

    def factor_columns(self, which: int, rows: int) -> list[tuple[int, int]]:
        """Return the runs of columns (first, behind the last) of the factors of `rows` rows of A (which 0) or columns of B (1).

        Four factors fill a column of 32 rows; those of K = 96 go on behind the columns of all rows, of B of 128 at a time.
        """
        assert self.factors is not None
        column = self.factors[which] & 0xFFFF
        behind = -(-rows // 128) * 4 if which else 4
        groups = -(-((self.how.factor_a, self.how.factor_b)[which] + self.count) // 4)
        return [(at, at - (-rows // 32)) for at in range(column, column + groups * behind, behind)]

    def _factors(self, part: Part, quarter: int, which: int, index: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return factors `[index, count]` of rows of A (which 0) or columns of B (1)."""
        assert self.factors is not None
        first = (self.how.factor_a, self.how.factor_b)[which]
        sm = self.memory.multiprocessor(self.rows[part.cta])
        starts = [run[0] for run in self.factor_columns(which, len(index))]
        at = index[:, None] // 32 + np.array(starts)
        words = np.ascontiguousarray(self.memory.words[sm, (32 * quarter + index % 32)[:, None], at])
        stored = words.view(np.uint8)[:, first : first + self.count]
        return byte_values(self.how.factor)[stored]


def _joined(flags: list[Flags], n: int) -> Flags:
    if all(f is None for f in flags):
        return None
    return np.concatenate([np.zeros(n, np.bool_) if f is None else f for f in flags])
