"""Typical mistakes are caught at the user's Python line, before ptxas: the whole message."""

from __future__ import annotations

import re

import pytest

from warpsmith import Layout, Tile, kernel, ptx, reg, smem, types
from warpsmith.base.errors import InputError, KernelError
from warpsmith.types import b16, bf16, f16, f32, u32, u64


def test_wrong_operand_type(mistake):
    def body():
        a, f = reg.scalar(u32, 1), reg.scalar(f32, 1.0)
        ptx.inst.add.u32(a, a, f)

    assert mistake(body) == (
        "test_mistakes.py: error: add.u32: `%f0` is .f32, an operand of type .u32 is wanted (.b32, .u32, .s32, .f16x2)\n"
        "          ptx.inst.add.u32(a, a, f)\n"
        "          ^^^^^^^^^^^^^^^^^^^^^^^^^"
    )


def test_an_address_without_brackets(mistake):
    def body():
        a, f = reg.scalar(u64, 1), reg.scalar(f32, 1.0)
        ptx.inst.st.global_.f32((a, 4), f)

    assert mistake(body) == (
        "test_mistakes.py: error: st.global.f32: `{[%rdu0], 4}` should be an address in brackets\n"
        "          ptx.inst.st.global_.f32((a, 4), f)\n"
        "          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "  hint: write ptx.addr(…) around it"
    )


def test_a_row_of_a_shared_array_is_no_value(mistake):
    def body():
        tile, f = smem.alloc(f32, (4, 4)), reg.scalar(f32)
        ptx.inst.add.rn.f32(f, f, tile[2])

    assert mistake(body) == (
        "test_mistakes.py: error: add.rn.f32: `[smem+32]` is an address, a value is wanted here\n"
        "          ptx.inst.add.rn.f32(f, f, tile[2])\n"
        "          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "  hint: load it into a register first; an element of a shared array has as many indices as the array has dimensions"
    )


def test_undeclared_register(mistake):
    def body():
        a = reg.scalar(u32)
        ptx.inst.add.u32(a, a, "%r99")

    assert mistake(body) == (
        "test_mistakes.py: error: undeclared register %r99\n"
        '          ptx.inst.add.u32(a, a, "%r99")\n'
        "          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "  hint: declare it first: reg.scalar(dtype, name=…), or pass the Reg itself"
    )


def test_register_of_a_scope_that_has_ended(mistake):
    def body():
        with ptx.scope():
            a = reg.scalar(u32)
        ptx.inst.add.u32(a, a, 1)

    assert mistake(body) == (
        "test_mistakes.py: error: undeclared register %ru1_0: the ptx.scope() that declared it has ended\n"
        "          ptx.inst.add.u32(a, a, 1)\n"
        "          ^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "  hint: declare it before the scope"
    )


def test_register_of_another_kernel(mistake):
    kept = []

    @kernel
    def other():
        kept.append(reg.scalar(u32))

    other.build()

    def body():
        kept[0] += 1

    assert mistake(body).startswith(
        "test_mistakes.py: error: undeclared register %ru0: it belongs to a kernel whose body has ended\n"
    )


def test_predicate_missing(mistake):
    def body():
        a = reg.scalar(u32, 1)
        with ptx.if_(a):
            ptx.ret()

    assert mistake(body) == (
        "test_mistakes.py: error: ptx.if_ needs a predicate, and %ru0 is u32\n"
        "          with ptx.if_(a):\n"
        "               ^^^^^^^^^^\n"
        "  hint: compare it: ptx.if_(%ru0 != 0)"
    )


def test_guard_that_is_no_predicate(mistake):
    def body():
        a = reg.scalar(u32, 1)
        ptx.inst.add.u32(a, a, 1, pred=a)

    assert mistake(body) == (
        "test_mistakes.py: error: pred= needs a predicate, and %ru0 is u32\n"
        "          ptx.inst.add.u32(a, a, 1, pred=a)\n"
        "          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "  hint: write pred=(%ru0 != 0)"
    )


def test_register_in_a_python_test(mistake):
    def body():
        a = reg.scalar(u32, 1)
        if a == 3:
            ptx.ret()

    assert mistake(body) == (
        "test_mistakes.py: error: the register %p0 has no value while the kernel is traced, so Python cannot test it\n"
        "          if a == 3:\n"
        "             ^^^^^^\n"
        "  hint: write `with ptx.if_(p):` for a test at run time, and ptx.inst.and_.pred(d, p, q) for `and`"
    )


