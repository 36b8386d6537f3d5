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


def encode(size, negative, name, mode="rn", ftz=False):
    """Round a magnitude to a format's code. With `ftz` what is below the normal numbers before that bound is applied is 0."""
    e, m = SHAPES[name]
    bias = (1 << (e - 1)) - 1
    sign = negative << (e + m)
    if size == 0:
        return sign
    if ftz:
        free = power_below(size) - m
        if to_integer(size / Fraction(2) ** free, negative, mode) * Fraction(2) ** free < Fraction(2) ** (1 - bias):
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
    """The NaN of a result. f64: the first NaN of `values` made quiet, else the default. (H200: b, then c, then a.)"""
    if name != "f64":
        return CANONICAL[name]
    for v in values:
        if v.kind == "nan":
            return v.code | 1 << 51
    return 0xFFF8000000000000


def fma(a, b, c, name, mode, ftz=False):
    """a * b + c of decoded values; c None for a product."""
    values = [v for v in (b, c, a) if v is not None]
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
        return encode(a.size * b.size, product_negative, name, mode, ftz)
    if c.kind == "inf":
        return infinity(name, c.negative)
    product = -a.size * b.size if product_negative else a.size * b.size
    total = product + c.signed
    if total == 0:
        both_zero_alike = product == 0 and product_negative == c.negative
        negative = c.negative if both_zero_alike else mode == "rm"
        return encode(Fraction(0), negative, name, mode)
    return encode(abs(total), total < 0, name, mode, ftz)


def add(a, b, name, mode):
    one = Value("finite", False, Fraction(1))
    if b.kind == "nan" and a.kind != "nan":
        return nan_of(name, [b])
    return fma(a, one, b, name, mode)


def negated(v, name):
    e, m = SHAPES[name]
    return Value(v.kind, not v.negative, v.size, v.code ^ 1 << (e + m))


def div(a, b, name, mode, ftz=False):
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
    return encode(a.size / b.size, negative, name, mode, ftz)


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
        return nan_of(name, decoded[::-1])
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
    v, ftz = [decode(c, name) for c in codes], "ftz" in words
    if opcode in ("abs", "neg"):
        if v[0].kind == "nan":
            return nan_of(name, v)
        return codes[0] & ~sign if opcode == "abs" else codes[0] ^ sign
    if opcode == "testp":
        return testp(words[0], codes[0], name)
    if opcode == "rcp":
        r = div(Value("finite", False, Fraction(1)), v[0], name, mode, ftz)
    elif opcode == "sqrt":
        r = sqrt(v[0], name, mode)
    elif opcode == "div":
        r = div(v[0], v[1], name, mode, ftz)
    elif opcode == "add":
        r = add(v[0], v[1], name, mode)
    elif opcode == "sub":
        second = v[1] if v[1].kind == "nan" else negated(v[1], name)
        r = add(v[0], second, name, mode)
    elif opcode == "mul":
        r = fma(v[0], v[1], None, name, mode, ftz)
    else:
        r = fma(v[0], v[1], v[2], name, mode, ftz)
    return finish(r, words, name)


def testp(op, code, name):
    v = decode(code, name)
    return {
        "finite": v.kind == "finite", "infinite": v.kind == "inf", "number": v.kind != "nan", "notanumber": v.kind == "nan",
        "normal": v.kind == "finite" and not is_subnormal(code, name), "subnormal": is_subnormal(code, name),
    }[op]  # fmt: skip


