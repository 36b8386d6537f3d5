"""The work folder of an audit: what is done is found there again, what was cut short is done anew."""

from __future__ import annotations

import hashlib
import os
from concurrent.futures import FIRST_COMPLETED, Executor, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import warpsmith.assembly.sass as code
from warpsmith.assembly.sass.table import table_files
from warpsmith.base.errors import InputError
from warpsmith.cubin.find import files_below, require_regular
from warpsmith.sass.audit.report import Input

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from concurrent.futures import Future

__all__ = ["code_digest", "digest", "read_inputs", "run_tasks", "table_digest"]

T = TypeVar("T")
_OF_LISTINGS = ("assemble.py", "source.py")
_AHEAD = 4
"""Tasks handed to an executor for each of its workers before the first must have ended."""


def digest(*parts: object) -> str:
    """Return a short name for values: the same for the same values."""
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:16]


def read_inputs(paths: Iterable[str | os.PathLike[str]]) -> list[Input]:
    """Return the files below the paths with sizes and SHA-256; raise `InputError` where there are none."""
    given = list(paths)
    if not all(str(path) for path in given):
        raise InputError("a path is empty; name libraries, wheels, cubins, or folders that hold some")
    files = [file for path in given for file in files_below(Path(path))]
    if not files:
        raise InputError("no files to audit: name libraries, wheels, cubins, or folders that hold some")
    for file in files:
        require_regular(file)
    return [Input(str(f), f.stat().st_size, _sha256(f)) for f in files]


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


def table_digest(arch: str, folder: Path) -> str:
    """Return the SHA-256 over the names and bytes of the files that make up an architecture's table."""
    total = hashlib.sha256()
    for path in table_files(arch, folder):
        total.update(path.name.encode() + b"\0" + path.read_bytes())
    return total.hexdigest()


def code_digest() -> str:
    """Return a digest of the source of decoder, encoder and comparison: results of other code are not taken for this one's.

    What takes listings apart into texts is no part of it: an audit reads no listings.
    """
    folder = Path(code.__file__).parent
    sources = [p for p in sorted(folder.glob("*.py")) if p.name not in _OF_LISTINGS]
    return digest(*[p.read_bytes() for p in (*sources, Path(__file__).with_name("judge.py"))])


def run_tasks(
    executor: Executor | None,
    action: Callable[[T, Path], None],
    tasks: Sequence[T],
    folder: Path,
    tell: Callable[[int, int], None],
    name: Callable[[T], str],
) -> None:
    """Do the tasks whose record `<name>.json` is not in the folder; `tell(done, total)` reports progress."""
    todo = [t for t in tasks if not (folder / f"{name(t)}.json").exists()]
    done = len(tasks) - len(todo)
    tell(done, len(tasks))
    if executor is None:
        for task in todo:
            action(task, folder)
            done += 1
            tell(done, len(tasks))
        return
    running: set[Future[Any]] = set()
    waiting = iter(todo)
    try:
        while True:
            while len(running) < _AHEAD * (os.cpu_count() or 1) and (task := next(waiting, None)) is not None:
                running.add(executor.submit(action, task, folder))
            if not running:
                return
            ended, running = wait(running, return_when=FIRST_COMPLETED)
            for future in ended:
                future.result()
                done += 1
                tell(done, len(tasks))
    finally:
        for future in running:
            future.cancel()