def test_unknown_modifier(mistake):
    def body():
        a = reg.scalar(f32, 1.0)
        ptx.inst.fma.rx.f32(a, a, a, a)

    assert mistake(body) == (
        "test_mistakes.py: error: fma.rx.f32: `fma` has no modifier `.rx`\n"
        "          ptx.inst.fma.rx.f32(a, a, a, a)\n"
        "          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "  hint: closest form: fma.{rn,rz,rm,rp}{.ftz}{.sat}.f32"
    )


def test_unknown_instruction(mistake):
    def body():
        a = reg.scalar(f32, 1.0)
        ptx.inst.fmad.rn.f32(a, a, a, a)

    assert mistake(body) == (
        "test_mistakes.py: error: fmad.rn.f32: unknown instruction `fmad`\n"
        "          ptx.inst.fmad.rn.f32(a, a, a, a)\n"
        "          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "  hint: did you mean `mad`?"
    )


def test_not_available_on_the_architecture(mistake):
    def body():
        ptx.wgmma.fence()

    assert mistake(body, arch="sm_80") == (
        "test_mistakes.py: error: wgmma.fence.sync.aligned: `wgmma` needs sm_90a, the target is sm_80\n"
        "          ptx.wgmma.fence()\n"
        "          ^^^^^^^^^^^^^^^^^\n"
        "  hint: choose another arch= in @kernel, or another instruction"
    )


def test_not_available_in_the_ptx_version(mistake):
    def body():
        a = reg.scalar(f32, 1.0)
        ptx.inst.max.f32(a, a, a, a)

    assert mistake(body, arch="sm_100a", version=(8, 6)) == (
        "test_mistakes.py: error: max.f32: `max` needs PTX 8.8, the module is 8.6\n"
        "          ptx.inst.max.f32(a, a, a, a)\n"
        "          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "  hint: leave version= out of @kernel, or write version=(8, 8)"
    )
    assert ".version 8.8" in kernel(arch="sm_100a")(body).ptx()


def test_ptx_version_without_the_architecture():
    with pytest.raises(InputError, match=r"^PTX 8\.0 does not have sm_100a; the first version is 8\.6$"):
        kernel(arch="sm_100a", version=(8, 0))


def test_unbalanced_scope(mistake):
    def body():
        ptx.scope().__enter__()
        ptx.ret()

    assert mistake(body) == (
        "test_mistakes.py: error: unbalanced scope: this ptx.scope() is still open at the end of the kernel\n"
        "          ptx.scope().__enter__()\n"
        "          ^^^^^^^^^^^^^^^^^^^^^^^\n"
        "  hint: open it with `with ptx.scope():`"
    )


def test_scope_left_open_in_a_branch(mistake):
    def body():
        with ptx.if_(ptx.special.tid.x() == 0):
            ptx.scope().__enter__()

    assert "unbalanced scope: a ptx.scope() opened inside ptx.if_ is still open at its end" in mistake(body)


def test_shared_memory_over_the_limit(mistake):
    def body():
        smem.alloc(f32, (4, 128, 128), name="tiles")

    assert mistake(body) == (
        "test_mistakes.py: error: shared memory over the limit: tiles (262144 bytes) brings the kernel to 262144 bytes, "
        "sm_90 has 232448\n"
        '          smem.alloc(f32, (4, 128, 128), name="tiles")\n'
        "          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "  hint: use fewer stages or smaller tiles"
    )


def test_dynamic_shared_memory_over_the_limit(mistake):
    assert "error: shared memory over the limit: smem=240000 bytes, sm_90 has 232448\n" in mistake(lambda: None, smem=240000)


def test_tile_shape_a_descriptor_cannot_have():
    with pytest.raises(KernelError) as caught:
        Tile(256, 256, bf16, Layout.TMA_128B, tma_box=(64, 128))
    assert re.sub(r"^\S*?(\w+\.py):\d+:\d+:", r"\1:", str(caught.value)) == (
        "test_mistakes.py: error: Tile: TMA_128B needs an inner box extent of at most 128 bytes, and 128 x bf16 is 256; "
        "write tma_box=(…, 64)\n"
        "          Tile(256, 256, bf16, Layout.TMA_128B, tma_box=(64, 128))\n"
        "          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^"
    )


def test_wgmma_tile_without_a_layout(mistake):
    def body():
        smem.wgmma_tile(bf16, (64, 24))

    assert (
        "error: a wgmma tile has rows of 16, 32, 64 or a multiple of 128 bytes, and 24 elements of 2 bytes are 48"
        in mistake(body)
    )


