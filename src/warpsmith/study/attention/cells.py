"""The problems that are measured."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CELLS", "SEQUENCES", "Cell", "cells"]

SEQUENCES = (512, 1024, 2048, 4096, 8192, 16384)
_TOKENS = 16384
_WIDTH = 2048


@dataclass(frozen=True, slots=True)
class Cell:
    """One problem: `batch` sequences of `heads` heads, every head `sequence` queries and keys of `dim` numbers."""

    dim: int
    causal: bool
    batch: int
    heads: int
    sequence: int
    value_dim: int = 0
    """Numbers of a row of V and of the output; 0 for `dim`."""

    @property
    def width(self) -> int:
        """Numbers of a row of V and of the output."""
        return self.value_dim or self.dim

    @property
    def dims(self) -> str:
        """The dimension, or both: `192/128`."""
        return f"{self.dim}/{self.value_dim}" if self.value_dim else str(self.dim)

    @property
    def name(self) -> str:
        """Short and unique, for tables and for resuming."""
        return f"D{self.dims} {'causal' if self.causal else 'full'} B{self.batch} H{self.heads} S{self.sequence}"

    @property
    def work(self) -> float:
        """Floating-point operations of both products; half of them if causal."""
        return 2 * self.batch * self.heads * self.sequence**2 * (self.dim + self.width) / (2 if self.causal else 1)

    @property
    def bytes(self) -> int:
        """Bytes of Q, K, V and O at 16 bits."""
        return 4 * self.batch * self.heads * self.sequence * (self.dim + self.width)


def cells() -> list[Cell]:
    """Return full waves (16,384 tokens, heads times dimension 2,048) of every length, and the small launch B=1, H=8, S=4096."""
    out: list[Cell] = []
    for dim in (64, 128):
        for causal in (False, True):
            out.append(Cell(dim, causal, 1, 8, 4096))
            out += [Cell(dim, causal, _TOKENS // s, _WIDTH // dim, s) for s in SEQUENCES]
    return out


def _other_dims() -> list[Cell]:
    """Return full waves of the head dimensions 96, 192 with values of 128, and 256."""
    return [
        Cell(dim, causal, _TOKENS // s, _WIDTH // dim, s, value_dim)
        for dim, value_dim in ((96, 0), (192, 128), (256, 0))
        for causal in (False, True)
        for s in (1024, 4096, 16384)
    ]


def _packed() -> list[Cell]:
    """Return cells that are measured as a batch and as the same sequences packed."""
    return [c for c in cells() if c.sequence in (512, 2048, 8192)]


CELLS = {"main": cells, "dims": _other_dims, "packed": _packed}
"""The sets of cells by name: `cells`, other head dimensions, and those that are also measured packed."""
