"""`warpsmith launch`: run a kernel on the GPU, with the arguments that `warpsmith simulate` takes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from warpsmith.assembly.ptx import parse, text_of_file
from warpsmith.base.errors import InputError
from warpsmith.base.whole_file import read_whole
from warpsmith.cli.array_files import chosen_array, parse_output, save_all, save_array, summary
from warpsmith.cli.launch_shape import entry_name, extents, launch_shape
from warpsmith.cli.load import is_python, load_kernel, parse_parameters
from warpsmith.cli.output import json_option, print_json
from warpsmith.cli.simulate import ARGUMENTS
from warpsmith.cli.values import parse_values
from warpsmith.dsl.call import bind
from warpsmith.hardware.gpu_launch import arch_for_gpu, entry_of_cubin, launch_on_gpu
from warpsmith.launch.binding import LaunchShape
from warpsmith.toolchain import compile_ptx

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warpsmith.cli.array_files import Named
    from warpsmith.cli.values import Value
    from warpsmith.hardware.gpu_launch import GpuResult

__all__ = ["command"]


@click.command(epilog=ARGUMENTS.replace("warpsmith simulate", "warpsmith launch"))
@click.argument("target", metavar="FILE.cubin|FILE.ptx|FILE.py:KERNEL")
@click.option("--kernel", help="The entry to run; a cubin always needs it, PTX where it has several.")
@click.option("--grid", help="CTAs, e.g. 8 or 8,2,1.  [default: 1; a Python kernel's own]")
@click.option("--block", help="Threads of a CTA, e.g. 256.  [default: .reqntid of the entry]")
@click.option("--cluster", help="CTAs of a cluster.  [default: .reqnctapercluster of the entry]")
@click.option("-a", "--args", "arguments", multiple=True, help="Arguments in order, separated by commas; may be repeated.")
@click.option("--dynamic-shared", "shared", type=click.IntRange(min=0), default=0, help="Bytes of dynamic shared memory.")
@click.option("--cooperative", is_flag=True, help="All CTAs must be resident at once.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of =normal arrays.")
@click.option("--device", type=click.IntRange(min=0), default=0, show_default=True, help="Number of the GPU.")
@click.option("-X", "--ptxas", "ptxas", multiple=True, help="A further argument of ptxas, e.g. -X --fmad=false.")
@click.option("-p", "--parameter", "parameters", multiple=True, help="NAME=VALUE, a keyword parameter of a Python kernel.")
@click.option(
    "-o", "--output", "outputs", multiple=True, metavar="N=FILE.npy", help="Write array N (from 0, or its name) afterwards."
)
@click.option("--out", "folder", metavar="DIR", help="Write every array afterwards, as NAME.npy or N.npy.")
@json_option
def command(
    *,
    target: str,
    arguments: tuple[str, ...],
    outputs: tuple[str, ...],
    folder: str | None,
    as_json: bool,
    seed: int,
    **options: Any,
) -> None:
    """Run a kernel on the GPU.

    PTX is compiled by ptxas, never by the driver; a cubin for another architecture is refused. Shows the arrays afterwards.
    """
    values = parse_values(arguments, seed=seed)
    wanted = [parse_output(text) for text in outputs]
    if is_python(target):
        result, arrays = _python(target, values, options)
    elif options["parameters"]:
        raise InputError(f"{target}: no parameters to set; -p is for kernels written in Python")
    else:
        result = _cubin(target, values, options) if target.endswith(".cubin") else _ptx(target, values, options)
        arrays = [pair for v in values for pair in v.arrays]
    for path, array in [(path, chosen_array(word, arrays, path)) for word, path in wanted]:
        save_array(path, array)
    if folder is not None:
        save_all(Path(folder), arrays)
    _show(result, arrays, as_json=as_json)


def _describe(target: str, values: Sequence[Value]) -> str:
    return f"warpsmith simulate {target} -a {','.join(v.text for v in values)}, with the same shape"


def _launch(
    image: bytes, entry: Any, shape: dict[str, Any], args: list[Any], target: str, values: Sequence[Value], options: Any
) -> GpuResult:
    full = LaunchShape(**shape, dynamic_shared=options["shared"], cooperative=options["cooperative"])
    return launch_on_gpu(image, entry, full, args, describe=_describe(target, values), device=options["device"])


def _cubin(target: str, values: Sequence[Value], options: dict[str, Any]) -> GpuResult:
    try:
        image = read_whole(target)
    except OSError as error:
        raise InputError(f"{target}: cannot be read: {error.strerror or error}") from None
    if not options["kernel"] or not options["block"]:
        raise InputError(f"{target}: a cubin needs --kernel NAME and --block THREADS")
    shape = {n: extents(options[n] or "1", n) for n in ("grid", "block", "cluster")}
    entry = entry_of_cubin(image, options["kernel"], options["device"], name=target)
    return _launch(image, entry, shape, [v.argument for v in values], target, values, options)


def _ptx(target: str, values: Sequence[Value], options: dict[str, Any]) -> GpuResult:
    text = text_of_file(target)
    module = parse(text, target)
    name = entry_name(module, options["kernel"], target)
    shape = launch_shape(module, name, options["grid"] or "1", options["block"], options["cluster"], target)
    image = compile_ptx(text, arch_for_gpu(module.arch, options["device"]), options["ptxas"], name=target).cubin
    return _launch(image, module.entry(name), shape, [v.argument for v in values], target, values, options)


def _python(target: str, values: Sequence[Value], options: dict[str, Any]) -> tuple[GpuResult, list[Named]]:
    """Run a Python kernel; it knows its own block, cluster and shared memory."""
    fixed = [f"--{n}" for n in ("kernel", "block", "cluster") if options[n]] + ["--dynamic-shared"] * bool(options["shared"])
    if fixed:
        raise InputError(f"{target}: a kernel written in Python states {' and '.join(fixed)} itself")
    kernel: Any = load_kernel(target)
    keywords = parse_parameters(options["parameters"])
    if options["grid"]:
        keywords["grid"] = extents(options["grid"], "grid")
    bound = bind(kernel, [v.argument for v in values], keywords)
    arch = arch_for_gpu(kernel.arch, options["device"])
    image = compile_ptx(bound.built.text(), arch, options["ptxas"], name=target).cubin
    shape = {"grid": bound.grid, "block": bound.block, "cluster": bound.cluster}
    options = options | {"shared": bound.built.dynamic_shared}
    result = _launch(image, bound.built.module.entry(bound.built.name), shape, bound.args, target, values, options)
    arrays = [pair for v in values for pair in v.arrays]
    given = {id(array) for _, array in arrays}
    return result, arrays + [(f"output {i}", a) for i, a in enumerate(bound.outputs) if id(a) not in given]


def _show(result: GpuResult, arrays: list[Named], *, as_json: bool) -> None:
    if as_json:
        described = [{"name": n, "dtype": str(a.dtype), "shape": list(a.shape)} for n, a in arrays]
        print_json({"device": result.device, "arrays": described})
        return
    print(f"ran on {result.device}")
    for index, (name, array) in enumerate(arrays):
        print(f"array {index} {summary(name, array)}")