def mixed_pairs(opcode, words, codes):
    """Packed arithmetic of several types of sm_107: each element exactly, rounded once."""
    to, first = words[-len(codes) - 1].removesuffix("x2"), words[-len(codes)].removesuffix("x2")
    out = 0
    for i in (0, 1):
        half = codes[0] >> 16 * i & 0xFFFF if first != "f32" else codes[0] >> 32 * i & 0xFFFFFFFF
        v = [decode(half, first), *(decode(c >> 32 * i & 0xFFFFFFFF, "f32") for c in codes[1:])]
        mode = next((w for w in words if w in ("rn", "rz", "rm", "rp")), "rn")
        if opcode == "fma":
            r = fma(*v, to, mode)
        elif opcode == "mul":
            r = fma(*v, None, to, mode)
        else:
            second = v[1] if opcode == "add" or v[1].kind == "nan" else negated(v[1], "f32")
            r = add(v[0], second, to, mode)
        out |= r << sum((*SHAPES[to], 1)) * i
    return out


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
            r = (1 << bits) - 1  # H200; the manual leaves it open
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
        pos, length = (c if bits == 64 else c & 255 for c in codes[1:3])  # H200: 64-bit forms take all bits
        sign = 0 if name[0] == "u" or length == 0 else a >> min(pos + length - 1, bits - 1) & 1
        return sum((a >> (pos + i) & 1 if i < length and pos + i < bits else sign) << i for i in range(bits))
    if opcode == "bfi":
        (pos, length), out = (c if bits == 64 else c & 255 for c in codes[2:4]), codes[1]
        for i in range(min(length, bits)):
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
    if offset == -(2**31):
        return 0  # H200
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


# --- conversions -----------------------------------------------------------------------------------------------------

# name -> exponent bits, mantissa bits, bias
SMALL = {"e4m3": (4, 3, 7), "e5m2": (5, 2, 15), "e2m3": (2, 3, 1), "e3m2": (3, 2, 3), "e2m1": (2, 1, 1)}
INTEGRAL = {"rni": "rn", "rzi": "rz", "rmi": "rm", "rpi": "rp"}


def small_value(code, name):
    """Value of a code of an 8-, 6- or 4-bit format; None for NaN, 'inf' for infinity."""
    e, m, bias = SMALL[name]
    exponent, mantissa = code >> m & ((1 << e) - 1), code & ((1 << m) - 1)
    if (name == "e4m3" and code & 0x7F == 0x7F) or (name == "e5m2" and exponent == 31 and mantissa):
        return None
    if name == "e5m2" and exponent == 31:
        return "inf"
    if exponent == 0:
        return Fraction(mantissa) * Fraction(2) ** (1 - bias - m)
    return Fraction(mantissa + (1 << m)) * Fraction(2) ** (exponent - bias - m)


def to_small(v, name, relu, mode):
    """Round to nearest even or towards zero with finite saturation, by looking at every code."""
    e, m, _ = SMALL[name]
    finite = [(c, small_value(c, name)) for c in range(1 << (e + m))]
    finite = [(c, x) for c, x in finite if isinstance(x, Fraction)]
    largest = max(finite, key=lambda p: p[1])[0]
    if v.kind == "nan":
        return 0x7F if name in ("e4m3", "e5m2") else largest
    if relu and v.negative:
        return 0
    sign = v.negative << (e + m)
    if v.kind == "inf":
        return sign | largest
    if mode == "rz":
        return sign | max((p for p in finite if p[1] <= v.size), key=lambda p: p[1])[0]
    return sign | min(finite, key=lambda p: (abs(p[1] - v.size), p[0] & 1))[0]


def scale_of(code):
    """A ue8m0 factor; None for NaN."""
    return None if code == 0xFF else Fraction(2) ** (code - 127)


def from_small(code, name, to, relu, satfinite, factor=Fraction(1)):
    e, m, _ = SMALL[name]
    x, negative = small_value(code & (1 << (e + m)) - 1, name), bool(code >> (e + m) & 1)
    if x is None or factor is None:
        return CANONICAL[to]
    if relu and negative:
        return 0
    r = infinity(to, negative) if x == "inf" else encode(x * factor, negative, to)
    return r - (satfinite and r == infinity(to, negative))


def from_fixed(code, relu, satfinite, factor):
    """s2f6 times a factor as bf16."""
    v = signed(code, 8)
    if factor is None:
        return CANONICAL["bf16"]
    if relu and v < 0:
        return 0
    r = encode(Fraction(abs(v), 64) * factor, v < 0, "bf16")
    return r - (satfinite and r == infinity("bf16", v < 0))


def to_fixed(v, mode, relu, factor):
    """A value divided by a factor as s2f6."""
    if v.kind == "nan" or factor is None:
        return 0x7F
    if relu and v.negative:
        return 0
    if v.kind == "inf":
        return 0x80 if v.negative else 0x7F
    units = to_integer(v.size / factor * 64, v.negative, mode)
    return min(units, 127) if not v.negative else -min(units, 128) & 0xFF


