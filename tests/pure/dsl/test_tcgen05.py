"""`ptx.tcgen05`: what each argument does to the text, and what is refused, message in full."""

from __future__ import annotations

import re

import pytest

import warpsmith as ws
from warpsmith import kernel, ptx, reg, smem
from warpsmith.base.errors import KernelError
from warpsmith.types import b32, bf16, f32, pred, u32, u64

T = ptx.tcgen05
BF16 = 0x8200490
"""f32 += bf16·bf16, 128 x 128."""


def instructions(body, arch="sm_100a", **how) -> list[str]:
    """The tcgen05 and clusterlaunchcontrol instructions of a body, registers by number."""
    text = kernel(arch=arch, block=(128, 1, 1), **how)(body).ptx(loc=False)
    return [re.sub(r"\s+", " ", x.strip()) for x in text.splitlines() if re.match(r"\s*(@\S+ )?(tcgen05|clusterlaunch)", x)]


def refused(body, arch="sm_100a") -> str:
    with pytest.raises(KernelError) as caught:
        kernel(arch=arch, block=(128, 1, 1))(body).ptx()
    message, _, rest = str(caught.value).partition("\n")
    hint = re.search(r"hint: (.*)", rest)
    assert re.match(r"\S*test_tcgen05\.py:\d+:\d+: error: ", message), message
    return re.sub(r"^\S+ error: ", "", message) + (f" | {hint[1]}" if hint else "")


def product(**how):
    def body():
        d, a, m = (reg.scalar(b32, name=n) for n in ("%D", "%A", "%M"))
        da, db, z = (reg.scalar(u64, name=n) for n in ("%DA", "%DB", "%Z"))
        p, i = reg.scalar(pred, name="%P"), reg.scalar(u32, name="%I")
        named = {"d": d, "a": a, "m": m, "da": da, "db": db, "z": z, "p": p, "i": i}
        values = {k: named.get(v[1:], v) if isinstance(v, str) and v[0] == "$" else v for k, v in how.items()}
        values = {k: [named.get(x[1:], x) if isinstance(x, str) else x for x in v] if isinstance(v, list) else v
                  for k, v in values.items()}  # fmt: skip
        T.mma(values.pop("d", d), values.pop("A", da), values.pop("B", db), values.pop("idesc", i), **values)

    return body


P = {"pred_operand": "$p"}
SCALED = {"scale_a": "$a", "scale_b": "$m", "kind": "mxf8f6f4"}


@pytest.mark.parametrize(
    ("how", "text"),
    [
        (P, "tcgen05.mma.cta_group::1.kind::f16 [%D], %DA, %DB, %I, %P;"),
        ({"enable_input_d": "$p"}, "tcgen05.mma.cta_group::1.kind::f16 [%D], %DA, %DB, %I, %P;"),
        ({**P, "pred": "$p"}, "@%P tcgen05.mma.cta_group::1.kind::f16 [%D], %DA, %DB, %I, %P;"),
        ({**P, "cta_group": 2, "kind": "tf32"}, "tcgen05.mma.cta_group::2.kind::tf32 [%D], %DA, %DB, %I, %P;"),
        ({**P, "A": "$a", "a_is_tmem": True}, "tcgen05.mma.cta_group::1.kind::f16 [%D], [%A], %DB, %I, %P;"),
        ({**P, "scale_d": 5}, "tcgen05.mma.cta_group::1.kind::f16 [%D], %DA, %DB, %I, %P, 5;"),
        ({**P, "scale_c": 0}, "tcgen05.mma.cta_group::1.kind::f16 [%D], %DA, %DB, %I, %P, 0;"),
        ({**P, "collector_a": "use"}, "tcgen05.mma.cta_group::1.kind::f16.collector::a::use [%D], %DA, %DB, %I, %P;"),
        (
            {**P, "A": "$a", "a_is_tmem": True, "ashift": True, "collector_a": "discard"},
            "tcgen05.mma.cta_group::1.kind::f16.ashift.collector::a::discard [%D], [%A], %DB, %I, %P;",
        ),
        (
            {**P, "sparse": True, "sparse_metadata": "$m"},
            "tcgen05.mma.sp.cta_group::1.kind::f16 [%D], %DA, %DB, [%M], %I, %P;",
        ),
        (
            {**P, "disable_output_lane": ["$i"] * 4},
            "tcgen05.mma.cta_group::1.kind::f16 [%D], %DA, %DB, %I, {%I, %I, %I, %I}, %P;",
        ),
        ({**P, "ws": True, "zero_columns": "$z"}, "tcgen05.mma.ws.cta_group::1.kind::f16 [%D], %DA, %DB, %I, %P, %Z;"),
        (
            {**P, "ws": True, "collector_b": "b2::fill", "kind": "i8"},
            "tcgen05.mma.ws.cta_group::1.kind::i8.collector::b2::fill [%D], %DA, %DB, %I, %P;",
        ),
        ({**P, **SCALED}, "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale [%D], %DA, %DB, %I, [%A], [%M], %P;"),
        (
            {**P, **SCALED, "scale_vec": "1X"},
            "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X [%D], %DA, %DB, %I, [%A], [%M], %P;",
        ),
        (
            {**P, **SCALED, "kind": "mxf4nvf4", "scale_vec": "block16"},
            "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16 [%D], %DA, %DB, %I, [%A], [%M], %P;",
        ),
    ],
)
def test_every_argument_of_a_product_shows(how, text):
    assert instructions(product(**how)) == [text]


