"""Instruction descriptors of tcgen05.mma: bits against the manual's tables, round trips, explanations."""

from __future__ import annotations

import itertools

import pytest

import warpsmith as ws
from warpsmith.base.errors import InputError
from warpsmith.base.instruction_descriptor import KINDS, InstructionDescriptor, decode, encode, fields_of, shape_problem

TYPES = {"f16": "bf16", "tf32": "tf32", "f8f6f4": "e3m2", "i8": "s8", "mxf8f6f4": "e2m1", "mxf4": "e2m1", "mxf4nvf4": "e2m1"}


@pytest.mark.parametrize("kind", KINDS)
def test_every_bit_has_one_owner(kind):
    owned = [bit for f in fields_of(kind) for bit in range(f.low, f.low + f.width)]
    assert owned == list(range(32))


def make(kind: str, **more: object) -> InstructionDescriptor:
    d = "s32" if kind == "i8" else "f32"
    factor = "ue8m0" if kind.startswith("mx") else ""
    return InstructionDescriptor(kind, 128, 64, d, TYPES[kind], TYPES[kind], factor=factor, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("descriptor", "bits"),
    [
        (make("f16"), 1 << 4 | 1 << 7 | 1 << 10 | 8 << 17 | 8 << 24),
        (InstructionDescriptor("f16", 64, 256, "f16", "f16", "f16"), 32 << 17 | 4 << 24),
        (make("tf32", negate_a=True, b_mn_major=True), 1 << 4 | 2 << 7 | 2 << 10 | 1 << 13 | 1 << 16 | 8 << 17 | 8 << 24),
        (make("f8f6f4", sparse=True, selector=2), 2 | 4 | 1 << 4 | 4 << 7 | 4 << 10 | 8 << 17 | 8 << 24),
        (make("i8", saturate=True, shift=3), 8 | 2 << 4 | 1 << 7 | 1 << 10 | 8 << 17 | 8 << 24 | 3 << 30),
        (make("mxf8f6f4", factor_a=2, factor_b=1), 1 << 4 | 5 << 7 | 5 << 10 | 8 << 17 | 1 << 23 | 1 << 27 | 2 << 29),
        (make("mxf4", k96=True, negate_b=True), 1 << 7 | 1 << 10 | 1 << 14 | 8 << 17 | 1 << 23 | 1 << 27 | 1 << 31),
        (
            InstructionDescriptor("mxf4nvf4", 256, 128, "f32", "e2m1", "e2m1", factor="ue4m3", a_mn_major=True),
            1 << 7 | 1 << 10 | 1 << 15 | 16 << 17 | 2 << 27,
        ),
    ],
)
def test_bits_of_the_manual(descriptor, bits):
    assert encode(descriptor) == bits
    assert decode(bits, descriptor.kind) == descriptor


@pytest.mark.parametrize("kind", KINDS)
def test_every_value_comes_back(kind):
    for f in fields_of(kind):
        if not f.attribute:
            continue
        for number in range(1 << f.width):
            bits = encode(make(kind)) & ~((1 << f.width) - 1 << f.low) | number << f.low
            if f.texts and number not in dict(f.texts):
                with pytest.raises(ValueError, match=f"^{f.name} {number} has no meaning"):
                    decode(bits, kind)
            else:
                assert encode(decode(bits, kind)) == bits