def stochastic_bf16(code, random, words):
    """f32 to bf16: away from zero where the discarded part, in units of 2^-16, and the random bits reach a whole unit."""
    v = decode(code, "f32")
    if v.kind == "nan":
        return CANONICAL["bf16"]
    if v.kind == "finite" and v.size:
        quantum = Fraction(2) ** (max(power_below(v.size), -126) - 7)
        units, rest = divmod(v.size, quantum)
        assert (rest / quantum * 65536).denominator == 1
        v = Value("finite", v.negative, (units + (rest / quantum * 65536 + random >= 65536)) * quantum)
    return narrow_float(v, "bf16", words, "rn")


def narrow_value(code, kind):
    """A code of a packed type's element as (negative, magnitude); the magnitude None for NaN, 'inf' for infinity."""
    element = kind.removesuffix("x4").removesuffix("p4")
    if element == "ue8m0":
        return False, scale_of(code)
    e, m, _ = SMALL[element]
    return bool(code >> (e + m) & 1), small_value(code & (1 << (e + m)) - 1, element)


def narrow_round(x, name, negative, satfinite):
    """Round a magnitude to e4m3 or e5m2: nearest, ties to even, as if the exponent had no bound; then overflow."""
    e, m, bias = SMALL[name]
    quantum = Fraction(2) ** (max(power_below(x), 1 - bias) - m) if x else Fraction(1)
    rounded = to_integer(x / quantum, negative, "rn") * quantum
    codes = {small_value(c, name): c for c in range(1 << (e + m))}
    largest = max(v for v in codes if isinstance(v, Fraction))
    sign = negative << (e + m)
    if rounded <= largest:
        return sign | codes[rounded]
    if satfinite:
        return sign | codes[largest]
    return 0x7F if name == "e4m3" else sign | 0x7C


def narrow_element(opcode, to, satfinite, values):
    """One element of the packed arithmetic of 8-bit results."""
    name = to.removesuffix("x4")
    if any(x is None for _, x in values):
        return 0x7F
    if opcode in ("mul", "fma"):
        (na, a), (nb, b), *rest = values
        if {a, b} == {"inf", 0}:
            return 0x7F
        terms = [(na != nb, "inf" if "inf" in (a, b) else a * b), *rest]
    else:
        terms = [values[0], (values[1][0] != (opcode == "sub"), values[1][1])]
    signs = {n for n, x in terms if x == "inf"}
    if len(signs) == 2:
        return 0x7F
    if signs:
        (negative,) = signs
        e, m, _ = SMALL[name]
        if satfinite:
            return negative << (e + m) | (0x7E if name == "e4m3" else 0x7B)
        return 0x7F if name == "e4m3" else negative << 7 | 0x7C
    total = sum(-x if n else x for n, x in terms)
    negative = total < 0 or (total == 0 and all(n for n, _ in terms))
    return narrow_round(abs(total), name, negative, satfinite)


def narrow_op(opcode, words, codes):
    to, *sources = (w for w in words if w.endswith("x4"))
    kinds = sources if opcode == "mul" else [*sources, to]
    out = 0
    for i in range(4):
        values = []
        for code, kind in zip(codes, kinds, strict=True):
            width = 4 if kind == "e2m1x4" else 8
            values.append(narrow_value(code >> width * i & (1 << width) - 1, kind))
        out |= narrow_element(opcode, to, "satfinite" in words, values) << 8 * i
    return out


def to_ue8m0(v, mode, satfinite):
    if v.kind == "nan":
        return 0xFF
    if v.kind == "inf":
        return 0xFE if satfinite else 0xFF
    if v.size <= Fraction(2) ** -127:
        return 0
    e = power_below(v.size)
    if mode == "rp" and v.size > Fraction(2) ** e:
        e += 1
    return min(e, 127) + 127 if satfinite or e <= 127 else 0xFF


