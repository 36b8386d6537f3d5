"""What the arguments of `@kernel` say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from warpsmith.base.errors import InputError

if TYPE_CHECKING:
    from warpsmith.assembly.ptx.tree import Parameter
    from warpsmith.base.tile import Tile

__all__ = ["Configuration", "triple"]


def triple(what: str, value: Sequence[int]) -> tuple[int, int, int]:
    """Return `value` as three positive ints; missing ones are 1."""
    if isinstance(value, int):
        value = (value,)
    out = tuple(value) if isinstance(value, Iterable) else ()
    if not 1 <= len(out) <= 3 or not all(hasattr(v, "__index__") and not isinstance(v, bool) and int(v) > 0 for v in out):
        raise InputError(f"kernel: {what} is up to three positive ints, not {value!r}")
    x, y, z = (*(int(v) for v in out), 1, 1)[:3]
    return x, y, z


@final
@dataclass(frozen=True, slots=True)
class Configuration:
    """The arguments of `@kernel`, checked."""

    arch: str
    version: tuple[int, int] | None
    in_specs: tuple[Tile, ...]
    out_specs: tuple[Tile, ...]
    grid: tuple[int, int, int] | Callable[..., tuple[int, ...]] | None
    block: tuple[int, int, int]
    block_given: bool
    cluster: tuple[int, int, int]
    smem: int
    raw_params: tuple[Parameter, ...]
    extern_smem: bool | str
    reqntid: tuple[int, int, int] | None
    raw_directives: tuple[tuple[str, tuple[int, ...]], ...] | None
