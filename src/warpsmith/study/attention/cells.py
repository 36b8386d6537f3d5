"""The problems that are measured."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SEQUENCES", "Cell", "cells"]

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

    @property
    def name(self) -> str:
        """Short and unique, for tables and for resuming."""
        return f"D{self.dim} {'causal' if self.causal else 'full'} B{self.batch} H{self.heads} S{self.sequence}"

    @property
    def work(self) -> float:
        """Floating-point operations of both products; half of them if causal."""
        return 4 * self.batch * self.heads * self.sequence**2 * self.dim / (2 if self.causal else 1)

    @property
    def bytes(self) -> int:
        """Bytes of Q, K, V and O at 16 bits."""
        return 8 * self.batch * self.heads * self.sequence * self.dim


def cells() -> list[Cell]:
    """Return full waves (16,384 tokens, heads times dimension 2,048) of every length, and the small launch B=1, H=8, S=4096."""
    out: list[Cell] = []
    for dim in (64, 128):
        for causal in (False, True):
            out.append(Cell(dim, causal, 1, 8, 4096))
            out += [Cell(dim, causal, _TOKENS // s, _WIDTH // dim, s) for s in SEQUENCES]
    return out
