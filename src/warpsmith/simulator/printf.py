"""`vprintf`: what C's printf makes of a format and the arguments in a buffer (CUDA C++ Programming Guide, "Formatted output").

The arguments lie one after the other, each aligned to its size; a float is passed as a double, a short or char as an int.
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, final

from warpsmith.base.errors import CapabilityError
from warpsmith.base.printf_format import SIZES, SPEC

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Buffer", "formatted"]

WIDEST = 1 << 16
"""Most characters of one value: a GPU's buffer for the text has 1 MiB by default."""
_NARROW = {"hh": 8, "h": 16}
"""Length modifier → bits of the int that count."""


@final
class Buffer:
    """The arguments of one thread's call, taken in order; `read(at, size)` gives bytes of the buffer."""

    def __init__(self, read: Callable[[int, int], bytes]) -> None:
        self._read = read
        self._at = 0
        self.taken = 0

    def take(self, size: int) -> bytes:
        """Return the next argument of `size` bytes."""
        start = -(-self._at // size) * size
        self._at = start + size
        self.taken += 1
        return self._read(start, size)

    def integer(self, size: int, *, signed: bool) -> int:
        """Return the next argument as an integer."""
        return int.from_bytes(self.take(size), "little", signed=signed)


def formatted(text: str, buffer: Buffer, string: Callable[[int], str]) -> str:
    """Return what is printed; `string` reads the C string at a generic address."""

    def one(m: re.Match[str]) -> str:
        flags, width, precision, length, kind = m.groups()
        if kind == "%":
            return "%"
        if width == "*":
            given = buffer.integer(4, signed=True)
            flags, width = (flags + "-", str(-given)) if given < 0 else (flags, str(given))
        if precision == "*":
            given = buffer.integer(4, signed=True)
            precision = str(given) if given >= 0 else None
        digits = None if precision is None else int(precision or 0)
        if max(int(width or 0), digits or 0) > WIDEST:
            raise CapabilityError(f"simulator: printf of more than {WIDEST} characters for one value: {m[0]!r:.60} asks for it")
        if kind in "fFeEgGaA":
            body, padded = _floating(buffer, flags, digits, kind)
        elif kind in "cs":
            body, padded = _character(buffer, digits, kind, string), False
        else:
            body, padded = _integer(buffer, flags, digits, length or "", kind), digits is None
        return _fill(body, flags, int(width or 0), zeros=padded)

    return SPEC.sub(one, text)


def _fill(body: str, flags: str, width: int, *, zeros: bool) -> str:
    """Pad to a width: at the right for `-`, with zeros behind sign and 0x for `0`."""
    missing = width - len(body)
    if missing <= 0:
        return body
    if "-" in flags:
        return body + " " * missing
    if "0" in flags and zeros:
        head = re.match(r"[-+ ]?(0[xX])?", body)
        at = head.end() if head else 0
        return body[:at] + "0" * missing + body[at:]
    return " " * missing + body


def _sign(flags: str, *, negative: bool) -> str:
    return "-" if negative else "+" if "+" in flags else " " if " " in flags else ""


def _integer(buffer: Buffer, flags: str, digits: int | None, length: str, kind: str) -> str:
    if kind == "p":
        value = buffer.integer(8, signed=False)
        return f"{value:#x}" if value else "(nil)"
    value = buffer.integer(SIZES.get(length, 4), signed=kind in "di")
    if bits := _NARROW.get(length):
        value &= (1 << bits) - 1
        value -= (value >> (bits - 1) << bits) if kind in "di" else 0
    text = format(abs(value), {"o": "o", "x": "x", "X": "X"}.get(kind, "d"))
    text = "" if digits == 0 and value == 0 else text.rjust(digits or 0, "0")
    if "#" in flags and kind == "o" and not text.startswith("0"):
        text = "0" + text
    if "#" in flags and kind in "xX" and value:
        text = "0" + kind + text
    return (_sign(flags, negative=value < 0) if kind in "di" else "") + text


def _character(buffer: Buffer, digits: int | None, kind: str, string: Callable[[int], str]) -> str:
    if kind == "c":
        return chr(buffer.integer(4, signed=False) & 0xFF)
    address = buffer.integer(8, signed=False)
    text = string(address) if address else "(null)"
    return text if digits is None else text[:digits]


def _floating(buffer: Buffer, flags: str, digits: int | None, kind: str) -> tuple[str, bool]:
    """Return the text, and whether zeros may pad it: not infinity and NaN."""
    bits = buffer.integer(8, signed=False)
    negative, value = bool(bits >> 63), struct.unpack("<d", struct.pack("<Q", bits & ~(1 << 63)))[0]
    finite = value - value == 0
    if not finite:
        text = "inf" if value == value else "nan"
        text = text.upper() if kind.isupper() else text
    elif kind in "aA":
        text = _hexadecimal(bits & ~(1 << 63), digits, point="#" in flags)
        text = text.upper() if kind == "A" else text
    else:
        text = f"%{'#' if '#' in flags else ''}.{6 if digits is None else digits}{kind}" % value
    return _sign(flags, negative=negative) + text, finite


def _hexadecimal(bits: int, digits: int | None, *, point: bool) -> str:
    """Return a double without its sign as %a does: as many digits as it needs, or rounded to `digits`."""
    exponent, fraction = bits >> 52, bits & ((1 << 52) - 1)
    whole = (fraction | 1 << 52) if exponent else fraction
    power = (exponent or 1) - 1023 if bits else 0
    if digits is not None and digits < 13:
        drop = 52 - 4 * digits
        rest, half = whole & ((1 << drop) - 1), 1 << (drop - 1)
        whole = (whole >> drop) + (rest > half or (rest == half and whole >> drop & 1))
        whole <<= drop
    text = f"{whole & ((1 << 52) - 1):013x}"
    text = text.rstrip("0") if digits is None else text[:digits].ljust(digits, "0")
    return f"0x{whole >> 52}{'.' if text or point else ''}{text}p{power:+d}"
