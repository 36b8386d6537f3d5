"""Measure attention forward, ours and others', side by side: `warpsmith study attention`."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, final

from warpsmith.base.errors import InputError, ToolError, WarpsmithError
from warpsmith.base.whole_file import write_whole
from warpsmith.kernels.attention import hopper
from warpsmith.launch.driver import driver
from warpsmith.study.attention.cells import CELLS
from warpsmith.study.attention.judge import judge
from warpsmith.study.attention.measure import Clocks, time_together
from warpsmith.study.attention.ours import compile_all, configuration, kernel_of, ours, packed, packed_config
from warpsmith.study.attention.peers import E4M3_PEERS, PACKED_PEERS, PEERS
from warpsmith.study.attention.report import load, markdown, plot

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from warpsmith.study.attention.cells import Cell
    from warpsmith.study.attention.peers import Launch

__all__ = ["Options", "measure"]

_ROTATED = 1 << 28
"""Bytes over which the buffers rotate: five times the level-2 cache."""


def _inputs(cell: Cell, dtype: str, sets: int) -> list[tuple[Any, ...]]:
    """Return sets of q, k and v; with e4m3 also the factors that let each head's largest number be 448."""
    torch: Any = import_module("torch")
    generator = torch.Generator("cuda").manual_seed(7)
    kind = {"f16": torch.float16, "bf16": torch.bfloat16}.get(dtype)

    def one(width: int) -> tuple[Any, Any]:
        shape = (cell.batch, cell.heads, cell.sequence, width)
        numbers = torch.randn(shape, generator=generator, device="cuda", dtype=torch.float32)
        if kind is not None:
            return numbers.to(kind), None
        factor = numbers.abs().amax(dim=(2, 3)) / 448
        return (numbers / factor[:, :, None, None]).to(torch.float8_e4m3fn), factor

    out: list[tuple[Any, ...]] = []
    for _ in range(sets):
        tensors, factors = zip(*(one(width) for width in (cell.dim, cell.dim, cell.width)), strict=True)
        out.append(tensors + (factors if kind is None else ()))
    return out


