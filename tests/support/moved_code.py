"""Insert and remove instructions of sm_90a code, moving what is relative to the program counter: for tests of `cubin` alone.

Fields: BRA, split displacement {81:34, 23:16} in units of 4 bytes from the next instruction; BSSY, bits 63:32 in bytes;
CALL.REL and RET.REL as BRA; indirect branches (BRX, JMX) and LEPC are refused.
"""

NOP = (0x7918).to_bytes(8, "little") + (0x000FC00000000000).to_bytes(8, "little")
BRA, BSSY, CALL_REL, RET_REL = 0x947, 0x945, 0x944, 0x950
REFUSED = {0x949: "BRX", 0x94C: "JMX", 0x34E: "LEPC", 0x958: "BRXU"}
_MASK48, _MASK8 = (1 << 48) - 1, 0xFF


def words(code):
    return [int.from_bytes(code[i : i + 16], "little") for i in range(0, len(code), 16)]


def opcode(word):
    return word & 0xFFF


def _signed(value, bits):
    return value - (1 << bits) if value >> (bits - 1) else value


def target(word, at):
    """The byte offset a relative instruction refers to, or None."""
    if opcode(word) in REFUSED:
        raise ValueError(f"{REFUSED[opcode(word)]} at {at:#x}")
    if opcode(word) in (BRA, CALL_REL):
        return at + 16 + 4 * _signed((word >> 34 & _MASK48) << 8 | word >> 16 & _MASK8, 56)
    if opcode(word) == BSSY:
        return at + 16 + _signed(word >> 32 & 0xFFFFFFFF, 32)
    return None


def retarget(word, at, to):
    delta = to - at - 16
    if opcode(word) == BSSY:
        return word & ~(0xFFFFFFFF << 32) | (delta & 0xFFFFFFFF) << 32
    field = delta // 4 & (1 << 56) - 1
    return word & ~(_MASK48 << 34) & ~(_MASK8 << 16) | (field >> 8) << 34 | (field & _MASK8) << 16


def rewritten(code, moved, size):
    """Return code of `size` bytes with the instructions of `code` where `moved` puts them, NOPs elsewhere, branches moved."""
    out = bytearray(NOP * (size // 16))
    for i, word in enumerate(words(code)):
        new = moved(16 * i)
        if new is None:
            continue
        goal = target(word, 16 * i)
        if goal is not None and 0 <= goal < len(code):
            word = retarget(word, new, moved(goal))
        out[new : new + 16] = word.to_bytes(16, "little")
    return bytes(out)
