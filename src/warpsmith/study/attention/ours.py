"""The Hopper kernels of this repository on torch tensors."""

from __future__ import annotations

import struct
from concurrent.futures import ProcessPoolExecutor
from dataclasses import fields, replace
from importlib import import_module
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from warpsmith.base.errors import InputError
from warpsmith.dsl.call import bind
from warpsmith.kernels.attention import hopper, hopper_fp8, hopper_packed
from warpsmith.launch.driver import driver
from warpsmith.simulator.tensormap import TensorMap

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from warpsmith.study.attention.cells import Cell
    from warpsmith.study.attention.peers import Launch

__all__ = ["compile_all", "configuration", "kernel_of", "ours", "packed", "packed_config"]

_NUMPY = {
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float32": np.dtype(np.float32),
    "int32": np.dtype(np.uint32),
    "float8_e4m3fn": np.dtype(ml_dtypes.float8_e4m3fn),
}
"""torch's name of a type → numpy's; tables of unsigned numbers are int32 in torch."""


def configuration(cell: Cell, dtype: str, variant: str) -> hopper.Config:
    """Return the config of a cell, with `variant` on top: `consumers=3,keys=96`; empty for the shipped choice."""
    given: dict[str, Any] = {"value_dim": cell.value_dim} if cell.value_dim else {}
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


def packed_config(cell: Cell, config: hopper.Config) -> hopper.Config:
    """Return the config of a cell's sequences one behind the other, with the tiling of `config`."""
    return replace(config, heads=cell.heads, sequence=1, kv_sequence=0, packed=1)


def kernel_of(config: hopper.Config) -> Any:
    """Return the kernel of a config."""
    return (hopper_packed if config.packed else hopper_fp8 if config.eight else hopper).build(config)


def _cubin(config: hopper.Config) -> None:
    kernel_of(config).cubin()


def compile_all(configs: Iterable[hopper.Config]) -> None:
    """Compile into the disk cache, on all cores."""
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        list(pool.map(_cubin, dict.fromkeys(configs)))


def _launch(config: hopper.Config, tensors: Sequence[Any]) -> Launch:
    """Return what launches the kernel of a config on torch's current stream, on these inputs and outputs."""
    torch: Any = import_module("torch")
    kernel = kernel_of(config)
    hosts = [np.empty(tuple(t.shape), _NUMPY[str(t.dtype).rpartition(".")[2]]) for t in tensors]
    bound = bind(kernel, hosts, {})
    addresses = {h.ctypes.data: t.data_ptr() for h, t in zip(hosts, tensors, strict=True)}
    arguments = [_packed_argument(a, addresses) for a in bound.args]
    function = driver().load(kernel.cubin(), bound.built.name)
    shared = bound.built.dynamic_shared

    def launch(held: object = tuple(tensors)) -> None:
        """Launch; `held` keeps the memory of the addresses in `arguments`."""
        stream = torch.cuda.current_stream().cuda_stream
        function.launch(bound.grid, bound.block, arguments, shared=shared, cluster=bound.cluster, stream=stream)

    return launch


def _packed_argument(argument: Any, addresses: dict[int, int]) -> bytes:
    """Return the bytes of a parameter: a tensor map, a pointer, or a number of 32 bits."""
    if isinstance(argument, TensorMap):
        return argument.encode(addresses[argument.memory.ctypes.data])
    if isinstance(argument, np.ndarray):
        return struct.pack("<Q", addresses[argument.ctypes.data])
    return struct.pack("<I", argument)


def ours(config: hopper.Config, q: Any, k: Any, v: Any, *factors: Any) -> tuple[Launch, Any]:
    """Return what launches the kernel on torch's current stream, and a function that returns its output.

    `factors` are those of q, k and v, with e4m3.
    """
    torch: Any = import_module("torch")
    flat = [t.flatten(0, 1) for t in (q, k, v, *factors)]
    if config.columns:
        flat[1], flat[2] = flat[1].unflatten(1, (-1, 4)), flat[2].transpose(1, 2).contiguous()
    out = {"f16": torch.float16, "bf16": torch.bfloat16}[config.output_dtype]
    o = torch.empty((config.heads, config.sequence, config.width), dtype=out, device=q.device)
    lse = torch.empty((config.heads, config.sequence), dtype=torch.float32, device=q.device)
    return _launch(config, [*flat, o, lse]), lambda: o.unflatten(0, q.shape[:2])


def packed(config: hopper.Config, q: Any, k: Any, v: Any) -> tuple[Launch, Any]:
    """Do as `ours` with the sequences of the batch packed one behind the other, `[tokens, heads, dim]`."""
    torch: Any = import_module("torch")
    batch, heads, sequence, _ = q.shape
    flat = [t.transpose(1, 2).flatten(0, 1).contiguous() for t in (q, k, v)]
    table = torch.from_numpy(hopper_packed.plan(config, [sequence] * batch).view(np.int32)).to(q.device)
    o = torch.empty((batch * sequence, heads, config.width), dtype=q.dtype, device=q.device)
    lse = torch.empty((heads, batch * sequence), dtype=torch.float32, device=q.device)
    return _launch(config, [*flat, table, o, lse]), lambda: o.unflatten(0, (batch, sequence)).transpose(1, 2)
