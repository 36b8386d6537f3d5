"""Descriptors of tcgen05: matrices in shared memory, and shapes and types of products (PTX ISA 9.7.18.4)."""

from __future__ import annotations

from warpsmith.base.explain_descriptor import TCGEN05_SWIZZLES
from warpsmith.base.instruction_descriptor import KINDS, SHIFTS, InstructionDescriptor, encode
from warpsmith.base.place import error
from warpsmith.base.ptx_types import PtxType
from warpsmith.dsl.registers import Reg
from warpsmith.dsl.trace import current
from warpsmith.ptx import wgmma

__all__ = ["MASKED_DESC_B128", "descriptor", "make_instr_desc", "make_instr_desc_f16bf16_f32", "masked_descriptor"]

MASKED_DESC_B128 = 2 << 61 | 1 << 46 | 64 << 32 | 1 << 16
"""Constant part of a K-major descriptor with the 128-byte swizzle: stride 1024, leading 16, version 1."""


def descriptor(
    addr: object, *, byte_offset: int = 0, stride_bytes: int, leading_bytes: int = 16, swizzle: str | None = "128B",
    version: int = 1, base_offset: int = 0, lbo_mode: int = 0,
) -> Reg:  # fmt: skip
    """Return the 64-bit descriptor of a matrix at `addr + byte_offset` of shared memory.

    `swizzle` is "128B", "64B", "32B", "128B_atom_32B" or None. `lbo_mode=1` (sm_103a): `leading_bytes` is an address.
    """
    if version != 1:
        raise error(f"a tcgen05 descriptor has version 1, not {version!r}")
    name = "none" if swizzle is None else swizzle
    if name not in TCGEN05_SWIZZLES:
        raise error(f"swizzle is one of {', '.join(TCGEN05_SWIZZLES)}, not {swizzle!r}")
    for what, value in (("leading_bytes", leading_bytes), ("stride_bytes", stride_bytes)):
        if not isinstance(value, int) or value % 16 or not 0 <= value < 1 << 18:
            raise error(f"tcgen05 descriptor: {what} is a multiple of 16 below {1 << 18}, not {value!r}")
    if not isinstance(base_offset, int) or not 0 <= base_offset < 8:
        raise error(f"tcgen05 descriptor: base_offset is 0 to 7, not {base_offset!r}")
    if lbo_mode not in (0, 1):
        raise error(f"tcgen05 descriptor: lbo_mode is 0 (relative) or 1 (absolute), not {lbo_mode!r}")
    if lbo_mode and current().arch.number != 103:
        raise error("tcgen05 descriptor: lbo_mode=1, an absolute leading dimension, is of sm_103a", 'write arch="sm_103a"')
    constant = leading_bytes >> 4 << 16 | stride_bytes >> 4 << 32 | 1 << 46 | base_offset << 49 | lbo_mode << 52
    return masked_descriptor(addr, byte_offset=byte_offset, const_bits=constant | TCGEN05_SWIZZLES[name] << 61)


def masked_descriptor(addr: object, *, byte_offset: int = 0, mask: int = 0x3FFF0, const_bits: int = MASKED_DESC_B128) -> Reg:
    """Return `((addr + byte_offset) & mask) >> 4 | const_bits`, by default of a K-major operand with the 128-byte swizzle."""
    if not isinstance(byte_offset, int) or byte_offset % 16:
        raise error(f"byte_offset is a multiple of 16, not {byte_offset!r}")
    return wgmma.masked_descriptor(addr, byte_offset=byte_offset, mask=mask, const_bits=const_bits)


def _major(what: str, value: object) -> bool:
    known = {"K": False, "MN": True, 0: False, 1: True}
    if not isinstance(value, (str, int)) or value not in known:
        raise error(f'{what} is "K" or "MN", not {value!r}')
    return known[value]


def _negated(what: str, value: object) -> bool:
    if value not in (1, -1):
        raise error(f"{what} is 1 or -1, not {value!r}")
    return value == -1


