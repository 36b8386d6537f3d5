"""RMS norm: y = x · rsqrt(mean(x²) + ε) · w, one CTA a row (Zhang and Sennrich 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from warpsmith import Tile, kernel, ptx, reg, smem
from warpsmith.base.errors import InputError
from warpsmith.specs import Layout
from warpsmith.types import b32, b64, f32, from_name, pred, u32, u64

__all__ = ["Config", "build"]

THREADS = 128
WIDTH = 8
"""16-bit elements of one 16-byte access."""


@dataclass(frozen=True, slots=True)
class Config:
    """Shape of one RMS norm; `columns` is a multiple of 8."""

    rows: int
    columns: int
    dtype: str = "bf16"
    epsilon: float = 1e-6
    arch: str = "sm_80"

    @property
    def steps(self) -> int:
        """Accesses of each thread to its row: the CTA reads THREADS · WIDTH columns at once."""
        return -(-self.columns // (WIDTH * THREADS))


def _unpack(words: Any, dtype: str) -> list[Any]:
    """Widen four registers of two 16-bit values each to eight f32 registers."""
    values = []
    for word in words:
        if dtype == "bf16":  # a bf16 is the upper half of an f32
            low, high = reg.scalar(f32), reg.scalar(f32)
            bits = reg.scalar(b32)
            ptx.inst.shl.b32(bits, word, 16)
            ptx.inst.mov.b32(low, bits)
            ptx.inst.and_.b32(bits, word, 0xFFFF0000)
            ptx.inst.mov.b32(high, bits)
            values += [low, high]
        else:
            halves = reg.array(from_name("f16"), 2)
            ptx.inst.mov.b32(halves, word)
            for half in halves:
                value = reg.scalar(f32)
                ptx.inst.cvt.f32.f16(value, half)
                values.append(value)
    return values


def _cta_sum(value: Any, thread: Any, base: Any) -> None:
    """Sum `value` over the CTA; every thread gets the total."""
    other = reg.scalar(f32)
    for distance in (16, 8, 4, 2, 1):
        ptx.inst.shfl.sync.bfly.b32(other, value, distance, 31, 0xFFFFFFFF)
        ptx.inst.add.rn.f32(value, value, other)
    warp, lane, to = reg.scalar(u32), reg.scalar(u32), reg.scalar(u32)
    ptx.inst.shr.u32(warp, thread, 5)
    ptx.inst.and_.b32(lane, thread, 31)
    ptx.inst.mad.lo.u32(to, warp, 4, base)
    ptx.inst.st.shared.f32(ptx.addr(to), value, pred=lane == 0)
    ptx.bar.sync(0)
    parts = reg.array(f32, THREADS // 32)
    ptx.inst.ld.shared.v4.f32(parts, ptx.addr(base))
    ptx.inst.mov.f32(value, parts[0])
    for part in list(parts)[1:]:
        ptx.inst.add.rn.f32(value, value, part)


def _addresses(c: Config, thread: Any, row: Any, pointers: tuple[Any, ...]) -> tuple[Any, Any, Any]:
    """Return where the thread's first columns of x, y and w lie."""
    x_at, w_at, y_at = pointers
    offset, column = reg.scalar(u64), reg.scalar(u64)
    ptx.inst.mul.wide.u32(offset, row, 2 * c.columns)
    ptx.inst.mul.wide.u32(column, thread, 2 * WIDTH)
    source, target, weight = reg.scalar(b64), reg.scalar(b64), reg.scalar(b64)
    for to, pointer in ((source, x_at), (target, y_at)):
        ptx.inst.add.s64(to, pointer, offset)
        ptx.inst.add.s64(to, to, column)
    ptx.inst.add.s64(weight, w_at, column)
    return source, target, weight


def _words(step: int, inside: Any, load: Any, address: Any) -> Any:
    """Load 16 bytes of the step; zeros past the end of the row."""
    words = reg.array(b32, 4)
    for word in words:
        ptx.inst.mov.b32(word, 0)
    load.v4.b32(words, ptx.addr(address, step * THREADS * WIDTH * 2), pred=inside)
    return words


def _load(c: Config, step: int, thread: Any, source: Any, total: Any) -> tuple[list[Any], Any]:
    """Load x, add its squares to `total`; return the values and whether they lie inside the row."""
    inside, first = reg.scalar(pred), reg.scalar(u32)
    ptx.inst.mad.lo.u32(first, thread, WIDTH, step * THREADS * WIDTH)
    ptx.inst.setp.lt.u32(inside, first, c.columns)
    values = _unpack(_words(step, inside, ptx.inst.ld.global_, source), c.dtype)
    for value in values:
        ptx.inst.fma.rn.f32(total, value, value, total)
    return values, inside


def _store(c: Config, step: int, values: list[Any], inside: Any, scale: Any, weight: Any, target: Any) -> None:
    """Scale the values, multiply them by w and store them."""
    weights = _unpack(_words(step, inside, ptx.inst.ld.global_.nc, weight), c.dtype)
    for value, factor in zip(values, weights, strict=True):
        ptx.inst.mul.rn.f32(value, value, scale)
        ptx.inst.mul.rn.f32(value, value, factor)
    packed = reg.array(b32, 4)
    for i in range(4):
        getattr(ptx.inst.cvt.rn, f"{c.dtype}x2").f32(packed[i], values[2 * i + 1], values[2 * i])
    ptx.inst.st.global_.v4.b32(ptx.addr(target, step * THREADS * WIDTH * 2), packed, pred=inside)


def _check(c: Config) -> None:
    if c.columns % WIDTH or c.columns < WIDTH:
        raise InputError(f"rms_norm: {c.columns} columns; a row is read 16 bytes at a time, use a multiple of {WIDTH}")
    if c.dtype not in ("f16", "bf16"):
        raise InputError(f"rms_norm: dtype {c.dtype!r} is not supported; use 'f16' or 'bf16'")
    if c.rows < 1:
        raise InputError(f"rms_norm: rows={c.rows} must be at least 1")


@cache
def build(config: Config) -> Any:
    """Return the kernel for `config`: (x `[rows, columns]`, w `[columns]`) → y like x."""
    c = config
    _check(c)
    dtype = from_name(c.dtype)

    @kernel(
        arch=c.arch,
        in_specs=(Tile(c.rows, c.columns, dtype, Layout.ROW), Tile(c.columns, dtype, Layout.ROW)),
        out_specs=(Tile(c.rows, c.columns, dtype, Layout.ROW),),
        grid=(c.rows, 1, 1),
        block=(THREADS, 1, 1),
        smem=16,
        extern_smem=True,
        reqntid=(THREADS, 1, 1),
    )
    def rms_norm(x: Any, w: Any, y: Any) -> None:
        base = smem.base()
        thread, row = reg.scalar(u32), reg.scalar(u32)
        ptx.inst.mov.u32(thread, ptx.special.tid.x())
        ptx.inst.mov.u32(row, ptx.special.ctaid.x())
        source, target, weight = _addresses(c, thread, row, ptx.global_ptrs(x, w, y))

        scale = reg.scalar(f32, init=0.0)  # Σ x², then 1 / sqrt(mean(x²) + ε)
        tiles = [_load(c, step, thread, source, scale) for step in range(c.steps)]
        _cta_sum(scale, thread, base)
        ptx.inst.mul.rn.f32(scale, scale, 1.0 / c.columns)
        ptx.inst.add.rn.f32(scale, scale, c.epsilon)
        ptx.inst.rsqrt.approx.ftz.f32(scale, scale)
        for step, (values, inside) in enumerate(tiles):
            _store(c, step, values, inside, scale, weight, target)

    return rms_norm
