"""Shared memory: allocations, barriers, loads and stores."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from warpsmith.assembly.ptx.tree import Variable
from warpsmith.base.matrix_layout import GmmaLayout, Major, pick_gmma_layout
from warpsmith.base.place import error
from warpsmith.base.ptx_types import PtxType
from warpsmith.dsl.address import address
from warpsmith.dsl.registers import Reg, move
from warpsmith.dsl.shared import (
    MbarrierArray,
    MbarrierRef,
    SharedAlloc,
    SharedSlice,
    apply_swizzle,
    memory_type,
    normal_swizzle,
)
from warpsmith.dsl.shared_memory import STATIC_LIMIT, shared_limit
from warpsmith.dsl.trace import Retrace, current

if TYPE_CHECKING:
    from warpsmith.dsl.trace import Trace

__all__ = [
    "MbarrierArray", "MbarrierRef", "SharedAlloc", "SharedSlice",
    "alloc", "alloc_with_layout", "apply_swizzle", "base", "load", "mbarrier", "store", "wgmma_tile",
]  # fmt: skip

_SWIZZLE_ALIGNMENT = {"128B": 1024, "64B": 512, "32B": 256, None: 1}


def _reserve(trace: Trace, stem: str, name: str | None, size: int, align: int, kind: str) -> tuple[str, str, int]:
    """Make room; return (name, symbol, byte offset from the symbol); in dynamic memory the name is the symbol."""
    label = name or trace.unique(stem)
    shared = trace.shared
    shared.allocations.append(label)
    if trace.options.dynamic_shared:
        symbol = dynamic_symbol(trace)
        reserved = trace.smem_bytes if shared.base_used else trace.options.reserved
        return symbol, symbol, shared.place_dynamic(size, align, reserved)
    trace.declare_variable(label, "shared", "b64" if kind == "mbarrier" else "b8")
    shared.place_static(size, align)
    if shared.static_bytes > STATIC_LIMIT:
        raise Retrace(replace(trace.options, dynamic_shared=True))
    element, count = ("b64", size // 8) if kind == "mbarrier" else ("b8", size)
    trace.shared_variables.append(Variable("shared", element, label, [count], align=align))
    return label, label, 0


def dynamic_symbol(trace: Trace) -> str:
    """Return the name of the `extern .shared` array, declaring it on first use."""
    shared = trace.shared
    if not shared.dynamic_name:
        shared.dynamic_name = trace.dynamic_name or trace.unique("dynamic_smem")
        trace.declare_variable(shared.dynamic_name, "shared")
    return shared.dynamic_name


def _check_limit(trace: Trace, size: int, what: str) -> None:
    limit = shared_limit(trace.arch.number)
    total = trace.shared.static_bytes + max(trace.shared.dynamic_bytes, trace.smem_bytes)
    if total > limit:
        raise error(
            f"shared memory over the limit: {what} brings the kernel to {total} bytes, sm_{trace.arch.number} has {limit}",
            "use fewer stages or smaller tiles",
        )


def alloc(
    dtype: PtxType, shape: tuple[int, ...] | int, swizzle: str | None = None, align: int | None = None, name: str | None = None
) -> SharedAlloc:
    """Allocate shared memory of `shape` elements.

    `alloc(...)[stage]` is the slice at that stage, `[row, col]` loads and stores elements (through the swizzle, if any).
    `align` is in bytes, 128 by default and at least what the swizzle needs (8 rows of it).
    """
    return alloc_with_layout(dtype, shape, swizzle, align, name)


def alloc_with_layout(
    dtype: PtxType, shape: tuple[int, ...] | int, swizzle: str | None = None, align: int | None = None,
    name: str | None = None, *, gmma_layout: GmmaLayout | None = None, gmma_major: str | None = None,
) -> SharedAlloc:  # fmt: skip
    """Allocate shared memory and note the wgmma layout it is for."""
    if not isinstance(dtype, PtxType) or dtype.kind == "pred":
        raise error(f"shared memory needs a type of warpsmith.types, not {dtype!r}", "write e.g. smem.alloc(bf16, (64, 64))")
    dims = (shape,) if isinstance(shape, int) else tuple(shape) if isinstance(shape, (tuple, list)) else ()
    if not dims or not all(isinstance(d, int) and d > 0 for d in dims):
        raise error(f"the shape of an allocation is one or more positive ints, not {shape!r}")
    if align is not None and (not isinstance(align, int) or align < 1 or align & (align - 1)):
        raise error(f"an alignment is a power of two, not {align!r}")
    swizzle = normal_swizzle(swizzle)
    size = -(-dtype.bits * prod(dims) // 8)
    boundary = max(128 if align is None else align, _SWIZZLE_ALIGNMENT[swizzle], dtype.bits // 8)
    trace = current()
    label, symbol, offset = _reserve(trace, "smem", name, size, boundary, "tile")
    _check_limit(trace, size, f"{trace.shared.allocations[-1]} ({size} bytes)")
    return SharedAlloc(label, dtype, dims, swizzle, symbol, offset, boundary, gmma_layout, gmma_major)


def wgmma_tile(
    dtype: PtxType, shape: tuple[int, int], major: str = "K", *, align: int | None = None, name: str | None = None
) -> SharedAlloc:
    """Allocate an operand of wgmma in the layout its shape asks for.

    `shape` is (M, K) or (N, K) for `major="K"`, and (K, N) or (K, M) for `major="MN"`. The result carries `gmma_layout`,
    from which `ptx.wgmma.mma_async` builds the descriptor.
    """
    if major not in ("K", "MN"):
        raise error(f'major is "K" or "MN", not {major!r}')
    if not isinstance(shape, (tuple, list)) or len(shape) != 2:
        raise error(f"the shape of a wgmma tile is two ints, not {shape!r}", "write (M, K) for major K, (K, N) for major MN")
    rows, columns = shape
    k, other = (columns, rows) if major == "K" else (rows, columns)
    try:
        layout = pick_gmma_layout(elem_bytes=dtype.bits // 8, m_or_n=other, k=k, major=Major[major])
    except ValueError as e:
        raise error(str(e)) from None
    return alloc_with_layout(dtype, shape, layout.smem_swizzle, align, name, gmma_layout=layout, gmma_major=major)


def mbarrier(count: int = 1, name: str | None = None) -> MbarrierArray:
    """Allocate `count` mbarriers of 8 bytes; index the result to get one."""
    if not isinstance(count, int) or count < 1:
        raise error(f"smem.mbarrier allocates at least 1 barrier, not {count!r}")
    trace = current()
    label, symbol, offset = _reserve(trace, "mbar", name, 8 * count, 8, "mbarrier")
    _check_limit(trace, 8 * count, f"{trace.shared.allocations[-1]} ({count} barriers)")
    return MbarrierArray(label, count, symbol, offset)


def base(name: str | None = None) -> Reg:
    """Return a u32 register with the address of the dynamic shared memory, aligned to 1024 bytes."""
    trace = current()
    if name is not None and (not isinstance(name, str) or not name.isidentifier()):
        raise error(f"the dynamic shared memory is named by an identifier, not {name!r}")
    if name is not None and trace.shared.dynamic_name and name != trace.shared.dynamic_name:
        raise error(f"the dynamic shared memory is already called {trace.shared.dynamic_name}")
    if name is not None:
        trace.dynamic_name = name
    if trace.smem_bytes and not trace.options.reserved and trace.options.dynamic_shared and trace.shared.allocations:
        raise Retrace(replace(trace.options, reserved=trace.smem_bytes))
    trace.shared.base_used = True
    trace.shared.dynamic_alignment = max(trace.shared.dynamic_alignment, 1024)
    result = trace.new_named("u32")
    trace.emit("mov.u32", (result, dynamic_symbol(trace)))
    return result


def load(dtype: PtxType, address_: object) -> Reg:
    """Load one value of `dtype` from shared memory."""
    trace = current()
    word = memory_type(dtype)
    result = trace.new(dtype)
    trace.emit(f"ld.shared.{word}", (result, address(address_)))
    return result


def store(dtype: PtxType, address_: object, value: object) -> None:
    """Store one value of `dtype` to shared memory."""
    trace = current()
    word = memory_type(dtype)
    if not isinstance(value, Reg):
        register = trace.new(dtype)
        move(register, value)
        value = register
    trace.emit(f"st.shared.{word}", (address(address_), value))
