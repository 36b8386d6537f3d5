"""Scalar instructions on Python integers and fractions: one value at a time, exact, then rounded once.

Written from the manual, apart from the code it judges: no numpy, no float arithmetic.
"""

from __future__ import annotations

import math
from fractions import Fraction

# name -> exponent bits, mantissa bits
SHAPES = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "f64": (11, 52)}
CANONICAL = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFFFFFF}
FLOATS = tuple(SHAPES)


class Value:
    """A decoded float: kind 'nan', 'inf' or 'finite'; sign; magnitude."""

    def __init__(self, kind, negative, size=Fraction(0), code=0):
        self.kind, self.negative, self.size, self.code = kind, negative, size, code

    @property
    def signed(self):
        return -self.size if self.negative else self.size


def decode(code, name):
    e, m = SHAPES[name]
    negative = bool(code >> (e + m) & 1)
    exponent, mantissa = code >> m & ((1 << e) - 1), code & ((1 << m) - 1)
    bias = (1 << (e - 1)) - 1
    if exponent == (1 << e) - 1:
        return Value("nan" if mantissa else "inf", negative, code=code)
    if exponent == 0:
        return Value("finite", negative, Fraction(mantissa) * Fraction(2) ** (1 - bias - m), code)
    return Value("finite", negative, Fraction(mantissa + (1 << m)) * Fraction(2) ** (exponent - bias - m), code)


def power_below(x):
    """The exponent e with 2^e <= x < 2^(e+1)."""
    e = x.numerator.bit_length() - x.denominator.bit_length()
    return e if Fraction(2) ** e <= x else e - 1


def to_integer(x, negative, mode):
    """Round a magnitude to an integer."""
    whole = x.numerator // x.denominator
    rest = x - whole
    if rest == 0:
        return whole
    up = {
        "rn": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2 == 1),
        "rna": rest >= Fraction(1, 2), "rz": False, "rm": negative, "rp": not negative,
    }[mode]  # fmt: skip
    return whole + up


def infinity(name, negative):
    e, m = SHAPES[name]
    return negative << (e + m) | ((1 << e) - 1) << m


def encode(size, negative, name, mode="rn"):
    """Round a magnitude to a format's code."""
    e, m = SHAPES[name]
    bias = (1 << (e - 1)) - 1
    sign = negative << (e + m)
    if size == 0:
        return sign
    quantum = max(power_below(size), 1 - bias) - m
    units = to_integer(size / Fraction(2) ** quantum, negative, mode)
    value = units * Fraction(2) ** quantum
    if value >= Fraction(2) ** (bias + 1):
        outward = mode in ("rn", "rna") or mode == ("rm" if negative else "rp")
        return infinity(name, negative) - (0 if outward else 1)
    if units < 1 << m:
        return sign | units
    exponent = power_below(value)
    return sign | (exponent + bias) << m | int(value / Fraction(2) ** (exponent - m)) - (1 << m)


def is_subnormal(code, name):
    v = decode(code, name)
    e, _ = SHAPES[name]
    return v.kind == "finite" and 0 < v.size < Fraction(2) ** (2 - (1 << (e - 1)))


def flushed(code, name):
    e, m = SHAPES[name]
    return code & 1 << (e + m) if is_subnormal(code, name) else code


def nan_of(name, values):
    """The NaN of a result. f64: the first NaN operand made quiet, else the default."""
    if name != "f64":
        return CANONICAL[name]
    for v in values:
        if v.kind == "nan":
            return v.code | 1 << 51
    return 0xFFF8000000000000


def fma(a, b, c, name, mode):
    """a * b + c of decoded values; c None for a product."""
    values = [v for v in (a, b, c) if v is not None]
    if any(v.kind == "nan" for v in values):
        return nan_of(name, values)
    product_negative = a.negative != b.negative
    if "inf" in (a.kind, b.kind):
        if (a.kind == "finite" and a.size == 0) or (b.kind == "finite" and b.size == 0):
            return nan_of(name, values)
        if c is not None and c.kind == "inf" and c.negative != product_negative:
            return nan_of(name, values)
        return infinity(name, product_negative)
    if c is None:
        return encode(a.size * b.size, product_negative, name, mode)
    if c.kind == "inf":
        return infinity(name, c.negative)
    product = -a.size * b.size if product_negative else a.size * b.size
    total = product + c.signed
    if total == 0:
        both_zero_alike = product == 0 and product_negative == c.negative
        negative = c.negative if both_zero_alike else mode == "rm"
        return encode(Fraction(0), negative, name, mode)
    return encode(abs(total), total < 0, name, mode)