def test_a_constant_flag_and_typed_addresses_become_registers():
    def body():
        d, a = reg.scalar(u32, name="%D"), reg.scalar(u64, name="%A")
        for flag in (True, False):
            T.mma(ptx.addr(d, 64), a, a, BF16, enable_input_d=flag)

    text = kernel(arch="sm_100a", block=(128, 1, 1))(body).ptx(loc=False)
    flags = re.findall(r"setp\.ne\.u32\s+(%\w+), ([01]), 0;", text)
    used = re.findall(r"tcgen05\.mma\S+\s+\[(%\w+)\+64\], %A, %A, (%\w+), (%\w+);", text)
    assert [value for _, value in flags] == ["1", "0"]
    assert [p for _, _, p in used] == [p for p, _ in flags]
    for base, idesc, _ in used:
        assert re.search(rf"mov\.b32\s+{base}, %D;", text)
        assert re.search(rf"mov\.u32\s+{idesc}, {BF16};", text)


C = "tcgen05.mma of .kind::f16"


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (
            {"kind": "f64"},
            "tcgen05.mma: kind is one of f16, tf32, f8f6f4, i8, mxf8f6f4, mxf4, mxf4nvf4, not 'f64'",
        ),
        ({"cta_group": 3}, "cta_group is 1 or 2, not 3"),
        ({"d": "$z"}, "d is an address in tensor memory, a 32-bit register, and %Z is u64"),
        (
            {"d": 5},
            "d is an address in tensor memory, a 32-bit register, not int"
            " | load what alloc wrote: taddr = smem.load(u32, slot)",
        ),
        ({"A": "$a"}, "a is a 64-bit descriptor, and %A is b32 | see ptx.tcgen05.descriptor, or write a_is_tmem=True"),
        ({"a_is_tmem": True}, "a is an address in tensor memory, a 32-bit register, and %DA is u64"),
        ({"B": "$i"}, "b is a 64-bit register, and %I is u32 | see ptx.tcgen05.descriptor"),
        ({"idesc": "$z"}, f"{C}: idesc is an int or a 32-bit register, and %Z is u64"),
        ({"idesc": -1}, f"{C}: idesc is an int of 32 bits or a register, not -1 | see ptx.tcgen05.make_instr_desc"),
        (
            {"idesc": BF16 | 1 << 23},
            f"{C}: idesc 0x08a00490: bits 23 of an instruction descriptor of .kind::f16 must be 0, not 1"
            ' | make it with make_instr_desc("f16", …)',
        ),
        (
            {"idesc": BF16, "kind": "tf32"},
            "tcgen05.mma of .kind::tf32: idesc 0x08200490: type of A 1 has no meaning for .kind::tf32; it is 2 (tf32)"
            ' | make it with make_instr_desc("tf32", …)',
        ),
        ({"idesc": BF16, "sparse": True, "sparse_metadata": "$m"}, f"{C}: idesc says dense, and the call sparse=True"),
        (
            {"idesc": BF16 | 1 << 15, "A": "$a", "a_is_tmem": True},
            f"{C}: A in tensor memory is K-major, and idesc says a_major='MN'",
        ),
        ({"idesc": 0x10200490}, f"{C} with cta_group=1: M is 64 or 128, not 256 (idesc 0x10200490)"),
        ({"idesc": 0x4200490, "cta_group": 2}, f"{C} with cta_group=2: M is 128 or 256, not 64 (idesc 0x04200490)"),
        (
            {"idesc": 0x8020490, "cta_group": 2},
            f"{C} with cta_group=2: N is a multiple of 16 up to 256, not 8 (idesc 0x08020490)",
        ),
        ({"idesc": 0x8020490, "ws": True}, f"{C} with cta_group=1, ws: N is 64, 128 or 256, not 8 (idesc 0x08020490)"),
        (
            {**SCALED, "idesc": 0x8840004, "sparse": True, "sparse_metadata": "$m", "cta_group": 2},
            "tcgen05.mma of .kind::mxf8f6f4 with cta_group=2: M is 256, not 128 (idesc 0x08840004)",
        ),
        ({"sparse": True}, f"{C}: sparse=True and sparse_metadata, an address in tensor memory, go together"),
        ({"sparse_metadata": "$m"}, f"{C}: sparse=True and sparse_metadata, an address in tensor memory, go together"),
        ({"ws": True, "cta_group": 2}, f"{C}: ws is of one CTA (cta_group=1) and of f16, tf32, f8f6f4 and i8"),
        ({"ashift": True}, f"{C}: ashift is of A in tensor memory (a_is_tmem=True), without ws and scale factors"),
        ({"zero_columns": "$z"}, f"{C}: zero_columns is of ws=True"),
        ({"ws": True, "disable_output_lane": [0] * 4}, f"{C}: disable_output_lane is of f16, tf32, f8f6f4 and i8 without ws"),
        ({"disable_output_lane": [0] * 8}, f"{C}: disable_output_lane has 4 words of 32 lanes, not 8"),
        ({"scale_a": "$a"}, f"{C} has no scale factors | use one of mxf8f6f4, mxf4, mxf4nvf4"),
        (
            {"kind": "mxf4"},
            "tcgen05.mma of .kind::mxf4 needs scale_a and scale_b, addresses of the scale factors in tensor memory",
        ),
        ({**SCALED, "kind": "mxf4nvf4"}, "tcgen05.mma of .kind::mxf4nvf4 needs scale_vec: 2X, 4X, block16, block32"),
        ({**SCALED, "scale_vec": "4X"}, "tcgen05.mma of .kind::mxf8f6f4: scale_vec is 1X or block32, not '4X'"),
        ({"collector_a": "keep"}, f"{C}: collector_a is one of fill, use, lastuse, discard, not 'keep'"),
        ({"collector_a": "fill", "ws": True}, f"{C}: collector_a is not of ws: use collector_b"),
        ({"collector_b": "b0::fill"}, f"{C}: collector_b is of ws=True"),
        ({"collector_b": "b4::fill", "ws": True}, f"{C}: collector_b is b0::fill to b3::discard, not 'b4::fill'"),
        ({"enable_input_d": False, **P}, "enable_input_d and pred_operand are one argument: give one of them"),
        ({"enable_input_d": "$i"}, "enable_input_d is a bool or a predicate register, and %I is u32"),
        ({"scale_d": 1, "scale_c": 1}, "scale_d and scale_c are one argument: give one of them"),
        ({"scale_d": 16}, f"{C}: scale_d is 0 to 15, D is divided by 2**scale_d, not 16"),
        ({"scale_d": 1, "kind": "i8"}, "tcgen05.mma of .kind::i8 does not scale D: scale_d is of f16 and tf32 without ws"),
    ],
)
def test_a_wrong_product_is_refused_at_the_line(how, message):
    assert refused(product(**how)) == message


