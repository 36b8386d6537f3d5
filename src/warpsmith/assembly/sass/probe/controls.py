"""Find which control bits the disassembler accepts with each form."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from warpsmith.assembly.sass.control import CONTROL_MASK

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warpsmith.assembly.sass.probe.oracle import Oracle
    from warpsmith.assembly.sass.row import Row

__all__ = ["study_controls"]

_BARRIERS = 0x3F << 110
_QUIET = 7 << 110 | 7 << 113


def study_controls(oracle: Oracle, rows: Sequence[Row]) -> dict[str, int]:
    """Add to each row's notes which control bits it takes; return the issue tables by name.

    `issue=NAME` names a 256-bit number whose bit `reuse << 5 | yield_bit << 4 | stall` says that these go
    together; `write` and `read` are
    the scoreboard numbers accepted besides 7, as a mask (`write=0x3f`).
    """
    words = [int(r.notes["default"], 0) & ~CONTROL_MASK | _QUIET for r in rows]
    names = oracle.classes(words)
    first: dict[str, int] = {}
    for word, answer in zip(words, names, strict=True):
        if answer:
            first.setdefault(answer[1], word)
    trials = [(name, k, word | (k & 31) << 105 | (k >> 5) << 122) for name, word in first.items() for k in range(256)]
    legal: dict[str, int] = dict.fromkeys(first, 0)
    for (name, k, _), text in zip(trials, oracle.texts([w for _, _, w in trials]), strict=True):
        legal[name] |= (text is not None) << k
    same = {value: f"{zlib.crc32(value.to_bytes(32, 'little')):08x}" for value in sorted(set(legal.values()))}
    plain = 1 << 105 | 1 << 109
    asked = [
        (n, low, k, word & ~_BARRIERS | _QUIET & ~(7 << low) | k << low | plain)
        for n, word in enumerate(words)
        for low in (110, 113)
        for k in range(7)
    ]
    masks = [[0, 0] for _ in rows]
    for (n, low, k, _), text in zip(asked, oracle.texts([w for *_, w in asked]), strict=True):
        masks[n][low == 113] |= (text is not None) << k
    for row, answer, (write, read) in zip(rows, names, masks, strict=True):
        if answer:
            row.notes["issue"] = same[legal[answer[1]]]
            row.notes["issues"] = f"{legal[answer[1]]:#x}"
        row.notes["write"], row.notes["read"] = f"{write:#x}", f"{read:#x}"
    return {name: value for value, name in same.items()}
