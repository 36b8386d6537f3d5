"""What `warpsmith check` does with a kernel it can run: many schedules, and the smallest that fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warpsmith.assembly.ptx import parse_file
from warpsmith.base.errors import InputError
from warpsmith.cli.launch_shape import entry_name, launch_shape, raw_launch, takes_raw
from warpsmith.cli.load import is_python, load_kernel, parse_parameters
from warpsmith.cli.output import finding_json, shown
from warpsmith.cli.suppress import passed_over
from warpsmith.cli.values import DTYPES, parse_values
from warpsmith.dsl.call import bind
from warpsmith.simulator import simulate
from warpsmith.simulator.explore import explore

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from warpsmith.simulator.explore import Exploration, Launch

__all__ = ["describe", "exploration_json", "explore_target"]


def explore_target(
    target: str, arguments: tuple[str, ...], parameters: tuple[str, ...], launch: dict[str, Any], **how: Any
) -> Exploration | None:
    """Run a target under many schedules; None: it takes arrays, and none are given. `how` as in `simulator.explore`."""
    if is_python(target):
        run = _python(target, arguments, parameters, launch)
    else:
        run = _ptx(target, arguments, launch)
    return None if run is None else explore(run, **how)


def _python(
    target: str, arguments: tuple[str, ...], parameters: tuple[str, ...], launch: dict[str, Any]
) -> Launch | None:  # fmt: skip
    kernel = load_kernel(target)
    if arguments and takes_raw(kernel):
        how = raw_launch(kernel, launch, parse_parameters(parameters), target)
        return lambda schedule, seed: _simulate(how, arguments, launch, schedule, seed)
    if given := [f"--{n}" for n in ("block", "cluster", "shared", "kernel", "grid") if launch.get(n)]:
        raise InputError(f"{target}: a kernel written in Python states {' and '.join(given)} itself")
    template, seed = parse_parameters(parameters), launch["seed"]
    texts = list(arguments) or _inputs(kernel, template)
    if texts is None:
        return None

    def run(*, schedule: str, seed_: int) -> Any:
        values = parse_values(texts, seed=seed)
        return kernel.simulate(*(v.argument for v in values), schedule=schedule, seed=seed_, **_options(launch), **template)

    return lambda schedule, seed: run(schedule=schedule, seed_=seed)


def kernel_text(kernel: Any, arguments: Sequence[str], parameters: Sequence[str], seed: int) -> str:
    """Return the PTX of a kernel written in Python, for the shapes of the arguments where there are any."""
    template = parse_parameters(parameters)
    if not arguments or takes_raw(kernel):
        return kernel.ptx(**template)
    return bind(kernel, [v.argument for v in parse_values(arguments, seed=seed)], template).built.text()


def _inputs(kernel: Any, template: Mapping[str, object]) -> list[str] | None:
    """Return arguments for a kernel whose inputs have an element type of numpy and one shape, by itself or with `-p M=8`.

    None: the arguments must be given.
    """
    out: list[str] = []
    for tile in kernel.configuration.in_specs:
        dims = [template.get(d, d) if isinstance(d, str) else d for d in tile.dims]
        if tile.dtype.name not in DTYPES or not all(isinstance(d, int) for d in dims):
            return None
        out.append(f"{tile.dtype.name}[{'x'.join(map(str, dims))}]=normal")
    return out if out or kernel.configuration.out_specs else None


def _ptx(target: str, arguments: tuple[str, ...], launch: dict[str, Any]) -> Launch | None:
    if not arguments and not launch.get("block"):
        return None
    module = parse_file(target)
    entry = entry_name(module, launch.get("kernel"), target)
    shape = launch_shape(module, entry, launch.get("grid") or "1", launch.get("block"), launch.get("cluster"), target)

    how = {"source": module, "kernel": entry, "dynamic_shared": launch.get("shared") or 0, **shape}
    return lambda schedule, seed: _simulate(how, arguments, launch, schedule, seed)


def _simulate(how: dict[str, Any], arguments: Sequence[str], launch: dict[str, Any], schedule: Any, seed: int) -> Any:
    """Run what `how` says (`source`, the rest keywords of `simulate`) on arguments made anew."""
    args = [v.argument for v in parse_values(arguments, seed=launch["seed"])]
    keywords = {n: v for n, v in how.items() if n != "source"}
    return simulate(how["source"], args=args, schedule=schedule, seed=seed, **keywords, **_options(launch))


def _options(launch: dict[str, Any]) -> dict[str, Any]:
    return {n: launch[n] for n in ("device", "numerics", "max_steps") if launch.get(n) is not None}


def describe(found: Exploration) -> list[str]:
    """Return the lines that tell what was found: the smallest failing run, what others add, what is passed over."""
    lines: list[str] = []
    smallest = found.smallest
    if smallest is None:
        lines += [str(shown(f)) for f in found.distinct()]
    else:
        failing = sum(bool(r.errors) for r in found.runs)
        lines.append(
            f"{failing} of {len(found.runs)} schedules fail; the smallest is {smallest.name} ({smallest.steps:,} steps)"
        )
        lines += [str(shown(f)) for f in found.distinct()]
    lines += passed_over(found.suppressed)
    return lines


def exploration_json(found: Exploration) -> dict[str, object]:
    """Return an exploration as plain values."""
    smallest = found.smallest
    return {
        "schedules": [
            {"schedule": r.name, "completed": r.completed, "steps": r.steps, "errors": len(r.errors)} for r in found.runs
        ],
        "smallest": smallest.name if smallest is not None else None,
        "findings": [finding_json(f) for f in found.distinct()],
        "suppressed": [{**finding_json(f), "reason": reason} for f, reason in found.suppressed],
    }
