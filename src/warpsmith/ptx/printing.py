"""`ptx.printf`: print from the kernel, on a GPU (through the driver's vprintf) and on the simulator (`result.printed`)."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from warpsmith.assembly.ptx.parser import parse
from warpsmith.base.place import error, user_place
from warpsmith.base.printf_format import SIZES, SPEC
from warpsmith.dsl.adopt import adopt, adopt_items
from warpsmith.dsl.registers import Reg
from warpsmith.dsl.trace import current

if TYPE_CHECKING:
    import re

    from warpsmith.dsl.trace import Trace

__all__ = ["printf"]

_HEAD = ".version 9.0\n.target sm_90a\n.address_size 64\n"
_VPRINTF = ".extern .func (.param .b32 func_retval0) vprintf (.param .b64 vprintf_param_0, .param .b64 vprintf_param_1);\n"
_MOST = 32
"""Arguments of one call, beside the format (CUDA C++ Programming Guide)."""
_OUR = "%printf_"


def printf(text: str, *values: object) -> None:
    """Print `text` as C does, once for each thread that comes here: `ptx.printf("%d: %f\\n", thread, x)`.

    Values are registers, numbers, and strings for `%s`. Halves, bfloats and floats are printed as doubles; 64-bit integers
    need `%lld` and the like, as in C. At most 32 values. Raise `KernelError` for values that do not fit the format.
    """
    trace = current()
    if not isinstance(text, str) or "\0" in text:
        raise error("ptx.printf takes a text without null characters first", 'write e.g. ptx.printf("x = %d\\n", x)')
    wanted = _wanted(text)
    if len(wanted) != len(values) or len(values) > _MOST:
        many = f"{len(values)} value{'s' * (len(values) != 1)}"
        limit = f"; at most {_MOST} can be printed at once" if len(wanted) > _MOST else ""
        raise error(f"ptx.printf: the format takes {len(wanted)} values, and {many} are given{limit}")
    lines, at = [], 0
    for i, (spec, value) in enumerate(zip(wanted, values, strict=True)):
        code, size = _store(trace, i, spec, value)
        at = -(-at // size) * size
        lines += [line.replace("@", str(at)) for line in code]
        at += size
    _call(trace, _text_variable(trace, text), lines, at)


def _wanted(text: str) -> list[tuple[str, str, str]]:
    """Return what each value is for: (how it is written, length, conversion)."""
    out: list[tuple[str, str, str]] = []

    def one(m: re.Match[str]) -> str:
        _, width, precision, length, kind = m.groups()
        out.extend((v, "", "d") for v in (width, precision) if v == "*")
        if kind != "%":
            out.append((m[0], length or "", kind))
        return ""

    if "%" in SPEC.sub(one, text):
        raise error(f"ptx.printf: {text!r} has a % that begins no conversion", "write %% for a percent sign")
    return out


def _store(trace: Trace, i: int, spec: tuple[str, str, str], value: object) -> tuple[list[str], int]:
    """Return the statements that put value `i` into the buffer at byte `@`, and its size."""
    written, length, kind = spec
    if kind in "fFeEgGaA":
        return _store_float(i, written, value)
    if kind == "s":
        if not isinstance(value, str) or "\0" in value:
            raise error(f"ptx.printf: value {i} is printed by {written}, which takes a Python string")
        return _store_address(i, _text_variable(trace, value)), 8
    size = 8 if kind == "p" else SIZES.get(length, 4)
    if isinstance(value, int) and not isinstance(value, bool):
        if not -(1 << 8 * size - 1) <= value < 1 << 8 * size:
            raise error(f"ptx.printf: value {i}, {value}, does not fit the {size} bytes of {written}")
        return [f"st.local.b{8 * size} [printf_box+@], {value & (1 << 8 * size) - 1};"], size
    if not isinstance(value, Reg) or value.dtype.kind in ("float", "pred") or value.dtype.bits > 64:
        raise error(f"ptx.printf: value {i} is printed by {written}, which takes an integer: a register or a number")
    return _store_integer(i, written, value, size, signed=kind in "di"), size


def _store_integer(i: int, written: str, value: Reg, size: int, *, signed: bool) -> list[str]:
    bits = value.dtype.bits
    if bits > 8 * size or (size == 8 and bits < 64):
        length = "ll" if bits == 64 else ""
        plain = written[-1] if written[-1] != "p" else "x"
        raise error(
            f"ptx.printf: value {i} has {bits} bits, and {written} takes {8 * size}", f"write %{length}{plain}, or convert it"
        )
    if bits < 32:
        letter = "s" if signed else "u"
        return [
            f".reg .b32 {_OUR}{i};",
            f"cvt.{letter}32.{letter}{bits} {_OUR}{i}, {value.name};",
            f"st.local.b32 [printf_box+@], {_OUR}{i};",
        ]
    return [f"st.local.b{8 * size} [printf_box+@], {value.name};"]


def _store_float(i: int, written: str, value: object) -> tuple[list[str], int]:
    if isinstance(value, int | float) and not isinstance(value, bool):
        bits = struct.unpack("<Q", struct.pack("<d", value))[0]
        return [f"st.local.b64 [printf_box+@], {bits};"], 8
    if not isinstance(value, Reg) or value.dtype.name not in ("f16", "bf16", "f32", "f64", "b32", "b64"):
        raise error(f"ptx.printf: value {i} is printed by {written}, which takes a float: a register or a number")
    name, kind = value.name, value.dtype.name
    if kind in ("f64", "b64"):
        return [f"st.local.b64 [printf_box+@], {name};"], 8
    lines = [f".reg .f64 {_OUR}{i};"]
    if kind in ("f16", "bf16"):
        lines += [f".reg .f32 {_OUR}{i}f;", f"cvt.f32.{kind} {_OUR}{i}f, {name};"]
        name = f"{_OUR}{i}f"
    return [*lines, f"cvt.f64.f32 {_OUR}{i}, {name};", f"st.local.f64 [printf_box+@], {_OUR}{i};"], 8


def _store_address(i: int, variable: str) -> list[str]:
    return [
        f".reg .b64 {_OUR}{i};", f"mov.u64 {_OUR}{i}, {variable};", f"cvta.global.u64 {_OUR}{i}, {_OUR}{i};",
        f"st.local.b64 [printf_box+@], {_OUR}{i};",
    ]  # fmt: skip


def _text_variable(trace: Trace, text: str) -> str:
    """Return the global variable that holds a text; one for equal texts."""
    name = trace.printed_texts.get(text)
    if name is None:
        name = trace.printed_texts[text] = trace.unique("printf_text")
        data = [*text.encode(), 0]
        listed = ", ".join(map(str, data))
        adopt_items(trace, parse(f"{_HEAD}.global .align 1 .b8 {name}[{len(data)}] = {{{listed}}};\n").items)
    return name


def _call(trace: Trace, variable: str, stores: list[str], size: int) -> None:
    """Call vprintf with the format in `variable` and a buffer of local memory."""
    if "vprintf" not in trace.spaces:
        adopt_items(trace, parse(_HEAD + _VPRINTF).items)
    box = [f".local .align 8 .b8 printf_box[{size}];"] if size else []
    where = [f"mov.u64 {_OUR}box, printf_box;", f"cvta.local.u64 {_OUR}box, {_OUR}box;"] if size else [f"mov.u64 {_OUR}box, 0;"]
    lines = [
        *box, f".reg .b64 {_OUR}text, {_OUR}box;", f".reg .b32 {_OUR}count;", *stores,
        f"mov.u64 {_OUR}text, {variable};", f"cvta.global.u64 {_OUR}text, {_OUR}text;", *where,
        ".param .b64 printf_a;", ".param .b64 printf_b;", ".param .b32 printf_r;",
        f"st.param.b64 [printf_a], {_OUR}text;", f"st.param.b64 [printf_b], {_OUR}box;",
        "call.uni (printf_r), vprintf, (printf_a, printf_b);", f"ld.param.b32 {_OUR}count, [printf_r];",
    ]  # fmt: skip
    body = "\n".join(lines)
    module = parse(f"{_HEAD}.entry k()\n{{\n{{\n{body}\n}}\n}}\n")
    adopt(trace, module.entry("k").body or [], trace.forced_place or user_place())
