"""Every declared elementwise form against exact scalar arithmetic, on edge and random values."""

import itertools
from functools import cache

import numpy as np
import pytest

from warpsmith.hardware.scalar_evaluate import evaluate
from warpsmith.hardware.scalar_forms import scalar_forms
from warpsmith.hardware.scalar_values import edge_count, inputs

CMP = ("eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "lo", "ls", "hi", "hs", "num", "nan")
BOOL = ("and", "or", "xor")
EDGES, RANDOM = 24, 16
FEW = {"set": 6, "setp": 12, **dict.fromkeys(("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vset", "vshl", "vshr", "vmad"), 25)}
"""Opcodes with thousands of forms get fewer inputs each."""
NARROW = {"e4m3x4", "e5m2x4", "e3m2x4", "e2m3x4", "e2m1x4", "e2m1p4x4", "ue8m0x4"}
"""So do these: four results each, of 900 forms."""


@cache
def forms():
    """Forms of the architectures that have all between them."""
    found = {(f.key, f.reads): f for arch in ("sm_90a", "sm_100a", "sm_107a", "sm_120f") for f in scalar_forms(arch)}
    out = {}
    for form in found.values():
        out.setdefault(form.mnemonic.split(".")[0], []).append(form)
    return out


@cache
def sample(reads, opcode):
    """Input codes: edge combinations and random values, spread evenly."""
    edges, few = EDGES * len(reads), 3 if set(reads) & NARROW and len(reads) > 1 else FEW.get(opcode)
    ins, n = inputs(reads), edge_count(reads)
    total = len(ins[0])
    counts = (few, few) if few else (edges, RANDOM)
    picks = np.unique(np.r_[np.linspace(0, n - 1, counts[0]).astype(int), np.linspace(n, total - 1, counts[1]).astype(int)])
    return [x[picks] for x in ins]


def halves(codes, width, count):
    return [[c >> width * i & (1 << width) - 1 for c in codes] for i in range(count)]


def expected(ref, form, codes):
    """The reference's stored results of a form for one input."""
    opcode, *words = form.mnemonic.split(".")
    name = form.mnemonic.split(".")[-1]
    if opcode in ("setp", "set"):
        return comparison(ref, opcode, words, name, codes)
    if opcode == "lop3":
        d = ref.bit_op(opcode, words, "b32", codes, form.immediate)
        op = next((w for w in words if w in ("and", "or")), None)
        return [d] if op is None else [d, int(ref.boolean(op, d != 0, bool(codes[3])))]
    if form.carry_in or form.carry_out:
        carry = codes[-1] if form.carry_in else 0
        r, out = ref.carry_op(opcode, words, name, codes, carry)
        return [r, int(out)] if form.carry_out else [r]
    if opcode in ("selp", "slct"):
        chosen = codes[2] if opcode == "selp" else ref.compare("ge", codes[2], 0, name, "ftz" in words)
        return [codes[0] if chosen else codes[1]]
    if opcode in ("dp4a", "dp2a"):
        return [ref.dot(opcode, words, codes)]
    if opcode == "cvt":
        return [conversion(ref, words, codes, form)]
    if opcode[0] == "v":
        return [ref.video(opcode, words, codes)]
    if opcode == "prmt":
        return [ref.permute(words, codes)]
    if opcode == "clmad":
        return [ref.carryless(words, codes)]
    return [arithmetic(ref, opcode, words, name, codes, form)]


def comparison(ref, opcode, words, name, codes):
    op, join = next(w for w in words if w in CMP), next((w for w in words if w in BOOL), None)
    if opcode == "set" and len(words) == 2:  # packed, with a result of the operands' type
        width, count = (16, 2) if name.endswith("x2") else (8, 4)
        lanes = enumerate(halves(codes, width, count))
        return [sum(((1 << width) - 1) * ref.compare(op, *p, f"{name[0]}{width}") << width * i for i, p in lanes)]
    c = bool(codes[2]) if join else False
    packed = name.endswith("x2")
    kind = name.removesuffix("x2")
    pairs = halves(codes[:2], 16, 2) if packed else [codes[:2]]
    truths = [ref.compare(op, a, b, kind, "ftz" in words) for a, b in pairs]
    if opcode == "setp":
        both = truths if packed else [truths[0], not truths[0]]
        results = [int(ref.boolean(join, t, c)) for t in both]
        return results[:1] if kind in ("f16", "bf16") and not packed else results
    to = words[-2]
    one = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80}.get(to.removesuffix("x2"))
    if one is None:
        one = 0xFFFF if packed else (1 << int(to[1:])) - 1
    return [sum((one if ref.boolean(join, t, c) else 0) << 16 * i for i, t in enumerate(truths))]


