"""`ptx.inst.<chain>(operands…, pred=None)`: any instruction, spelled as an attribute chain.

ptx.inst.fma.rn.f32(d, a, b, c)            fma.rn.f32 d, a, b, c;
ptx.inst.ld.global_.v4.b32(r, addr)        a trailing _ escapes Python keywords
ptx.inst.fence.proxy.async__global()       __ is ::
ptx.inst.tcgen05.ld.sync.aligned._32x32b.x8.b32(...)   a leading _ goes before a digit
ptx.inst.spcompress.b8.b4.sp__2_4.x1(...)  sp::2:4
"""

from __future__ import annotations

import re
from typing import final

from warpsmith.dsl.registers import NegPred, Reg
from warpsmith.dsl.trace import current

__all__ = ["Chain", "inst", "word"]

_RATIO = re.compile(r"::(\d+)_(\d+)$")


def word(attribute: str) -> str:
    """Return the mnemonic word an attribute stands for."""
    if attribute[0] == "_" and attribute[1:2].isdigit():
        attribute = attribute[1:]
    if attribute.endswith("_") and not attribute.endswith("__"):
        attribute = attribute[:-1]
    return _RATIO.sub(r"::\1:\2", attribute.replace("__", "::"))


@final
class Chain:
    """A mnemonic being spelled; calling it emits the instruction. Chains are kept, so spelling one again costs a lookup."""

    __slots__ = ("__dict__", "_mnemonic")

    def __init__(self, mnemonic: str) -> None:
        self._mnemonic = mnemonic

    def __getattr__(self, name: str) -> Chain:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        longer = Chain(f"{self._mnemonic}.{word(name)}" if self._mnemonic else word(name))
        self.__dict__[name] = longer
        return longer

    def __call__(self, *operands: object, pred: Reg | NegPred | None = None) -> None:
        """Emit the instruction."""
        current().emit(self._mnemonic, operands, pred)

    def __repr__(self) -> str:
        return f"<ptx.inst.{self._mnemonic}>"


inst = Chain("")
