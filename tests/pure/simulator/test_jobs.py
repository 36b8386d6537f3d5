"""CTAs in several processes: the same results, one process where CTAs meet in memory, and what can go wrong."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from warpsmith.base.errors import CapabilityError, InputError, ToolError
from warpsmith.kernels.attention import hopper
from warpsmith.simulator import simulate, spread, workers

HEAD = """.version 8.0
.target sm_90
.address_size 64
"""


def text(body: str, head: str = "", parameters: str = ".param .u64 out") -> str:
    """A kernel in which `%at` is the address of the thread's own word of `out`, `%me` the CTA and `%next` the next CTA."""
    return f"""{HEAD}{head}.visible .entry k({parameters})
{{
 .reg .b32 %r<20>; .reg .b32 %me, %next, %t, %n; .reg .b64 %rd<20>; .reg .b64 %out, %at, %there; .reg .pred %p<4>;
 ld.param.u64 %out, [out]; mov.u32 %me, %ctaid.x; mov.u32 %t, %tid.x; mov.u32 %n, %nctaid.x;
 add.u32 %next, %me, 1; rem.u32 %next, %next, %n;
 mad.lo.u32 %r0, %me, 32, %t; mul.wide.u32 %rd0, %r0, 4; add.u64 %at, %out, %rd0;
 mad.lo.u32 %r1, %next, 32, %t; mul.wide.u32 %rd1, %r1, 4; add.u64 %there, %out, %rd1;
{body}
 ret;
}}
"""


THREADS = ThreadPoolExecutor(2)
MET = "CTAs 4-7 wrote argument 0 (`out`),"
PLAIN = "ld.global.u32 %r2, [%at]; add.u32 %r2, %r2, %me; st.global.u32 [%at], %r2;"


def launch(body: str, ctas: int = 8, head: str = "", **options: Any) -> tuple[Any, Any]:
    out = np.arange(ctas * 32, dtype=np.uint32)
    return simulate(text(body, head), grid=ctas, block=32, args=[out], **options), out


def test_results_are_those_of_one_process() -> None:
    one, a = launch(PLAIN)
    seen: list[tuple[int, int]] = []
    two, b = launch(PLAIN, jobs=2, progress=lambda ended, total: seen.append((ended, total)))
    assert (one.processes, two.processes) == ("one process", "2 parts in 2 processes")
    assert (a == b).all()
    assert two.completed
    assert (two.counters.instructions, two.counters.bytes) == (one.counters.instructions, one.counters.bytes)
    assert two.fidelity == one.fidelity
    assert two.timeline.ended_ctas == 8
    assert seen[-1] == (8, 8)


def test_findings_come_in_the_order_of_the_ctas_once_each() -> None:
    body = """
 setp.eq.u32 %p0, %me, 7; @%p0 st.global.u32 [%at+4096], %t;
 setp.eq.u32 %p1, %me, 1; @%p1 st.global.u32 [%at+8192], %t;
"""
    result, _ = launch(body, jobs=2)
    assert [(f.kind, f.threads) for f in result.findings] == [
        ("out-of-bounds", "cta (1,0,0) warp 0 lanes 0-31"), ("out-of-bounds", "cta (7,0,0) warp 0 lanes 0-31"),
    ]  # fmt: skip
    assert not result.completed


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("atom.global.add.u32 %r2, [%out], 1;", "`atom.global.add.u32` at <string>:12 is for all CTAs"),
        ("st.global.u32 [%at], %me; ld.global.u32 %r2, [%there];", f"{MET} byte 512, which CTAs 0-3 read"),
        ("st.u32 [%at], %me; ld.v2.u32 {%r2, %r3}, [%out+1016];", f"{MET} byte 1016, which CTAs 0-3 read"),
        ("st.global.u32 [%out], %me;", f"{MET} byte 0, which CTAs 0-3 also wrote"),
        ("red.add.u32 [%out], 1;", f"{MET} byte 0, which CTAs 0-3 also wrote"),
    ],
)
def test_ctas_that_meet_in_memory_run_in_one_process(body: str, why: str) -> None:
    body = f" setp.ge.u32 %p0, %me, 0;\n {body}"
    one, a = launch(body)
    two, b = launch(body, jobs=2, executor=THREADS)
    assert two.processes == f"one process: {why}"
    assert (a == b).all()
    assert two.counters == one.counters


