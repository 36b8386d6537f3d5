"""What a launch costs the host: the driver alone, our kernel calls, torch's own operators, Triton; on a machine with a GPU.

    python benchmarks/launch_overhead.py [--json]

Every kernel is empty, or one element a thread, in one CTA, so that only the host's work is timed. A figure is the median of
rounds; a round is the time of 100 launches on an idle stream, without the wait that follows. All rows are timed in turn in
every round, so that the clock of the machine is the same for all. The rows "driver" are the base: cuLaunchKernelEx through
cuda-bindings with everything prepared, and where our call allocates its outputs, with as many allocations of the
kind that torch's compiled code makes, its cheapest.
"""

from __future__ import annotations

import ctypes
import json
import platform
import sys
import time
from datetime import date
from importlib.metadata import version
from statistics import median
from typing import TYPE_CHECKING, Any

try:
    import torch
    from cuda.bindings import driver as cu
except ImportError as missing:
    print(f"launch overhead: not measured, {missing.name} is not installed")
    sys.exit()

from warpsmith import Layout, Tile, kernel, ptx
from warpsmith.types import f16, f32

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS, LAUNCHES, WARM = 40, 100, 30


def empty_kernel(inputs: int, outputs: int) -> Any:
    names = [f"t{i}" for i in range(inputs + outputs)]
    scope: dict[str, Any] = {"ptx": ptx}
    exec(f"def empty_{len(names)}({', '.join(names)}):\n    ptx.ret()\n", scope)
    tile = Tile("N", f32)
    return kernel(arch="auto", in_specs=(tile,) * inputs, out_specs=(tile,) * outputs, grid=(1,), block=(32,))(
        scope[f"empty_{len(names)}"]
    )


@kernel(
    arch="auto", grid=(1,), block=(32,), out_specs=(Tile("M", "N", f16, Layout.TMA_128B, tma_box=(64, 64)),),
    in_specs=(Tile("M", "N", f16, Layout.TMA_128B, tma_box=(64, 64)),) * 2,
)  # fmt: skip
def with_maps(a: Any, b: Any, c: Any) -> None:
    for t in (a, b, c):
        t.tma_desc()
    ptx.ret()


def raw_launch(k: Any, tensors: int) -> tuple[Callable[[], None], Callable[[], None]]:
    """Return two launches of an empty kernel: everything prepared, and packing its arguments as cuda-bindings does."""
    module = cu.cuModuleLoadData(k.cubin())[1]
    function = cu.cuModuleGetFunction(module, k.__name__.encode())[1]
    config = cu.CUlaunchConfig()
    config.gridDimX = config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1
    config.blockDimX = 32
    config.hStream = torch.cuda.current_stream().cuda_stream
    data = [torch.zeros(1024, device="cuda") for _ in range(tensors)]
    values = (ctypes.c_uint64 * tensors)(*[t.data_ptr() for t in data])
    table = (ctypes.c_void_p * tensors)(*[ctypes.addressof(values) + 8 * i for i in range(tensors)])
    address, types = ctypes.addressof(table), (ctypes.c_void_p,) * tensors

    def prepared() -> None:
        cu.cuLaunchKernelEx(config, function, address, 0)

    def packing() -> None:
        cu.cuLaunchKernelEx(config, function, (tuple(t.data_ptr() for t in data), types), 0)

    prepared.keep = (values, table)  # type: ignore[attr-defined]
    return prepared, packing


def triton_launch() -> Callable[[], None] | None:
    try:
        import triton  # noqa: PLC0415
        import triton.language as tl  # noqa: PLC0415
    except ImportError:
        return None

    @triton.jit
    def empty(a, b, c, n):
        tl.static_assert(True)

    x, y, z = (torch.zeros(1024, device="cuda") for _ in range(3))
    try:
        empty[(1,)](x, y, z, 1024)
    except Exception as error:
        print(f"Triton does not launch here: {type(error).__name__}: {str(error)[:200]}")
        return None
    return lambda: empty[(1,)](x, y, z, 1024)


