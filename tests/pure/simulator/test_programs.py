"""Programs of other compilers (tests/support/programs) run unchanged, right and without findings: for each one architecture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from programs.every import PROGRAMS, share, table
from programs.program import Program, run
from ptx_corpus import sample
from warpsmith.base.errors import CapabilityError, InputError
from warpsmith.simulator import simulate

PAGE = Path(__file__).parents[3] / "docs" / "design" / "programs.md"


@pytest.mark.parametrize(("program", "arch"), share(4), ids=lambda v: v if isinstance(v, str) else f"{v.compiler}-{v.name}")
def test_runs_right(program: Program, arch: str) -> None:
    run(program, arch, {})


def test_the_table_is_fresh(pytestconfig: pytest.Config) -> None:
    head, mark, listed = PAGE.read_text().partition("| compiler ")
    if pytestconfig.getoption("--regenerate"):
        PAGE.write_text(head + table())
    else:
        assert mark + listed == table()


def test_every_program_says_what_it_is() -> None:
    assert [p.name for p in PROGRAMS if not p.about] == []


def test_an_assertion_that_fails() -> None:
    result = simulate(sample("nvcc/objects.sm_80"), kernel="checked", grid=1, block=40, args=[np.zeros(40, np.int32), 32])
    assert not result.completed
    (finding,) = result.findings
    assert finding.message == (
        'tests/data/cuda/objects.cu:106: void checked(int *, int): assertion `t < n && "more threads than expected"` failed'
    )
    assert finding.threads == "cta (0,0,0) warp 1 lanes 0-7"


def test_padding_that_a_debug_build_copies_is_found() -> None:
    box, x = np.zeros(64, np.uint64), np.zeros(32, np.float32)
    result = simulate(sample("nvcc/objects.sm_90.debug"), kernel="operations", grid=1, block=32, args=[box, x, 0])
    assert [f.kind for f in result.findings] == ["uninitialised-read"]


def test_a_grid_that_cannot_be_resident_at_once() -> None:
    args = [np.zeros(64, np.int32), np.zeros(64, np.int32), 1]
    module = sample("nvcc/orders.sm_90a.lines")
    with pytest.raises(InputError) as caught:
        simulate(module, kernel="grid_steps", grid=132 * 32 + 1, block=64, args=args)
    assert str(caught.value) == (
        "the kernel synchronises its grid (a cooperative launch): 4225 CTAs, and 4224 are resident on H200; launch at most 4224"
    )


OUT = np.zeros(32, np.int32)


@pytest.mark.parametrize(
    ("kernel", "args", "said"),
    [
        (
            "parent",
            [OUT, 1],
            ":88: simulator: `call` of `__cudaCDP2GetParameterBufferV2` is not modelled: its body is not in this module",
        ),
        ("linked", [OUT], ":139: simulator: `call` of `_Z9elsewherei` is not modelled: its body is not in this module"),
        (
            "texture",
            [OUT, 1],
            ":170: simulator: `tex.2d.v4.f32.f32` is not modelled: textures, samplers and surfaces have no model",
        ),
        (
            "surface",
            [OUT, 1],
            ":193: simulator: `suld.b.2d.b32.trap` is not modelled: textures, samplers and surfaces have no model",
        ),
    ],
)
def test_what_is_refused_is_named(kernel: str, args: list[object], said: str) -> None:
    with pytest.raises(CapabilityError) as caught:
        simulate(sample("nvcc/refused.sm_90.relocatable"), kernel=kernel, grid=1, block=32, args=args)
    assert str(caught.value) == "refused.sm_90.relocatable.ptx" + said


def test_a_launch_of_a_kernel_that_does_not_happen() -> None:
    args = [OUT, 0]
    result = simulate(sample("nvcc/refused.sm_90.relocatable"), kernel="parent", grid=1, block=32, args=args)
    assert result.completed
    assert not result.findings
