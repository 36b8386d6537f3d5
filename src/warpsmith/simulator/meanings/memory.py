"""Data movement between registers and memory (PTX ISA 9.7.9): ld, ldu, st, and what only advises the caches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from warpsmith.simulator.access import Located, locate, quick, read, write
from warpsmith.simulator.definedness_bytes import BANKS, whole
from warpsmith.simulator.meanings.registry import machine
from warpsmith.simulator.operands import VectorDest
from warpsmith.simulator.registers import dtype_of
from warpsmith.simulator.traffic import as_one

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from warpsmith.assembly.ptx.isa import Match, OperandSlot
    from warpsmith.simulator.lanes import Lanes

__all__ = ["advice", "load", "policy", "store"]

_ITEM: dict[int, Any] = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64, 16: np.complex128}


def _address_of(m: Match) -> OperandSlot:
    return next(s for s in m.operands if s.kind == "address")


def _value_of(m: Match) -> OperandSlot:
    return next(s for s in m.operands if s.kind == "value")


@final
@dataclass(frozen=True, slots=True)
class _Load:
    """A form of ld: space, element dtype, `parts` elements of `width` bytes, and the bytes of the whole."""

    space: str | None
    dtype: Any
    width: int
    parts: int
    wide: bool
    """Elements are halves of `.b128` values."""

    @property
    def total(self) -> int:
        """Bytes of one lane."""
        return self.width * self.parts

    @property
    def label(self) -> str:
        """What its bytes are counted as."""
        return f"load {(self.space or 'generic').partition('::')[0]}"


@machine("ld", "ldu")
def load(m: Match) -> Callable[..., None]:
    """Build ld and ldu: all spaces, widths and vectors. Memory is sequentially consistent: ordering words add nothing."""
    slot, value = _address_of(m), _value_of(m)
    assert value.type is not None
    count, wide = value.count or 1, value.type.bits == 128
    width = 8 if wide else max(1, value.type.bits // 8)
    form = _Load(slot.space, dtype_of(value.type), width, 2 * count if wide else count, wide)
    total, label = form.total, form.label
    parameters = form.space is not None and form.space.startswith("param")

    def ld(x: Lanes, dest: Any, address: Any, *_: Any) -> None:
        if parameters and address.strides == (0, 0):
            _uniform(x, dest, int(address[0, 0]), form.dtype, width, form.parts)
            return
        x.machine.counters.bytes[label] += total * x.count()
        items = _quickly(form, x, address) if total <= 16 else None
        if items is None:
            _carefully(form, x, dest, address)
        elif form.parts == 1:
            x.put(dest, items.view(form.dtype))
        else:
            _spread(x, dest, items[..., None].view(form.dtype), wide)

    def many(x: Lanes, operations: list[Any], dests: list[Any], array: Any, addresses: Any) -> None:
        """Load `[k, C, T]` at once into registers `array` `[k, C, T]` or `[k, n, C, T]`."""
        items = _quickly(form, x, addresses, operations)
        if items is None:
            for op, dest, address in zip(operations, dests, addresses, strict=True):
                x.op = op
                ld(x, dest, address)
            return
        x.machine.counters.bytes[label] += total * x.count() * len(operations)
        values = items.view(form.dtype) if form.parts == 1 else np.moveaxis(items[..., None].view(form.dtype), -1, 1)
        np.copyto(array, values, where=True if x.mask is None else x.mask)

    if total <= 16 and not wide and not parameters:
        ld.many = many  # type: ignore[attr-defined]  # pyright: ignore[reportFunctionMemberAccess]
    return ld


def _quickly(form: _Load, x: Lanes, addresses: Any, operations: list[Any] | None = None) -> Any:
    """Return the items at good addresses with no flags on their bytes; None where a closer look is due."""
    total = form.total
    found = quick(x, form.space, addresses, total)
    if found is None:
        return None
    where, start = found
    where.note_read(start, total)
    index = start >> (total.bit_length() - 1)
    if where.shadows[total].take(index, mode="clip").any():
        return None
    if x.machine.races is not None:
        x.machine.races.loads.load(x, where, start, total, operations)
    if x.machine.traffic is not None:
        x.machine.traffic.access(x, where, start, total, x.mask, operations)
    return where.views[total].take(index, mode="clip")


def _carefully(form: _Load, x: Lanes, dest: Any, address: Any) -> None:
    """Load from wherever the addresses point, and judge what is found there."""
    total, dtype = form.total, form.dtype
    located = locate(x, form.space, address, total)
    if len(located) == 1 and total <= 16:
        items, undefined = read(x, located[0], total)
        data = items[..., None].view(dtype)
    else:
        raw, undefined = x.gather(located, total)
        data = raw.view(dtype)
    if form.parts == 1:
        x.put(dest, data[..., 0])
    else:
        _spread(x, dest, data, form.wide)
    if undefined is not None:
        _mark(x, dest, undefined, form.width * (2 if form.wide else 1))


def _uniform(x: Lanes, dest: Any, address: int, dtype: Any, width: int, parts: int) -> None:
    """Load a kernel parameter, the same for every thread."""
    space = x.machine.params
    total = width * parts
    if address < 1 << 24 and address % total == 0 and address + total <= space.allocations[0].size:
        values = space.data[address : address + total].view(dtype)
        for d, v in zip(dest if isinstance(dest, list) else [dest], values, strict=False):
            if d is not None and parts == 1:
                x.fill(d, v)
            elif d is not None and not isinstance(dest, list):
                x.put(d, values.reshape(2, 1, 1))
            elif d is not None:
                x.fill(d, v)
        return
    addresses = np.full(x.shape, address, np.int64)
    data, _ = x.gather(locate(x, "param", addresses, total), total)
    if parts == 1:
        x.put(dest, data.view(dtype)[..., 0])
    else:
        _spread(x, dest, data.view(dtype), not isinstance(dest, list))


def _spread(x: Lanes, dest: Any, values: NDArray[Any], wide: bool) -> None:
    """Write `[C, T, parts]` to the registers of a vector, or to the halves of one or more `.b128`."""
    if wide:
        for i, d in enumerate(dest if isinstance(dest, list) else [dest]):
            x.put(d, np.moveaxis(values[..., 2 * i : 2 * i + 2], -1, 0))
        return
    if not isinstance(dest, list):
        x.put(dest, values[..., 0])
        return
    if isinstance(dest, VectorDest) and dest.array is not None and x.machine.registers.undefined is None:
        block = np.moveaxis(values, -1, 0)
        if x.mask is None:
            np.copyto(dest.array, block)
        else:
            np.copyto(dest.array, block, where=x.mask)
        return
    for i, d in enumerate(dest):
        x.put(d, values[..., i])


def _mark(x: Lanes, dest: Any, undefined: NDArray[np.bool_], width: int) -> None:
    """Mark the destinations whose bytes `[C, T, n]` were undefined, and are used."""
    if (used := x.op.used_bytes) is not None:
        undefined = undefined & np.array([used >> k & 1 for k in range(undefined.shape[-1])], np.bool_)
    for i, d in enumerate(dest if isinstance(dest, list) else [dest]):
        each = undefined[..., width * i : width * (i + 1)]
        if width > 8:  # two registers
            x.put_undefined(d, np.logical_or.reduce(each, axis=-1))
            continue
        mask = np.packbits(each, axis=-1, bitorder="little")[..., 0]
        if d is not None and (more := (1 << BANKS[d.bank]) - (1 << width)):  # extended: by the sign, perhaps
            mask |= whole(mask) & np.uint8(more)
        x.put_undefined(d, mask)


@machine("st")
def store(m: Match) -> Callable[..., None]:
    """Build st: all spaces, widths and vectors."""
    slot = _address_of(m)
    value = _value_of(m)
    assert value.type is not None
    space, type_, count = slot.space, value.type, value.count or 1
    wide = type_.bits == 128
    width = 8 if wide else max(1, type_.bits // 8)
    parts = 2 * count if wide else count
    total = width * parts
    item, whole = _ITEM[width], _ITEM[min(total, 16)]
    index = m.operands.index(value)
    label = f"store {(space or 'generic').partition('::')[0]}"

    def st(x: Lanes, address: Any, data: Any, *_: Any) -> None:
        located = locate(x, space, address, total)
        undefined = _bytes_undefined(x, index, width, parts)
        if parts > 1 and any(v is None for v in data):
            _in_pieces(x, located, data, width, undefined, label)
            return
        x.machine.counters.bytes[label] += total * x.count()
        if parts == 1:
            values = data[0] if isinstance(data, list) else data
            for at in located:
                write(x, at, total, values.view(item), undefined)
            return
        packed = np.empty((*x.shape, parts), item)
        for i, v in enumerate(_pieces(data, wide)):
            packed[..., i] = v.view(item) if isinstance(v, np.ndarray) else v
        if total <= 16:
            for at in located:
                write(x, at, total, packed.view(whole)[..., 0], undefined)
            return
        halves = packed.view(whole)
        with as_one(x, located, total):
            for at in located:
                for k in range(total // 16):
                    write(
                        x, Located(at.space, at.index + 16 * k, at.mask), 16, halves[..., k], _part(undefined, k, total // 16)
                    )

    return st


def _bytes_undefined(x: Lanes, operand: int, width: int, parts: int) -> NDArray[np.bool_] | None:
    """Return which bytes `[C, T, n]` of a value in registers are undefined, `width` of each part; None: none."""
    masks = x.undefined_bytes(operand)
    if masks is None:
        return None
    bits = np.unpackbits(masks[..., None], axis=-1, bitorder="little", count=width)
    if masks.shape[-1] != parts:
        bits = np.broadcast_to(bits.any(axis=(-1, -2), keepdims=True), (*x.shape, parts, width))
    return bits.reshape(*x.shape, parts * width).view(np.bool_)


def _in_pieces(x: Lanes, located: list[Located], data: Any, width: int, undefined: Any, label: str) -> None:
    """Store the elements of a vector but those given as `_`, whose bytes stay as they are (256-bit stores)."""
    given = [(i, v) for i, v in enumerate(data) if v is not None]
    x.machine.counters.bytes[label] += width * len(given) * x.count()
    with as_one(x, located, width * len(data)):
        for at in located:
            for i, v in given:
                value = np.ascontiguousarray(np.broadcast_to(np.asarray(v), x.shape)).view(_ITEM[width])
                unwritten = _part(undefined, i, len(data))
                write(x, Located(at.space, at.index + width * i, at.mask), width, value, unwritten)


def _part(undefined: NDArray[np.bool_] | None, k: int, parts: int) -> NDArray[np.bool_] | None:
    """Part k of the elements `[C, T, items]` that are undefined."""
    if undefined is None:
        return None
    each = undefined.shape[-1] // parts
    return undefined[..., k * each : (k + 1) * each]


def _pieces(data: Any, wide: bool) -> Any:
    if not wide or not isinstance(data, list):
        return data
    return [half for value in data for half in value]


@machine("prefetch", "prefetchu", "applypriority", "discard")
def advice(m: Match) -> Callable[..., None]:
    """Build what only advises the caches: the address is not read."""

    def nothing(x: Lanes, *_: Any) -> None:
        del x

    del m
    return nothing


_POLICIES = {"L2::evict_last": 0x14F0 << 48, "L2::evict_first": 0x12F0 << 48, "L2::evict_normal": 0x10F0 << 48}
"""Primary priority → the policy that hardware makes of it for the whole of an access."""


@machine("createpolicy")
def policy(m: Match) -> Callable[..., None]:
    """Build createpolicy: the word that a cache hint takes; hints change nothing here."""
    value = np.uint64(_POLICIES.get(str(m.get("primary")), 0x16F0 << 48))

    def fn(x: Lanes, d: Any, *_: Any) -> None:
        x.fill(d, value)
        x.machine.fidelity.note("createpolicy", "not modelled", "cache policies are passed on and change nothing")

    return fn
