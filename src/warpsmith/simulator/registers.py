"""The register banks and their typed views: `[slot, cta, thread]`."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, final

import numpy as np

from warpsmith.base.ptx_types import TYPES, PtxType

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["BANKS", "Rectangle", "Registers", "dtype_of"]

BANKS: dict[str, tuple[Any, int]] = {"b16": (np.uint16, 2), "b32": (np.uint32, 4), "b64": (np.uint64, 8), "pred": (np.bool_, 1)}
"""Bank → dtype and bytes of a slot. A `.b128` register is two slots of `b64`, a `.b8` one lives in `b16`."""

Rectangle = tuple[int, int, int, int]
"""c0, c1, t0, t1: resident rows and threads, ends exclusive."""

_FLOATS = {"f32": np.float32, "f64": np.float64}


@cache
def dtype_of(type_: PtxType | str) -> Any:
    """Return the dtype in which a pure meaning sees a value of this type."""
    t = TYPES[type_] if isinstance(type_, str) else type_
    if t.kind == "pred":
        return np.bool_
    if t.name in _FLOATS:
        return _FLOATS[t.name]
    width = next(w for w in (8, 16, 32, 64, 128) if t.bits <= w)
    if width == 128:
        return np.uint64
    return np.dtype(f"{'i' if t.kind == 'signed' else 'u'}{width // 8}").type


@final
class Registers:
    """All registers of the resident CTAs."""

    def __init__(self, slots: dict[str, int], rows: int, threads: int) -> None:
        self.rows, self.threads = rows, threads
        self.banks: dict[str, NDArray[Any]] = {
            name: np.zeros((slots.get(name, 0), rows, threads), dtype) for name, (dtype, _) in BANKS.items()
        }
        self.undefined: dict[str, NDArray[np.uint8]] | None = None
        """Per bank: masks of the undefined bytes of registers (see `definedness`); None until such a value has been read."""

    def track(self) -> None:
        """Start to keep which registers are undefined."""
        if self.undefined is None:
            self.undefined = {name: np.zeros(bank.shape, np.uint8) for name, bank in self.banks.items()}

    def view(self, bank: str, slot: int, count: int | None, dtype: Any, rect: Rectangle, byte: int = 0) -> NDArray[Any]:
        """Return registers as `[C, T]` (or `[count, C, T]`) of `dtype`: the bytes from `byte` on where it is narrower."""
        c0, c1, t0, t1 = rect
        array = self.banks[bank]
        wide, narrow = array.dtype.itemsize, np.dtype(dtype).itemsize
        k = wide // narrow
        where: Any = slot if count is None else slice(slot, slot + count)
        if k == 1:
            return array.view(dtype)[where, c0:c1, t0:t1]
        first = byte // narrow
        return array.view(dtype)[where, c0:c1, t0 * k + first : t1 * k : k]

    def undefined_view(self, bank: str, slot: int, count: int | None, rect: Rectangle) -> NDArray[np.uint8]:
        """Return the masks of undefined bytes of registers as `[C, T]` or `[count, C, T]`."""
        assert self.undefined is not None
        c0, c1, t0, t1 = rect
        where: Any = slot if count is None else slice(slot, slot + count)
        return self.undefined[bank][where, c0:c1, t0:t1]