def arithmetic(ref, opcode, words, name, codes, form):
    if name in ref.FLOATS and len(form.reads) > 1 and form.reads[-1] == "f32" and name in ("f16", "bf16"):
        return mixed(ref, opcode, words, name, codes)
    if name in ref.FLOATS or opcode == "testp":
        return int(ref.float_op(opcode, words, name, codes))
    if sum(w.endswith("x4") for w in words) > 1:
        return ref.narrow_op(opcode, words, codes)
    if sum(w.endswith("x2") for w in words) > 1:
        return ref.mixed_pairs(opcode, words, codes)
    if name == "f32x2":
        return sum(ref.float_op(opcode, words, "f32", p) << 32 * i for i, p in enumerate(halves(codes, 32, 2)))
    if name in ("f16x2", "bf16x2"):
        return sum(ref.float_op(opcode, words, name[:-2], p) << 16 * i for i, p in enumerate(halves(codes, 16, 2)))
    if "x" in name:
        width, count = (16, 2) if name.endswith("x2") else (8, 4)
        element = f"{name[0]}{width}"
        return sum(ref.integer_op(opcode, words, element, p) << width * i for i, p in enumerate(halves(codes, width, count)))
    integers = ("add", "sub", "mul", "mad", "mul24", "mad24", "div", "rem", "abs", "neg", "min", "max", "sad")
    if opcode in integers:
        return ref.integer_op(opcode, words, name, codes)
    return ref.bit_op(opcode, words, name, codes, form.immediate)


OUT_OF_BOUNDS = 0x7FF7


@pytest.mark.parametrize("kind", ["f16", "bf16"])
@pytest.mark.parametrize("relu", ["", ".relu"])
def test_fma_with_a_factor_out_of_bounds(reference, kind, relu):
    one = {"f16": 0x3C00, "bf16": 0x3F80}[kind]
    values = [OUT_OF_BOUNDS, OUT_OF_BOUNDS | 0x8000, OUT_OF_BOUNDS - 1, 0x7FFF, 0x7F81, one, one | 0x8000, 0, 0x8000, 0x7C00]
    codes = [np.array(x, np.uint16) for x in zip(*itertools.product(values, repeat=3), strict=True)]
    words = [w for w in f"rn{relu}.{kind}".split(".") if w]
    rows = zip(*(c.tolist() for c in codes), strict=True)
    outside = (OUT_OF_BOUNDS, OUT_OF_BOUNDS | 0x8000)  # of either sign: programs 4050 and 4575 of the random ones
    want = [0 if r[0] in outside or r[1] in outside else int(reference.float_op("fma", words, kind, list(r))) for r in rows]
    form = next(f for f in forms()["fma"] if f.mnemonic == f"fma.rn.oob{relu}.{kind}")
    assert evaluate(form, codes)[0].tolist() == want
    pairs = [c.astype(np.uint32) << 16 | c[::-1] for c in codes]
    packed = next(f for f in forms()["fma"] if f.mnemonic == f"fma.rn.oob{relu}.{kind}x2")
    assert evaluate(packed, pairs)[0].tolist() == [w << 16 | v for w, v in zip(want, want[::-1], strict=True)]


def bytes_of(*values):
    return sum(v << 8 * i for i, v in enumerate(values))


