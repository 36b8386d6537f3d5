"""`ptx.tcgen05`: tensor cores of the fifth generation and their tensor memory (PTX ISA 9.7.18).

An address in tensor memory is a 32-bit register, lane in bits 31:16 and column in bits 15:0; `taddr + n` is n columns on.
Matrices in shared memory are 64-bit descriptors (`descriptor`), shapes and types a 32-bit instruction descriptor
(`make_instr_desc`). What is started here is asynchronous: `commit` reports to an mbarrier, `wait_ld` and `wait_st` wait for
this thread's own loads and stores.
"""

from __future__ import annotations

from warpsmith.ptx.tcgen05.allocation import alloc, dealloc, relinquish_alloc_permit
from warpsmith.ptx.tcgen05.descriptors import descriptor, make_instr_desc, make_instr_desc_f16bf16_f32, masked_descriptor
from warpsmith.ptx.tcgen05.movement import cp, ld, shift, st, wait_ld, wait_st
from warpsmith.ptx.tcgen05.ordering import commit, fence_after_thread_sync, fence_before_thread_sync
from warpsmith.ptx.tcgen05.product import mma

__all__ = [
    "alloc", "commit", "cp", "dealloc", "descriptor", "fence_after_thread_sync", "fence_before_thread_sync", "ld",
    "make_instr_desc", "make_instr_desc_f16bf16_f32", "masked_descriptor", "mma", "relinquish_alloc_permit", "shift", "st",
    "wait_ld", "wait_st",
]  # fmt: skip
