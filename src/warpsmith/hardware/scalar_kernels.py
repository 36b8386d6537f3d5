"""Kernels of the scalar capture: thread i loads the i-th inputs, executes many forms on them, stores every result."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from warpsmith.base.ptx_types import TYPES
from warpsmith.hardware.scalar_forms import ScalarForm

__all__ = ["FORMS_PER_KERNEL", "groups", "kernel_text", "stored_type"]

FORMS_PER_KERNEL = 24


def stored_type(name: str) -> str:
    """Return the type whose width a result is stored with: predicates as bytes, 8-bit integers as the 32-bit register."""
    if name == "pred":
        return "u8"
    return {"u8": "u32", "s8": "s32"}.get(name, name)


def _width(name: str) -> int:
    return next(w for w in (8, 16, 32, 64) if TYPES[name].bits <= w)


def _register(name: str) -> str:
    """Register type that holds an operand: bytes live in 16-bit registers."""
    if name == "pred":
        return "pred"
    return f"b{max(16, _width(name))}"


def groups(forms: list[ScalarForm]) -> Iterator[list[ScalarForm]]:
    """Yield forms that share operand types, a kernel's worth at a time."""
    ordered = sorted(forms, key=lambda f: f.reads)
    for _, same in groupby(ordered, key=lambda f: f.reads):
        batch = list(same)
        for at in range(0, len(batch), FORMS_PER_KERNEL):
            yield batch[at : at + FORMS_PER_KERNEL]


def _load(index: int, name: str) -> list[str]:
    bits = 8 if name == "pred" else _width(name)
    shift = {8: 0, 16: 1, 32: 2, 64: 3}[bits]
    lines = [f"ld.param.u64 %a, [in{index}];", f"mad.wide.u32 %a, %i, {1 << shift}, %a;"]
    if name == "pred":
        return [*lines, "ld.global.u8 %h, [%a];", f"setp.ne.u16 %x{index}, %h, 0;"]
    kind = "u8" if bits == 8 else f"b{bits}"
    return [*lines, f"ld.global.{kind} %x{index}, [%a];"]


def _store(register: str, name: str, slot: int) -> list[str]:
    """Store a result of `name` into the slot's region of 8n bytes."""
    lines: list[str] = []
    if name == "pred":
        lines.append(f"selp.u16 %h, 1, 0, {register};")
        register = "%h"
    bits = _width(stored_type(name))
    lines += [f"mad.wide.u32 %a, %i, {bits // 8}, %o;", f"mad.wide.u32 %a, %n8, {slot}, %a;"]
    return [*lines, f"st.global.{'u8' if bits == 8 else f'b{bits}'} [%a], {register};"]


def _through_bytes(form: ScalarForm) -> list[str]:
    """Conversions between bf16 and 8-bit integers take no wider register in place of a `.b8` one."""
    if form.reads == ("bf16",) and form.writes[0] in ("u8", "s8"):
        extend = f"cvt.{stored_type(form.writes[0])}.{form.writes[0]} %y0, %h;"
        return [".reg .b8 %z, %zz;", f"{form.mnemonic} %z, %x0;", "mov.b16 %h, {%z, %z};", extend]
    if form.writes == ("bf16",) and form.reads[0] in ("u8", "s8"):
        return [".reg .b8 %z, %zz;", "mov.b16 {%z, %zz}, %x0;", f"{form.mnemonic} %y0, %z;"]
    return []


def _body(form: ScalarForm, slot: int) -> list[str]:
    """The form in a scope of its own; carry flag set before and read after where it takes part."""
    plain_writes = form.writes[:-1] if form.carry_out else form.writes
    plain_reads = form.reads[:-1] if form.carry_in else form.reads
    lines = [f".reg .{_register(stored_type(t) if t != 'pred' else t)} %y{k};" for k, t in enumerate(plain_writes)]
    subtracts = form.mnemonic.startswith("sub")
    if form.carry_in:
        lines += [f"selp.u32 %c, {'1' if subtracts else '0xffffffff'}, 0, %x{len(form.reads) - 1};"]
        lines += ["sub.cc.u32 %c, 0, %c;" if subtracts else "add.cc.u32 %c, %c, 1;"]
    written = "|".join(f"%y{k}" for k in range(len(plain_writes)))
    operands = [written, *(f"%x{k}" for k in range(len(plain_reads)))]
    if form.immediate is not None:
        operands.insert(4, str(form.immediate))
    lines += _through_bytes(form) or [f"{form.mnemonic} {', '.join(operands)};"]
    if form.carry_out:
        lines += [f"{'subc' if subtracts else 'addc'}.u32 %c, 0, 0;", "setp.ne.u32 %q, %c, 0;"]
    for k, t in enumerate(plain_writes):
        lines += _store(f"%y{k}", t, slot + k)
    if form.carry_out:
        lines += _store("%q", "pred", slot + len(plain_writes))
    return ["{", *lines, "}"]


def kernel_text(batch: list[ScalarForm], arch: str) -> str:
    """Return the PTX of the kernel `k(in0, …, out, n)` for n threads, a multiple of 128.

    Result j of the batch lies at out + 8 n j.
    """
    reads = batch[0].reads
    needed = max((9, 0), *(need.ptx or (0, 0) for form in batch for need in form.match().needs))
    parameters = [f".param .u64 in{k}" for k in range(len(reads))] + [".param .u64 out", ".param .u32 count"]
    head = [".reg .u64 %a, %o;", ".reg .u32 %i, %n8, %t, %b, %c;", ".reg .u16 %h;", ".reg .pred %q;"]
    head += [f".reg .{_register(t)} %x{k};" for k, t in enumerate(reads)]
    head += ["mov.u32 %t, %tid.x;", "mov.u32 %b, %ctaid.x;", "mad.lo.u32 %i, %b, 128, %t;"]
    head += ["ld.param.u64 %o, [out];", "ld.param.u32 %n8, [count];", "shl.b32 %n8, %n8, 3;"]
    for k, t in enumerate(reads):
        head += _load(k, t)
    slot = 0
    for form in batch:
        head += _body(form, slot)
        slot += len(form.writes)
    text = "\n".join(head)
    return (
        f".version {needed[0]}.{needed[1]}\n.target {arch}\n.address_size 64\n"
        f".visible .entry k({', '.join(parameters)})\n{{\n{text}\nret;\n}}\n"
    )
