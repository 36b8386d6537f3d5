"""Sparse operands, element by element: A and its stored half, and metadata registers as the manual draws them."""

from __future__ import annotations

from itertools import combinations

import numpy as np

__all__ = ["compress", "metadata_registers"]

PAIRS = list(combinations(range(4), 2))


def compress(rng: np.random.Generator, dense: np.ndarray, type_: str) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Choose what each row keeps; return (A with the rest zeroed, the stored half, the metadata of each row as an integer)."""
    rows, depth = dense.shape
    kept, stored, metadata = np.zeros_like(dense), np.zeros((rows, depth // 2), dense.dtype), []
    for row in range(rows):
        word, at, bit = 0, 0, 0
        step = {"tf32": 2, "s4": 8, "u4": 8}.get(type_, 4)
        for start in range(0, depth, step):
            if type_ == "tf32":
                second = int(rng.integers(2))
                chosen, code = [start + second], 0b1110 if second else 0b0100
            else:
                low, high = PAIRS[int(rng.integers(len(PAIRS)))]
                code = low | high << 2
                chosen = [start + low, start + high]
                if step == 8:
                    chosen = [start + 2 * low, start + 2 * low + 1, start + 2 * high, start + 2 * high + 1]
            word |= code << bit
            bit += 4
            for column in chosen:
                kept[row, column] = dense[row, column]
                stored[row, at] = dense[row, column]
                at += 1
        metadata.append(word)
    return kept, stored, metadata


def metadata_registers(rng: np.random.Generator, rows: list[int], bits: int, width: int, selector: int) -> np.ndarray:
    """The 32 registers of a warp that give 16 rows their `bits` of metadata each; other lanes hold noise."""
    out = [int(v) for v in rng.integers(0, 1 << 32, 32)]
    for group in range(8):
        top, bottom = rows[group], rows[group + 8]
        if bits == 16:
            out[4 * group + selector] = top | bottom << 16
        elif bits == 32 and width >= 16:
            for k in (0, 1):  # columns of the first half, of the second half
                out[4 * group + 2 * selector + k] = (top >> 16 * k & 0xFFFF) | (bottom >> 16 * k & 0xFFFF) << 16
        elif bits == 32:
            out[4 * group + 2 * selector] = top
            out[4 * group + 2 * selector + 1] = bottom
        else:
            for k in (0, 1):
                out[4 * group + 2 * k] = top >> 32 * k & 0xFFFFFFFF
                out[4 * group + 2 * k + 1] = bottom >> 32 * k & 0xFFFFFFFF
    return np.array(out, np.uint32)
