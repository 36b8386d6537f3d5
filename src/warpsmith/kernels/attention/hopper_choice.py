"""The tiling of the Hopper kernel for a problem: the one that a model fitted to measurements says ends first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from warpsmith.kernels.attention.hopper_config import SHARED_LIMIT, VALUES, Config, SharedMap
from warpsmith.kernels.attention.hopper_schedule import LARGEST, plan

__all__ = ["choose"]

_CANDIDATES: dict[tuple[int, int], tuple[dict[str, Any], ...]] = {
    (64, 64): (
        {"consumers": 2, "keys": 128},
        {"consumers": 3, "keys": 128},
        {"consumers": 4, "keys": 64, "threshold": 8.0},
    ),
    (96, 96): (
        {"consumers": 2, "keys": 128, "threshold": 8.0},
        {"consumers": 3, "keys": 96, "threshold": 8.0},
    ),
    (128, 128): (
        {"consumers": 2, "keys": 128},
        {"consumers": 3, "keys": 80, "threshold": 8.0, "ordered": 1, "k_stages": 3, "v_stages": 3},
    ),
    (192, 128): (
        {"consumers": 2, "keys": 96},
        {"consumers": 3, "keys": 80, "threshold": 8.0},
    ),
    (256, 256): ({"consumers": 2, "keys": 64, "threshold": 8.0, "staged": 0},),
}
"""(dim, numbers of V) → tilings that were measured."""
_BYTES: dict[tuple[int, int], tuple[dict[str, Any], ...]] = {
    (64, 64): (
        {"consumers": 3, "keys": 128, "threshold": 2.0},
        {"consumers": 4, "keys": 64, "threshold": 2.0},
    ),
    (128, 128): (
        {"consumers": 2, "keys": 128, "threshold": 2.0},
        {"consumers": 3, "keys": 96, "threshold": 2.0},
    ),
    (256, 256): (
        {"consumers": 2, "keys": 128},
        {"consumers": 2, "keys": 64},
    ),
}
"""The same for inputs in e4m3."""
_MICROSECONDS = {
    (2, 64, 2): (1.236, 0.8),
    (2, 64, 3): (1.462, 1.35),
    (2, 64, 4): (1.045, 1.5),
    (2, 96, 2): (1.45, 1.2),
    (2, 96, 3): (1.39, 1.9),
    (2, 128, 2): (1.433, 2.2),
    (2, 128, 3): (1.234, 2.5),
    (2, 192, 2): (1.42, 1.5),
    (2, 192, 3): (1.58, 1.8),
    (1, 64, 3): (1.181, 2.0),
    (1, 64, 4): (0.847, 1.7),
    (1, 128, 2): (1.273, 0.8),
    (1, 128, 3): (1.199, 3.2),
}
"""(bytes of an element, dim, consumers) → (a key tile, what an item costs besides) on an H200; docs/performance.md has the
measurements."""


def choose(heads: int, sequence: int, dim: int, dtype: str, causal: bool, **given: Any) -> Config:
    """Return the config that should be fastest on an H100 or H200 for a problem; options that are given are kept."""
    base = Config(heads, sequence, dim, dtype, causal, ordered=1, staged=1)
    if base.eight:
        return _of_bytes(base, given)
    if dim == 128:
        base = replace(base, threshold=8.0 if causal else 0.0, ordered=int(causal or sequence <= 1024))
    measured = _CANDIDATES.get((dim, given.get("value_dim") or dim), ())
    candidates = [c for c in (replace(base, **{**tiling, **given}) for tiling in measured) if _fits(c)]
    return min(candidates, key=predicted) if candidates else _unmeasured(replace(base, **given), given)


def _fits(c: Config) -> bool:
    """Say whether registers and shared memory take a tiling."""
    return c.consumers in VALUES and c.values <= c.room and SharedMap(c).size <= SHARED_LIMIT


def _unmeasured(c: Config, given: dict[str, Any]) -> Config:
    """Return a tiling for dimensions that were not measured: as many keys a tile as registers and shared memory take.

    Two consumers, since their registers hold the widest outputs; two stages each for K and V before an output that is
    staged on its own, both before more than 64 keys.
    """
    tilings = [{"keys": keys, "staged": staged} for staged in (1, 0) for keys in range(128, 48, -16)]
    tilings += [{"keys": keys, "staged": staged} for staged in (1, 0) for keys in range(48, 0, -16)]
    for tiling in tilings:
        made = replace(c, **{**tiling, **given})
        if _fits(made):
            return made
    return c


def _of_bytes(c: Config, given: dict[str, Any]) -> Config:
    """Return the tiling for inputs in e4m3, measured or with as many consumers and keys as fit."""
    measured = _BYTES.get((c.dim, given.get("value_dim") or c.dim), ())
    candidates = [m for m in (replace(c, **{**tiling, **given}) for tiling in measured) if _fits(m)]
    if candidates:
        return min(candidates, key=predicted)
    tilings: list[dict[str, Any]] = [{"consumers": 3, "keys": keys} for keys in (128, 96)]
    tilings += [{"consumers": 2, "keys": keys, "v_stages": stages} for keys in (128, 96, 64, 32) for stages in (2, 1)]
    made = [replace(c, **{"threshold": 2.0, **tiling, **given}) for tiling in tilings]
    return next((m for m in made if _fits(m)), replace(c, **given))


def predicted(c: Config) -> float:
    """Return the microseconds that the model gives the multiprocessor with the most work."""
    tile, item = _MICROSECONDS.get((c.element, c.dim, c.consumers), (1.0, 1.0))
    if not c.causal or c.items > LARGEST:
        rounds = -(-c.items // c.multiprocessors)
        tiles = sum(map(c.tiles_of, range(c.blocks))) / c.blocks
        return rounds * (tiles * tile + item)
    return max(sum(c.tiles_of(block) * tile + item for _, block in items) for items in plan(c))
