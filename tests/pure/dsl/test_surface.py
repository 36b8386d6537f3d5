"""Every name and call form that kernels are written against exists (surface.txt); objects that only a trace makes, below it."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import warpsmith as ws
from warpsmith import Layout, Tile, kernel, ptx, reg, smem
from warpsmith.dsl.chain import word
from warpsmith.dsl.registers import NegPred, PipeRef
from warpsmith.dsl.transpile.statements import chain
from warpsmith.kernel import TensorSpec, TmaDescriptorHandle
from warpsmith.types import b64, bf16, f32, from_name, pred, s32, u32, u64

ROWS = [line for line in (Path(__file__).parent / "surface.txt").read_text("utf-8").splitlines() if line and line[0] != "#"]


def resolve(path: str) -> Any:
    value: Any = ws
    for name in path.split("."):
        value = getattr(value, name)
    return value


def signature(call: str) -> tuple[list[str], dict[str, str | None], list[str]]:
    """Return positional names, name -> default text (None for a required one, '' for any default), keyword names."""
    positional: list[str] = []
    defaults: dict[str, str | None] = {}
    keywords: list[str] = []
    target = positional
    for part in filter(None, (p.strip() for p in call.split(","))):
        if part[0] == "*":
            positional += ["*"] * (part != "*")
            target = keywords
            continue
        name, equals, default = part.partition("=")
        target.append(name)
        defaults[name] = default if equals else None
    return positional, defaults, keywords


@pytest.mark.parametrize("row", ROWS)
def test_name_and_call_form(row: str) -> None:
    path, parenthesis, call = row.partition("(")
    found = resolve(path)
    if not parenthesis:
        return
    positional, defaults, keywords = signature(call.removesuffix(")"))
    sig = inspect.signature(found)
    required = [n for n in positional if n == "*" or defaults[n] is None]
    sig.bind(*required, **{n: 0 for n in keywords if defaults[n] is None})
    sig.bind(*positional, **dict.fromkeys(keywords, 0))
    parameters = list(sig.parameters.values())
    for k, name in enumerate([*positional, *keywords]):
        default = defaults.get(name)
        if not default:
            continue
        parameter = parameters[k] if name in positional else sig.parameters[name]
        assert parameter.default == ast.literal_eval(default), name


@pytest.mark.parametrize("name", [row[6:] for row in ROWS if re.fullmatch(r"types\.[a-z]+[0-9]\w*|types\.pred", row)])
def test_types_are_found_by_their_names(name: str) -> None:
    assert from_name(name) is getattr(ws.types, name)
    assert from_name(name).ptx == f".{name}"


def traced(body: Callable[[], None], **how: Any) -> str:
    @kernel(arch=how.pop("arch", "sm_90a"), **how)
    def k() -> None:
        body()
        ptx.ret()

    return k.ptx()


def test_registers_and_arrays():
    def body() -> None:
        a, b = reg.scalar(s32, 1), reg.scalar(s32, init=2, name="b")
        assert b.name.lstrip("%") == "b"
        assert a.dtype is s32
        for p in (a < b, a <= b, a > b, a >= b, a == b, a != b, a < 3):
            assert p.dtype is pred
            assert isinstance(~p, NegPred)
            assert isinstance(p | p, PipeRef)
        for value in (a + b, a - b, a * b, a << 1, a >> 1, a & b, a | b, a ^ b):
            assert value.dtype is s32
        a += b
        a -= 1
        a &= b
        values = reg.array(f32, 4, name="v")
        assert len(values) == values.count == 4
        assert [r.name for r in values] == [r.name for r in values.regs()]
        assert values.dtype is f32
        assert isinstance(values.base, str)
        values[1] = values[0]
        assert len(list(values.hw_order(reverse=True))) == 4
        values[0].max(values[1])
        assert reg.alloc(u64).dtype is u64
        assert len(reg.alloc_array(f32, 3)) == 3
        frag = reg.wgmma_frag(m=64, n=64, dtype=f32)
        assert len(frag) == 32
        assert reg.from_(5, u32).dtype is u32

    assert "setp" in traced(body)


def test_shared_memory_barriers_and_pipelines():
    def body() -> None:
        tile = smem.alloc(bf16, (2, 64, 64), swizzle="128B", name="tile")
        assert tile[1] is not None
        flat = smem.alloc(f32, (8, 8))
        flat[1, 2] = flat[0, 1]
        bars = smem.mbarrier(2, name="bars")
        assert isinstance(bars[1].name, str)
        assert bars[1].byte_offset - bars[0].byte_offset == 8
        ptx.mbarrier.init(bars[0], 1)
        assert ptx.mbarrier.arrive(bars[0]).dtype is b64
        assert ptx.mbarrier.arrive_expect_tx(bars[0], 64).dtype is b64
        assert ptx.mbarrier.try_wait(bars[0], 0).dtype is pred
        array = ptx.mbarrier.array(smem.base(), 0, 4)
        stage = reg.scalar(u32, 1)
        for barrier in (array[2], array.at(stage)):
            barrier.init(1)
            barrier.wait(0)
            barrier.arrive()
            barrier.arrive_expect_tx(16)
            barrier.arrive_remote(0)
        array.init_all(1)
        array.arrive_remote_all(0)
        state = ptx.pipeline(4)
        index, phase = state.advance()
        assert index.dtype is u32
        assert phase.dtype is u32
        ptx.named_barrier(1, count=128).sync()
        p = ptx.cluster.rank(0)
        assert p.dtype is pred

    text = traced(body, block=(128, 1, 1), cluster=(2, 1, 1), smem=1024)
    assert "mbarrier" in text


def test_a_tensor_parameter_and_its_descriptor():
    seen: dict[str, Any] = {}

    @kernel(in_specs=(Tile("M", 64, bf16, Layout.TMA_128B, tma_box=(64, 64)),), grid=(1,), block=(32, 1, 1))
    def k(A: Any) -> None:
        seen["A"], seen["descriptor"] = A, A.tma_desc()
        ptx.ret()

    k.ptx()
    assert isinstance(seen["A"], TensorSpec)
    assert isinstance(seen["descriptor"], TmaDescriptorHandle)
    assert (seen["A"].name, seen["A"].shape, seen["A"].dtype, seen["A"].layout) == ("A", ("M", 64), bf16, Layout.TMA_128B)


def test_a_tensor_spec_is_made_of_its_parts():
    spec = TensorSpec("A", ("M", 64), bf16, Layout.ROW)
    assert (spec.name, spec.shape, spec.dtype, spec.layout) == ("A", ("M", 64), bf16, Layout.ROW)
    assert TensorSpec("B", (8,), f32).layout is Layout.ROW


ORDERS = [
    "from warpsmith.kernel import TensorSpec, TmaDescriptorHandle; from warpsmith import kernel; import warpsmith.kernel as m",
    "from warpsmith import kernel; from warpsmith.kernel import TensorSpec, TmaDescriptorHandle; import warpsmith.kernel as m",
    "import warpsmith.kernel as m; from warpsmith.kernel import kernel, TensorSpec, TmaDescriptorHandle",
]


@pytest.mark.parametrize("order", ORDERS)
def test_kernel_is_decorator_and_module_in_any_order(order: str) -> None:
    check = (
        "; import warpsmith; assert m is kernel is warpsmith.kernel; assert kernel.TensorSpec is TensorSpec"
        "; assert kernel.TmaDescriptorHandle is TmaDescriptorHandle; k = kernel(lambda: None); assert k.arch == 'sm_90a'"
    )
    done = subprocess.run([sys.executable, "-c", order + check], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("mnemonic", "attributes"),
    [
        ("spcompress.b8.b4.sp::2:4.x1", "spcompress.b8.b4.sp__2_4.x1"),
        ("tcgen05.ld.sync.aligned.16x64b.x1.b32", "tcgen05.ld.sync.aligned._16x64b.x1.b32"),
        ("and.b32", "and_.b32"),
        ("cp.async.bulk.prefetch.L2.global", "cp.async_.bulk.prefetch.L2.global_"),
    ],
)
def test_attributes_spell_every_word(mnemonic: str, attributes: str) -> None:
    assert chain(mnemonic) == attributes
    assert ".".join(word(a) for a in attributes.split(".")) == mnemonic


def test_importing_the_package_needs_no_numpy():
    code = "import sys, warpsmith; assert 'numpy' not in sys.modules; assert 'warpsmith.dsl' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_module_is_the_function():
    assert import_module("warpsmith.kernel") is kernel
