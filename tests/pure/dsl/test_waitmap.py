"""The wait map: every wait is a site, none is lost."""

from __future__ import annotations

import numpy as np
import pytest

from warpsmith import Tile, kernel, ptx, smem
from warpsmith.base.errors import KernelError
from warpsmith.debugkit import WAITMAP_MAX_SITES, WaitMap
from warpsmith.types import b32


def build(waits: int, late: bool = False):
    wm = WaitMap()

    @kernel(out_specs=(Tile(32, WAITMAP_MAX_SITES, b32),), grid=(1,), block=(32, 1, 1))
    def body(record):
        tid = ptx.special.tid.x()
        wm.attach(ptx.global_ptrs(record)[0], tid)
        active = wm.active()
        active.__enter__()
        bar = smem.mbarrier(1)[0]
        with ptx.if_(tid == 0):
            ptx.mbarrier.init(bar, 32)
            ptx.fence.proxy_async_shared_cta()
        ptx.bar.sync()
        for i in range(waits):
            ptx.mbarrier.arrive(bar)
            ptx.mbarrier.wait(bar, i & 1)
        if not late:
            active.__exit__(None, None, None)
        wm.flush(pred=ptx.ctaid_x() == 0)
        if late:
            ptx.mbarrier.wait(bar, 0)
        ptx.ret()

    body._waitmap = wm
    return body


def test_sites_are_written_by_thread():
    k = build(3)
    record = k()
    assert record.shape == (32, WAITMAP_MAX_SITES)
    assert len(k._waitmap.site_names()) == 3
    decoded = k._waitmap.decode(record, 32, roles={"first": (0, 16), "second": (16, 32)})
    assert [len(sites) for sites in decoded.values()] == [3, 3]
    assert sum(decoded["first"].values()) + sum(decoded["second"].values()) == int(np.sum(record[:, :3], dtype=np.int64))
    assert (record[:, 3:] == 0).all()


def test_a_site_too_many_is_refused():
    with pytest.raises(KernelError, match="error: this wait would be lost: a WaitMap holds 128 sites"):
        build(WAITMAP_MAX_SITES + 1).ptx()


def test_a_wait_after_flush_is_refused():
    with pytest.raises(KernelError, match="error: this wait would be lost: the WaitMap was flushed at "):
        build(1, late=True).ptx()
