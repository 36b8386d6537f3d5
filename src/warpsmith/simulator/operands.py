"""What a machine meaning is handed for a written register: where a result goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Dest", "VectorDest"]


@final
class Dest:
    """A written register of a rectangle: `array` is its live view `[C, T]`.

    The view has the dtype of the operand; where the register is wider, that of the register with the operand's sign, and
    results are extended. A predicate's is bool.
    """

    __slots__ = ("array", "bank", "dtype", "slot", "undefined")

    def __init__(self, array: NDArray[Any], dtype: Any, bank: str, slot: int) -> None:
        self.array = array
        self.dtype = np.dtype(dtype)
        """Dtype of the operand."""
        self.bank = bank
        self.slot = slot
        self.undefined: NDArray[np.uint8] | None = None
        """Masks of its undefined bytes, while undefined values are tracked."""


@final
class VectorDest(list["Dest | None"]):
    """Destinations of a brace vector; None for `_`. `array` is one view `[n, C, T]` where the registers are consecutive."""

    __slots__ = ("array",)

    def __init__(self, items: list[Dest | None], array: NDArray[Any] | None = None) -> None:
        super().__init__(items)
        self.array = array
