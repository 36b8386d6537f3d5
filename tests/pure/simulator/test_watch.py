"""Watch points and the debugger: what a thread holds when it reaches a line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from warpsmith import Tile, kernel, ptx, reg
from warpsmith.base.errors import CapabilityError, InputError
from warpsmith.simulator import Debugger, Watch, simulate
from warpsmith.types import f32, u32

TEXT = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{
 .reg .b32 %r<8>; .reg .b64 %rd<4>; .reg .f32 %f<4>; .reg .pred %p<2>;
 .shared .align 4 .b8 s[256];
 ld.param.u64 %rd0, [out];
 mov.u32 %r0, %tid.x; or.b32 %r6, %r0, 1; mov.u32 %r1, %ctaid.x; mov.u32 %r4, s;
 cvt.rn.f32.u32 %f0, %r0; mov.u32 %r2, 0;
 mad.lo.u32 %r5, %r0, 4, %r4; st.shared.f32 [%r5], %f0;
 bar.sync 0;
L:
 add.u32 %r2, %r2, %r6;
 add.u32 %r3, %r2, 1;
 setp.lt.u32 %p0, %r2, 40;
 @%p0 bra L;
 mul.wide.u32 %rd1, %r0, 4; add.u64 %rd2, %rd0, %rd1; st.global.u32 [%rd2], %r3;
 ret;
}
"""


def launch(*watch: Watch, **options: Any) -> Any:
    return simulate(TEXT, grid=2, block=64, args=[np.zeros(64, np.uint32)], watch=watch, **options)


def test_registers_and_memory_of_a_thread_at_a_line() -> None:
    result = launch(Watch(on=(1, 37, 16), show=("%r1", "%r2", "%f0", "%p0", "shared[%r4]:f32x3", "shared[1028]:u32")))
    assert [str(s) for s in result.watched] == [
        "<string>:16: cta (1,0,0) thread 37 before `setp.lt.u32`: %r1 = 1, %r2 = 37 (0x25), %f0 = 37.0, %p0 = False, "
        "shared[%r4]:f32x3 = [0.0, 1.0, 2.0], shared[1028]:u32 = [1065353216 (0x3f800000)]",
        "<string>:16: cta (1,0,0) thread 37 before `setp.lt.u32`: %r1 = 1, %r2 = 74 (0x4a), %f0 = 37.0, %p0 = True, "
        "shared[%r4]:f32x3 = [0.0, 1.0, 2.0], shared[1028]:u32 = [1065353216 (0x3f800000)]",
    ]


def test_nothing_passes_a_watch_point_and_nothing_else_changes() -> None:
    """The additions are not moved or joined across it; counters and results are those of a run without."""
    plain = launch()
    result = launch(Watch(on=((0, 0, 0), 20, 15)), Watch(on=(None, None, "<string>:14"), when=lambda s: s.register("%r2") > 39))
    assert [s.values for s in result.watched[:2]] == [{"%r3": 0, "%r2": 21}, {"%r3": 22, "%r2": 42}]
    assert all(s.values["%r2"] >= 40 for s in result.watched[2:])
    assert result.counters.instructions == plain.counters.instructions
    assert (result.outputs[0] == plain.outputs[0]).all()


def test_a_function_is_called_where_threads_are_and_registers_are_the_default() -> None:
    seen: list[Any] = []
    result = launch(Watch(on=(0, None, 18), do=lambda s: seen.append((s.thread, s.warp, s.instruction)), every=True))
    assert len(seen) == 3 * 64
    assert len(launch(Watch(on=(0, None, 18))).watched) == 64
    assert sorted(seen)[:3] == [(0, 0, "add.u64"), (0, 0, "mul.wide.u32"), (0, 0, "st.global.u32")]
    assert result.watched == []
    assert launch(Watch(on=(0, 3, 17))).watched[0].values == {"%p0": True}


def test_watch_points_that_cannot_be_are_refused() -> None:
    for watch, message in [
        (Watch(on=(0, 0, 99)), "watch: no instruction of the kernel is at line 99; the nearest is <string>:18"),
        (Watch(on=(0, 0, 16), show=("%nope",)), "no register `%nope` at <string>:16; Python names known there: none"),
        (Watch(on=(0, 0, "16")), "watch: line='16': give a number or FILE:NUMBER"),
        (Watch(on=(0, 0, 16), show=("shared[0]:u8",)), "shared address 0x0: 1 items of u8 there are out of bounds"),
    ]:
        with pytest.raises(InputError) as caught:
            launch(watch)
        assert str(caught.value) == message
    with pytest.raises(InputError, match=r"^watch: on=7: give \(cta, thread, line\); None stands for every one$"):
        Watch(on=7)  # type: ignore[arg-type]


def test_jobs_give_way_to_watch_points() -> None:
    assert launch(Watch(on=(0, 0, 16)), jobs=2).processes == "one process: watch points look at one process"


@kernel(in_specs=(Tile(32, f32),), out_specs=(Tile(32, f32),), grid=(1, 1, 1), block=(32, 1, 1))
def double(x: Any, y: Any) -> None:
    source, target = ptx.global_ptrs(x, y)
    thread = reg.scalar(u32)
    value = reg.scalar(f32)
    ptx.inst.mov.u32(thread, ptx.special.tid.x())
    ptx.inst.ld.global_.f32(value, ptx.addr(source + thread * 4))
    ptx.inst.add.f32(value, value, value)
    ptx.inst.st.global_.f32(ptx.addr(target + thread * 4), value)


