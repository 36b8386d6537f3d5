"""Run a kernel body and make its module."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from warpsmith.assembly.ptx.module import Module
from warpsmith.assembly.ptx.printer import print_module
from warpsmith.assembly.ptx.tree import Directive, Function, Parameter, Pragma, Variable
from warpsmith.base.arch import first_ptx_version, parse_arch
from warpsmith.base.collector import collector_paused
from warpsmith.base.place import misuse, place_error
from warpsmith.base.source import Place
from warpsmith.dsl.finish import check_finished
from warpsmith.dsl.locations import with_locations
from warpsmith.dsl.parameters import tensor_parameters
from warpsmith.dsl.shared_memory import shared_limit
from warpsmith.dsl.tensor import TensorSpec
from warpsmith.dsl.trace import Options, Retrace, Trace

if TYPE_CHECKING:
    from warpsmith.dsl.configuration import Configuration

__all__ = ["Built", "build"]


@final
@dataclass(slots=True)
class Built:
    """A traced kernel: its module and what a launch must supply."""

    module: Module
    name: str
    tensors: tuple[TensorSpec, ...]
    parameters: tuple[Parameter, ...]
    """In the order of the arguments."""
    dynamic_shared: int
    """Bytes of dynamic shared memory to launch with."""
    shapes_used: bool
    """The body looked at a shape, so another shape needs another trace."""
    shared_out: bool = False
    """The caller has the module and may edit it, so a launch looks at the text again."""

    def text(self, loc: bool = True) -> str:
        """Return the PTX text."""
        return print_module(self.module, locations=loc)


def entry_name(fn: Callable[..., object]) -> str:
    """Return the PTX name of a kernel function: its own, other characters than PTX has replaced (`<lambda>`)."""
    name = re.sub(r"[^A-Za-z0-9_$]", "_", fn.__name__)
    return name if re.match(r"[A-Za-z]|[_$]\w", name) else f"kernel_{name}"


def build(
    fn: Callable[..., object], configuration: Configuration, arch: str, names: list[str], env: Mapping[str, int],
    template: Mapping[str, object],
) -> Built:  # fmt: skip
    """Trace `fn`; run it again when a first run finds that the shared memory or the names must be laid out otherwise."""
    options = Options()
    while True:
        try:
            return _run(fn, configuration, arch, names, env, template, options)
        except Retrace as again:
            options = again.options


def _run(
    fn: Callable[..., object], c: Configuration, arch: str, names: list[str], env: Mapping[str, int],
    template: Mapping[str, object], options: Options,
) -> Built:  # fmt: skip
    place = Place(fn.__code__.co_filename, fn.__code__.co_firstlineno)
    trace = Trace(parse_arch(arch), c.version or first_ptx_version(arch), c.version is not None, options, place)
    trace.smem_bytes = c.smem
    if c.smem > (limit := shared_limit(trace.arch.number)):
        raise place_error(
            place, f"shared memory over the limit: smem={c.smem} bytes, sm_{trace.arch.number} has {limit}", "use fewer stages"
        )
    trace.dynamic_name = c.extern_smem if isinstance(c.extern_smem, str) else ""
    tensors = tuple(TensorSpec.of_tile(n, t, env) for n, t in zip(names, (*c.in_specs, *c.out_specs), strict=True))
    for name, kind in [(t.name, "u64") for t in tensors] + [(p.name, p.type) for p in c.raw_params]:
        trace.declare_parameter(name, kind)
    with trace:
        if trace.dynamic_name:
            trace.shared.dynamic_name = trace.dynamic_name
            trace.declare_variable(trace.dynamic_name, "shared")
        try:
            with collector_paused():
                fn(*tensors, **template)
        except (AttributeError, TypeError, ValueError, KeyError, IndexError, OverflowError) as e:
            wrong = misuse(e)
            if wrong is None:
                raise
            raise wrong from e
        check_finished(trace)
    return _assemble(fn, c, arch, trace, tensors)


def _assemble(fn: Callable[..., object], c: Configuration, arch: str, trace: Trace, tensors: tuple[TensorSpec, ...]) -> Built:
    trace.statements[:0] = trace.prologue
    trace.root.close()
    parameters = (*tensor_parameters(tensors), *c.raw_params)
    body, files = with_locations([*trace.shared_variables, *trace.statements], fn.__code__.co_filename)
    entry = Function("entry", entry_name(fn), list(parameters), directives=_directives(c), body=body, linkage="visible")
    shared = trace.shared
    variables = list(trace.items)
    if shared.dynamic_name:
        variables.append(
            Variable("shared", "b8", shared.dynamic_name, [None], align=max(1024, shared.dynamic_alignment), linkage="extern")
        )
    module = Module(trace.version, [arch], 64, [*files, *variables, entry], fn.__code__.co_filename)
    dynamic = max(c.smem, shared.dynamic_bytes)
    shapes_used = any(t.shape_used for t in tensors)
    return Built(module, entry_name(fn), tensors, parameters, dynamic, shapes_used)


def _directive(name: str, arguments: list[str]) -> Directive | Pragma:
    return Pragma(arguments) if name == "pragma" else Directive(name, arguments)


def _directives(c: Configuration) -> list[Directive | Pragma]:
    if c.raw_directives is not None:
        return [_directive(n.lstrip("."), [str(a) for a in arguments]) for n, arguments in c.raw_directives]
    out: list[Directive | Pragma] = []
    threads = c.reqntid or (c.block if c.block_given else None)
    if threads:
        out.append(Directive("reqntid", [str(n) for n in threads]))
    if c.cluster != (1, 1, 1):
        out.append(Directive("explicitcluster"))
        out.append(Directive("reqnctapercluster", [str(n) for n in c.cluster]))
    return out
