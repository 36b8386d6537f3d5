"""Dask's client runs parts of a launch and the work of an audit, on a cluster of processes on this computer."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed import Client, LocalCluster

from command_line import Run, run
from containers import container, entry
from sass_sample import sample
from warpsmith.base.errors import InputError, ToolError
from warpsmith.base.optional import adapter
from warpsmith.cubin import Cubin
from warpsmith.kernels.attention import hopper
from warpsmith.sass.audit import audit
from warpsmith.simulator import simulate, spread
from warpsmith.simulator.parts import run_part

__all__ = ["run"]

KERNEL = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 table)
{
 .reg .b32 %r<4>; .reg .b64 %rd<6>;
 ld.param.u64 %rd0, [out]; ld.param.u64 %rd1, [table]; mov.u32 %r0, %ctaid.x; mov.u32 %r1, %tid.x;
 mad.lo.u32 %r2, %r0, 32, %r1; mul.wide.u32 %rd2, %r2, 4; add.u64 %rd3, %rd0, %rd2; add.u64 %rd4, %rd1, %rd2;
 ld.global.u32 %r3, [%rd4]; add.u32 %r3, %r3, %r0; st.global.u32 [%rd3], %r3;
 ret;
}
"""


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """A client of two processes of one thread."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster,
        Client(cluster, set_as_default=False) as made,
    ):
        yield made


def launch(words: int = 4 << 20, **options: Any) -> tuple[Any, np.ndarray]:
    """Run the kernel on 8 CTAs beside 16 MB of table; of as much Dask warns where each task carries it."""
    out, table = np.zeros(256, np.uint32), np.arange(words, dtype=np.uint32)
    return simulate(KERNEL, grid=8, block=32, args=[out, table], **options), out


@pytest.mark.parametrize("jobs", [2, 4])
def test_a_client_runs_the_parts_of_a_launch(client: Any, jobs: int) -> None:
    one, expected = launch()
    seen: list[tuple[int, int]] = []
    many, out = launch(jobs=jobs, executor=client, progress=lambda ended, total: seen.append((ended, total)))
    assert (many.processes, many.completed, many.findings) == (f"{jobs} parts in Client", True, [])
    assert (out == expected).all()
    assert (many.counters.instructions, many.counters.bytes) == (one.counters.instructions, one.counters.bytes)
    assert many.fidelity == one.fidelity
    assert seen == [(8 * (i + 1) // jobs, 8) for i in range(jobs)]


def test_its_executor_does_as_well(client: Any) -> None:
    result, out = launch(256, jobs=2, executor=client.get_executor())
    assert result.processes == "2 parts in ClientExecutor"
    assert (out == launch(256)[1]).all()


def test_attention_is_the_same(client: Any) -> None:
    kernel = hopper.build(hopper.Config(heads=2, sequence=256, keys=64))
    q, k, v = np.random.default_rng(0).standard_normal((3, 2, 256, 64)).astype(np.float16)
    one, parts = kernel.simulate(q, k, v), kernel.simulate(q, k, v, jobs=2, executor=client)
    assert (one.findings, parts.findings, parts.processes) == ([], [], "2 parts in Client")
    assert all((a == b).all() for a, b in zip(one.outputs, parts.outputs, strict=True))


def test_what_happens_in_a_worker_comes_back(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise InputError("no")

    def die(*_: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(spread, "run_part", refuse)
    with pytest.raises(InputError, match=r"^no$"):
        launch(jobs=2, executor=client)
    monkeypatch.setattr(spread, "run_part", die)
    with pytest.raises(ToolError, match=r"^simulator: Client did not run CTAs 0 to 3: \w+Error: "):
        launch(jobs=2, executor=client)
    monkeypatch.setattr(spread, "run_part", run_part)
    client.wait_for_workers(2)
    assert launch(jobs=2, executor=client)[0].processes == "2 parts in Client"


def test_a_client_and_an_address_share_an_audit(client: Any, tmp_path: Path, run: Run) -> None:
    made = Cubin.new("sm_90a")
    made.add_function("k", b"".join(w.to_bytes(16, "little") for w, _ in sample("sm_90a")[:300]), registers=32)
    library = tmp_path / "lib.fatbin"
    library.write_bytes(container(entry(made.write(), arch=90, flags=0x100011)))
    expected = audit([library])
    shared = audit([library], client=client)
    assert shared.as_json() == expected.as_json()
    assert expected.total().words >= 250
    done = run("audit", library, "--dask", client.scheduler.address)
    assert (done.status, done.err) == (0, "")
    assert done.out == run("audit", library).out


def test_no_scheduler_at_the_address() -> None:
    for address in ("tcp://127.0.0.1:1", "nonsense:/x"):
        wrong = f"^no Dask scheduler answers at {re.escape(address)}: "
        with pytest.raises(InputError, match=wrong), adapter("dask").connect(address, timeout=1):
            pass
