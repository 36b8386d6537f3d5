"""`ptx.cp.async_`: copies of 4, 8 or 16 bytes a thread from global to shared memory."""

from __future__ import annotations

from typing import final

from warpsmith.base.place import error
from warpsmith.dsl.address import address
from warpsmith.dsl.registers import NegPred, Reg
from warpsmith.dsl.trace import current
from warpsmith.ptx.copy_bulk import Bulk

__all__ = ["AsyncCopy"]

Pred = Reg | NegPred | None


def _copy(
    cache: str, sizes: tuple[int, ...], dst: object, src: object, nbytes: int, src_size: int | Reg | None, pred: Pred
) -> None:
    if nbytes not in sizes:
        raise error(f"cp.async.{cache} copies {' or '.join(map(str, sizes))} bytes, not {nbytes!r}")
    if isinstance(src_size, int) and not 0 <= src_size <= nbytes:
        raise error(f"src_size is 0 to {nbytes} bytes, not {src_size}", "bytes behind src_size are filled with zero")
    extra = () if src_size is None else (src_size,)
    current().emit(f"cp.async.{cache}.shared.global", (address(dst), address(src), nbytes, *extra), pred)


@final
class AsyncCopy:
    """`ptx.cp.async_`."""

    __slots__ = ()

    bulk = Bulk()

    def cg(self, dst: object, src: object, nbytes: int = 16, *, src_size: int | Reg | None = None, pred: Pred = None) -> None:
        """Copy 16 bytes past the L1 cache; bytes from `src_size` on are not read and become zero."""
        _copy("cg", (16,), dst, src, nbytes, src_size, pred)

    def ca(self, dst: object, src: object, nbytes: int, *, src_size: int | Reg | None = None, pred: Pred = None) -> None:
        """Copy 4, 8 or 16 bytes through all caches; bytes from `src_size` on are not read and become zero."""
        _copy("ca", (4, 8, 16), dst, src, nbytes, src_size, pred)

    def commit_group(self, *, pred: Pred = None) -> None:
        """Close the group of copies issued so far."""
        current().emit("cp.async.commit_group", (), pred)

    def wait_group(self, n: int, *, pred: Pred = None) -> None:
        """Wait until at most `n` groups are in flight."""
        if not isinstance(n, int) or n < 0:
            raise error(f"cp.async.wait_group takes a number of groups from 0, not {n!r}")
        current().emit("cp.async.wait_group", (n,), pred)

    def wait_all(self, *, pred: Pred = None) -> None:
        """Wait until all copies of this thread are complete."""
        current().emit("cp.async.wait_all", (), pred)
