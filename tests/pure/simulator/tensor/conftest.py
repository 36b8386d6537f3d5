"""Small kernels: a body between the usual head and tail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from warpsmith.assembly.ptx import parse
from warpsmith.simulator.api import SimulationResult, simulate

Run = Callable[..., SimulationResult]


def source(body: str, parameters: str = ".param .u64 out", target: str = "sm_90a", version: str = "8.7") -> str:
    """A kernel `k` with registers of every kind; `%t` is the thread, `%out` the first parameter when that is `out`."""
    load = "ld.param.u64 %out, [out];" if ".u64 out" in parameters else ""
    return f"""
.version {version}
.target {target}
.address_size 64
.visible .entry k({parameters})
{{
 .reg .b16 %h<40>; .reg .b32 %r<300>; .reg .b64 %rd<60>; .reg .f32 %f<300>; .reg .f64 %fd<40>; .reg .pred %p<10>;
 .reg .b32 %t; .reg .b64 %out;
 mov.u32 %t, %tid.x; {load}
{body}
 ret;
}}
"""


@pytest.fixture(scope="session")
def run() -> Run:
    def launch(
        body: str, *args: Any, parameters: str = ".param .u64 out", block: int = 32, grid: int = 1, **options: Any
    ) -> Any:
        target, version = options.pop("target", "sm_90a"), options.pop("version", "8.7")
        module = parse(source(body, parameters, target, version))
        return simulate(module, kernel="k", grid=(grid, 1, 1), block=(block, 1, 1), args=list(args), **options)

    return launch


def clean(result: SimulationResult) -> None:
    """The kernel ended and nothing was found."""
    assert result.completed, [str(f) for f in result.findings]
    assert [str(f) for f in result.findings] == []
