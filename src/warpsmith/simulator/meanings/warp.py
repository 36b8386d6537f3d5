"""Communication inside a warp (PTX ISA 9.7.10, 9.7.15): shfl, vote, match, redux, activemask, elect.

Every lane is answered by its own member mask: the lanes that execute the instruction and stand in that mask take part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from warpsmith.simulator.definedness_bytes import whole
from warpsmith.simulator.meanings import float as single
from warpsmith.simulator.meanings.forms import Form, form_of
from warpsmith.simulator.meanings.registry import machine

if TYPE_CHECKING:
    from warpsmith.assembly.ptx.isa import Match
    from warpsmith.simulator.lanes import Lanes

__all__ = ["collective", "lane_bits", "shuffle_source"]

Array = NDArray[Any]
Fn = Callable[..., None]
LANES = np.arange(32, dtype=np.int64)
_BITS = np.left_shift(np.uint32(1), np.arange(32, dtype=np.uint32))


def lane_bits(flags: Array) -> NDArray[np.uint32]:
    """Return bools `[…, 32]` as 32-bit masks `[…, 1]`."""
    packed = np.packbits(flags, axis=-1, bitorder="little")
    return np.ascontiguousarray(packed).view(np.uint32)


def collective(x: Lanes, members: Any) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return (member masks `[C, W, 32]`, executing lanes as masks `[C, W, 1]`).

    Lanes outside their own mask are reported; the engine has waited for those that a mask names and are not here.
    """
    masks = np.broadcast_to(np.asarray(members).astype(np.uint32), x.shape)
    x.names_itself(masks)
    return x.warps(masks), lane_bits(x.warps(x.active()))