def rows() -> dict[str, Callable[[], Any]]:
    three, eight = empty_kernel(2, 1), empty_kernel(5, 3)
    t = [torch.zeros(1024, device="cuda") for _ in range(8)]
    h = [torch.zeros((256, 256), device="cuda", dtype=torch.float16) for _ in range(3)]
    stream = torch.cuda.current_stream()
    prepared, packing = raw_launch(three, 3)
    prepared8, _ = raw_launch(eight, 8)
    allocate = torch._C._dynamo.guards._empty_strided_cuda
    compiled = torch.compile(lambda x, y: three(x, y), fullgraph=True, backend="aot_eager")
    out: dict[str, Callable[[], Any] | None] = {
        "driver, 3 tensors": prepared,
        "driver, 3 tensors, packed by cuda-bindings": packing,
        "driver, 8 tensors": prepared8,
        "driver, 3 tensors, and an allocation": lambda: (allocate((1024,), (1,), torch.float32), prepared()),
        "driver, 8 tensors, and 3 allocations": lambda: (
            allocate((1024,), (1,), torch.float32),
            allocate((1024,), (1,), torch.float32),
            allocate((1024,), (1,), torch.float32),
            prepared8(),
        ),
        "ours, 3 tensors": lambda: three(t[0], t[1], t[2]),
        "ours, 3 tensors, stream=": lambda: three(t[0], t[1], t[2], stream=stream),
        "ours, 3 tensors, output allocated": lambda: three(t[0], t[1]),
        "ours, 8 tensors": lambda: eight(*t),
        "ours, 8 tensors, 3 outputs allocated": lambda: eight(*t[:5]),
        "ours, 3 tensor maps": lambda: with_maps(h[0], h[1], h[2]),
        "ours, 3 tensors, torch.compile (aot_eager), output allocated": lambda: compiled(t[0], t[1]),
        "torch.add, out=": lambda: torch.add(t[0], t[1], out=t[2]),
        "torch.add": lambda: torch.add(t[0], t[1]),
        "torch.empty": lambda: torch.empty((1024,), device="cuda"),
        "Triton, 3 tensors": triton_launch(),
    }
    return {name: fn for name, fn in out.items() if fn is not None}


def measure() -> dict[str, float]:
    functions = rows()
    times: dict[str, list[float]] = {name: [] for name in functions}
    for fn in functions.values():
        for _ in range(WARM):
            fn()
    torch.cuda.synchronize()
    for _ in range(ROUNDS):
        for name, fn in functions.items():
            torch.cuda.synchronize()
            started = time.perf_counter()
            for _ in range(LAUNCHES):
                fn()
            times[name].append((time.perf_counter() - started) / LAUNCHES * 1e6)
    return {name: median(values) for name, values in times.items()}


def base_of(name: str) -> str:
    """Return the row that does the same with the driver alone."""
    base = f"driver, {'8' if '8 tensors' in name else '3'} tensors"
    if not name.startswith("ours") or "allocated" not in name:
        return base
    return f"{base}, and {'3 allocations' if '8 tensors' in name else 'an allocation'}"


def main() -> None:
    if not torch.cuda.is_available():
        print("launch overhead: not measured, there is no GPU")
        return
    found = measure()
    base = {name: found[base_of(name)] for name in found}
    packages = ", ".join(f"{p} {version(p)}" for p in ("torch", "cuda-bindings"))
    about = f"{torch.cuda.get_device_name()}, {packages}, Python {platform.python_version()}, {date.today()}"
    if "--json" in sys.argv:
        print(json.dumps({"about": about, "microseconds": found}))
        return
    print(f"{about}; median of {ROUNDS} rounds of {LAUNCHES} launches")
    print("| launch | µs | over the driver |\n|---|---|---|")
    for name, value in found.items():
        print(f"| {name} | {value:.2f} | {value - base[name]:+.2f} |")


if __name__ == "__main__":
    main()
