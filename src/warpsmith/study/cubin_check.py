"""Read, write and edit every cubin of libraries: `python -m warpsmith.study.cubin_check PATH… [--edit N] [--tools]`.

Each distinct cubin is taken apart and written; the bytes must be the same. With `--edit N`, N functions of each get five NOPs
at places that a seed chooses, and the result must read back; with `--tools`, nvdisasm and cuobjdump (on PATH, or named by
CUOBJDUMP) must accept it. Prints counts by architecture, and what was refused.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

from warpsmith.base.errors import CubinError
from warpsmith.cubin import CapsuleWarning, Cubin, find, open, shifted
from warpsmith.study.moved_code import NOP
from warpsmith.toolchain import find_tool

__all__ = ["main", "readers", "takes"]

_PLACES = 5


def _edit(cubin: Cubin, name: str, rng: random.Random) -> None:
    """Put NOPs into a function; the instructions keep their words, so that the code is for reading, not for running."""
    code = cubin.functions[name].code
    places = dict.fromkeys((16 * rng.randrange(len(code) // 16) for _ in range(_PLACES)), 16)
    moved = shifted(places)
    out = bytearray(NOP * (len(code) // 16 + len(places)))
    for at in range(0, len(code), 16):
        new = moved(at)
        assert new is not None
        out[new : new + 16] = code[at : at + 16]
    cubin.functions[name].replace(bytes(out), moved)


def readers() -> list[list[str]]:
    """Return the commands that read a cubin, of those tools that are there."""
    nvdisasm = find_tool("nvdisasm")
    cuobjdump = os.environ.get("CUOBJDUMP") or shutil.which("cuobjdump")
    out = [[str(nvdisasm.path), "-c"]] if nvdisasm else []
    return [*out, [cuobjdump, "-elf"]] if cuobjdump else out


def takes(tool: list[str], data: bytes) -> bool:
    """Return whether a command accepts a cubin."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(data)
        file.flush()
        return not subprocess.run([*tool, file.name], capture_output=True, check=False).returncode


def _accepted(edited: bytes, original: bytes, tools: list[list[str]], counts: Counter[str]) -> None:
    """Show both to the tools: one that does not know the architecture rejects both."""
    for tool in tools:
        name = Path(tool[0]).name
        if takes(tool, edited):
            counts[f"{name}: accepted"] += 1
        else:
            counts[f"{name}: {'REJECTED' if takes(tool, original) else 'knows neither'}"] += 1


def _check(data: bytes, edits: int, tools: list[list[str]], counts: Counter[str]) -> None:
    cubin = open(data)
    counts[f"{cubin.arch}: {'same bytes' if cubin.write() == data else 'DIFFERENT BYTES'}"] += 1
    rng = random.Random(hashlib.sha256(data).digest())
    names = [n for n, f in cubin.functions.items() if f.code]
    for name in rng.sample(names, min(edits, len(names))):
        try:
            _edit(cubin, name, rng)
            counts["functions edited"] += 1
        except CubinError as error:
            counts["refused: " + re.sub(r"'[^']*'|\.nv\.\S+", "…", str(error))] += 1
    if edits:
        again = cubin.write()
        counts["edited cubins: " + ("read back" if open(again).write() == again else "DIFFERENT")] += 1
        _accepted(again, data, tools, counts)


def main(arguments: list[str] | None = None) -> int:
    """Check the files named, and return 1 when a cubin was written otherwise than it was read, or a tool rejected one."""
    parser = argparse.ArgumentParser(prog="python -m warpsmith.study.cubin_check")
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--edit", type=int, default=0, help="functions of each cubin to edit")
    parser.add_argument("--tools", action="store_true", help="show edited cubins to nvdisasm and cuobjdump")
    options = parser.parse_args(arguments)
    tools = readers() if options.tools else []
    counts: Counter[str] = Counter()
    seen: set[bytes] = set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CapsuleWarning)
        for path in options.paths:
            for item in find(path):
                if item.kind != "elf":
                    continue
                data = item.read()
                if (key := hashlib.sha256(data).digest()) not in seen:
                    seen.add(key)
                    _check(data, options.edit, tools, counts)
    for what, count in sorted(counts.items()):
        sys.stdout.write(f"{count:8,}  {what}\n")
    return int(any(word in what for what in counts for word in ("DIFFERENT", "REJECTED")))


if __name__ == "__main__":
    sys.exit(main())
