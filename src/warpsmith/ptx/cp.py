"""Asynchronous copies: `ptx.cp.async_.{cg,ca}`, `ptx.cp.async_.bulk.tensor_{1..5}d`."""

from __future__ import annotations

from warpsmith.ptx.copy_async import AsyncCopy
from warpsmith.ptx.copy_bulk import Bulk

__all__ = ["async_", "async_bulk"]

async_ = AsyncCopy()
async_bulk: Bulk = async_.bulk
