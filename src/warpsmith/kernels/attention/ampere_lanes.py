"""The threads of the Ampere kernel: problem and tile sizes, rows and swizzle bits of a lane, the copies it makes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from warpsmith import ptx, reg
from warpsmith.kernels.attention.problem import Problem
from warpsmith.types import pred, u32, u64

__all__ = ["KEYS", "ROWS", "THREADS", "WARPS", "Config", "Copier", "Lanes", "u32_register"]

WARPS = 4
ROWS = 16 * WARPS
KEYS = 64
THREADS = 32 * WARPS


@dataclass(frozen=True, slots=True)
class Config(Problem):
    """Problem and target of one attention kernel."""

    arch: str = "sm_80"
    """Any architecture from sm_80 on."""

    @property
    def pitch(self) -> int:
        """Bytes of a row."""
        return 2 * self.dim

    @property
    def tile_bytes(self) -> int:
        """Bytes of a 64-row tile."""
        return KEYS * self.pitch


def u32_register(value: Any = None) -> Any:
    """Return a new u32 register, set to `value` if there is one."""
    r = reg.scalar(u32)
    if value is not None:
        ptx.inst.mov.u32(r, value)
    return r


class Lanes:
    """What depends on the thread alone: its rows, columns and swizzle bits."""

    def __init__(self, c: Config, base: Any) -> None:
        self.thread = u32_register(ptx.special.tid.x())
        self.lane, self.warp = u32_register(), u32_register()
        ptx.inst.and_.b32(self.lane, self.thread, 31)
        ptx.inst.shr.u32(self.warp, self.thread, 5)
        row7, low, high = u32_register(), u32_register(), u32_register()
        ptx.inst.and_.b32(row7, self.lane, 7)
        ptx.inst.shr.u32(low, self.lane, 3)
        ptx.inst.and_.b32(low, low, 1)
        ptx.inst.shr.u32(high, self.lane, 4)
        # ldmatrix.x4: lane l names row l mod 8 of matrix l div 8; low and high are the bits of the matrix number
        self.q_twist, self.k_twist = u32_register(), u32_register()
        ptx.inst.xor.b32(self.q_twist, row7, high)
        ptx.inst.shl.b32(self.q_twist, self.q_twist, 4)
        ptx.inst.xor.b32(self.k_twist, row7, low)
        ptx.inst.shl.b32(self.k_twist, self.k_twist, 4)
        self.v_twist = self.q_twist
        self.q_rows = self._address(c, base, row7, low, self.warp)
        self.k_rows = self._address(c, base + c.tile_bytes, row7, high, None)
        self.v_rows = self._address(c, base + 2 * c.tile_bytes, row7, low, None)
        self.column, self.row = u32_register(), u32_register()
        ptx.inst.and_.b32(self.column, self.lane, 3)
        ptx.inst.shl.b32(self.column, self.column, 1)
        ptx.inst.shr.u32(self.row, self.lane, 2)
        self.warp_row = u32_register()
        ptx.inst.shl.b32(self.warp_row, self.warp, 4)

    @staticmethod
    def _address(c: Config, base: Any, row7: Any, block: Any, warp: Any) -> Any:
        row = u32_register()
        ptx.inst.mad.lo.u32(row, block, 8, row7)
        if warp is not None:
            ptx.inst.mad.lo.u32(row, warp, 16, row)
        ptx.inst.mad.lo.u32(row, row, c.pitch, base)
        return row

    @staticmethod
    def at(rows: Any, twist: Any, chunk: int) -> Any:
        """Address register of an even chunk."""
        a = u32_register()
        ptx.inst.xor.b32(a, twist, chunk * 16)
        ptx.inst.add.u32(a, a, rows)
        return a


class Copier:
    """Copies 64-row tiles from global to shared memory, 16 bytes a thread and step; rows past the sequence become zeros."""

    def __init__(self, c: Config, thread: Any) -> None:
        self.c = c
        chunks = c.dim // 8
        self.rows_a_step = THREADS // chunks
        self.row, chunk, swizzled = u32_register(), u32_register(), u32_register()
        ptx.inst.shr.u32(self.row, thread, chunks.bit_length() - 1)
        ptx.inst.and_.b32(chunk, thread, chunks - 1)
        self.column = u32_register()
        ptx.inst.shl.b32(self.column, chunk, 4)
        ptx.inst.and_.b32(swizzled, self.row, 7)
        ptx.inst.xor.b32(swizzled, swizzled, chunk)
        ptx.inst.shl.b32(swizzled, swizzled, 4)
        self.target = u32_register()
        ptx.inst.mad.lo.u32(self.target, self.row, c.pitch, swizzled)

    def load(self, base: Any, tensor: Any, first_row: Any) -> None:
        """Start the copy of rows `first_row` … + 63 of `tensor` (global address of the head) to shared `base`."""
        c = self.c
        row, to = u32_register(), base + self.target
        ptx.inst.add.u32(row, first_row, self.row)
        for step in range(KEYS // self.rows_a_step):
            if step:
                row += self.rows_a_step
            inside, size, source_row = reg.scalar(pred), u32_register(), u32_register()
            ptx.inst.setp.lt.u32(inside, row, c.sequence)
            ptx.inst.selp.b32(size, 16, 0, inside)
            ptx.inst.min.u32(source_row, row, c.sequence - 1)
            source = reg.scalar(u64)
            ptx.inst.mad.wide.u32(source, source_row, c.pitch, tensor)
            wide = reg.scalar(u64)
            ptx.inst.cvt.u64.u32(wide, self.column)
            ptx.inst.add.s64(source, source, wide)
            # the swizzle repeats every 8 rows, and a step is a multiple of 8 rows
            ptx.inst.cp.async_.cg.shared.global_(ptx.addr(to, step * self.rows_a_step * c.pitch), ptx.addr(source), 16, size)
        ptx.cp.async_.commit_group()