COPIES = {
    "cp.async": """
 mov.u32 %r5, s; mad.lo.u32 %r5, %t, 4, %r5; cp.async.ca.shared.global [%r5], [%there], 4; cp.async.wait_all;
""",
    "cp.async.bulk": """
 mov.u32 %r5, s; mov.u32 %r6, bar; setp.eq.u32 %p1, %t, 0;
 @%p1 mbarrier.init.shared::cta.b64 [%r6], 1; fence.mbarrier_init.release.cluster; bar.sync 0;
 @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r6], 128;
 @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r5], [%there], 128, [%r6];
W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r6], 0; @!%p2 bra W;
""",
}


@pytest.mark.parametrize("kind", COPIES)
def test_copies_count_as_reads(kind: str) -> None:
    head = ".shared .align 128 .b8 s[128]; .shared .align 8 .b64 bar;\n"
    result, _ = launch(f"{COPIES[kind]}\n st.global.u32 [%at], %me;", head=head, jobs=2, executor=THREADS, check=False)
    assert result.processes == f"one process: {MET} byte 512, which CTAs 0-3 read"
    alone, _ = launch(COPIES[kind], head=head, jobs=2, executor=THREADS)
    assert alone.processes == "2 parts in ThreadPoolExecutor"


def test_an_executor_runs_the_parts() -> None:
    one, a = launch(PLAIN)
    many, b = launch(PLAIN, executor=THREADS, jobs=4)
    assert many.processes == "4 parts in ThreadPoolExecutor"
    assert (a == b).all()
    assert many.counters.instructions == one.counters.instructions


class Client:
    """What a Dask client does with its arguments: data that were scattered are sent once and stand for themselves."""

    def __init__(self) -> None:
        self.held: dict[str, Any] = {}

    def scatter(self, data: list[Any], *, hash: bool, broadcast: bool) -> list[str]:
        assert (hash, broadcast) == (False, True)
        self.held = {f"key{i}": item for i, item in enumerate(data)}
        return list(self.held)

    def submit(self, fn: Callable[..., Any], /, *args: Any, pure: bool) -> Any:
        assert pure is False
        assert [type(a) for a in args] == [str, str, int, int]
        return THREADS.submit(fn, *[self.held.get(a, a) for a in args])


def test_a_client_gets_launch_and_memory_once() -> None:
    one, a = launch(PLAIN)
    many, b = launch(PLAIN, executor=Client(), jobs=4)
    assert many.processes == "4 parts in Client"
    assert (a == b).all()
    assert many.counters.instructions == one.counters.instructions


def test_an_executor_that_fails_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = ThreadPoolExecutor(1)
    closed.shutdown()
    message = r"^simulator: ThreadPoolExecutor took no CTAs: RuntimeError: cannot schedule new futures after shutdown$"
    with pytest.raises(ToolError, match=message):
        launch(PLAIN, executor=closed, jobs=2)

    def lose(*args: Any) -> None:
        raise ConnectionError("worker lost" if args[2] else "")

    monkeypatch.setattr(spread, "run_part", lose)
    with pytest.raises(ToolError, match=r"^simulator: ThreadPoolExecutor did not run CTAs 0 to 3: ConnectionError$"):
        launch(PLAIN, executor=THREADS, jobs=2)


