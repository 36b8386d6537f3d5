"""The manual's canonical patterns of synchronisation around tensor memory (PTX ISA 9.7.18.6.4), and each of them broken.

Arrivals and waits are relaxed, as in the manual: what counts for tensor memory is the order of execution.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from tcgen05_program import A_AT, B_AT, BYTES, descriptor, instruction, laid_out, module
from warpsmith.assembly.ptx import parse
from warpsmith.simulator.api import simulate

rng = np.random.default_rng(5)
IMAGE = np.zeros(BYTES, np.uint8)
DA = laid_out(rng.standard_normal((128, 16)).astype(np.float16), A_AT, "128B", False, IMAGE)
DB = laid_out(rng.standard_normal((16, 16)).astype(np.float16), B_AT, "128B", False, IMAGE)
I = instruction(128, 16, 1, 0, 0)  # noqa: E741
VALUES = "{" + ", ".join(f"%r{i}" for i in range(16)) + "}"

SETUP = f""" mov.b64 %rd10, {DA}; mov.b64 %rd11, {DB}; mov.b64 %rd12, {descriptor(1024 + A_AT, 4096, 256, "none")};
 mov.b32 %r200, {I}; setp.ne.u32 %p2, 0, 0; setp.eq.u32 %p3, 0, 0; add.u32 %r230, %tmem, 64; setp.eq.u32 %p4, %t, 32;
 setp.eq.u32 %p5, %warp, 1;
