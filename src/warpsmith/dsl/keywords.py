"""Keywords of a call on a GPU, sorted: what may differ from launch to launch, and what a prepared launch depends on."""

from __future__ import annotations

from struct import Struct, error
from typing import TYPE_CHECKING, Any, NamedTuple, final

from warpsmith.base.ptx_types import TYPES
from warpsmith.dsl import rooms
from warpsmith.dsl.binding import frozen

if TYPE_CHECKING:
    from collections.abc import Callable

    from warpsmith.assembly.ptx.tree import Parameter
    from warpsmith.dsl.binding import Callee

__all__ = ["NO_KEYWORDS", "Keywords", "packer", "sort_keywords"]

_OPTIONS = ("stream", "cooperative", "programmatic")
_PLAIN = {int, float, bool}
_FORMATS = {
    "u8": "B", "u16": "H", "u32": "I", "u64": "Q", "s8": "b", "s16": "h", "s32": "i", "s64": "q",
    "b8": "B", "b16": "H", "b32": "I", "b64": "Q", "f16": "e", "f32": "f", "f64": "d",
}  # fmt: skip
"""PTX type -> how `struct` packs a number of it; what it refuses, and the other types, are packed the long way."""


@final
class Keywords(NamedTuple):
    """The keywords of a call."""

    key: Any
    """Tells calls apart that need launches prepared apart."""
    names: tuple[str, ...] = ()
    """Raw parameters whose values each launch is given."""
    values: tuple[Any, ...] = ()
    stream: int | None = None
    flags: tuple[bool, bool] = (False, False)
    """cooperative, programmatic"""
    arrays: dict[str, Any] = {}  # noqa: RUF012 (never changed)
    """Raw parameters that are arrays."""
    rest: dict[str, Any] = {}  # noqa: RUF012 (never changed)
    """Template parameters, dimensions, grid, and values of raw parameters that are no plain numbers."""


NO_KEYWORDS = Keywords(())


def sort_keywords(kernel: Callee, keywords: dict[str, Any]) -> Keywords:
    """Sort the keywords of a call."""
    numbers = kernel.numbers
    if numbers.issuperset(keywords) and _PLAIN.issuperset(map(type, keywords.values())):
        key = tuple(keywords)
        return Keywords(key, key, tuple(keywords.values()))
    rest: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for n, v in keywords.items():
        if n in numbers and type(v) in _PLAIN:
            values[n] = v
        else:
            rest[n] = v
    names = tuple(values)
    own = kernel.constants | {p.name for p in kernel.configuration.raw_params}
    options = {n: rest.pop(n) for n in _OPTIONS if n in rest and n not in own}
    stream = options.get("stream")
    handle = None if stream is None else rooms.launch("arrays").stream_handle(stream)
    flags = bool(options.get("cooperative")), bool(options.get("programmatic"))
    if not rest:
        return Keywords((names, flags), names, tuple(values.values()), handle, flags)
    values |= {n: rest.pop(n) for n in numbers & rest.keys() if _is_numpy_number(rest[n])}
    arrays = {n: rest.pop(n) for n in list(rest) if rooms.arrays_of(rest[n]) is not None}
    names = tuple(values)
    return Keywords((names, flags, frozen(rest), *arrays), names, tuple(values.values()), handle, flags, arrays, rest)


def _is_numpy_number(value: Any) -> bool:
    return type(value).__module__ == "numpy" and getattr(value, "shape", None) == ()


def packer(kernel: str, p: Parameter) -> tuple[int, Callable[[Any], bytes]]:
    """Return the bytes of a raw parameter, and the function that makes them of a number."""
    what = f"{kernel}: the parameter {p.name!r}"
    if p.type not in _FORMATS:
        return TYPES[p.type].bits // 8, lambda value: rooms.pack_value(value, p, what)
    fast = Struct("<" + _FORMATS[p.type])

    def pack(value: Any) -> bytes:
        try:
            return fast.pack(value)
        except (error, OverflowError):
            return rooms.pack_value(value, p, what)

    return fast.size, pack