def narrow_float(v, to, words, mode):
    """A decoded float rounded to f16, bf16, f32, f64 or tf32, with `.satfinite`, `.relu`, `.ftz`, `.sat`."""
    name = "f32" if to == "tf32" else to
    if v.kind == "nan":
        code = v.code
    elif v.kind == "inf":
        code = infinity(name, v.negative)
    elif to == "tf32":
        code = round_tf32(v, mode)
    else:
        code = encode(v.size, v.negative, name, mode)
    if v.kind != "nan" and "satfinite" in words and decode(code, name).kind == "inf":
        code = code - (1 << 13 if to == "tf32" else 1)
    if v.kind == "nan":
        return 0 if "sat" in words else code
    # `.ftz` is about f32: results of f16 keep their subnormals
    return finish(code, [w for w in words if w != "ftz" or name != "f16"], name)


def round_tf32(v, mode):
    if v.size == 0:
        return v.negative << 31
    quantum = max(power_below(v.size), -126) - 10
    value = to_integer(v.size / Fraction(2) ** quantum, v.negative, mode) * Fraction(2) ** quantum
    return encode(value, v.negative, "f32", "rn")


def to_integral(v, mode):
    return Value("finite", v.negative, Fraction(to_integer(v.size, v.negative, mode)))


def convert_to_integer(code, words, to, source):
    v = decode(flushed(code, source) if "ftz" in words else code, source)
    bits = int(to[1:])
    if v.kind == "nan":
        return 1 << (bits - 1) if source == "f64" or bits == 64 else 0
    mode = INTEGRAL[next(w for w in words if w in INTEGRAL)]
    size = 1 << 200 if v.kind == "inf" else to_integer(v.size, v.negative, mode)
    return clamp(-size if v.negative else size, to) & (1 << bits) - 1


def convert(words, code):
    """cvt of one value to one value."""
    to, source = words[-2], words[-1]
    mode = next((w for w in words if w in ("rn", "rz", "rm", "rp", "rna")), "rn")
    whole, isint = to[0] in "us", source[0] in "us"
    if whole and isint:
        v = integer(code, source)
        return (clamp(v, to) if "sat" in words else v) & (1 << int(to[1:])) - 1
    if whole:
        return convert_to_integer(code, words, to, source)
    if isint:
        v = integer(code, source)
        return finish(encode(Fraction(abs(v)), v < 0, to, mode), words, to)
    v = decode(flushed(code, source) if "ftz" in words and source == "f32" and to != "f16" else code, source)
    if v.kind == "nan":
        v.code = converted_nan(v.code, words, to, source)
    integral = next((INTEGRAL[w] for w in words if w in INTEGRAL), None)
    if integral and v.kind == "finite":
        v = to_integral(v, integral)
    return narrow_float(v, to, words, mode)


def converted_nan(code, words, to, source):
    """What a NaN becomes (H200; the manual leaves it open)."""
    rounds, ftz = any(w in words for w in (*INTEGRAL, "rn", "rz", "rm", "rp", "rna")), "ftz" in words
    if to == source and to in ("f32", "f64") and not rounds and not ftz:
        return code
    if to == "f64":
        if source == "f32" and ftz:
            return 0x7FFFFFFFE0000000
        e, m = SHAPES[source]
        return (code >> (e + m)) << 63 | 0x7FF8 << 48 | (code & (1 << m) - 1) << (52 - m)
    if source == "f64":
        e, m = SHAPES[to]
        return (code >> 63) << (e + m) | ((1 << e) - 1) << m | 1 << (m - 1) | code >> (52 - m) & (1 << m) - 1
    if (to, source) == ("f32", "bf16") and not ftz:
        return code << 16
    if to == "tf32":
        return (code & ~0x1FFF) - 0x2000 * ("satfinite" in words) if "rna" in words else 0x7FFFE000
    return CANONICAL[to]