def make_instr_desc(
    kind: str, *, m: int, n: int, a_dtype: str | PtxType, b_dtype: str | PtxType | None = None,
    d_dtype: str | PtxType | None = None, a_major: str | int = "K", b_major: str | int = "K", scale_a: int = 1,
    scale_b: int = 1, saturate: bool = False, sparse: bool = False, sparsity_selector: int = 0, max_shift: int = 0,
    factor_dtype: str | PtxType | None = None, factor_a_id: int = 0, factor_b_id: int = 0, k96: bool = False,
) -> int:  # fmt: skip
    """Return the instruction descriptor of a product of any kind; `ws.explain_descriptor(value, kind=…)` reads it back.

    `b_dtype` is `a_dtype` unless given, `d_dtype` f32 (s32 of i8). `scale_a=-1` negates A. `max_shift` (0, 8, 16, 32) is of
    `.ws`. `factor_dtype` (ue8m0, ue4m3), `factor_a_id` and `factor_b_id` are of the block-scaled kinds, whose D is f32.
    """
    if kind not in KINDS:
        raise error(f"kind is one of {', '.join(KINDS)}, not {kind!r}")
    if max_shift not in SHIFTS:
        raise error(f"max_shift is 0, 8, 16 or 32, not {max_shift!r}")
    scaled = kind.startswith("mx")
    factor = str(factor_dtype) if factor_dtype is not None else "ue8m0" if scaled else ""
    if factor == "ue4m3" and kind != "mxf4nvf4":
        raise error(f".kind::{kind} takes scale factors of type ue8m0, not ue4m3")
    d = str(d_dtype) if d_dtype is not None else "s32" if kind == "i8" else "f32"
    if scaled and d != "f32":
        raise error(f".kind::{kind} accumulates in f32, not {d}")
    fields = InstructionDescriptor(
        kind=kind, m=m, n=n, d=d, a=str(a_dtype), b=str(a_dtype if b_dtype is None else b_dtype), sparse=sparse,
        selector=sparsity_selector, saturate=saturate, negate_a=_negated("scale_a", scale_a),
        negate_b=_negated("scale_b", scale_b), a_mn_major=_major("a_major", a_major), b_mn_major=_major("b_major", b_major),
        shift=SHIFTS.index(max_shift), factor=factor, factor_a=factor_a_id, factor_b=factor_b_id, k96=k96,
    )  # fmt: skip
    return _checked(fields)


def _checked(d: InstructionDescriptor) -> int:
    if d.d == "f16" and (d.a, d.b) not in (("f16", "f16"),) and d.kind == "f16":
        raise error(f"D of f16 needs A and B of f16, not {d.a} and {d.b}")
    if d.kind == "i8" and (d.negate_a or d.negate_b):
        raise error(".kind::i8 negates nothing: scale_a and scale_b are 1")
    if d.selector and not d.sparse:
        raise error("sparsity_selector has no effect without sparse=True")
    if d.k96 and d.sparse:
        raise error("k96 is of dense products")
    if d.m not in (32, 64, 128, 256) or isinstance(d.n, bool) or not isinstance(d.n, int) or d.n % 8 or not 8 <= d.n <= 256:
        raise error(f"m is 32, 64, 128 or 256 and n a multiple of 8 from 8 to 256, not m={d.m!r}, n={d.n!r}")
    try:
        return encode(d)
    except ValueError as e:
        raise error(str(e)) from None


def make_instr_desc_f16bf16_f32(
    *, m: int, n: int, ab_dtype: str | PtxType = "bf16", a_major: str | int = "K", b_major: str | int = "K", scale_a: int = 1,
    scale_b: int = 1, saturate: bool = False, sparse: bool = False, max_shift: int = 0,
) -> int:  # fmt: skip
    """Return the instruction descriptor of `.kind::f16` with f16 or bf16 operands and an f32 accumulator."""
    if str(ab_dtype) not in ("f16", "bf16"):
        raise error(f"ab_dtype is f16 or bf16, not {ab_dtype}")
    if saturate:
        raise error("saturate is of .kind::i8", 'write make_instr_desc("i8", …, saturate=True)')
    return make_instr_desc(
        "f16", m=m, n=n, a_dtype=ab_dtype, a_major=a_major, b_major=b_major, scale_a=scale_a, scale_b=scale_b, sparse=sparse,
        max_shift=max_shift,
    )  # fmt: skip