class _Cell:
    """One cell: every implementation is checked, and those that are right are timed together."""

    def __init__(self, cell: Cell, say: Callable[[str], None]) -> None:
        self.cell, self.say = cell, say
        self.sets = max(1, min(16, _ROTATED // cell.bytes))
        self.inputs: dict[str, list[tuple[Any, ...]]] = {}
        self.launches: dict[str, list[Launch]] = {}
        self.errors: dict[str, float] = {}
        self.rms: dict[str, float] = {}
        self.absent: dict[str, str] = {}

    def add(self, name: str, dtype: str, make: Callable[..., tuple[Launch, Any]]) -> None:
        """Run an implementation on every buffer set and compare the first with float64."""
        torch: Any = import_module("torch")
        if dtype not in self.inputs:
            self.inputs[dtype] = _inputs(self.cell, dtype, self.sets)
        try:
            made = [make(*some) for some in self.inputs[dtype]]
            for run, _ in made:
                run()
            torch.cuda.synchronize()
            found = judge(self.cell, dtype, self.inputs[dtype][0], made[0][1]())
        except (WarpsmithError, ImportError, RuntimeError) as problem:
            self.absent[name] = str(problem).splitlines()[0][:200]
            self.say(f"{self.cell.name}: {name}: {self.absent[name]}")
            return
        self.errors[name], self.rms[name] = found.error, found.rms
        if found.share > 1:
            self.absent[name] = f"wrong by {found.error:.1e}"
            self.say(f"{self.cell.name}: {name} is wrong: by {found.error:.1e}, {found.share:.1f} times what is allowed")
            return
        self.launches[name] = [run for run, _ in made]

    def time(self, dtype: str, repeat: int, clocks: Clocks) -> dict[str, Any]:
        """Return the row of this cell."""
        clocks.take()
        times = time_together(self.launches, repeat)
        clock, power = clocks.take()
        return {
            "cell": self.cell.name,
            "problem": asdict(self.cell),
            "times": {n: {"micro": t.micro, "low": t.low, "high": t.high} for n, t in times.items()},
            "dtype": dtype,
            "errors": self.errors,
            "rms": self.rms,
            "absent": self.absent,
            "buffers": self.sets,
            "clock": clock,
            "power": power,
        }


@final
@dataclass(frozen=True, slots=True)
class Options:
    """What is measured, and where it is kept."""

    out: Path
    """Folder of the results; a second run goes on where the first stopped."""
    only: str = ""
    """Cells whose name holds this text."""
    cells: Literal["main", "dims", "packed"] = "main"
    """Which set of cells: those of every report, other head dimensions, or some that are also measured packed."""
    dtype: Literal["f16", "bf16", "e4m3"] = "bf16"
    """Inputs of our kernel."""
    repeat: int = 30
    """Replays of each graph."""
    peers: bool = True
    variants: tuple[str, ...] = ()
    """Options of our kernel, as `consumers=3,keys=96`, each measured on its own; none: the shipped choice."""


def measure(options: Options, say: Callable[[str], None], progress: Callable[[int, int], None]) -> str:
    """Measure the cells that are not in the results yet; write `attention.jsonl`, `.md` and, with matplotlib, `.svg`.

    `say` is told a line for each cell, `progress` is called with (cells done, cells). Return the Markdown table. Raise
    `InputError` for options that fit no cell, `ToolError` without a GPU.
    """
    every = CELLS[options.cells]()
    wanted = [c for c in every if options.only in c.name]
    if not wanted:
        raise InputError(
            f"no cell's name holds {options.only!r}; one is {every[0].name!r}, and `D64`, `causal`, `S512` choose some"
        )
    os.environ.setdefault("CUDA_MODULE_LOADING", "EAGER")
    gpu = driver()
    for package in ("torch", "matplotlib"):
        if find_spec(package) is None:
            raise ToolError(f"{package} is not installed; pip install {package}")
    options.out.mkdir(parents=True, exist_ok=True)
    rows = _measure(options, wanted, say, progress)
    table = f"{gpu.name}, driver CUDA {gpu.version}\n\n{markdown(rows.values())}"
    write_whole(options.out / "attention.md", table.encode())
    plot(rows.values(), options.out / "attention.svg")
    return table


def _configs(options: Options, wanted: list[Cell], say: Callable[[str], None]) -> dict[tuple[str, str], hopper.Config]:
    out: dict[tuple[str, str], hopper.Config] = {}
    for cell in wanted:
        for variant in options.variants or ("",):
            config = configuration(cell, options.dtype, variant)
            both = {f"ours {variant}".strip(): config}
            if options.dtype == "e4m3":
                both["our bf16"] = configuration(cell, "bf16", "")
            if options.cells == "packed":
                both[f"our packed {variant}".strip()] = packed_config(cell, config)
            for name, made in both.items():
                try:
                    kernel_of(made)
                except WarpsmithError as problem:
                    say(f"{cell.name}: {variant}: {problem}")
                    continue
                out[cell.name, name] = made
    return out


def _measure(
    options: Options, wanted: list[Cell], say: Callable[[str], None], progress: Callable[[int, int], None]
) -> dict[str, dict[str, Any]]:
    path = options.out / "attention.jsonl"
    done = load(path)
    left = [c for c in wanted if c.name not in done]
    configs = _configs(options, left, say)
    compile_all(configs.values())
    clocks = Clocks()
    try:
        for number, cell in enumerate(left, 1 + len(wanted) - len(left)):
            progress(number - 1, len(wanted))
            mine = {name: config for (where, name), config in configs.items() if where == cell.name}
            row = done[cell.name] = _row(options, cell, mine, say, clocks)
            with path.open("a") as file:
                file.write(json.dumps(row) + "\n")
            times = ", ".join(f"{n} {t['micro']:.1f}" for n, t in row["times"].items())
            say(f"{number}/{len(wanted)} {cell.name} [{row['clock']:.0f} MHz]: {times} µs")
    finally:
        clocks.close()
    return {c.name: done[c.name] for c in wanted if c.name in done}


def _row(
    options: Options, cell: Cell, configs: dict[str, hopper.Config], say: Callable[[str], None], clocks: Clocks
) -> dict[str, Any]:
    one = _Cell(cell, say)
    for name, config in configs.items():
        run = packed if config.packed else ours
        one.add(name, config.dtype, lambda *inputs, config=config, run=run: run(config, *inputs))
    peers = E4M3_PEERS if options.dtype == "e4m3" else PEERS | (PACKED_PEERS if options.cells == "packed" else {})
    for name, (dtype, peer) in peers.items() if options.peers else ():
        one.add(name, dtype, lambda *inputs, peer=peer: peer(*inputs, causal=cell.causal))
    return one.time(options.dtype, options.repeat, clocks)