def convert_packed(words, codes):
    """cvt of packed registers: element results, lowest first, and their width."""
    to, source = words[-2], words[-1]
    relu = "relu" in words
    mode = next((w for w in words if w in ("rn", "rz", "rp")), "rn")
    if "rs" in words:
        return [stochastic_bf16(c, codes[2] >> 16 * i & 0xFFFF, words) for i, c in enumerate(codes[1::-1])], 16
    factors = [Fraction(1)] * 2
    if "scaled::n2::ue8m0" in words:
        factors, codes = [scale_of(codes[-1] >> 8 * i & 0xFF) for i in (0, 1)], codes[:-1]
    divisor = Fraction(1)
    if "scaled::n1::ue8m0" in words:
        divisor, codes = scale_of(codes[-1] & 0xFF), codes[:-1]
        one = source.removesuffix("x2")
        parts = codes if source == "f32" else [codes[0] & 0xFFFF, codes[0] >> 16]
        parts = [flushed(p, one) for p in parts]
        codes = parts if source == "f32" else [parts[1] << 16 | parts[0]]
    if source == "s2f6x2":
        return [from_fixed(codes[0] >> 8 * i & 0xFF, relu, "satfinite" in words, factors[i]) for i in (0, 1)], 16
    if source == "f32":
        values = [decode(c, "f32") for c in reversed(codes)]
        for v in values:
            v.code = CANONICAL.get(to.removesuffix("x2"), 0) if v.kind == "nan" else v.code
    elif source in ("f16x2", "bf16x2"):
        values = [decode(codes[0] >> 16 * i & 0xFFFF, source[:-2]) for i in (0, 1)]
    elif source == "ue8m0x2":
        parts = [codes[0] & 0xFF, codes[0] >> 8 & 0xFF]
        return [0x7FFF if p == 0xFF else encode(Fraction(2) ** (p - 127), False, "bf16") for p in parts], 16
    else:
        element = source[:-2]
        bits = 4 if element == "e2m1" else 8
        return [
            from_small(codes[0] >> bits * i & (1 << bits) - 1, element, to[:-2], relu, "satfinite" in words, factors[i])
            for i in (0, 1)
        ], 16
    element = to.removesuffix("x2")
    for v in values:
        if divisor is None:
            v.kind, v.code = "nan", 0
        else:
            v.size /= divisor
    if element == "s2f6":
        return [to_fixed(v, mode, relu, f) for v, f in zip(values, factors, strict=True)], 8
    if element == "ue8m0":
        return [to_ue8m0(v, mode, "satfinite" in words) for v in values], 8
    if element in SMALL:
        return [to_small(v, element, relu, mode) for v in values], 4 if element == "e2m1" else 8
    return [narrow_float(v, element, words, mode) for v in values], 16


def positive_zero(code, to):
    """A code, or 0 for that of minus 0: `.pzo`."""
    element = to.removesuffix("x2").replace("tf32", "f32")
    e, m = SHAPES.get(element) or SMALL[element][:2]
    return 0 if code == 1 << e + m else code


def convert_pack(words, codes):
    to = words[2]
    bits = int(to[1:])
    a, b = (clamp(signed(c, 32), to) & (1 << bits) - 1 for c in codes[:2])
    above = codes[2] << 2 * bits if len(codes) > 2 else 0
    return (above | a << bits | b) & 0xFFFFFFFF


# --- permutation -----------------------------------------------------------------------------------------------------


def permute(words, codes):
    """prmt: pick four of the eight bytes of b:a."""
    data = [(codes[1] << 32 | codes[0]) >> 8 * i & 0xFF for i in range(8)]
    s = codes[2] & 3
    mode = next((w for w in words if w != "b32"), None)
    picks = {
        "f4e": [s, s + 1, s + 2, s + 3], "b4e": [s, (s - 1) % 8, (s - 2) % 8, (s - 3) % 8], "rc8": [s] * 4,
        "ecl": [max(s, i) for i in range(4)], "ecr": [min(s, i) for i in range(4)], "rc16": [2 * (s & 1), 2 * (s & 1) + 1] * 2,
        None: [codes[2] >> 4 * i & 15 for i in range(4)],
    }[mode]  # fmt: skip
    out = 0
    for i, pick in enumerate(picks):
        byte = data[pick & 7]
        out |= ((0xFF if byte & 0x80 else 0) if pick & 8 else byte) << 8 * i
    return out


# --- video -----------------------------------------------------------------------------------------------------------


