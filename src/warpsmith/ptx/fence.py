"""Fences between the generic and the async proxy, and after barrier initialisation."""

from __future__ import annotations

from warpsmith.dsl.registers import NegPred, Reg
from warpsmith.dsl.trace import current

__all__ = ["mbarrier_init", "proxy_async", "proxy_async_generic_acquire_shared_cluster", "proxy_async_shared_cta"]

Pred = Reg | NegPred | None


def proxy_async(*, pred: Pred = None) -> None:
    """Order generic and async-proxy accesses of all spaces."""
    current().emit("fence.proxy.async", (), pred)


def proxy_async_shared_cta(*, pred: Pred = None) -> None:
    """Make this thread's generic writes to the CTA's shared memory visible to the async proxy."""
    current().emit("fence.proxy.async.shared::cta", (), pred)


def proxy_async_generic_acquire_shared_cluster(*, pred: Pred = None) -> None:
    """Acquire, at cluster scope, what the async proxy wrote to shared memory."""
    current().emit("fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster", (), pred)


def mbarrier_init(*, pred: Pred = None) -> None:
    """Make this thread's mbarrier.init visible to the cluster."""
    current().emit("fence.mbarrier_init.release.cluster", (), pred)
