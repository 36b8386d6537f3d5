"""Address conversions."""

from __future__ import annotations

from warpsmith.base.ptx_types import TYPES
from warpsmith.dsl.registers import Reg
from warpsmith.dsl.trace import current

__all__ = ["param", "to_global"]


def _convert(mnemonic: str, src: Reg, dst: Reg | None) -> Reg:
    result = dst if dst is not None else current().new(TYPES["u64"])
    current().emit(mnemonic, (result, src))
    return result


def param(src: Reg, dst: Reg | None = None) -> Reg:
    """Convert an address of a kernel parameter to generic; return the destination."""
    return _convert("cvta.param.u64", src, dst)


def to_global(src: Reg, dst: Reg | None = None) -> Reg:
    """Convert a generic address to global; return the destination."""
    return _convert("cvta.to.global.u64", src, dst)
