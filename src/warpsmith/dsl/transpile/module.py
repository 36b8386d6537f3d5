"""A PTX module as Python source: one `@kernel` function for each entry."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from warpsmith.assembly.ptx.print_items import print_item
from warpsmith.assembly.ptx.read import parse
from warpsmith.assembly.ptx.tree import Directive, FileDirective, Function, Pragma, Section
from warpsmith.base.errors import CapabilityError, InputError
from warpsmith.base.ptx_types import TYPES
from warpsmith.dsl.transpile.names import Names, free, identifier, quoted
from warpsmith.dsl.transpile.statements import Writer

if TYPE_CHECKING:
    from warpsmith.assembly.ptx.module import Module
    from warpsmith.assembly.ptx.tree import Parameter

__all__ = ["to_python"]


def to_python(src: str | os.PathLike[str] | Module, *, sugar: bool = False, kernel_name: str | None = None) -> str:
    """Return Python source whose kernels trace to the same machine code as `src` (text, path or module).

    `sugar` prefers wrappers and operators to `ptx.inst`; `kernel_name` writes that kernel alone. Line and debug
    information is left out. Raises `PtxError` for
    text that does not parse, `InputError` when there is no kernel of that name.
    """
    module = _read(src)
    entries = [f for f in module.functions() if f.kind == "entry" and f.body is not None]
    if kernel_name is not None:
        known = [f.name for f in entries]
        entries = [f for f in entries if f.name == kernel_name]
        if not entries:
            raise InputError(f"{module.name} has no kernel {kernel_name!r}; it has: {', '.join(known) or 'none'}")
    if not entries:
        raise InputError(f"{module.name} has no kernel to write")
    taken: set[str] = set()
    shared = _items(module)
    functions = [_function(f, module, shared, sugar, taken) for f in entries]
    used = sorted({t for _, types in functions for t in types if t in TYPES})
    name = re.sub(r"[^\w.<>()+=,@ -]", "_", os.path.basename(module.name))  # it stands in a docstring, whatever it is
    head = [f'"""Kernels of {name}, written by `warpsmith transpile`."""', ""]
    head += ["from warpsmith import kernel, ptx, reg"]
    head += [f"from warpsmith.types import {', '.join(used)}"] if used else []
    return "\n".join([*head, *(line for lines, _ in functions for line in ["", "", *lines])]) + "\n"


def _read(src: str | os.PathLike[str] | Module) -> Module:
    module = parse(src)
    others = [word for word in module.target[1:] if word != "debug"]
    if others or module.address_size != 64:
        what = f".target {others[0]}" if others else f".address_size {module.address_size}"
        raise CapabilityError(f"transpile: {module.name} has {what}, which @kernel cannot declare")
    return module


def _items(module: Module) -> str:
    """Everything at module level but kernels, line information and debug data, as text."""
    out: list[str] = []
    for item in module.items:
        if isinstance(item, (FileDirective, Section)) or (isinstance(item, Function) and item.kind == "entry"):
            continue
        print_item(item, out, locations=False)
    return "\n".join(line for line in out if line)


def _raw_type(p: Parameter) -> str:
    """The `raw_params` type string of a parameter."""
    if p.vector != 1 or p.qualifiers or p.space != "param" or len(p.shape) > 1 or None in p.shape:
        raise CapabilityError(f"transpile: the parameter {p.name} has a form that @kernel cannot declare")
    words = [p.type]
    if p.align is not None:
        words.append(f"align{p.align}")
    words += [f"array{n}" for n in p.shape]
    if p.pointer is not None:
        words.append("ptr")
        words += [p.pointer[0]] if p.pointer[0] else []
        words += [f"palign{p.pointer[1]}"] if p.pointer[1] is not None else []
    return ".".join(words)


def _directive(d: Directive | Pragma) -> str:
    name, arguments = ("pragma", d.strings) if isinstance(d, Pragma) else (d.name, d.arguments)
    shown = [a if a.isdigit() else quoted(a) for a in arguments]
    return f"({quoted(name)}, ({', '.join(shown)}{',' if len(shown) == 1 else ''}))"


def _function(f: Function, module: Module, shared: str, sugar: bool, taken: set[str]) -> tuple[list[str], set[str]]:
    """Return (lines of a kernel, names of types it uses)."""
    arguments = [f'arch="{module.arch}"', f"version={module.version}"]
    arguments += _listed("raw_params", [f"({quoted(_raw_type(p))}, {quoted(p.name)})" for p in f.parameters])
    arguments += _listed("raw_directives", [_directive(d) for d in f.directives]) or ["raw_directives=[]"]
    python = f.name if free(f.name, taken) else identifier(f.name, taken)
    taken.add(python)
    renamed = python != f.name
    writer = Writer(sugar)
    head = [f"def {python}():"]
    if shared:
        head.append(f"    ptx.declare({quoted(shared)})")
    writer.body(f.body or [], Names(taken={python}), "    ")
    decorator = ["kernel(", *(f"    {a}," for a in arguments), ")"]
    if not renamed:
        return [f"@{decorator[0]}", *decorator[1:], *head, *writer.lines], writer.used
    tail = [f"{python}.__name__ = {quoted(f.name)}", f"{python} = {decorator[0]}", *decorator[1:-1], f")({python})"]
    return [*head, *writer.lines, "", "", *tail], writer.used


def _listed(name: str, entries: list[str]) -> list[str]:
    """An argument that is a list, one entry a line when it is long; nothing for an empty list."""
    if not entries:
        return []
    short = f"{name}=[{', '.join(entries)}]"
    return [short] if len(short) < 100 else [f"{name}=[\n" + "".join(f"        {e},\n" for e in entries) + "    ]"]