def test_an_architecture_without_tensor_memory_refuses():
    message = refused(lambda: T.wait_ld(), arch="sm_120a")
    assert message.startswith("tcgen05.wait::ld.sync.aligned")
    assert "sm_120a" in message


def test_movement_and_order_in_the_text():
    def body():
        t, v = reg.scalar(u32, name="%T"), reg.array(b32, 2, name="%v")
        s = reg.scalar(u64, name="%S")
        T.alloc(t, 64)
        T.dealloc(t, 64, cta_group=2)
        T.relinquish_alloc_permit(cta_group=2)
        T.ld(v, t, pack=True)
        T.ld(v, ptx.addr(t, 8), shape="16x128b", count=1)
        T.ld(v, t, shape="16x32bx2", split=4)
        T.st(t, v, unpack=True)
        T.cp(t, s, size="64x128b", multicast="01_23", decompress="b4x16_p64")
        T.cp(t, s, size="32x128b", cta_group=2)
        T.shift(t)
        T.wait_st()
        T.fence_before_thread_sync()
        T.commit(t)
        T.commit(s, space="generic", cta_group=2)

    vector = r"\{%v0, %v1\}"
    expected = [
        r"tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 \[%T\], 64;",
        r"tcgen05.dealloc.cta_group::2.sync.aligned.b32 %T, 64;",
        r"tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;",
        rf"tcgen05.ld.sync.aligned.32x32b.x2.pack::16b.b32 {vector}, \[%T\];",
        rf"tcgen05.ld.sync.aligned.16x128b.x1.b32 {vector}, \[%T\+8\];",
        rf"tcgen05.ld.sync.aligned.16x32bx2.x2.b32 {vector}, \[%T\], 4;",
        rf"tcgen05.st.sync.aligned.32x32b.x2.unpack::16b.b32 \[%T\], {vector};",
        r"tcgen05.cp.cta_group::1.64x128b.warpx2::01_23.b8x16.b4x16_p64 \[%T\], %S;",
        r"tcgen05.cp.cta_group::2.32x128b.warpx4 \[%T\], %S;",
        r"tcgen05.shift.cta_group::1.down \[%T\];",
        r"tcgen05.wait::st.sync.aligned;",
        r"tcgen05.fence::before_thread_sync;",
        r"tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 \[%T\];",
        r"tcgen05.commit.cta_group::2.mbarrier::arrive::one.b64 \[%S\];",
    ]
    found = instructions(body)
    assert len(found) == len(expected)
    for line, pattern in zip(found, expected, strict=True):
        assert re.fullmatch(pattern, line), line


