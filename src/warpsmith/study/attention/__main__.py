"""Measure attention forward, ours and others': `python -m warpsmith.study.attention --help`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from warpsmith.base.errors import WarpsmithError
from warpsmith.kernels.attention import hopper
from warpsmith.launch.driver import driver
from warpsmith.study.attention.cells import Cell, cells
from warpsmith.study.attention.judge import LIMIT, largest_error
from warpsmith.study.attention.measure import Clocks, time_together
from warpsmith.study.attention.ours import compile_all, configuration, ours
from warpsmith.study.attention.peers import PEERS, Launch
from warpsmith.study.attention.report import load, markdown, plot

_ROTATED = 1 << 28
"""Bytes over which the buffers rotate: five times the level-2 cache."""


def _inputs(cell: Cell, dtype: str, sets: int) -> list[tuple[Any, Any, Any]]:
    torch: Any = import_module("torch")
    generator = torch.Generator("cuda").manual_seed(7)
    kind = torch.float16 if dtype == "f16" else torch.bfloat16
    shape = (cell.batch, cell.heads, cell.sequence, cell.dim)

    def one() -> Any:
        return torch.randn(shape, generator=generator, device="cuda", dtype=torch.float32).to(kind)

    return [(one(), one(), one()) for _ in range(sets)]


class _Cell:
    """One cell: every implementation is checked, and those that are right are timed together."""

    def __init__(self, cell: Cell, say: Callable[[str], None]) -> None:
        self.cell, self.say = cell, say
        self.sets = max(1, min(16, _ROTATED // cell.bytes))
        self.inputs = {dtype: _inputs(cell, dtype, self.sets) for dtype in ("f16", "bf16")}
        self.launches: dict[str, list[Launch]] = {}
        self.errors: dict[str, float] = {}
        self.absent: dict[str, str] = {}

    def add(self, name: str, dtype: str, make: Callable[[Any, Any, Any], tuple[Launch, Any]]) -> None:
        """Run an implementation on every buffer set and compare the first with float64."""
        torch: Any = import_module("torch")
        try:
            made = [make(*some) for some in self.inputs[dtype]]
            for run, _ in made:
                run()
            torch.cuda.synchronize()
            error = largest_error(self.cell, *self.inputs[dtype][0], made[0][1]())
        except (WarpsmithError, ImportError, RuntimeError) as problem:
            self.absent[name] = str(problem).splitlines()[0][:200]
            self.say(f"{self.cell.name}: {name}: {self.absent[name]}")
            return
        self.errors[name] = error
        if error > LIMIT[dtype]:
            self.absent[name] = f"wrong by {error:.1e}"
            self.say(f"{self.cell.name}: {name} is wrong: {error:.1e} over {LIMIT[dtype]:.0e}")
            return
        self.launches[name] = [run for run, _ in made]

    def time(self, repeat: int, clocks: Clocks) -> dict[str, Any]:
        """Return the row of this cell."""
        clocks.take()
        times = time_together(self.launches, repeat)
        clock, power = clocks.take()
        return {
            "cell": self.cell.name,
            "problem": {n: getattr(self.cell, n) for n in ("dim", "causal", "batch", "heads", "sequence")},
            "times": {n: {"micro": t.micro, "low": t.low, "high": t.high} for n, t in times.items()},
            "errors": self.errors,
            "absent": self.absent,
            "buffers": self.sets,
            "clock": clock,
            "power": power,
        }


def _arguments(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m warpsmith.study.attention", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("attention-study"), help="folder of the results; a second run resumes")
    parser.add_argument("--only", default="", help="cells whose name holds this text")
    parser.add_argument("--dtype", choices=("f16", "bf16"), default="f16", help="inputs of our kernel")
    parser.add_argument("--repeat", type=int, default=30)
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--variant", action="append", default=[], help="options of our kernel, as consumers=3; repeatable")
    return parser.parse_args(arguments)


def _configs(
    options: argparse.Namespace, wanted: list[Cell], say: Callable[[str], None]
) -> dict[tuple[str, str], hopper.Config]:
    out: dict[tuple[str, str], hopper.Config] = {}
    for cell in wanted:
        for variant in options.variant or [""]:
            try:
                config = configuration(cell, options.dtype, variant)
                hopper.build(config)
            except WarpsmithError as problem:
                say(f"{cell.name}: {variant}: {problem}")
                continue
            out[cell.name, f"ours {variant}".strip()] = config
    return out


def _measure(options: argparse.Namespace, say: Callable[[str], None]) -> dict[str, dict[str, Any]]:
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "attention.jsonl"
    done = load(path)
    clocks = Clocks()
    wanted = [c for c in cells() if options.only in c.name]
    configs = _configs(options, [c for c in wanted if c.name not in done], say)
    compile_all(configs.values())
    try:
        for number, cell in enumerate(wanted, 1):
            if cell.name in done:
                continue
            one = _Cell(cell, say)
            for (where, name), config in configs.items():
                if where == cell.name:
                    one.add(name, options.dtype, lambda q, k, v, config=config: ours(config, q, k, v))
            if not options.no_peers:
                for name, (dtype, peer) in PEERS.items():
                    one.add(name, dtype, lambda q, k, v, peer=peer, cell=cell: peer(q, k, v, cell.causal))
            row = one.time(options.repeat, clocks)
            done[cell.name] = row
            with path.open("a") as file:
                file.write(json.dumps(row) + "\n")
            times = ", ".join(f"{n} {t['micro']:.1f}" for n, t in row["times"].items())
            say(f"{number}/{len(wanted)} {cell.name} [{row['clock']:.0f} MHz]: {times} µs")
    finally:
        clocks.close()
    return {c.name: done[c.name] for c in wanted if c.name in done}


def main(arguments: list[str]) -> int:
    """Measure the cells that are not yet in the results, then write the table and, with matplotlib, the plot."""
    options = _arguments(arguments)
    os.environ.setdefault("CUDA_MODULE_LOADING", "EAGER")
    try:
        gpu = driver()
        rows = _measure(options, lambda text: print(text, flush=True))  # noqa: T201
        table = f"{gpu.name}, driver CUDA {gpu.version}\n\n{markdown(rows.values())}"
        (options.out / "attention.md").write_text(table)
        sys.stdout.write(table)
        plot(rows.values(), options.out / "attention.svg")
    except ImportError as missing:
        sys.stderr.write(f"warpsmith study: {missing.name} is not installed\n")
        return 2
    except WarpsmithError as problem:
        sys.stderr.write(f"warpsmith study: {problem}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
