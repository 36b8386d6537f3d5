"""The Hopper kernel of this repository on torch tensors."""

from __future__ import annotations

import struct
from concurrent.futures import ProcessPoolExecutor
from dataclasses import fields
from importlib import import_module
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from warpsmith.base.errors import InputError
from warpsmith.dsl.call import bind
from warpsmith.kernels.attention import hopper
from warpsmith.launch.driver import driver
from warpsmith.simulator.tensormap import TensorMap

if TYPE_CHECKING:
    from collections.abc import Iterable

    from warpsmith.study.attention.cells import Cell
    from warpsmith.study.attention.peers import Launch

__all__ = ["compile_all", "configuration", "ours"]


def configuration(cell: Cell, dtype: str, variant: str) -> hopper.Config:
    """Return the config of a cell, with `variant` on top: `consumers=3,keys=96`; empty for the shipped choice."""
    given: dict[str, Any] = {}
    known = {f.name: f.type for f in fields(hopper.Config)}
    for part in filter(None, variant.split(",")):
        name, _, value = part.partition("=")
        if name not in known:
            raise InputError(f"attention: {name!r} is no option of the kernel; it has {', '.join(known)}")
        try:
            given[name] = float(value) if "." in value else int(value)
        except ValueError:
            raise InputError(f"attention: {part!r}: give NAME=NUMBER") from None
    return hopper.choose(cell.batch * cell.heads, cell.sequence, cell.dim, dtype, cell.causal, **given)


def _cubin(config: hopper.Config) -> None:
    hopper.build(config).cubin()


def compile_all(configs: Iterable[hopper.Config]) -> None:
    """Compile into the disk cache, on all cores."""
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        list(pool.map(_cubin, dict.fromkeys(configs)))


def ours(config: hopper.Config, q: Any, k: Any, v: Any) -> tuple[Launch, Any]:
    """Return what launches the kernel on torch's current stream, and a function that returns its output."""
    torch: Any = import_module("torch")
    kernel = hopper.build(config)
    shape = (config.heads, config.sequence, config.dim)
    o = torch.empty_like(q)
    lse = torch.empty(shape[:2], dtype=torch.float32, device=q.device)
    hosts: list[Any] = [np.empty(shape, np.float16 if config.dtype == "f16" else ml_dtypes.bfloat16) for _ in range(4)]
    hosts.append(np.empty(shape[:2], np.float32))
    bound = bind(kernel, hosts, {})
    addresses = {h.ctypes.data: t.data_ptr() for h, t in zip(hosts, (q, k, v, o, lse), strict=True)}
    packed = [
        a.encode(addresses[a.memory.ctypes.data]) if isinstance(a, TensorMap) else struct.pack("<Q", addresses[a.ctypes.data])
        for a in bound.args
        if isinstance(a, TensorMap | np.ndarray)
    ]
    function = driver().load(kernel.cubin(), bound.built.name)
    shared = bound.built.dynamic_shared

    def launch(held: object = (q, k, v, o, lse)) -> None:
        """Launch; `held` keeps the memory of the addresses in `packed`."""
        stream = torch.cuda.current_stream().cuda_stream
        function.launch(bound.grid, bound.block, packed, shared=shared, cluster=bound.cluster, stream=stream)

    return launch, lambda: o