@pytest.mark.parametrize(
    ("bits", "kind", "message"),
    [
        (1 << 6, "f16", "bits 6 of an instruction descriptor of .kind::f16 must be 0, not 1"),
        (8, "f16", "bits 3 of an instruction descriptor of .kind::f16 must be 0, not 1"),
        (3 << 4, "f16", "type of D 3 has no meaning for .kind::f16; it is 0 (f16), 1 (f32)"),
        (1 << 31 | 1 << 27, "mxf8f6f4", "bits 31 of an instruction descriptor of .kind::mxf8f6f4 must be 0, not 1"),
        (0, "f32", "kind is one of f16, tf32, f8f6f4, i8, mxf8f6f4, mxf4, mxf4nvf4, not 'f32'"),
    ],
)
def test_what_has_no_meaning(bits, kind, message):
    with pytest.raises(ValueError, match=r".") as caught:
        decode(bits, kind)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("kind", "m", "n", "group", "ws", "sparse", "fits"),
    [
        ("f16", 64, 8, 1, False, False, True),
        ("f16", 128, 24, 1, False, False, True),
        ("f16", 256, 64, 1, False, False, False),
        ("f16", 256, 16, 2, False, False, True),
        ("f16", 256, 24, 2, False, False, False),
        ("f16", 32, 64, 1, True, False, True),
        ("f16", 32, 256, 1, True, True, False),
        ("f16", 32, 96, 1, True, False, False),
        ("i8", 128, 24, 1, False, False, True),
        ("i8", 128, 40, 1, False, False, False),
        ("i8", 256, 32, 2, False, False, True),
        ("mxf4", 64, 64, 1, False, False, False),
        ("mxf4", 128, 64, 1, False, False, True),
    ],
)
def test_shapes_of_the_manual(kind, m, n, group, ws, sparse, fits):
    d = InstructionDescriptor(kind, m, n, "f32", TYPES[kind], TYPES[kind], sparse=sparse)
    assert (shape_problem(d, group, ws) == "") is fits


def test_an_instruction_descriptor_explained():
    assert ws.explain_descriptor(encode(make("f16", b_mn_major=True)), kind="f16") == (
        "tcgen05.mma .kind::f16 instruction descriptor 0x08110490\n"
        "  1:0    sparsity selector         0\n"
        "  2      sparse                    no\n"
        "  5:4    type of D                 f32\n"
        "  9:7    type of A                 bf16\n"
        "  12:10  type of B                 bf16\n"
        "  13     negate A                  no\n"
        "  14     negate B                  no\n"
        "  15     major of A                K-major\n"
        "  16     major of B                MN-major\n"
        "  22:17  N                         64\n"
        "  28:24  M                         128\n"
        "  31:30  largest shift of B in .ws 0\n"
        "  D 128x64 f32 = A 128x16 bf16 · B 16x64 bf16"
    )
    assert ws.explain_descriptor(1 << 6 | 3 << 4, kind="f16").splitlines()[-1] == (
        "  invalid: type of D 3 has no meaning for .kind::f16; it is 0 (f16), 1 (f32)"
    )


@pytest.mark.parametrize(
    ("bits", "kind", "message"),
    [
        (1 << 32, "f16", "explain_descriptor: 0x100000000 is no 32-bit instruction descriptor; leave kind out for a matrix's"),
        (0, "f32", "explain_descriptor: kind is one of f16, tf32, f8f6f4, i8, mxf8f6f4, mxf4, mxf4nvf4, not 'f32'"),
    ],
)
def test_what_is_no_instruction_descriptor(bits, kind, message):
    with pytest.raises(InputError) as caught:
        ws.explain_descriptor(bits, kind=kind)
    assert str(caught.value) == message


def test_both_generations_of_matrix_descriptors():
    for version, name in itertools.product((0, 1), ("wgmma", "tcgen05")):
        shown = ws.explain_descriptor(version << 46 | 64 << 32).splitlines()[0]
        assert shown.startswith(f"{name} descriptor") is (version == (name == "tcgen05"))
    assert "52     leading dimension mode    absolute" in ws.explain_descriptor(1 << 46 | 1 << 52)
    assert ws.explain_descriptor(3 << 61 | 1 << 46).splitlines()[-1] == "  63:61  swizzle                   3, which is invalid"
    assert ws.explain_descriptor(1 << 46 | 1 << 60).splitlines()[-1] == "  reserved bits that must be 0: 60"
