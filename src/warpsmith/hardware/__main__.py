"""Capture everything a GPU computes, replay captures, print what was captured.

    python -m warpsmith.hardware capture --out OUT [--cubins DIR] [--arch sm_90a] [--only NAME …]
    python -m warpsmith.hardware replay FOLDER [--only NAME …] [--record]
    python -m warpsmith.hardware table FOLDER
    python -m warpsmith.hardware coverage FOLDER

`capture` runs on a machine with the GPU. It compiles what DIR lacks, if ptxas is there, and writes a file and a report for
each capture into OUT. `replay` compares the files of a folder with the simulator, without a GPU; it exits with 1 if anything
differs, and with `--record` writes which forms do into `FOLDER/differences.txt`, from which `table` takes its last column.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from warpsmith.base.errors import InputError, WarpsmithError
from warpsmith.hardware.coverage import listing
from warpsmith.hardware.differences import Replay, digest, read_replays, write_replays
from warpsmith.hardware.everything import KINDS, Kind
from warpsmith.hardware.summary import table

if TYPE_CHECKING:
    from collections.abc import Sequence

_WIDTH = 24


def _progress(done: int, total: int, text: str) -> None:
    filled = _WIDTH * done // total
    sys.stderr.write(f"[{'#' * filled}{'.' * (_WIDTH - filled)}] {text}\n")
    sys.stderr.flush()


def _chosen(only: Sequence[str]) -> list[Kind]:
    known = {k.name: k for k in KINDS}
    for name in only:
        if name not in known:
            raise InputError(f"no capture is called {name}; there are {', '.join(known)}")
    return [k for k in KINDS if not only or k.name in only]


def _capture(given: argparse.Namespace) -> int:
    kinds = _chosen(given.only)
    steps, done = 2 * len(kinds), 0
    with tempfile.TemporaryDirectory() as temporary:
        cubins = given.cubins or Path(temporary)
        for kind in kinds:
            start = time.monotonic()
            if not (cubins / f"{kind.name}.zip").exists():
                _progress(done, steps, f"{kind.title}: compiling")
                built = kind.build(given.arch, cubins).splitlines()
                sys.stdout.write("\n".join([f"{kind.title}: {built[0]}", *(f"  {x}" for x in built[1:])]) + "\n")
            _progress(done + 1, steps, f"{kind.title}: running and comparing")
            lines = kind.run(cubins, given.out).splitlines()
            done += 2
            _progress(done, steps, f"{kind.title}: {lines[0]} ({time.monotonic() - start:.0f} s)")
            sys.stdout.write("\n".join([f"{kind.title}: {lines[0]}", *(f"  {x[:300]}" for x in lines[1:40])]) + "\n")
    return 0


def _replay(given: argparse.Namespace) -> int:
    status = 0
    for kind in _chosen(given.only):
        for path in sorted(given.folder.glob(kind.kept("*"))) + sorted(given.folder.glob(kind.file)):
            total, found = kind.differing(path)
            sys.stdout.write("\n".join([f"{path.name}: {total} forms, {len(found)} differ", *found.values()]) + "\n")
            sys.stdout.flush()
            if given.record:
                replay = Replay(digest(path), total, tuple(sorted(found, key=lambda f: (len(f), f))))
                write_replays(given.folder, {**read_replays(given.folder), path.name: replay})
            status |= bool(found)
    return status


def _table(given: argparse.Namespace) -> int:
    sys.stdout.write(table(given.folder))
    return 0


def _coverage(given: argparse.Namespace) -> int:
    sys.stdout.write(listing(given.folder))
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Run a command; return the exit status: 2 for bad input."""
    parser = argparse.ArgumentParser(
        prog="python -m warpsmith.hardware", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    p = commands.add_parser("capture", help="run everything on this machine's GPU")
    p.add_argument("--out", type=Path, required=True)
    p.add_argument("--cubins", type=Path)
    p.add_argument("--arch", default="sm_90a")
    p.add_argument("--only", nargs="+", default=[])
    p.set_defaults(action=_capture)
    p = commands.add_parser("replay", help="compare captures with the simulator")
    p.add_argument("folder", type=Path)
    p.add_argument("--only", nargs="+", default=[])
    p.add_argument("--record", action="store_true", help="write which forms differ into FOLDER/differences.txt")
    p.set_defaults(action=_replay)
    p = commands.add_parser("table", help="print what was captured")
    p.add_argument("folder", type=Path)
    p.set_defaults(action=_table)
    p = commands.add_parser("coverage", help="print the forms that no capture executes")
    p.add_argument("folder", type=Path)
    p.set_defaults(action=_coverage)
    given = parser.parse_args(arguments)
    try:
        status: int = given.action(given)
    except WarpsmithError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return status


if __name__ == "__main__":
    sys.exit(main())