def test_python_names_stand_for_registers() -> None:
    with Debugger(double, np.arange(32, dtype=np.float32) + 1, warp=0) as run:
        store = next(s for s in run if s.instruction == "st.global.f32")
        assert (store.register("value"), store.register("thread")) == (2.0, 0)
        with pytest.raises(InputError, match=r"^no register `nope` at .*; Python names known there: thread, value$"):
            store.register("nope")
        line = store.place.line if store.place else 0
    result = double.simulate(np.arange(32, dtype=np.float32), watch=[Watch(on=(0, 7, line), show=["value"])])
    assert [s.values for s in result.watched][-1] == {"value": 14.0}


def test_a_debugger_steps_by_instruction_and_by_line() -> None:
    out = np.zeros(64, np.uint32)
    with Debugger(TEXT, kernel="k", grid=2, block=64, args=[out], cta=1, warp=1) as run:
        first = run.step()
        assert first is not None
        assert (first.instruction, first.cta, first.thread) == ("ld.param.u64", (1, 0, 0), 32)
        assert [s.instruction for s in (run.step(), run.step()) if s] == ["mov.u32", "or.b32"]
        line = run.step("line")
        assert line is not None
        assert line.place is not None
        assert line.place.line == 10
        there = run.run_to(15)
        assert there is not None
        assert (there.register("%r2"), there.names()) == (33, ["%r3", "%r2"])
        assert there.memory("shared", int(there.register("%r4")), "f32", 2).tolist() == [0.0, 1.0]
        assert run.result is None
        rest = [s.instruction for s in run]
    assert rest[-1] == "st.global.u32"
    assert run.result is not None
    assert run.result.completed
    assert run.step() is None
    assert (out == launch().outputs[0]).all()


def test_a_debugger_can_be_left_early_and_passes_errors_on() -> None:
    with Debugger(TEXT, grid=2, block=64, args=[np.zeros(64, np.uint32)]) as run:
        assert run.step() is not None
    assert run.result is not None
    assert not run.result.completed
    refused = TEXT.replace("bar.sync 0;", "tex.2d.v4.u32.s32 {%r0,%r1,%r2,%r3}, [%rd0, {%r1,%r2}];")
    with pytest.raises(CapabilityError), Debugger(refused, grid=1, block=64, args=[np.zeros(64, np.uint32)]) as run:
        run.run_to(99)
    with pytest.raises(InputError, match=r"^a debugger runs in one process: leave out jobs= and executor=$"):
        Debugger(TEXT, grid=2, block=64, jobs=2)


def test_one_watch_point_needs_no_list_and_other_things_are_refused() -> None:
    assert simulate(TEXT, grid=2, block=64, args=[np.zeros(64, np.uint32)], watch=Watch(on=(0, 3, 17))).watched  # type: ignore[arg-type]
    for wrong in (5, [5], "watch"):
        with pytest.raises(InputError) as caught:
            launch_with(wrong)
        assert str(caught.value) == f"watch={wrong!r}: give a Watch or a list of them, e.g. watch=[ws.Watch(on=(0, 0, 12))]"


def launch_with(watch: Any) -> Any:
    return simulate(TEXT, grid=2, block=64, args=[np.zeros(64, np.uint32)], watch=watch)


NUMBERS = "a CTA is a number or (x, y, z), a thread a number, a line a number or FILE:NUMBER"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"on": (-1, 0, 12)}, f"watch: on=(-1, 0, 12): {NUMBERS}"),
        ({"on": ("a", 0, 12)}, f"watch: on=('a', 0, 12): {NUMBERS}"),
        ({"on": ((0, 0), 0, 12)}, f"watch: on=((0, 0), 0, 12): {NUMBERS}"),
        ({"on": (0, 0.5, 12)}, f"watch: on=(0, 0.5, 12): {NUMBERS}"),
        ({"on": (0, 0, 1.5)}, f"watch: on=(0, 0, 1.5): {NUMBERS}"),
        ({"on": (0, 0, 12), "show": "%r1"}, "watch: show='%r1': give a list of names, e.g. show=[\"%r1\"]"),
        ({"on": (0, 0, 12), "when": 5}, "watch: when=5: give a function of a Stop"),
        ({"on": (0, 0, 12), "do": 5}, "watch: do=5: give a function of a Stop"),
    ],
)
def test_watch_points_that_are_none(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        Watch(**options)
    assert str(caught.value) == message


ENDING = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n .reg .b32 %r1; mov.u32 %r1, 1; ret;\n}\n"


@pytest.mark.parametrize(
    ("on", "message"),
    [
        ((0, 64, 6), "watch: thread 64: a CTA of this launch has 64, numbered from 0"),
        ((4, 0, 6), "watch: CTA 4: the grid is (2, 2, 1), and its CTAs are numbered from 0"),
        (((1, 2, 0), 0, 6), "watch: CTA (1, 2, 0): the grid is (2, 2, 1), and its CTAs are numbered from 0"),
    ],
)
def test_watch_points_outside_of_the_launch(on: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        simulate(ENDING, grid=(2, 2), block=64, watch=[Watch(on=on)])
    assert str(caught.value) == message


def test_a_debugger_of_no_warp() -> None:
    with pytest.raises(InputError) as caught:
        Debugger(ENDING, grid=1, block=64, warp=-1)
    assert str(caught.value) == "debugger: warp=-1: give the number of a warp in its CTA, from 0"
    empty = ENDING.replace(" .reg .b32 %r1; mov.u32 %r1, 1;", "")
    with pytest.raises(InputError) as caught, Debugger(empty, grid=1, block=64) as run:
        run.step()
    assert str(caught.value) == "debugger: warp 0 came to no instruction: the launch has none, or the kernel does nothing"
    with pytest.raises(InputError) as caught, Debugger(ENDING, grid=1, block=64, warp=2) as run:
        run.step()
    assert str(caught.value) == "debugger: warp 2 came to no instruction: the launch has none, or the kernel does nothing"