def test_float_immediate_in_an_integer_instruction(mistake):
    def body():
        a = reg.scalar(u32, 1)
        ptx.inst.add.u32(a, a, 1.5)

    assert mistake(body) == (
        "test_mistakes.py: error: add.u32: `1.5` is a floating-point constant, type .u32 is wanted\n"
        "          ptx.inst.add.u32(a, a, 1.5)\n"
        "          ^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "  hint: write an int"
    )


def test_float_in_an_integer_operator(mistake):
    def body():
        reg.scalar(u32, 1) + 1.5

    assert mistake(body) == (
        "test_mistakes.py: error: a float (1.5) in the integer operation `+` on %ru0 of type u32\n"
        "          reg.scalar(u32, 1) + 1.5\n"
        "          ^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "  hint: write an int"
    )


def test_operator_on_floats(mistake):
    def body():
        reg.scalar(f32, 1.0) + reg.scalar(f32, 2.0)

    assert mistake(body).splitlines()[-1] == ("  hint: write the instruction: ptx.inst.add.rn.f32(d, a, b) says how it rounds")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ptx.bar.sync(1, 100), "wrong barrier argument: a barrier counts whole warps, and 100 is no multiple of 32"),
        (lambda: ptx.bar.sync(16), "a CTA has the barriers 0 to 15, and this is 16"),
        (lambda: ptx.bar.sync("1"), "wrong barrier argument: the number is an int or a register, not str"),
        (
            lambda: ptx.mbarrier.init(smem.mbarrier(1)[0], 0),
            "wrong barrier argument: an mbarrier counts 1 to 1048575 arrivals, not 0",
        ),
        (lambda: ptx.mbarrier.wait(smem.mbarrier(1)[0], 2), "a phase parity is 0, 1 or a register, not 2"),
        (
            lambda: ptx.mbarrier.wait(smem.mbarrier(1)[0], 0, scope="gpu"),
            "the scope of an mbarrier is 'cta' or 'cluster', not 'gpu'",
        ),
        (lambda: smem.mbarrier(2)[2], "barrier 2 is outside mbar with its 2 barriers"),
        (
            lambda: ptx.mbarrier.arrive(reg.scalar(u64, 0)),
            "wrong barrier argument: %rdu0 is u64, and a barrier's address is a 32-bit shared address",
        ),
        (
            lambda: ptx.mbarrier.arrive_expect_tx(smem.mbarrier(1)[0], 1 << 20),
            "wrong barrier argument: an mbarrier counts up to 1048575 pending bytes, not 1048576",
        ),
        (lambda: ptx.setmaxnreg(250), "setmaxnreg takes a multiple of 8 from 24 to 256, not 250"),
        (lambda: ptx.cp.async_.cg(smem.base(), reg.scalar(u64, 0), 8), "cp.async.cg copies 16 bytes, not 8"),
        (lambda: ptx.bra("nowhere"), "no label nowhere in this kernel"),
        (lambda: (ptx.label("x"), ptx.label("x")), "the label x is already set at "),
        (lambda: reg.scalar(u32, 1 << 33), "mov.u32: operand 2 is 8589934592, which is too wide for 32 bits"),
        (lambda: reg.scalar(u32, name="1x"), "'1x' is no PTX identifier"),
        (lambda: [reg.scalar(u32, name="x") for _ in range(2)], "the name x is already declared in this scope"),
        (lambda: ptx.sreg("%tid.q"), "PTX has no special register %tid.q"),
        (lambda: reg.array(u32, 4)[4], "index 4 is outside the register array %aru0_ of 4"),
        (lambda: ptx.else_().__enter__(), "ptx.else_() must directly follow the `with ptx.if_(…)` block it belongs to"),
        (lambda: ptx.raw("add.u32 %a"), "ptx.raw: "),
        (lambda: smem.alloc(f16, (4, 4), swizzle="256B"), "unknown swizzle '256B'"),
        (
            lambda: smem.alloc(f16, (8, 128), swizzle="128B")[1, 1],
            "rows of 256 bytes are stored in stripes of 128B, which [row, col] does not address",
        ),
        (
            lambda: ptx.var("shared", f32, "big", size=16384),
            "shared memory over the limit: variables may have 49152 bytes together, these 65536",
        ),
        (lambda: smem.alloc(f16, (4, 4))[5], "slice 5 is outside the first dimension of (4, 4)"),
        (lambda: reg.scalar(u32, 1) << 32, "a shift of a 32-bit register by 32"),
        (lambda: ptx.addr(reg.scalar(b16), 4), "%rs0 of type b16 cannot hold an address"),
        (
            lambda: ptx.ld(u32, reg.scalar(u32), reg.scalar(u32)),
            "ld.global.u32: operand 2 is an address in a 32-bit register, and .global addresses have 64 bits",
        ),
        (lambda: ptx.inst.add.u32(reg.scalar(u32), 1), "`add.u32` takes 3 operands, 2 given"),
    ],
)  # fmt: skip
def test_message(mistake, call, message):
    assert f"error: {message}" in mistake(lambda: call())