@pytest.mark.parametrize("multiprocessors", [132, 2])
def test_attention_is_the_same_in_parts(multiprocessors: int) -> None:
    """Tensor copies read global memory; with two multiprocessors the CTAs are persistent, three tiles of rows each."""
    kernel = hopper.build(hopper.Config(heads=2, sequence=384, keys=64, multiprocessors=multiprocessors))
    q, k, v = np.random.default_rng(0).standard_normal((3, 2, 384, 64)).astype(np.float16)
    one, parts = kernel.simulate(q, k, v), kernel.simulate(q, k, v, jobs=2, executor=THREADS)
    assert (one.findings, parts.findings) == ([], [])
    assert parts.processes == "2 parts in ThreadPoolExecutor"
    assert all((a == b).all() for a, b in zip(one.outputs, parts.outputs, strict=True))


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match=r"^jobs=0: give the number of processes, from 1$"):
        launch(PLAIN, jobs=0)
    with pytest.raises(InputError, match=r"^executor=3: give an object with submit\(function, \*arguments\)$"):
        launch(PLAIN, executor=3)
    assert launch(PLAIN, ctas=1, jobs=2)[0].processes == "one process: the grid is one cluster"


def test_a_refusal_in_a_process_is_raised_here() -> None:
    body = " .reg .b64 %a; setp.eq.u32 %p0, %me, 6; @!%p0 bra E; { call.uni unknown, (); }\nE:"
    with pytest.raises(CapabilityError, match="`call` of `unknown` is not modelled"):
        launch(body, head=".extern .func unknown ();\n", jobs=2)


def test_a_process_that_dies_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    give = workers._Worker.give

    def kill(worker: Any, part: int) -> None:
        if part == 1:
            os.kill(worker.process.pid, signal.SIGKILL)
        give(worker, part)

    monkeypatch.setattr(workers._Worker, "give", kill)
    message = r"^simulator: the process that ran CTAs 4 to 7 died: signal SIGKILL; use fewer jobs if memory was short$"
    with pytest.raises(ToolError, match=message):
        launch(PLAIN, jobs=2)


def test_ctrl_c_gives_what_was_done() -> None:
    body = f"{PLAIN}\n setp.ge.u32 %p0, %me, 4; @!%p0 bra E;\nL: add.u32 %r3, %r3, 1; bra L;\nE:"

    told: list[int] = []

    def interrupt(ended: int, _: int) -> None:
        told.append(ended)
        if told.count(4) == 1 == ended // 4:
            threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()

    result, out = launch(body, jobs=2, check=False, progress=interrupt)
    assert not result.completed
    assert result.processes == "2 parts in 2 processes"
    assert (out[:128] == np.arange(128) + np.repeat(np.arange(4), 32)).all()


def test_parts_are_whole_clusters_and_as_even_as_can_be() -> None:
    assert spread._ranges(38, 2, 4, local=True) == [(0, 8), (8, 18), (18, 28), (28, 38)]
    assert len(spread._ranges(400, 2, 4, local=True)) == 12
    assert len(spread._ranges(400, 2, 4, local=False)) == 4


LONG = "mov.u32 %r3, 0; LOOP: add.u32 %r3, %r3, 1; setp.ne.u32 %p0, %r3, 4000000000; @%p0 bra LOOP;"


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="the system does not list processes as files")
def test_workers_end_when_their_caller_is_killed(tmp_path: Path) -> None:
    code = (
        "import sys, numpy as np\n"
        "from warpsmith.simulator import simulate\n"
        "simulate(sys.argv[1], grid=8, block=32, args=[np.zeros(256, np.uint32)], jobs=2, check=False)\n"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    caller = subprocess.Popen([sys.executable, "-c", code, text(LONG)], env=environment)

    try:
        waited_for(lambda: len(processes_with(tmp_path)) == 2)
    finally:
        caller.kill()
        caller.wait()
    waited_for(lambda: not processes_with(tmp_path))
    assert list(tmp_path.iterdir()) == []


def processes_with(folder: Path) -> list[bytes]:
    """The command lines of processes that name a folder."""
    found: list[bytes] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has ended meanwhile
            found.append(path.read_bytes())
    return [line for line in found if os.fsencode(folder) in line]


def waited_for(condition: Callable[[], bool]) -> None:
    for _ in range(600):
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError("it did not come about in a minute")
