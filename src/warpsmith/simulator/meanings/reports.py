"""Qualifiers that bulk copies of all kinds share: what they report to a barrier of layout v1, how wide a multicast mask is.

PTX ISA 9.7.10.28.1.3 (report mechanisms), 9.7.10.28.4.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.simulator.meanings.registry import refuse

if TYPE_CHECKING:
    from warpsmith.assembly.ptx.isa import Match
    from warpsmith.simulator.meanings.registry import Refused

__all__ = ["mask_width", "reports"]


def reports(m: Match) -> Refused | None:
    """Refuse copies that inspect their data: which elements are looked at is not said; `disabled` is the default."""
    mechanism = str(m.get("report") or "")
    if "per_16bytes" in mechanism:
        return refuse("which element of 16 bytes a copy with a report samples is left open")
    if "per_element" in mechanism:
        return refuse("whether a report by element takes bytes of 0xff or 4-bit elements of 0xf is left open")
    return None


def mask_width(m: Match) -> int:
    """Return the bits of the instruction's multicast mask."""
    return 32 if "multicast::cluster::32b" in m.mnemonic else 16