def test_outside_a_kernel():
    with pytest.raises(KernelError, match="error: this call emits an instruction, and no kernel is being traced"):
        reg.scalar(u32)


def test_range_left_by_break(mistake):
    def body():
        for _ in ptx.range_(0, 4):
            break

    assert "the ptx.range_ loop was left by `break` or `return`, so its end is missing" in mistake(body)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scale_a": 2}, "wgmma: scale_a is 1 or -1, not 2"),
        ({"trans_a": 1, "a": "registers"}, "wgmma: A in registers cannot be transposed (trans_a=1)"),
        ({"dtype": "e4m3", "trans_b": 1}, "wgmma of e4m3 reads both operands K-major: trans_a and trans_b are 0"),
        ({"dtype": "s8", "scale_b": -1}, "wgmma of s8 has no scale_a and scale_b"),
        ({"a_k_offset": 8}, "a_k_offset is a number of bytes, a multiple of 16, not 8"),
        ({"a": "registers", "a_k_offset": 32}, "a_k_offset moves a descriptor on; A is in registers"),
    ],
)
def test_wgmma_arguments_have_effect_or_are_refused(mistake, arguments, message):
    def body():
        options = dict(arguments)
        dtype = getattr(types, options.pop("dtype", "bf16"))
        a = reg.array(types.b32, 4) if options.pop("a", "") else reg.scalar(u64, 0)
        out = types.s32 if dtype is types.s8 else f32
        ptx.wgmma.mma_async(
            shape=(64, 64, 32 if dtype.bits == 8 else 16), dtype_d=out, dtype_a=dtype, dtype_b=dtype,
            d=reg.wgmma_frag(n=64, dtype=out), a=a, b=reg.scalar(u64, 0), **options,
        )  # fmt: skip

    assert f"error: {message}" in mistake(body)


def test_wrong_python_types_end_at_the_users_line(mistake):
    def body():
        ptx.mma.sync(
            shape=3,
            dtype_d=f32,
            dtype_a=bf16,
            dtype_b=bf16,
            dtype_c=f32,
            d=[],
            a=[],
            b=[],
            c=[],  # type: ignore[arg-type]
        )

    lines = mistake(body).splitlines()
    assert lines[0] == "test_mistakes.py: error: an argument of this call has the wrong type: object of type 'int' has no len()"
    assert lines[1].strip() == "ptx.mma.sync("


def test_the_users_own_exceptions_stay_what_they_are():
    def body():
        ptx.kloop(2, body=lambda: {}["missing"])

    with pytest.raises(KeyError):
        kernel(body).ptx()


@pytest.mark.parametrize(
    ("call", "form"),
    [
        (lambda: ptx.if_(reg.scalar(u32) == 0), "with ptx.if_(…):"),
        (lambda: ptx.scope(), "with ptx.scope():"),
        (lambda: ptx.loop("x"), "with ptx.loop(…):"),
        (lambda: ptx.range_(0, 4), "for k in ptx.range_(…):"),
    ],
)
def test_a_block_without_with(mistake, call, form):
    message = mistake(lambda: call())
    assert "error: this block is never entered, so it does nothing\n" in message
    assert message.endswith(f"hint: write `{form}`")


def test_a_tensor_is_not_indexed(mistake):
    def body(x):
        x[0]

    assert mistake(body, in_specs=(Tile(4, f32),)) == (
        "test_mistakes.py: error: `x` is a tensor in global memory, and Python cannot index it\n"
        "          x[0]\n"
        "          ^^^^\n"
        "  hint: load from its address: (p,) = ptx.global_ptrs(x); ptx.inst.ld.global_.f32(register, ptx.addr(p, bytes))"
    )


