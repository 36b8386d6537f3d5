"""Compare the registers that our tables say an instruction uses with the life ranges nvdisasm prints, on real cubins.

    python -m warpsmith.study.sass_roles CUBIN… [--sample N] [--seed S] [--largest BYTES]

Takes cubins at random (`--sample` of each architecture, none above `--largest` bytes), decodes every instruction, and compares
reads and writes register by register. Predicates that `PR` and `UPR` name, and what a call's target uses, are not compared:
life ranges leave out the first and assume the second; nor are uniform registers above 62, for which they have no columns.
Prints a line an architecture, and the mnemonics that differ.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from warpsmith.assembly.sass.probe.liveness import LifeRanges
from warpsmith.base.errors import CubinError, ToolError
from warpsmith.cubin import open as open_cubin
from warpsmith.sass import decode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warpsmith.assembly.sass.probe.liveness import Marks
    from warpsmith.sass import Instruction

_LAST = 62
"""The last uniform register that life ranges have a column for."""

__all__ = ["Agreement", "compare_cubin", "main"]


@dataclass(slots=True)
class Agreement:
    """What a comparison found; `differing` and `incomplete` count by mnemonic."""

    compared: int = 0
    equal: int = 0
    unknown: int = 0
    """Words that the table does not know."""
    incomplete: Counter[str] = field(default_factory=Counter[str])
    differing: Counter[str] = field(default_factory=Counter[str])
    examples: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, i: Instruction, marks: Marks) -> None:
        """Compare one instruction."""
        if not i.known:
            self.unknown += 1
            return
        if i.mnemonic == "CALL":
            return
        ours = i.registers
        reads, writes = ({k for k, sign in marks.items() if letter in sign} for letter in "rw")
        hidden = ("P", "UP") if i.mnemonic in ("R2P", "P2R", "UP2UR", "UR2UP") else ()
        shown = lambda used: {k for k in used if k[0] not in hidden and (k[0] != "UR" or k[1] <= _LAST)}  # noqa: E731
        reads, writes, ours_reads, ours_writes = map(shown, (reads, writes, ours.reads, ours.writes))
        self.compared += 1
        if not ours.complete:
            self.incomplete[i.mnemonic] += 1
        elif (ours_reads, ours_writes) == (reads, writes):
            self.equal += 1
        else:
            self.differing[i.mnemonic] += 1
            names = lambda more, less: sorted(f"{g}{n}" for g, n in more - less)  # noqa: E731
            self.examples.setdefault(
                i.mnemonic,
                f"{i.raw:#034x} {i.text}: reads +{names(reads, ours_reads)} -{names(ours_reads, reads)},"
                f" writes +{names(writes, ours_writes)} -{names(ours_writes, writes)}",
            )


def compare_cubin(data: bytes, ranges: LifeRanges, total: Agreement) -> None:
    """Compare every instruction of a cubin; raises `ToolError` where nvdisasm makes no life ranges of it."""
    cubin = open_cubin(data)
    marked: dict[str, dict[int, Marks]] = {}
    for section, address, marks in ranges.of_cubin(data):
        marked.setdefault(section, {})[address] = marks
    for name, function in cubin.functions.items():
        lines = marked.get(f".text.{name}", {})
        for i in decode(function.code, cubin.arch):
            if i.address in lines:
                total.add(i, lines[i.address])


def _sampled(paths: Sequence[Path], count: int, seed: int, largest: int) -> dict[str, list[Path]]:
    by_arch: dict[str, list[Path]] = {}
    for path in sorted(paths):
        if path.stat().st_size <= largest:
            try:
                cubin = open_cubin(path)
            except CubinError as error:
                sys.stderr.write(f"{path}: {error}\n")
                continue
            if cubin.functions:
                by_arch.setdefault(cubin.arch, []).append(path)
    draw = random.Random(seed)
    return {arch: draw.sample(found, min(count, len(found))) for arch, found in sorted(by_arch.items())}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the comparison from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cubins", nargs="+", type=Path)
    parser.add_argument("--sample", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--largest", type=int, default=400_000)
    options = parser.parse_args(arguments)
    say = lambda text: sys.stdout.write(f"{text}\n")  # noqa: E731
    for arch, paths in _sampled(options.cubins, options.sample, options.seed, options.largest).items():
        total = Agreement()
        refused = 0
        for path in paths:
            try:
                compare_cubin(path.read_bytes(), LifeRanges(arch), total)
            except ToolError:
                refused += 1
        rate = 100 * total.equal / total.compared if total.compared else 0.0
        say(
            f"{arch}: {len(paths) - refused} cubins, {total.compared:,} instructions, {rate:.3f} % alike,"
            f" {total.differing.total():,} differ, {total.incomplete.total():,} not known in full,"
            f" {total.unknown:,} unknown words" + (f"; nvdisasm makes no life ranges of {refused} cubins" if refused else "")
        )
        for name, count in total.differing.most_common(12):
            say(f"    {name} {count:,}: {total.examples[name]}")
        for name, count in total.incomplete.most_common(8):
            say(f"    {name} {count:,} not known in full")
    return 0


if __name__ == "__main__":
    sys.exit(main())
