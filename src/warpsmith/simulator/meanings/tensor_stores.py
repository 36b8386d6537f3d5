"""What tensor stores and reductions must keep to besides loads (PTX ISA 9.7.10.28.5.1, direction .global.shared::cta)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.base.tensormap import ELEMENTS

if TYPE_CHECKING:
    from warpsmith.base.tensormap import TensorMapFields
    from warpsmith.simulator.async_access import Lane
    from warpsmith.simulator.lanes import Lanes

__all__ = ["stored"]


def stored(
    x: Lanes, lane: Lane, f: TensorMapFields, coordinates: list[int], mode: str, reduction: str | None
) -> bool:  # fmt: skip
    """Report a store whose box begins before the tensor, or of an element type that has none; say whether it may go on.

    "Starting co-ordinates for Bounding Box must be non-negative"; on sm_107 those of `.tile::scatter4` may be negative. An H200
    stops with an illegal instruction. The pixel box of im2col "must stay within the tensor boundaries": there, too, wherever
    the pixels lie that are stored.
    """
    what = "store" if reduction is None else "reduction"
    if f.element == "b4x16_p64" or (reduction is not None and ELEMENTS[f.element].bits < 8):
        _report(x, lane, f"a tensor {what} of {f.element}, which has none", "Store the elements with generic instructions.")
        return False
    if any(c < 0 for c in coordinates):
        text = f"a tensor {what} starts at coordinates ({', '.join(map(str, coordinates))}); "
        if mode != "tile::scatter4":
            repair = "Start the box inside the tensor and leave the rows before it out of the copy."
            _report(x, lane, text + "none may be negative", repair)
            return False
        repair = "Use a row beyond the tensor in the place of a negative one."
        x.finding(
            "out-of-bounds", text + "only sm_107 takes negative ones", lanes=lane.mask, severity="portability", repair=repair
        )
    if f.mode != "tiled" and (min(f.lower) < 0 or max(f.upper) > 0):
        text = f"a tensor {what} with a pixel box that leaves the tensor (lower corner {f.lower}, upper corner {f.upper})"
        repair = "Use a tensor map for stores whose lower corner is not negative and whose upper corner is not positive."
        _report(x, lane, text, repair)
        return False
    return True


def _report(x: Lanes, lane: Lane, message: str, repair: str) -> None:
    x.finding("out-of-bounds", message, lanes=lane.mask, stop=True, repair=repair)
