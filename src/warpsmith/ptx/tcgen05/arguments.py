"""Arguments that several tcgen05 calls share."""

from __future__ import annotations

from warpsmith.base.place import error
from warpsmith.base.ptx_types import TYPES
from warpsmith.dsl.address import Address
from warpsmith.dsl.registers import NegPred, Reg
from warpsmith.dsl.trace import current

__all__ = ["Pred", "group_word", "is_word", "tensor_memory", "untyped"]

Pred = Reg | NegPred | None
"""What `pred=` takes."""


def group_word(cta_group: int) -> str:
    """Return `cta_group::1` or `cta_group::2`."""
    if cta_group not in (1, 2):
        raise error(f"cta_group is 1 or 2, not {cta_group!r}")
    return f"cta_group::{int(cta_group)}"


def is_word(value: object) -> bool:
    """Say whether a value is a register of 32 bits that is no float."""
    return isinstance(value, Reg) and value.dtype.bits == 32 and value.dtype.kind not in ("float", "packed")


def untyped(where: Address) -> Address:
    """Return the address in a register of type .b32, the only type ptxas takes for the addresses of a product."""
    base = where.base
    if not isinstance(base, Reg) or base.type == "b32":
        return where
    bits = current().new(TYPES["b32"])
    current().emit("mov.b32", (bits, base))
    return Address(bits, where.offset)


def tensor_memory(what: str, value: object) -> Address:
    """Return the operand `[taddr]`: a 32-bit register, or `ptx.addr(register, columns)`."""
    where = value if isinstance(value, Address) else None
    if where is None:
        if not isinstance(value, Reg):
            raise error(
                f"{what} is an address in tensor memory, a 32-bit register, not {type(value).__name__}",
                "load what alloc wrote: taddr = smem.load(u32, slot)",
            )
        where = Address(value) if is_word(value) else None
    if where is None or not is_word(where.base):
        base = value if where is None else where.base
        of = f"{base.name} is {base.dtype}" if isinstance(base, Reg) else f"{base!r} is a name"
        raise error(f"{what} is an address in tensor memory, a 32-bit register, and {of}")
    return where