def add(a, b, name, mode):
    one = Value("finite", False, Fraction(1))
    if b.kind == "nan" and a.kind != "nan":
        return nan_of(name, [b])
    return fma(a, one, b, name, mode)


def negated(v, name):
    e, m = SHAPES[name]
    return Value(v.kind, not v.negative, v.size, v.code ^ 1 << (e + m))


def div(a, b, name, mode):
    if a.kind == "nan" or b.kind == "nan":
        return nan_of(name, [a, b])
    negative = a.negative != b.negative
    zero_a, zero_b = a.kind == "finite" and a.size == 0, b.kind == "finite" and b.size == 0
    if (a.kind == "inf" and b.kind == "inf") or (zero_a and zero_b):
        return nan_of(name, [])
    if a.kind == "inf" or zero_b:
        return infinity(name, negative)
    if b.kind == "inf":
        return encode(Fraction(0), negative, name)
    return encode(a.size / b.size, negative, name, mode)


def sqrt(a, name, mode):
    if a.kind == "nan":
        return nan_of(name, [a])
    if a.kind == "finite" and a.size == 0:
        return encode(Fraction(0), a.negative, name)
    if a.negative:
        return nan_of(name, [])
    if a.kind == "inf":
        return infinity(name, False)
    shift = 2400
    scaled = a.size * Fraction(4) ** shift
    n = scaled.numerator // scaled.denominator
    root = math.isqrt(n)
    exact = root * root == n and scaled.denominator == 1
    return encode(Fraction(2 * root + (not exact), 2) / Fraction(2) ** shift, False, name, mode)


def finish(code, words, name):
    """`.ftz`, `.sat`, `.relu` on a result."""
    if "ftz" in words:
        code = flushed(code, name)
    v = decode(code, name)
    if "sat" in words:
        if v.kind == "nan" or v.negative:
            return 0
        return encode(min(v.size, Fraction(1)) if v.kind == "finite" else Fraction(1), False, name)
    if "relu" in words and v.kind != "nan" and v.negative:
        return 0
    return code


def ordered_key(v):
    if v.kind == "inf":
        return (-2 if v.negative else 2, Fraction(0), 0)
    return (0, v.signed, -1 if v.negative else 0)


def min_max(opcode, codes, words, name):
    e, m = SHAPES[name]
    sign = 1 << (e + m)
    values = [flushed(c, name) if "ftz" in words else c for c in codes]
    signs = 0
    for c in values:
        signs ^= c & sign
    if "abs" in words:
        values = [c & ~sign for c in values]
    decoded = [decode(c, name) for c in values]
    numbers = [v for v in decoded if v.kind != "nan"]
    if not numbers or ("NaN" in words and len(numbers) < len(values)):
        r = nan_of(name, decoded)
    else:
        r = (min if opcode == "min" else max)(numbers, key=ordered_key).code
    return r | signs if "xorsign" in words else r


def float_op(opcode, words, name, codes):
    """An f16, bf16, f32 or f64 operation on codes."""
    mode = next((w for w in words if w in ("rn", "rz", "rm", "rp")), "rn")
    if opcode in ("min", "max"):
        return min_max(opcode, codes, words, name)
    sign = 1 << sum(SHAPES[name])
    if opcode == "copysign":
        return codes[1] & ~sign | codes[0] & sign
    if "ftz" in words:
        codes = [flushed(c, name) for c in codes]
    if opcode in ("abs", "neg"):
        return codes[0] & ~sign if opcode == "abs" else codes[0] ^ sign
    v = [decode(c, name) for c in codes]
    if opcode == "testp":
        return testp(words[0], codes[0], name)
    if opcode == "rcp":
        r = div(Value("finite", False, Fraction(1)), v[0], name, mode)
    elif opcode == "sqrt":
        r = sqrt(v[0], name, mode)
    elif opcode == "div":
        r = div(v[0], v[1], name, mode)
    elif opcode == "add":
        r = add(v[0], v[1], name, mode)
    elif opcode == "sub":
        second = v[1] if v[1].kind == "nan" else negated(v[1], name)
        r = add(v[0], second, name, mode)
    elif opcode == "mul":
        r = fma(v[0], v[1], None, name, mode)
    else:
        r = fma(v[0], v[1], v[2], name, mode)
    return finish(r, words, name)