def test_a_load_that_reduces():
    def body():
        t, v, r = reg.scalar(u32, name="%T"), reg.array(f32, 2, name="%v"), reg.scalar(f32, name="%R")
        T.ld(v, t, reduce="max", reduced=r, dtype="f32", abs=True, nan=True)
        T.ld(v, t, reduce="min", reduced=r, dtype="s32")

    assert instructions(body, arch="sm_103a") == [
        "tcgen05.ld.red.sync.aligned.32x32b.x2.max.abs.NaN.f32 {%v0, %v1}, %R, [%T];",
        "tcgen05.ld.red.sync.aligned.32x32b.x2.min.s32 {%v0, %v1}, %R, [%T];",
    ]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t, v: T.alloc(t, 48), "tensor memory is allocated by 32, 64, 128, 256 or 512 columns, not 48"),
        (lambda t, v: T.dealloc(7, 64), "taddr is the 32-bit register that holds the address alloc wrote, not int"),
        (
            lambda t, v: T.ld(v, t, shape="8x8b"),
            "tcgen05.ld: shape is one of 32x32b, 16x64b, 16x128b, 16x256b, 16x32bx2, not '8x8b'",
        ),
        (lambda t, v: T.ld(v, t, count=8), "tcgen05.ld: 32x32b with count 8 moves 8 registers, and 4 are given"),
        (lambda t, v: T.ld(list(v)[:3], t), "tcgen05.ld: count of 32x32b is a power of two from 1 to 128, not 3"),
        (
            lambda t, v: T.ld(v, t, shape="16x256b", count=64),
            "tcgen05.ld: count of 16x256b is a power of two from 1 to 32, not 64",
        ),
        (lambda t, v: T.st(t, reg.array(u64, 4)), "tcgen05.st moves registers of 32 bits, and %ardu1_0 is u64"),
        (lambda t, v: T.ld(v, t, shape="16x32bx2"), "tcgen05.ld: 16x32bx2 needs split, the columns between its halves"),
        (lambda t, v: T.ld(v, t, split=1), "tcgen05.ld: 32x32b has no split; 32x32b moves one piece"),
        (
            lambda t, v: T.ld(v, t, dtype=f32),
            'tcgen05.ld: dtype=f32 has no effect without reduce | write reduce="min" or reduce="max"',
        ),
        (
            lambda t, v: T.ld(v, t, nan=True),
            'tcgen05.ld: nan has no effect without reduce | write reduce="min" or reduce="max"',
        ),
        (lambda t, v: T.ld(v, t, reduce="add"), 'tcgen05.ld: reduce is "min" or "max", not \'add\''),
        (lambda t, v: T.ld(v, t, reduce="min", pack=True), "tcgen05.ld with reduce moves whole 32-bit columns: pack is False"),
        (
            lambda t, v: T.ld(v, t, reduce="min", dtype="f32"),
            "tcgen05.ld: reduce needs a register for its result | give reduced=reg.scalar(b32)",
        ),
        (
            lambda t, v: T.ld(v, t, reduce="min", reduced=t, dtype="u32", abs=True),
            "tcgen05.ld: reduce compares f32 (with abs and nan), u32 or s32, not u32 with abs or nan",
        ),
        (
            lambda t, v: T.st(t, v, dtype="b16"),
            "tcgen05.st: dtype is b32, not b16 | registers of any 32-bit type are stored bit by bit",
        ),
        (
            lambda t, v: T.cp(t, v, size="1x1b"),
            "tcgen05.cp: size is one of 128x256b, 4x256b, 128x128b, 64x128b, 32x128b, not '1x1b'",
        ),
        (lambda t, v: T.cp(t, v, size="64x128b"), "tcgen05.cp of 64x128b takes multicast='02_13' or '01_23', not None"),
        (lambda t, v: T.cp(t, v, multicast="02_13"), "tcgen05.cp of 128x256b takes no multicast, not '02_13'"),
        (lambda t, v: T.cp(t, v, decompress="b2"), "tcgen05.cp: decompress is 'b6x16_p32' or 'b4x16_p64', not 'b2'"),
        (lambda t, v: T.commit(t, space="cta"), 'tcgen05.commit: space is "cluster" or "generic", not \'cta\''),
        (
            lambda t, v: T.commit(t, multicast=True),
            "tcgen05.commit: multicast needs the CTAs | give multicast_mask, a bit for each rank",
        ),
        (
            lambda t, v: T.commit(t, multicast_mask=3),
            "tcgen05.commit: multicast_mask without multicast has no effect | write multicast=True, or leave it out",
        ),
        (lambda t, v: T.descriptor(t, stride_bytes=1024, version=0), "a tcgen05 descriptor has version 1, not 0"),
        (
            lambda t, v: T.descriptor(t, stride_bytes=1024, swizzle="256B"),
            "swizzle is one of none, 128B_atom_32B, 128B, 64B, 32B, not '256B'",
        ),
        (
            lambda t, v: T.descriptor(t, stride_bytes=8),
            "tcgen05 descriptor: stride_bytes is a multiple of 16 below 262144, not 8",
        ),
        (lambda t, v: T.descriptor(t, stride_bytes=16, base_offset=8), "tcgen05 descriptor: base_offset is 0 to 7, not 8"),
        (
            lambda t, v: T.descriptor(t, stride_bytes=16, lbo_mode=1),
            'tcgen05 descriptor: lbo_mode=1, an absolute leading dimension, is of sm_103a | write arch="sm_103a"',
        ),
        (lambda t, v: T.masked_descriptor(t, byte_offset=8), "byte_offset is a multiple of 16, not 8"),
        (
            lambda t, v: T.make_instr_desc("f32", m=128, n=8, a_dtype="f32"),
            "kind is one of f16, tf32, f8f6f4, i8, mxf8f6f4, mxf4, mxf4nvf4, not 'f32'",
        ),
        (lambda t, v: T.make_instr_desc("f16", m=128, n=8, a_dtype="tf32"), "type of A is f16 or bf16, not 'tf32'"),
        (
            lambda t, v: T.make_instr_desc("f16", m=96, n=8, a_dtype=bf16),
            "m is 32, 64, 128 or 256 and n a multiple of 8 from 8 to 256, not m=96, n=8",
        ),
        (
            lambda t, v: T.make_instr_desc("f16", m=128, n=8, a_dtype=bf16, d_dtype="f16"),
            "D of f16 needs A and B of f16, not bf16 and bf16",
        ),
        (lambda t, v: T.make_instr_desc("tf32", m=128, n=8, a_dtype="tf32", saturate=True), ".kind::tf32 has no saturate"),
        (
            lambda t, v: T.make_instr_desc("i8", m=128, n=8, a_dtype="s8", scale_a=-1),
            ".kind::i8 negates nothing: scale_a and scale_b are 1",
        ),
        (
            lambda t, v: T.make_instr_desc("f16", m=128, n=8, a_dtype=bf16, sparsity_selector=1),
            "sparsity_selector has no effect without sparse=True",
        ),
        (
            lambda t, v: T.make_instr_desc("mxf4", m=128, n=8, a_dtype="e2m1", factor_dtype="ue4m3"),
            ".kind::mxf4 takes scale factors of type ue8m0, not ue4m3",
        ),
        (lambda t, v: T.make_instr_desc("f16", m=128, n=8, a_dtype=bf16, factor_a_id=1), ".kind::f16 has no factor_a"),
        (lambda t, v: T.make_instr_desc_f16bf16_f32(m=128, n=8, ab_dtype="e4m3"), "ab_dtype is f16 or bf16, not e4m3"),
        (lambda t, v: T.make_instr_desc_f16bf16_f32(m=128, n=8, a_major="M"), 'a_major is "K" or "MN", not \'M\''),
        (lambda t, v: T.make_instr_desc_f16bf16_f32(m=128, n=8, scale_b=2), "scale_b is 1 or -1, not 2"),
        (
            lambda t, v: T.make_instr_desc_f16bf16_f32(m=128, n=8, saturate=True),
            'saturate is of .kind::i8 | write make_instr_desc("i8", …, saturate=True)',
        ),
        (
            lambda t, v: ptx.clusterlaunchcontrol.is_canceled(t),
            "an answer is a 128-bit register, and %ru0 is u32 | load it with ptx.clusterlaunchcontrol.answer(slot)",
        ),
    ],
)
def test_a_wrong_call_is_refused_at_the_line(call, message):
    def body():
        t, v = reg.scalar(u32), reg.array(b32, 4)
        call(t, v)

    assert refused(body, arch="sm_100a") == message


def test_descriptor_bits():
    def body():
        base = smem.base()
        T.descriptor(base, stride_bytes=1024, leading_bytes=16384)
        T.masked_descriptor(base)

    text = kernel(arch="sm_100a", block=(128, 1, 1), smem=1024, extern_smem=True)(body).ptx(loc=False)
    constants = [int(x) for x in re.findall(r"or\.b64\s+%\w+, %\w+, (\d+);", text)]
    assert constants == [2 << 61 | 1 << 46 | 64 << 32 | 1024 << 16, 2 << 61 | 1 << 46 | 64 << 32 | 1 << 16]
    assert ws.explain_descriptor(constants[0] | 0x40) == (
        "tcgen05 descriptor 0x4000404004000040\n"
        "  13:0   start address             0x400\n"
        "  29:16  leading dimension offset  16384 bytes\n"
        "  45:32  stride dimension offset   1024 bytes\n"
        "  48:46  constant                  1\n"
        "  51:49  base offset               0\n"
        "  52     leading dimension mode    relative\n"
        "  63:61  swizzle                   128B"
    )