def test_the_parameter_itself_is_no_global_address(mistake):
    def body(x):
        ptx.inst.ld.global_.f32(reg.scalar(f32), x)

    assert mistake(body, in_specs=(Tile(4, f32),)) == (
        "test_mistakes.py: error: ld.global.f32: `[x]`: `x` is in .param, the instruction addresses .global; "
        "load the pointer that it holds first\n"
        "          ptx.inst.ld.global_.f32(reg.scalar(f32), x)\n"
        "          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^"
    )


def test_coordinates_are_no_offset(mistake):
    def body(x):
        ptx.addr(x.tma_desc(), (0, 8))

    assert mistake(body, in_specs=(Tile(16, 16, f32, tma_box=(8, 16)),)) == (
        "test_mistakes.py: error: an address offset is a number of bytes, not (0, 8)\n"
        "          ptx.addr(x.tma_desc(), (0, 8))\n"
        "          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "  hint: coordinates in a tensor, the innermost first, are written ptx.addr(descriptor, coordinates=(c0, c1))"
    )


def test_an_instruction_without_its_type(mistake):
    def body():
        a = reg.scalar(f32, 1.0)
        ptx.inst.min(a, a, a)

    message = mistake(body).splitlines()
    assert message[0].startswith("test_mistakes.py: error: `min` lacks one of ")
    choice = set(message[0].removeprefix("test_mistakes.py: error: `min` lacks one of ").split(", "))
    assert {"`.f32`", "`.f64`", "`.f16x2`", "`.u64`", "`.s16x2`"} <= choice
    assert not any("closest form" in line for line in message)


_TOWARDS_ZERO = "write ptx.inst.div.u32(d, a, b) or rem, which round towards zero; for powers of two `>>` and `&` cost less"


@pytest.mark.parametrize(
    ("divide", "hint"),
    [
        (lambda t, f: t / 2, _TOWARDS_ZERO),
        (lambda t, f: t // 2, _TOWARDS_ZERO),
        (lambda t, f: t % 2, _TOWARDS_ZERO),
        (lambda t, f: f / t, "write the instruction: ptx.inst.div.rn.f32(d, a, b) says how it rounds"),
    ],
)  # fmt: skip
def test_division_is_spelled_out(mistake, divide, hint):
    def body():
        divide(reg.scalar(u32, 8), reg.scalar(f32, 8.0))

    first, *_, last = mistake(body).splitlines()
    assert "` is not defined for %" in first
    assert last == f"  hint: {hint}"


def test_address_of_shared_memory_by_an_operator(mistake):
    def body():
        ring, stage = smem.alloc(f32, (2, 32)), reg.scalar(u32, 1)
        ptx.addr(ring + stage * 128)

    assert mistake(body) == (
        "test_mistakes.py: error: `+` on %ru1 takes a register or an int, not SharedAlloc\n"
        "          ptx.addr(ring + stage * 128)\n"
        "                   ^^^^^^^^^^^^^^^^^^\n"
        "  hint: an address is written ptx.addr(what, bytes): the bytes are an int or a 32-bit register"
    )


@pytest.mark.parametrize(
    "calculate",
    [lambda m: m // 2, lambda m: 2 * m, lambda m: m % 4, lambda m: 128 - m, lambda m: m < 8, lambda m: -m, range, int, float],
)
def test_calculating_with_a_dimension_without_a_value(calculate):
    @kernel(in_specs=(Tile("M", 32, f32),), block=32)
    def k(x):
        calculate(x.shape[0])

    with pytest.raises(KernelError) as caught:
        k.ptx()
    message = str(caught.value)
    assert re.search(r"test_mistakes\.py:\d+:\d+: error: the dimension 'M' has no value in this trace\n", message)
    assert message.endswith("\n  hint: give it one: k.ptx(M=…), or -p M=… on the command line")
    assert k.ptx(M=4)


def test_the_name_of_a_dimension_without_a_value():
    seen = []

    @kernel(in_specs=(Tile("M", 32, f32),), block=32)
    def k(x):
        seen.append(x.shape)

    k.ptx()
    assert seen == [("M", 32)]
    assert f"{seen[0][0]}" == "M"


def test_a_scope_before_there_were_scopes(mistake):
    def body():
        ptx.mbarrier.wait(smem.mbarrier(1)[0], 0, scope="cta")

    assert mistake(body, arch="sm_80") == (
        "test_mistakes.py: error: scopes of mbarriers are there from sm_90 on, and this kernel is for sm_80\n"
        '          ptx.mbarrier.wait(smem.mbarrier(1)[0], 0, scope="cta")\n'
        "          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "  hint: leave scope= away"
    )
