"""How a launch is judged: shapes, shared memory, options."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from itertools import islice
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from warpsmith.assembly.ptx.lexer import whole_number
from warpsmith.base.errors import InputError
from warpsmith.simulator.launch_config import Dim, LaunchConfig

if TYPE_CHECKING:
    from warpsmith.assembly.ptx.tree import Function
    from warpsmith.base.device import DeviceModel

__all__ = ["check_shared", "launch_config"]


def _whole(value: Any) -> int | None:
    """Return an int of Python or numpy as an int; None for anything else, bool included."""
    if isinstance(value, bool | np.bool_):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def _dim(what: str, value: Any) -> Dim:
    one = _whole(value)
    numbers = [one] if one is not None else [_whole(v) for v in islice(value, 4)] if isinstance(value, Iterable) else []
    values = [v for v in numbers if v is not None]
    if not 1 <= len(values) <= 3 or len(values) < len(numbers):
        raise InputError(f"{what}={value!r}: give one to three ints, e.g. {what}=(4, 2, 1)")
    if any(v < 1 for v in values):
        raise InputError(f"{what}={value!r}: every dimension is at least 1")
    x, y, z = (*values, 1, 1)[:3]
    return x, y, z


def _directive(entry: Function, name: str) -> list[int] | None:
    for d in entry.directives:
        if getattr(d, "name", "") == name:
            return [whole_number(a) or 0 for a in d.arguments]  # type: ignore[union-attr]  # pyright: ignore[reportAttributeAccessIssue]
    return None


def launch_config(
    entry: Function,
    model: DeviceModel,
    grid: Any,
    block: Any,
    cluster: Any,
    dynamic_shared: Any,
    check: Any,
    numerics: Any,
    schedule: Any,
    seed: Any,
    max_steps: Any,
) -> LaunchConfig:
    """Judge how a kernel is launched; raise `InputError` for what the kernel, the device or this function cannot take."""
    grid, block = _dim("grid", grid), _dim("block", block)
    if grid[0] > 2**31 - 1 or grid[1] > 65535 or grid[2] > 65535:
        raise InputError(f"grid={grid}: at most (2147483647, 65535, 65535)")
    _check_block(entry, model, block)
    declared = _directive(entry, "reqnctapercluster")
    shape = _dim("cluster", cluster if cluster is not None else tuple(declared) if declared else 1)
    if cluster is not None and declared and shape != _dim("cluster", tuple(declared)) and shape != (1, 1, 1):
        raise InputError(f"cluster={shape}: kernel `{entry.name}` requires {tuple(declared)} (.reqnctapercluster)")
    if declared:
        shape = _dim("cluster", tuple(declared))
    if any(g % c for g, c in zip(grid, shape, strict=True)):
        raise InputError(f"grid={grid} is no multiple of cluster={shape}; round the grid up")
    size = shape[0] * shape[1] * shape[2]
    if size > max(16, 1) or (size > 1 and model.cluster_size == 1):
        raise InputError(f"cluster={shape}: {model.name} has clusters of at most {16 if model.cluster_size > 1 else 1} CTAs")
    if numerics not in ("exact", "fast"):
        raise InputError(f'numerics={numerics!r}: "exact" or "fast"')
    if schedule not in ("fair", "random", "adversarial"):
        raise InputError(f'schedule={schedule!r}: "fair", "random" or "adversarial"')
    dynamic = _whole(dynamic_shared)
    if dynamic is None or dynamic < 0:
        raise InputError(f"dynamic_shared={dynamic_shared!r}: give the bytes of dynamic shared memory")
    explicit = bool(declared) or size > 1 or any(getattr(d, "name", "") == "explicitcluster" for d in entry.directives)
    if (drawn := _whole(seed)) is None:
        raise InputError(f"seed={seed!r}: give an int")
    steps = None if max_steps is None else _whole(max_steps)
    if max_steps is not None and (steps is None or steps < 1):
        raise InputError(f"max_steps={max_steps!r}: give the number of blocks that may run, at least 1, or None for no limit")
    allotted = _registers(entry, model, block)
    return LaunchConfig(
        grid, block, shape, explicit, dynamic, bool(check), numerics, schedule, drawn, steps, registers_per_thread=allotted
    )


def _registers(entry: Function, model: DeviceModel, block: Dim) -> int:
    """Registers per thread that a launch allots where the kernel changes them (`setmaxnreg`).

    As ptxas counts: what `.maxnreg` says, else the share by `.minnctapersm` and `.maxntid` or `.reqntid`. Without either it
    leaves setmaxnreg out; then the whole file counts. Registers are allotted by 8 for a thread, warps by warpgroup.
    """
    if most := _directive(entry, "maxnreg"):
        return min(-(-most[0] // 8) * 8, 256)
    threads, ctas = block[0] * block[1] * block[2], 1
    if least := _directive(entry, "minnctapersm"):
        bound = _directive(entry, "reqntid") or _directive(entry, "maxntid")
        threads, ctas = prod(bound) if bound else threads, max(least[0], 1)
    warpgroups = -(-threads // 128)
    return min(model.registers_per_multiprocessor // (128 * warpgroups * ctas) // 8 * 8, 256)


def _check_block(entry: Function, model: DeviceModel, block: Dim) -> None:
    threads = block[0] * block[1] * block[2]
    if threads > model.threads_per_block or block[2] > 64:
        raise InputError(
            f"block={block}: {threads} threads; {model.name} has at most {model.threads_per_block} per CTA and 64 in z"
        )
    if required := _directive(entry, "reqntid"):
        wanted = _dim("block", tuple(required))
        if wanted != block:
            raise InputError(f"block={block}: kernel `{entry.name}` requires {wanted} (.reqntid)")
    if most := _directive(entry, "maxntid"):
        n = 1
        for v in most:
            n *= v
        if threads > n:
            raise InputError(f"block={block}: {threads} threads; kernel `{entry.name}` allows {n} (.maxntid)")


def check_shared(entry: Function, model: DeviceModel, shared: int, dynamic: int) -> None:
    """Raise `InputError` when a CTA needs more shared memory than the device has."""
    if shared > model.shared_per_block:
        raise InputError(
            f"kernel `{entry.name}` needs {shared} bytes of shared memory ({shared - dynamic} static, {dynamic} dynamic); "
            f"{model.name} has {model.shared_per_block} per CTA"
        )
