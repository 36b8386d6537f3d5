"""Insert and remove instructions of sm_90a code, moving what is relative to the program counter: for checks of `cubin`.

Fields: BRA, split displacement {81:34, 23:16} in units of 4 bytes from the next instruction; BSSY, bits 63:32 in bytes;
CALL.REL as BRA; BRX as BRA, for the usual case that the register holds an offset in the function and the displacement takes the
program counter away again. RET.REL, JMX and LEPC are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.base.errors import CapabilityError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["BRA", "NOP", "opcode", "rewritten", "words"]

NOP = (0x7918).to_bytes(8, "little") + (0x000FC00000000000).to_bytes(8, "little")
BRA, BSSY, CALL_REL, BRX = 0x947, 0x945, 0x944, 0x949
_REFUSED = {0x950: "RET.REL", 0x94C: "JMX", 0x34E: "LEPC"}
_HIGH, _LOW = (1 << 48) - 1, 0xFF


def words(code: bytes) -> list[int]:
    """Return the instructions as numbers of 128 bits."""
    return [int.from_bytes(code[i : i + 16], "little") for i in range(0, len(code), 16)]


def opcode(word: int) -> int:
    """Return bits 11:0."""
    return word & 0xFFF


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


def _target(word: int, at: int) -> int | None:
    """Return the byte offset that a relative instruction at `at` refers to, or None."""
    if opcode(word) in _REFUSED:
        raise CapabilityError(f"{_REFUSED[opcode(word)]} at {at:#x} is not modelled")
    if opcode(word) in (BRA, CALL_REL, BRX):
        return at + 16 + 4 * _signed((word >> 34 & _HIGH) << 8 | word >> 16 & _LOW, 56)
    if opcode(word) == BSSY:
        return at + 16 + _signed(word >> 32 & 0xFFFFFFFF, 32)
    return None


def _retargeted(word: int, at: int, to: int) -> int:
    delta = to - at - 16
    if opcode(word) == BSSY:
        return word & ~(0xFFFFFFFF << 32) | (delta & 0xFFFFFFFF) << 32
    field = delta // 4 & (1 << 56) - 1
    return word & ~(_HIGH << 34) & ~(_LOW << 16) | (field >> 8) << 34 | (field & _LOW) << 16


def rewritten(code: bytes, moved: Callable[[int], int | None], size: int) -> bytes:
    """Return code of `size` bytes with the instructions of `code` where `moved` puts them, NOPs elsewhere, branches moved."""
    out = bytearray(NOP * (size // 16))
    for i, word in enumerate(words(code)):
        if (new := moved(16 * i)) is None:
            continue
        goal = _target(word, 16 * i)
        if opcode(word) == BRX:
            if goal != 0:
                raise CapabilityError(f"BRX at {16 * i:#x} does not take the program counter away")
            word = _retargeted(word, new, 0)
        elif goal is not None and 0 <= goal < len(code):
            if (to := moved(goal)) is None:
                raise CapabilityError(f"the branch at {16 * i:#x} goes to {goal:#x}, which is gone")
            word = _retargeted(word, new, to)
        out[new : new + 16] = word.to_bytes(16, "little")
    return bytes(out)
