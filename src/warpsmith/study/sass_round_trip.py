"""List every function of cubins as `warpsmith sass --ours` does, assemble the listing, and compare the bytes.

    python -m warpsmith.study.sass_round_trip CUBIN… [--seconds S] [--seed N]

Takes the cubins in an order drawn from the seed, as many of each architecture as go into `--seconds` divided by the number of
architectures; whole functions only. Prints a line an architecture.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from warpsmith.base.errors import CapabilityError, CubinError, InputError
from warpsmith.cubin import open as open_cubin
from warpsmith.sass import assemble, decode

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["RoundTrip", "main", "round_trip"]


@dataclass(slots=True)
class RoundTrip:
    """What became of functions that were listed and assembled."""

    functions: int = 0
    instructions: int = 0
    same: int = 0
    """Functions whose bytes came back."""
    raw: int = 0
    """Words without a form, which listings hold as `.word`."""
    wrong: Counter[str] = field(default_factory=Counter[str])
    """What came instead -> functions."""


def round_trip(code: bytes, arch: str, total: RoundTrip) -> None:
    """List and assemble the code of a function."""
    program = decode(code, arch)
    total.functions += 1
    total.instructions += len(program)
    total.raw += sum(not i.known for i in program)
    try:
        again = assemble(program.listing(), arch)
    except InputError as error:
        total.wrong[str(error).splitlines()[0][:160]] += 1
        return
    if again == code:
        total.same += 1
    else:
        at = next(k for k in range(0, len(code), 16) if again[k : k + 16] != code[k : k + 16])
        total.wrong[f"other bytes for {program[at // 16].text}"[:160]] += 1


def _by_arch(paths: Sequence[Path], seed: int) -> dict[str, list[Path]]:
    out: dict[str, list[Path]] = {}
    for path in sorted(paths):
        try:
            out.setdefault(open_cubin(path).arch, []).append(path)
        except CubinError as error:
            sys.stderr.write(f"{path}: {error}\n")
    draw = random.Random(seed)
    return {arch: draw.sample(found, len(found)) for arch, found in sorted(out.items())}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the comparison from the command line; the status is 1 where a function did not come back."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cubins", nargs="+", type=Path)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    chosen = _by_arch(options.cubins, options.seed)
    failed = 0
    for arch, paths in chosen.items():
        total, cubins, end = RoundTrip(), 0, time.monotonic() + options.seconds / len(chosen)
        try:
            for path in paths:
                if time.monotonic() > end:
                    break
                cubins += 1
                for function in open_cubin(path).functions.values():
                    if time.monotonic() > end:
                        break
                    round_trip(function.code, arch, total)
        except CapabilityError as error:
            sys.stdout.write(f"{arch}: {error}\n")
            continue
        sys.stdout.write(
            f"{arch}: {cubins} cubins, {total.functions:,} functions, {total.instructions:,} instructions,"
            f" {total.same:,} functions the same, {total.raw:,} words raw\n"
        )
        for what, count in total.wrong.most_common(10):
            sys.stdout.write(f"    {count:,}: {what}\n")
        sys.stdout.flush()
        failed += total.wrong.total()
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