def testp(op, code, name):
    v = decode(code, name)
    return {
        "finite": v.kind == "finite", "infinite": v.kind == "inf", "number": v.kind != "nan", "notanumber": v.kind == "nan",
        "normal": v.kind == "finite" and v.size != 0 and not is_subnormal(code, name), "subnormal": is_subnormal(code, name),
    }[op]  # fmt: skip


# --- integers --------------------------------------------------------------------------------------------------------


def signed(code, bits):
    return code - (1 << bits) if code >> (bits - 1) & 1 else code


def integer(code, name):
    """The value of a code of an integer type."""
    bits = int(name[1:])
    return signed(code, bits) if name[0] == "s" else code


def clamp(x, name):
    bits = int(name[1:])
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if name[0] == "s" else (0, (1 << bits) - 1)
    return min(max(x, low), high)


def truncated_quotient(a, b):
    q = abs(a) // abs(b)
    return -q if (a < 0) != (b < 0) else q


def integer_op(opcode, words, name, codes):
    """An integer operation on codes; the result modulo the destination's width."""
    bits = int(name[1:])
    v = [integer(c, name) for c in codes]
    sat = "sat" in words
    if opcode in ("mul", "mad"):
        if "wide" in words:
            third = integer(codes[2], f"{name[0]}{2 * bits}") if opcode == "mad" else 0
            return v[0] * v[1] + third & (1 << 2 * bits) - 1
        part = v[0] * v[1] >> bits if "hi" in words else v[0] * v[1]
        if opcode == "mad":
            part = signed(part & (1 << bits) - 1, bits) + v[2] if name[0] == "s" else part + v[2]
        return (clamp(part, name) if sat else part) & (1 << bits) - 1
    if opcode in ("mul24", "mad24"):
        a, b = (signed(c & 0xFFFFFF, 24) if name[0] == "s" else c & 0xFFFFFF for c in codes[:2])
        part = a * b >> 16 if "hi" in words else a * b
        if opcode == "mad24":
            part = integer(part & 0xFFFFFFFF, name) + v[2]
        return (clamp(part, name) if sat else part) & 0xFFFFFFFF
    if opcode in ("div", "rem"):
        if v[1] == 0:
            r = (1 << bits) - 1 if opcode == "div" else v[0]
        else:
            q = truncated_quotient(v[0], v[1])
            r = q if opcode == "div" else v[0] - q * v[1]
        return r & (1 << bits) - 1
    r = {
        "add": lambda: v[0] + v[1], "sub": lambda: v[0] - v[1], "abs": lambda: abs(v[0]), "neg": lambda: -v[0],
        "min": lambda: min(v), "max": lambda: max(v), "sad": lambda: v[2] + abs(v[0] - v[1]),
    }[opcode]()  # fmt: skip
    if sat:
        r = clamp(r, name)
    if "relu" in words:
        r = max(r, 0)
    return r & (1 << bits) - 1


def carry_op(opcode, words, name, codes, carry):
    """An extended-precision operation: (result, carry or borrow out)."""
    bits = int(name[1:])
    mask = (1 << bits) - 1
    kind = opcode.removesuffix("c")
    if kind == "mad":
        a, b = integer(codes[0], name), integer(codes[1], name)
        total = ((a * b >> bits if "hi" in words else a * b) & mask) + codes[2] + carry
    elif kind == "add":
        total = codes[0] + codes[1] + carry
    else:
        total = codes[0] - codes[1] - carry
    return total & mask, not 0 <= total <= mask