def shuffle_source(mode: str, b: Array, c: Array) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return (source lane, whether it is in range) for operands `[…, 32]`; out of range the source is the lane itself."""
    by, clamp, segment = b & 31, c & 31, (c >> 8) & 31
    low = LANES & segment
    limit = low | (clamp & ~segment & 31)
    if mode == "up":
        source = LANES - by
        inside = source >= limit
    else:
        if mode == "down":
            source = LANES + by
        elif mode == "bfly":
            source = LANES ^ by
        else:
            source = low | (by & ~segment & 31)
        inside = source <= limit
    return np.where(inside, source, LANES), inside


@machine("shfl.sync")
def shfl(m: Match) -> Fn:
    """Build shfl.sync: `fn(x, (d, p or None), a, b, c, members)`."""
    mode = next(w for w in form_of(m).words if w in ("up", "down", "bfly", "idx"))

    def fn(x: Lanes, d: Any, a: Array, b: Any, c: Any, members: Any) -> None:
        _, executing = collective(x, members)
        first, second = d if isinstance(d, tuple) else (d, None)
        b, c = (x.warps(np.broadcast_to(np.asarray(v).astype(np.int64), x.shape)) for v in (b, c))
        source, inside = shuffle_source(mode, b, c)
        undefined = whole(((executing >> source.astype(np.uint32)) & 1) == 0)  # of a lane that is not here
        if (masks := x.undefined_bytes(1)) is not None:
            undefined |= np.take_along_axis(x.warps(masks[..., 0]), source, axis=-1)
        chosen = _undefined(x, 2, 3, 4)
        values = x.warps(np.broadcast_to(a, x.shape))
        x.put(first, x.threads_of(np.take_along_axis(values, source, axis=-1)))
        x.put(second, x.threads_of(inside))
        _mark(x, (second,), chosen)
        _mark(x, (first,), undefined if chosen is None else undefined | whole(chosen))

    return fn


def _undefined(x: Lanes, *operands: int) -> NDArray[np.bool_] | None:
    """Return the lanes `[C, W, 32]` where one of these operands is undefined; None: nowhere."""
    found = [flags for i in operands if (flags := x.undefined(i)) is not None]
    return x.warps(np.logical_or.reduce(found)) if found else None


def _undefined_together(x: Lanes, taking: NDArray[np.uint32], decided: Array | None = None) -> NDArray[np.bool_] | None:
    """Return where an undefined value of a lane that takes part (`taking`, masks `[C, W, 32]`) reaches; None: nowhere.

    `decided` `[C, W, 32]`: lanes whose own value, when defined, is the result whatever the others give.
    """
    own, members = _undefined(x, 1), _undefined(x, 2)
    if own is None:
        return members
    given = (lane_bits(own) & taking) != 0
    if decided is not None:
        given &= (lane_bits(decided & ~own) & taking) == 0
    return given if members is None else given | members


def _mark(x: Lanes, dests: tuple[Any, ...], undefined: NDArray[np.bool_] | NDArray[np.uint8] | None) -> None:
    """Mark results, which have just been put, as undefined in lanes `[C, W, 32]`, or bytes of them by masks."""
    if undefined is not None and undefined.any():
        for dest in dests:
            x.put_undefined(dest, x.threads_of(undefined))


@machine("vote.sync")
def vote(m: Match) -> Fn:
    """Build vote.sync: all, any, uni, ballot."""
    form = form_of(m)
    kind = next(w for w in form.words if w in ("all", "any", "uni", "ballot"))

    def fn(x: Lanes, d: Any, a: Any, members: Any) -> None:
        masks, executing = collective(x, members)
        masks = masks & executing
        each = x.warps(np.broadcast_to(np.asarray(a), x.shape) & x.active())
        votes = lane_bits(each) & masks
        if kind == "ballot":
            result: Array = votes
        elif kind == "all":
            result = votes == masks
        elif kind == "any":
            result = votes != 0
        else:
            result = (votes == masks) | (votes == 0)
        undefined = _undefined_together(x, masks, {"any": each, "all": ~each}.get(kind))
        x.put(d, x.threads_of(result))
        _mark(x, (d,), undefined)

    return fn


def _agreeing(values: Array, here: Array) -> NDArray[np.uint32]:
    """Return for each lane the mask of executing lanes with an equal value."""
    same = (values[..., :, None] == values[..., None, :]) & here[..., None, :]
    return lane_bits(same)[..., 0]


@machine("match.any", "match.all")
def match_(m: Match) -> Fn:
    """Build match.any.sync and match.all.sync."""
    everyone = "all" in form_of(m)

    def fn(x: Lanes, d: Any, a: Any, members: Any) -> None:
        masks, executing = collective(x, members)
        masks = masks & executing
        agree = _agreeing(x.warps(np.broadcast_to(a, x.shape)), x.warps(x.active())) & masks
        first, second = d if isinstance(d, tuple) else (d, None)
        undefined = _undefined_together(x, masks)
        if everyone:
            equal = agree == masks
            x.put(first, x.threads_of(np.where(equal, masks, np.uint32(0))))
            x.put(second, x.threads_of(equal))
        else:
            x.put(first, x.threads_of(agree))
        _mark(x, (first, second), undefined)

    return fn


def _float_join(form: Form) -> Callable[[Array, Array], Array]:
    op = single.min_max_single(Form.parse(f"{form.words[1]}{'.NaN' if 'NaN' in form else ''}.f32"))

    def join(a: Array, b: Array) -> Array:
        out = np.empty(a.shape, np.float32)
        op(out, a, b)
        return out

    return join


_INTEGER: dict[str, np.ufunc] = {
    "add": np.add, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "min": np.minimum, "max": np.maximum,
}  # fmt: skip


def _neutral(op: str, dtype: np.dtype[Any]) -> int:
    """Return the value that changes nothing in a reduction."""
    info = np.iinfo(dtype)
    return {"and": -1 if info.min else info.max, "min": info.max, "max": info.min}.get(op, 0)


def _tree(values: Array, join: Callable[[Array, Array], Array]) -> Array:
    """Combine the last axis (32 long) pairwise."""
    while values.shape[-1] > 1:
        half = values.shape[-1] // 2
        values = join(values[..., :half], values[..., half:])
    return values[..., 0]


@machine("redux.sync")
def redux(m: Match) -> Fn:
    """Build redux.sync: integers, and min and max of f32 (`.abs`, `.NaN`)."""
    form = form_of(m)
    op = form.words[1]

    def fn(x: Lanes, d: Any, a: Any, members: Any) -> None:
        masks, executing = collective(x, members)
        taking = ((masks & executing)[..., :, None] & _BITS) != 0
        values = x.warps(np.broadcast_to(a, x.shape))[..., None, :]
        undefined = _undefined_together(x, masks & executing)
        if form.type == "f32":
            x.put(d, x.threads_of(_reduce_float(form, values, taking)))
        else:
            idle = values.dtype.type(_neutral(op, values.dtype))
            x.put(d, x.threads_of(_INTEGER[op].reduce(np.where(taking, values, idle), axis=-1, dtype=values.dtype)))
        _mark(x, (d,), undefined)

    return fn


def _reduce_float(form: Form, values: Array, taking: Array) -> Array:
    """Reduce f32 values; NaNs are left out, or taken over with `.NaN`."""
    if "abs" in form:
        values = np.abs(values)
    idle = np.float32(np.inf if form.words[1] == "min" else -np.inf)
    nan = np.isnan(values) & taking
    plain = "NaN" not in form
    used = np.where(taking & ~nan if plain else taking, values, idle)
    result = _tree(np.broadcast_to(used, taking.shape), _float_join(form))
    if plain:
        result = np.where((nan | ~taking).all(axis=-1), single.NAN, result)
    return result


@machine("activemask")
def activemask(m: Match) -> Fn:
    """Build activemask: the lanes that execute it."""

    def fn(x: Lanes, d: Any) -> None:
        x.put(d, x.threads_of(x.lane_masks()[..., None]))

    return fn


@machine("elect.sync")
def elect(m: Match) -> Fn:
    """Build elect.sync: the lowest member lane leads; `fn(x, (d or None, p), members)`."""

    def fn(x: Lanes, d: Any, members: Any) -> None:
        masks, executing = collective(x, members)
        masks = masks & executing
        lowest = np.bitwise_count((masks & (~masks + np.uint32(1))) - np.uint32(1)).astype(np.int64)
        first, second = d
        x.put(first, x.threads_of(lowest.astype(np.uint32)))
        x.put(second, x.threads_of(lowest == LANES))

    return fn
