"""Warpgroup matrix multiply-accumulate (PTX ISA 9.7.15) and its shared-memory descriptors."""

from __future__ import annotations

from collections.abc import Iterable

from warpsmith.base.matrix_layout import GmmaLayout, Major, pick_gmma_layout
from warpsmith.base.place import error
from warpsmith.base.ptx_types import TYPES, PtxType
from warpsmith.dsl.address import in_register
from warpsmith.dsl.registers import NegPred, Reg
from warpsmith.dsl.trace import current

__all__ = [
    "MASKED_DESC_B128",
    "SWIZZLE_32B",
    "SWIZZLE_64B",
    "SWIZZLE_128B",
    "SWIZZLE_NONE",
    "auto_descriptor",
    "commit_group",
    "fence",
    "make_descriptor",
    "masked_descriptor",
    "mma_async",
    "wait_group",
]  # fmt: skip

Pred = Reg | NegPred | None

SWIZZLE_NONE, SWIZZLE_128B, SWIZZLE_64B, SWIZZLE_32B = 0, 1, 2, 3
MASKED_DESC_B128 = 1 << 62 | 64 << 32 | 1 << 16
"""Constant part of a K-major descriptor with the 128-byte swizzle: stride 1024, leading 16."""

_SCALED = ("f16", "bf16", "tf32", "e4m3", "e5m2")
"""A types whose instruction has the ±1 factors."""
_TRANSPOSABLE = ("f16", "bf16")


def fence(*, pred: Pred = None) -> None:
    """Order earlier register and shared-memory accesses before the next wgmma."""
    current().emit("wgmma.fence.sync.aligned", (), pred)


def commit_group(*, pred: Pred = None) -> None:
    """Close the group of wgmma issued so far."""
    current().emit("wgmma.commit_group.sync.aligned", (), pred)


def wait_group(n: int, *, pred: Pred = None) -> None:
    """Wait until at most `n` groups are in flight (0 to 7)."""
    if not isinstance(n, int) or not 0 <= n <= 7:
        raise error(f"wgmma.wait_group takes 0 to 7 groups, not {n!r}")
    current().emit("wgmma.wait_group.sync.aligned", (n,), pred)


def _constant_bits(leading: int, stride: int, swizzle: int, base_offset: int) -> int:
    for what, value in (("leading_byte_offset", leading), ("stride_byte_offset", stride)):
        if not isinstance(value, int) or value % 16 or not 0 <= value < 1 << 18:
            raise error(f"wgmma descriptor: {what} is a multiple of 16 below {1 << 18}, not {value!r}")
    if swizzle not in (0, 1, 2, 3):
        raise error(f"wgmma descriptor: swizzle is one of ptx.wgmma.SWIZZLE_*, not {swizzle!r}")
    if not 0 <= base_offset < 8:
        raise error(f"wgmma descriptor: base_offset is 0 to 7, not {base_offset!r}")
    return (leading >> 4) << 16 | (stride >> 4) << 32 | base_offset << 49 | swizzle << 62


def masked_descriptor(
    smem_addr: object, *, byte_offset: int = 0, mask: int = 0x3FF80, const_bits: int = MASKED_DESC_B128
) -> Reg:
    """Return `((address + byte_offset) & mask) >> 4 | const_bits` as a 64-bit register."""
    if not 0 <= mask < 1 << 18 or mask % 16:
        raise error(f"a descriptor's address mask has bits 4 to 17, not {mask:#x}")
    trace = current()
    start = in_register(trace, smem_addr)
    if byte_offset:
        start = start + byte_offset
    index = (start & mask) >> 4
    if index.type == "s32":
        raise error("a shared-memory address is unsigned", "compute it in u32 or b32 registers")
    result = trace.new(TYPES["u64"])
    trace.emit("cvt.u64.u32", (result, index))
    trace.emit("or.b64", (result, result, const_bits))
    return result


def make_descriptor(
    smem_base: object, *, leading_byte_offset: int, stride_byte_offset: int, swizzle: int = 0, base_offset: int = 0,
    addr_byte_offset: int = 0,
) -> Reg:  # fmt: skip
    """Return a 64-bit descriptor of a matrix in shared memory; offsets in bytes."""
    const = _constant_bits(leading_byte_offset, stride_byte_offset, swizzle, base_offset)
    return masked_descriptor(smem_base, byte_offset=addr_byte_offset, mask=0x3FFF0, const_bits=const)


def _from_layout(base: object, layout: GmmaLayout, byte_offset: int) -> Reg:
    return make_descriptor(
        base, leading_byte_offset=layout.leading_byte_offset, stride_byte_offset=layout.stride_byte_offset,
        swizzle=layout.swizzle_code, addr_byte_offset=byte_offset,
    )  # fmt: skip