"""
MMA = " tcgen05.mma.cta_group::1.kind::f16 [%tmem], %rd10, %rd11, %r200, %p2;\n"
ADD = " tcgen05.mma.cta_group::1.kind::f16 [%tmem], %rd10, %rd11, %r200, %p3;\n"
COPY = " tcgen05.cp.cta_group::1.128x256b [%r230], %rd12;\n"
FROM_COPY = " tcgen05.mma.cta_group::1.kind::f16 [%tmem], [%r230], %rd11, %r200, %p2;\n"
LD = f" tcgen05.ld.sync.aligned.32x32b.x16.b32 {VALUES}, [%mine];\n"
ST = f" tcgen05.st.sync.aligned.32x32b.x16.b32 [%mine], {VALUES};\n"
WAIT_LD, WAIT_ST = " tcgen05.wait::ld.sync.aligned;\n", " tcgen05.wait::st.sync.aligned;\n"
BEFORE, AFTER = " tcgen05.fence::before_thread_sync;\n", " tcgen05.fence::after_thread_sync;\n"
ARRIVE = " mbarrier.arrive.relaxed.cluster.shared::cta.b64 _, [bar2];\n"
ZEROS = "".join(f" mov.b32 %r{i}, 0;\n" for i in range(16))


def commit(bar: str) -> str:
    return f" tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [{bar}];\n"


def wait(bar: str, label: str) -> str:
    return f"{label}: mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 %p9, [{bar}], 0;\n @!%p9 bra {label};\n"


def only(predicate: str, label: str, body: str) -> str:
    return f" @!{predicate} bra {label};\n{body}{label}:\n"


END = commit("bar")
"""What lets everybody go on to the end, where the columns are freed: a last commit, which all wait for."""
REST = wait("bar", "REST") + AFTER
BEHIND = wait("bar2", "BEHIND")
HANDED = only("%first", "A", "{first}" + BEFORE + ARRIVE) + only("%p4", "B", BEHIND + AFTER + "{then}" + END) + REST


class Pattern(NamedTuple):
    """A program, and its broken twins: what is taken away, the kind of the finding, how the line it stands at begins."""

    program: str
    broken: tuple[tuple[str, str, str], ...]


_LD, _MMA, _WAIT = "tcgen05.ld", "tcgen05.mma", "BEHIND: mbarrier.try_wait"
_ALIAS, _FENCE = "tmem-alias", "missing-tcgen05-fence"
FLAG = "F: ld.relaxed.cta.shared::cta.b32 %r240, [flag];\n setp.ne.u32 %p6, %r240, 1;\n @%p6 bra F;\n"
RAISE = " st.relaxed.cta.shared::cta.b32 [flag], 1;\n"
PATTERNS = {
    "one accumulator, one thread": Pattern(
        only("%first", "A", MMA + ADD + END) + REST, ((wait("bar", "REST"), "tmem-lifetime", "tcgen05.dealloc"),)
    ),
    "store, wait, load": Pattern(ZEROS + ST + WAIT_ST + LD + WAIT_LD, ((WAIT_ST, "missing-tcgen05-wait", _LD),)),
    "product, commit, wait, load in the same warp": Pattern(
        only("%zero", "Z", only("%first", "A", MMA + END) + wait("bar", "W") + AFTER + LD + WAIT_LD) + REST,
        ((wait("bar", "W"), _ALIAS, _LD), (AFTER, _FENCE, _LD), (END, "deadlock", "W: mbarrier.try_wait")),
    ),
    "copy, product of another thread": Pattern(
        HANDED.format(first=COPY, then=FROM_COPY),
        ((BEFORE, _FENCE, _MMA), (AFTER, _FENCE, _MMA), (BEHIND, _ALIAS, _MMA), (ARRIVE, "deadlock", _WAIT)),
    ),
    "product, product of another thread": Pattern(
        HANDED.format(first=MMA, then=ADD), ((BEFORE, _FENCE, _MMA), (AFTER, _FENCE, _MMA), (BEHIND, _ALIAS, _MMA))
    ),
    "load, wait, product of another thread": Pattern(
        only("%zero", "Z", LD + WAIT_LD + BEFORE + only("%first", "A", ARRIVE))
        + only("%p4", "B", BEHIND + AFTER + MMA + END)
        + REST,
        (
            (WAIT_LD, "missing-tcgen05-wait", _MMA), (BEFORE, _FENCE, _MMA), (AFTER, _FENCE, _MMA),
            (BEHIND, _ALIAS, "tcgen05."),
        ),
    ),
    "product, commit, load of another thread": Pattern(
        only("%first", "A", MMA + commit("bar2")) + only("%p5", "B", BEHIND + AFTER + LD + WAIT_LD),
        ((BEHIND, _ALIAS, _LD), (AFTER, _FENCE, _LD), (commit("bar2"), "deadlock", _WAIT)),
    ),
    "product, commit, wait, arrival, load of another thread": Pattern(
        only("%first", "A", MMA + commit("bar") + wait("bar", "W") + AFTER + BEFORE + ARRIVE)
        + only("%p5", "B", BEHIND + AFTER + LD + WAIT_LD),
        ((wait("bar", "W"), _ALIAS, _LD), (BEHIND, _ALIAS, _LD), (BEHIND + AFTER, _ALIAS, _LD)),
    ),
    "copy, flag in shared memory, product of another thread": Pattern(
        only("%first", "A", COPY + BEFORE + RAISE) + only("%p4", "B", FLAG + AFTER + FROM_COPY + END) + REST,
        ((BEFORE, _FENCE, _MMA), (AFTER, _FENCE, _MMA), (FLAG, _ALIAS, _MMA)),
    ),
}  # fmt: skip
ORDERS: list[dict[str, Any]] = [
    {},
    {"schedule": "adversarial"},
    {"schedule": "random", "seed": 0},
    {"schedule": "random", "seed": 1},
]


def launch(middle: str, **options: Any) -> tuple[Any, list[str]]:
    text = module(SETUP + middle, head=" @%first st.relaxed.cta.shared::cta.b32 [flag], 0;\n")
    text = text.replace(" .shared .align 4 .b32 slot;", " .shared .align 4 .b32 slot; .shared .align 4 .b32 flag;")
    out = np.zeros((16, 128), np.float32)
    result = simulate(parse(text), kernel="k", grid=(1, 1, 1), block=(128, 1, 1), args=[out, IMAGE], **options)
    return result, text.splitlines()


@pytest.mark.parametrize("name", PATTERNS)
def test_a_pattern_is_clean(name: str) -> None:
    for order in ORDERS:
        result, _ = launch(PATTERNS[name].program, **order)
        assert [str(f) for f in result.findings] == []
        assert result.completed


@pytest.mark.parametrize(("name", "twin"), [(n, i) for n, p in PATTERNS.items() for i in range(len(p.broken))])
def test_a_broken_pattern_is_named(name: str, twin: int) -> None:
    program, (gone, kind, line) = PATTERNS[name].program, PATTERNS[name].broken[twin]
    assert gone in program
    result, lines = launch(program.replace(gone, "", 1))
    found = [lines[f.where.line - 1].strip() for f in result.findings if f.kind == kind and f.where is not None]
    assert any(text.startswith(line) for text in found), str(result)


def test_registers_of_a_load_are_waited_for_by_hardware() -> None:
    """The last pattern: a true dependency through a register is respected, and yet the wait is what the manual advises."""
    result, lines = launch(ZEROS + ST + WAIT_ST + LD + " st.global.b32 [%out], %r0;\n" + WAIT_LD)
    (found,) = result.findings
    assert (found.kind, found.severity) == ("missing-tcgen05-wait", "portability")
    assert lines[found.where.line - 1].strip().startswith("st.global")