@pytest.mark.parametrize(
    ("mnemonic", "a", "c", "want"),
    [
        # 448 + 16 is a tie, 448 + 18 is not; -448 - 448; NaN
        ("add.e4m3x4.e4m3x4", (0x7E, 0x7E, 0xFE, 0x7F), (0x58, 0x59, 0xFE, 0x38), (0x7E, 0x7F, 0x7F, 0x7F)),
        ("add.satfinite.e4m3x4.e4m3x4", (0x7E, 0x7E, 0xFE, 0x7F), (0x58, 0x59, 0xFE, 0x38), (0x7E, 0x7E, 0xFE, 0x7F)),
        # 57344 + 4096 is a tie, too, and goes up; 57344 + 3584 is below; inf - inf; -inf + 1
        ("add.e5m2x4.e5m2x4", (0x7B, 0x7B, 0x7C, 0xFC), (0x6C, 0x6B, 0xFC, 0x3C), (0x7C, 0x7B, 0x7F, 0xFC)),
        ("add.satfinite.e5m2x4.e5m2x4", (0x7B, 0x7B, 0x7C, 0xFC), (0x6C, 0x6B, 0xFC, 0x3C), (0x7B, 0x7B, 0x7F, 0xFB)),
        # 2^-127 + 1; 2^-10 + 0, a tie; 2^-9 - 2^-9; the NaN of ue8m0
        ("add.e4m3x4.ue8m0x4", (0x00, 0x75, 0x76, 0xFF), (0x38, 0x00, 0x81, 0x38), (0x38, 0x00, 0x00, 0x7F)),
        # the upper bits of a byte do not count: 0.5 * 1.125 as e5m2 is a tie
        ("mul.e5m2x4.e2m1p4x4.e2m3x4", (0xF1, 0x01, 0x0F, 0x00), (0xC9, 0x09, 0x1F, 0x3F), (0x38, 0x38, 0xD2, 0x80)),
    ],
)  # fmt: skip
def test_sums_and_products_of_narrow_floats(mnemonic, a, c, want):
    form = next(f for f in forms()[mnemonic.partition(".")[0]] if f.mnemonic == mnemonic)
    codes = [np.array([bytes_of(*x)], np.uint32) for x in (a, c)]
    assert hex(evaluate(form, codes)[0][0]) == hex(bytes_of(*want))


def mixed(ref, opcode, words, name, codes):
    """Halves widened exactly, then the f32 operation."""
    wide = []
    for code in codes[:-1]:
        v = ref.decode(code, name)
        wide.append(
            0x7FFFFFFF
            if v.kind == "nan"
            else ref.infinity("f32", v.negative)
            if v.kind == "inf"
            else ref.encode(v.size, v.negative, "f32")
        )
    return ref.float_op(opcode, words, "f32", [*wide, codes[-1]])


def conversion(ref, words, codes, form):
    if words[0] == "pack":
        return ref.convert_pack(words, codes)
    if form.writes[0] in ("u8", "s8"):
        return ref.integer(ref.convert(words, codes[0]), form.writes[0]) & 0xFFFFFFFF
    if len(codes) == 1 and not any("x2" in w or "x4" in w for w in words):
        r = ref.convert(words, codes[0])
        return ref.positive_zero(r, words[-2]) if "pzo" in words else r
    elements, width = ref.convert_packed(words, codes)
    if "pzo" in words:
        elements = [ref.positive_zero(e, words[-2]) for e in elements]
    return sum(e << width * i for i, e in enumerate(elements))


def approximate(form):
    return {"approx", "full"} & set(form.mnemonic.split("."))


OPCODES = sorted(o for o, fs in forms().items() if not all(approximate(f) for f in fs))


@pytest.mark.parametrize("opcode", OPCODES)
def test_form(reference, opcode):
    wrong = []
    for form in forms()[opcode]:
        if approximate(form):
            continue
        ins = sample(form.reads, opcode)
        got = evaluate(form, ins)
        for i in range(len(ins[0])):
            codes = [int(x[i]) for x in ins]
            want = expected(reference, form, codes)
            have = [int(o[i]) for o in got]
            if want != have:
                wrong.append(
                    f"{form.key}: {[hex(c) for c in codes]}: {[hex(h) for h in have]}, expected {[hex(w) for w in want]}"
                )
                break
    assert not wrong, "\n".join(wrong[:20]) + f"\n{len(wrong)} of {len(forms()[opcode])} forms"