def video_step(base, words, a, b):
    """The operation on two integers."""
    if base == "vset":
        op = next(w for w in words if w in ("eq", "ne", "lt", "le", "gt", "ge"))
        return int({"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}[op])
    if base == "vavrg":
        return (a + b + (1 if a + b >= 0 else 0)) >> 1
    return {"vadd": a + b, "vsub": a - b, "vabsdiff": abs(a - b), "vmin": min(a, b), "vmax": max(a, b)}[base]


def video_sources(codes, types, selectors):
    """The integers that the sources of a scalar video instruction stand for."""
    out = []
    for code, type_, selector in zip(codes, types, selectors, strict=False):
        width = {"": 32, "b": 8, "h": 16}[selector[:1]]
        part = code >> width * int(selector[1:] or 0) & (1 << width) - 1
        out.append(integer(part, f"{type_[0]}{width}"))
    return out


def video(opcode, words, codes, selectors=("", "", ""), minus=(False, False, False)):
    """A video instruction; selectors of d, a and b and signs of a, b and c are for scalar ones."""
    types = [w for w in words if w in ("u32", "s32")]
    to, ta, tb = types if len(types) > 2 else ("u32", *types)
    second = next((w for w in words if w in ("add", "min", "max")), None)
    if opcode[-1] in "24":
        return video_lanes(opcode, words, codes, (to, ta, tb), second)
    if opcode == "vmad":
        return video_multiply(words, codes, (ta, tb), selectors, minus)
    a, b = video_sources(codes, (ta, tb), selectors[1:])
    if opcode in ("vshl", "vshr"):
        n = b & 31 if "wrap" in words else min(b, 32)
        r = a << n if opcode == "vshl" else a >> n
    else:
        r = video_step(opcode, words, a, b)
    if "sat" in words:
        r = video_saturate(opcode, r, to, selectors[0])
    if second == "add":
        return r + codes[2] & 0xFFFFFFFF
    if second:
        return video_pick(opcode, words, r, codes[2], ta if opcode == "vset" else to)
    if selectors[0]:
        width = 8 if selectors[0][0] == "b" else 16
        at = width * int(selectors[0][1])
        mask = (1 << width) - 1
        return codes[2] & ~(mask << at) | (r & mask) << at
    return r & 0xFFFFFFFF


def video_saturate(opcode, r, to, selector):
    """H200 and ptxas: unsigned words have a lower bound only, but for vshl, of 34 bits; parts an upper one of the bits."""
    if selector and opcode not in ("vshl", "vshr"):
        top = {"u": 255, "s": 127}[to[0]] if selector[0] == "b" else {"u": 65535, "s": 32767}[to[0]]
        return min(r % (1 << 64), top)
    if opcode == "vshl":
        return clamp(integer(r % (1 << 34), "s34"), to)
    return clamp(r, to) if to == "s32" else max(r, 0)


def video_pick(opcode, words, r, c, to):
    """H200: min and max compare 64-bit values, signed or unsigned as the result; sums are cut to a word and sign-extended."""
    if opcode in ("vadd", "vsub") or (opcode in ("vshl", "vshr") and "sat" in words and to == "u32"):
        r = integer(r & 0xFFFFFFFF, "s32")
    name = to[0] + "64"
    pick = min if "min" in words else max
    return pick(integer(r % (1 << 64), name), integer(c, to)) & 0xFFFFFFFF


def video_multiply(words, codes, types, selectors, minus):
    """H200: vmad adds 64-bit values; c and whole factors count as signed."""
    a, b = video_sources(codes, [t if s else "s32" for t, s in zip(types, selectors[1:], strict=True)], selectors[1:])
    product = -a * b if minus[0] != minus[1] else a * b
    c = integer(codes[2], "s32")
    total = product + (-c if minus[2] else c) + ("po" in words)
    signed = "s32" in types or minus[0] != minus[1] or minus[2]
    scale = next((int(w[3:]) for w in words if w.startswith("shr")), 0)
    if scale:
        total = (total if signed else total % (1 << 64)) >> scale
    if "sat" in words:
        total = clamp(total, "s32" if signed else "u32")
    return total & 0xFFFFFFFF


def video_lanes(opcode, words, codes, types, second):
    bits = 16 if opcode[-1] == "2" else 8
    mask = (1 << bits) - 1
    to, ta, tb = types
    results = []
    for at in range(0, 32, bits):
        a, b = (integer(c >> at & mask, f"{t[0]}{bits}") for c, t in zip(codes, (ta, tb), strict=False))
        r = video_step(opcode[:-1], words, a, b)
        results.append(clamp(r, f"{to[0]}{bits}") if "sat" in words else r)
    if second == "add":
        return integer(codes[2], to) + sum(results) & 0xFFFFFFFF
    return sum((r & mask) << bits * i for i, r in enumerate(results))
