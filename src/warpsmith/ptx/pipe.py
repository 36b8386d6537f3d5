"""`ptx.pipe(src).op.mods(dst, …)`: a chain in which every result is the next call's first source."""

from __future__ import annotations

from typing import final

from warpsmith.base.place import error
from warpsmith.dsl.chain import word
from warpsmith.dsl.registers import NegPred, Reg
from warpsmith.dsl.trace import current

__all__ = ["Pipe", "pipe"]


@final
class Pipe:
    """The value so far, and the mnemonic being spelled."""

    __slots__ = ("_mnemonic", "value")

    def __init__(self, value: object, mnemonic: str = "") -> None:
        self.value = value
        self._mnemonic = mnemonic

    def __getattr__(self, name: str) -> Pipe:
        if name.startswith("__"):
            raise AttributeError(name)
        return Pipe(self.value, f"{self._mnemonic}.{word(name)}" if self._mnemonic else word(name))

    def __call__(self, dst: Reg, *operands: object, pred: Reg | NegPred | None = None) -> Pipe:
        """Emit `mnemonic dst, value, operands…` and go on with `dst`."""
        if not self._mnemonic:
            raise error("ptx.pipe(src) needs an instruction", "write ptx.pipe(src).add.s32(dst, 1)")
        current().emit(self._mnemonic, (dst, self.value, *operands), pred)
        return Pipe(dst)


def pipe(src: object) -> Pipe:
    """Start a chain with `src`."""
    return Pipe(src)
