"""What elementwise meanings promise their callers: any shape and stride, scalars as immediates, and results in place."""

from functools import cache

import numpy as np
import pytest

from warpsmith.base.ptx_types import TYPES
from warpsmith.hardware.scalar_forms import scalar_forms
from warpsmith.hardware.scalar_values import edge_count, inputs
from warpsmith.simulator.meanings import registry
from warpsmith.simulator.registers import dtype_of

N = 96


@cache
def forms():
    """One form in seven of each opcode: the modifiers are judged elsewhere."""
    by_opcode = {}
    for form in scalar_forms("sm_90a") + [f for f in scalar_forms("sm_100a") if "f32x2" in f.key or "f32.f16" in f.key]:
        by_opcode.setdefault(form.mnemonic.split(".")[0], []).append(form)
    return {opcode: members if len(members) < 120 else members[::7] for opcode, members in by_opcode.items()}


@cache
def sample(reads):
    ins, n = inputs(reads), edge_count(reads)
    picks = np.r_[np.linspace(0, n - 1, N // 2).astype(int), np.linspace(n, len(ins[0]) - 1, N // 2).astype(int)]
    return [x[picks] for x in ins]


def operands(form):
    codes = sample(form.reads)
    return [c != 0 if t == "pred" else c.view(dtype_of(t)) for c, t in zip(codes, form.reads, strict=True)]


def call(form, ins, outs):
    built = registry.build(form.match())
    arguments = list(ins)
    if form.immediate is not None:
        arguments.insert(3, np.uint32(form.immediate))
    with np.errstate(all="ignore"):
        if isinstance(built.fn, np.ufunc):
            built.fn(*arguments, *outs)
        else:
            built.fn(*outs, *arguments)
    return built.fn


def fresh(form, shape):
    return [np.zeros(shape, dtype_of(TYPES[t])) for t in form.writes]


def bits(arrays):
    return [np.ascontiguousarray(a).reshape(-1).view(np.uint8).tolist() for a in arrays]


def strided(array):
    """The same values with a gap between them."""
    wide = np.zeros(2 * array.size, array.dtype)
    wide[::2] = array
    return wide[::2]


@pytest.mark.parametrize("opcode", sorted(forms()))
def test_promises(opcode):
    for form in forms()[opcode]:
        ins, outs = operands(form), fresh(form, N)
        fn = call(form, ins, outs)
        want = bits(outs)
        boxed = fresh(form, (4, 2, N // 8))
        call(form, [x.reshape(4, 2, N // 8) for x in ins], boxed)
        assert bits(boxed) == want, f"{form.key}: three axes"
        gaps = [strided(o) for o in fresh(form, N)]
        call(form, [strided(x) for x in ins], gaps)
        assert bits(gaps) == want, f"{form.key}: strided"
        single = fresh(form, 1)
        call(form, [x[N // 3] for x in ins], single)
        assert bits(single) == bits([o[N // 3 : N // 3 + 1] for o in outs]), f"{form.key}: scalars"
        assert isinstance(fn, np.ufunc) or fn.in_place
        check_in_place(form, want)


def check_in_place(form, want):
    """Let the first result land on each operand of its dtype."""
    for i in range(len(form.reads)):
        ins, outs = [x.copy() for x in operands(form)], fresh(form, N)
        if ins[i].dtype == outs[0].dtype:
            outs[0] = ins[i]
            call(form, ins, outs)
            assert bits(outs) == want, f"{form.key}: in place of operand {i}"