def auto_descriptor(smem_base: object, *, dtype: PtxType, shape: tuple[int, int], major: str | int | Major) -> Reg:
    """Return the descriptor of a tile: `shape` is (M or N, K) for major K, (K, M or N) for major MN."""
    kind = {"K": Major.K, "MN": Major.MN, 0: Major.K, 1: Major.MN, Major.K: Major.K, Major.MN: Major.MN}.get(major)
    if kind is None:
        raise error(f'major is "K" or "MN", not {major!r}')
    k, other = (shape[1], shape[0]) if kind is Major.K else (shape[0], shape[1])
    try:
        layout = pick_gmma_layout(elem_bytes=dtype.bits // 8, m_or_n=other, k=k, major=kind)
    except ValueError as e:
        raise error(str(e)) from None
    return _from_layout(smem_base, layout, 0)


def _descriptor_of(what: str, operand: object, k_offset: int, trans: int) -> Reg:
    """Return the descriptor of an operand: a 64-bit register, or a tile that carries its layout."""
    if not isinstance(k_offset, int) or k_offset % 16:
        raise error(f"{what}_k_offset is a number of bytes, a multiple of 16, not {k_offset!r}")
    if isinstance(operand, Reg):
        if operand.dtype.bits != 64:
            raise error(
                f"{what} is a 64-bit descriptor, and {operand.name} is {operand.dtype}", "see ptx.wgmma.make_descriptor"
            )
        return operand + (k_offset >> 4) if k_offset else operand
    layout = getattr(operand, "gmma_layout", None)
    if layout is None:
        raise error(
            f"{what} is neither a descriptor nor a tile that knows its layout ({type(operand).__name__})",
            "allocate it with smem.wgmma_tile, or give ptx.wgmma.make_descriptor(…)",
        )
    major = getattr(operand, "gmma_major", "K")
    if (major == "MN") != bool(trans):
        raise error(
            f"{what} was allocated {major}-major, and trans_{what}={trans} says {'MN' if trans else 'K'}-major",
            f"write trans_{what}={int(major == 'MN')}",
        )
    return _from_layout(operand, layout, k_offset)


def _factors(dtype_a: PtxType, scale_a: int, scale_b: int, trans_a: int, trans_b: int, a_in_registers: bool) -> list[int]:
    """The immediates behind scale-d; refuse what the type does not have."""
    for what, value in (("scale_a", scale_a), ("scale_b", scale_b)):
        if value not in (1, -1):
            raise error(f"wgmma: {what} is 1 or -1, not {value!r}")
    for what, value in (("trans_a", trans_a), ("trans_b", trans_b)):
        if value not in (0, 1):
            raise error(f"wgmma: {what} is 0 or 1, not {value!r}")
    out: list[int] = []
    if dtype_a.name in _SCALED:
        out += [scale_a, scale_b]
    elif (scale_a, scale_b) != (1, 1):
        raise error(f"wgmma of {dtype_a} has no scale_a and scale_b")
    if a_in_registers and trans_a:
        raise error("wgmma: A in registers cannot be transposed (trans_a=1)")
    if dtype_a.name in _TRANSPOSABLE:
        out += [int(trans_b)] if a_in_registers else [int(trans_a), int(trans_b)]
    elif trans_a or trans_b:
        raise error(f"wgmma of {dtype_a} reads both operands K-major: trans_a and trans_b are 0", "store the tile K-major")
    return out


def mma_async(
    *, shape: tuple[int, int, int], dtype_d: PtxType, dtype_a: PtxType, dtype_b: PtxType, d: Iterable[Reg], a: object,
    b: object,
    scale_d: Reg | bool | int = False, scale_a: int = 1, scale_b: int = 1, trans_a: int = 0, trans_b: int = 0,
    a_k_offset: int = 0, b_k_offset: int = 0, pred: Pred = None,
) -> None:  # fmt: skip
    """Emit one wgmma: d = a·b, plus d when `scale_d` is true (a bool, or a predicate register).

    `a` is a descriptor, a tile of `smem.wgmma_tile` or registers; `b` a descriptor or a tile. `*_k_offset` moves the operand
    on by bytes.
    """
    if len(shape) != 3:
        raise error(f"a wgmma shape is (64, n, k), not {shape!r}")
    m, n, k = shape
    in_registers = not isinstance(a, Reg) and isinstance(a, Iterable) and not hasattr(a, "gmma_layout")
    factors = _factors(dtype_a, scale_a, scale_b, int(trans_a), int(trans_b), in_registers)
    if in_registers and a_k_offset:
        raise error("a_k_offset moves a descriptor on; A is in registers")
    first = list(a) if in_registers else _descriptor_of("a", a, a_k_offset, int(trans_a))  # type: ignore[call-overload]
    second = _descriptor_of("b", b, b_k_offset, int(trans_b))
    types = f"{dtype_d}.{dtype_a}.{dtype_b}" + (".and.popc" if dtype_a.name == "b1" else "")
    if isinstance(scale_d, Reg) and scale_d.type != "pred":
        raise error(f"scale_d is a bool or a predicate register, and {scale_d.name} is {scale_d.dtype}")
    scale = scale_d if isinstance(scale_d, Reg) else int(bool(scale_d))
    operands = (list(d), first, second, scale, *factors)
    current().emit(f"wgmma.mma_async.sync.aligned.m{m}n{n}k{k}.{types}", operands, pred)