def bit_op(opcode, words, name, codes, immediate):
    """Logic, shifts, fields and counts of one register width."""
    bits = 1 if name == "pred" else int(name[1:])
    mask = (1 << bits) - 1
    a = codes[0]
    text = format(a & mask, f"0{bits}b")
    value = integer(a, name) if name != "pred" else a
    if opcode in ("and", "or", "xor"):
        return {"and": a & codes[1], "or": a | codes[1], "xor": a ^ codes[1]}[opcode]
    if opcode == "shl":
        return a << min(codes[1], 64) & mask
    if opcode == "shr":
        return value >> min(codes[1], 64) & mask
    if opcode == "shf":
        n = codes[2] & 31 if "wrap" in words else min(codes[2], 32)
        both = codes[1] << 32 | a
        return (both << n >> 32 if "l" in words else both >> n) & mask
    if opcode == "lop3":
        return sum(
            ((immediate >> ((a >> i & 1) << 2 | (codes[1] >> i & 1) << 1 | codes[2] >> i & 1)) & 1) << i for i in range(32)
        )
    if opcode == "bfind":
        significant = ~value & mask if value < 0 else a
        at = significant.bit_length() - 1
        return 0xFFFFFFFF if at < 0 else (bits - 1 - at if "shiftamt" in words else at)
    if opcode == "bfe":
        pos, length = codes[1] & 255, codes[2] & 255
        sign = 0 if name[0] == "u" or length == 0 else a >> min(pos + length - 1, bits - 1) & 1
        return sum((a >> (pos + i) & 1 if i < length and pos + i < bits else sign) << i for i in range(bits))
    if opcode == "bfi":
        pos, length, out = codes[2] & 255, codes[3] & 255, codes[1]
        for i in range(length):
            if pos + i < bits:
                out = out & ~(1 << (pos + i)) | (a >> i & 1) << (pos + i)
        return out
    if opcode == "fns":
        return fns(a, codes[1], signed(codes[2], 32))
    if opcode == "bmsk":
        return bmsk(a, codes[1], "clamp" in words)
    if opcode == "szext":
        return szext(a, codes[1], "clamp" in words, name == "s32")
    return {
        "not": lambda: ~a & mask, "cnot": lambda: int(a == 0), "popc": lambda: text.count("1"),
        "clz": lambda: len(text) - len(text.lstrip("0")), "brev": lambda: int(text[::-1], 2),
    }[opcode]()  # fmt: skip


def fns(mask, base, offset):
    if base > 31:
        return 0xFFFFFFFF
    if offset == 0:
        return base if mask >> base & 1 else 0xFFFFFFFF
    step, left, at = (1 if offset > 0 else -1), abs(offset), base
    while 0 <= at < 32:
        left -= mask >> at & 1
        if left == 0:
            return at
        at += step
    return 0xFFFFFFFF


def bmsk(a, b, clamping):
    first, width = (min(a, 32), min(b, 32)) if clamping else (a & 31, b & 31)
    return sum(1 << i for i in range(first, min(32, first + width)))


def szext(a, b, clamping, is_signed):
    width = min(b, 32) if clamping else b & 31
    low = a & (1 << width) - 1
    return (signed(low, width) if is_signed and width else low) & 0xFFFFFFFF


def dot(opcode, words, codes):
    ta, tb = (w for w in words if w in ("u32", "s32"))
    total = codes[2]
    for i in range(4 if opcode == "dp4a" else 2):
        if opcode == "dp4a":
            a, b = codes[0] >> 8 * i & 255, codes[1] >> 8 * i & 255
            a = signed(a, 8) if ta == "s32" else a
        else:
            a, b = codes[0] >> 16 * i & 0xFFFF, codes[1] >> (8 * i + (16 if "hi" in words else 0)) & 255
            a = signed(a, 16) if ta == "s32" else a
        total += a * (signed(b, 8) if tb == "s32" else b)
    return total & 0xFFFFFFFF


def carryless(words, codes):
    product = 0
    for i in range(64):
        if codes[1] >> i & 1:
            product ^= codes[0] << i
    return (product >> 64 if "hi" in words else product) & (1 << 64) - 1 ^ codes[2]


# --- comparison ------------------------------------------------------------------------------------------------------


def compare(op, a, b, name, ftz=False):
    if name in FLOATS:
        if ftz:
            a, b = flushed(a, name), flushed(b, name)
        x, y = decode(a, name), decode(b, name)
        unordered = x.kind == "nan" or y.kind == "nan"
        if op in ("num", "nan"):
            return unordered == (op == "nan")
        if unordered:
            return op.endswith("u")
        op = op.removesuffix("u") if op not in ("lt", "le", "gt", "ge", "eq", "ne") else op
        p, q = (((-2 if v.negative else 2), Fraction(0)) if v.kind == "inf" else (0, v.signed) for v in (x, y))
    else:
        p, q = integer(a, name), integer(b, name)
        op = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}.get(op, op)
    return {"eq": p == q, "ne": p != q, "lt": p < q, "le": p <= q, "gt": p > q, "ge": p >= q}[op]


def boolean(op, a, c):
    return {None: a, "and": a and c, "or": a or c, "xor": a != c}[op]
