"""Run an audit: plan, collect the words, judge them, put the report together."""

from __future__ import annotations

import tempfile
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from warpsmith.assembly.sass.table import FOLDER, load_table
from warpsmith.base.arch import parse_arch
from warpsmith.base.errors import CapabilityError, InputError
from warpsmith.sass.audit.collect import Collected, Unit, collect, hashes, load_collected, save_words
from warpsmith.sass.audit.judge import Bucket, judge, load_judged
from warpsmith.sass.audit.report import SHOWN, Example, Input, Report, Tally
from warpsmith.sass.audit.words import PREFIXES, distinct
from warpsmith.sass.audit.work import code_digest, digest, read_inputs, run_tasks, table_digest
from warpsmith.toolchain.find import require_tool

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Generator, Iterable, Sequence

    from warpsmith.sass.audit.words import Words

__all__ = ["audit"]

_FORMAT = 1
"""Changes with the files of a work folder."""
_PART = {".whl": 256 << 20, ".zip": 256 << 20}
_PART_ELSE = 64 << 20
"""Bytes of a file that one unit of work stands for; of archives that must be unpacked each time, more."""
_BUCKET = 500_000
"""Words of one bucket, at most some more: the disassembler takes 0.4 KB for each."""


def audit(
    paths: Iterable[str | os.PathLike[str]],
    *,
    archs: Sequence[str] = (),
    tables: Path = FOLDER,
    work: Path | None = None,
    sample: int = 0,
    seed: int = 0,
    jobs: int = 1,
    client: Any = None,
    wrong: Path | None = None,
    tell: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> Report:
    """Decode every distinct word of the machine code in files, compare its text with nvdisasm's, encode it back.

    `paths` are libraries, wheels, archives, cubins, or folders of such. `archs` restricts the audit to some architectures.
    `work` is a folder for intermediate results: a run that was cut short goes on where it was when it is given the same
    folder again. `sample` words are drawn instead of all, those that a hash with `seed` puts first: the same whatever the
    number of processes. `jobs` processes share the work; or give a Dask `client`, whose workers must see the same files.
    `wrong` is a folder into which `<arch>.bin` is written: words that are not exact, as seeds for probing.
    `tell(what, done, total)` reports progress.

    Raises `InputError` where there are no files, `ToolError` without nvdisasm. Entries that are damaged do not stop the run;
    they are named in `Report.unread`.
    """
    for arch in archs:
        parse_arch(arch)
    if sample < 0 or jobs < 1:
        raise InputError(f"sample={sample} and jobs={jobs}: the sample is 0 or more words, the jobs one or more processes")
    tool = require_tool("nvdisasm")
    inputs = read_inputs(paths)
    report = Report(code_digest(), f"{tool.name} {tool.version()}", inputs, sample, seed)
    with ExitStack() as stack:
        base = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="warpsmith-"))) if work is None else work
        executor = stack.enter_context(_executor(jobs, client))
        units = _units(inputs, archs, sample, seed)
        folder = _folder(base, "collect", *[(i.sha256, i.size) for i in inputs], *units)
        run_tasks(executor, collect, units, folder, partial(tell, "collecting words"), lambda u: u.name)
        found = load_collected(folder, units)
        _count(report, found)
        buckets = _buckets(report, found, folder, tables)
        judged = _folder(base, "judge", folder.name, report.tool, report.code)
        run_tasks(executor, judge, buckets, judged, partial(tell, "comparing"), lambda b: b.name)
        seeds = _merge(report, judged, buckets)
    if wrong is not None:
        _write_seeds(wrong, seeds)
    return report


@contextmanager
def _executor(jobs: int, client: Any) -> Generator[Executor | None]:
    if client is not None:
        yield client.get_executor()
    elif jobs == 1:
        yield None
    else:
        pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"))
        try:
            yield pool
        finally:
            pool.shutdown(cancel_futures=True)


def _folder(base: Path, what: str, *parts: object) -> Path:
    folder = base / f"{what}-{digest(_FORMAT, *parts)}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _units(inputs: Sequence[Input], archs: Sequence[str], sample: int, seed: int) -> list[Unit]:
    out: list[Unit] = []
    for number, file in enumerate(inputs):
        parts = max(1, round(file.size / _PART.get(Path(file.path).suffix, _PART_ELSE)))
        out += [Unit(f"{number:04}-{part:03}", file.path, part, parts, tuple(archs), sample, seed) for part in range(parts)]
    return out


def _count(report: Report, found: Sequence[Collected]) -> None:
    for unit in found:
        for into, numbers in ((report.instructions, unit.instructions), (report.cubins, unit.cubins)):
            for arch, number in numbers.items():
                into[arch] = into.get(arch, 0) + number
        report.unread += [u for u in unit.unread if u not in report.unread]


def _buckets(report: Report, found: Sequence[Collected], folder: Path, tables: Path) -> list[Bucket]:
    """Divide the words of each architecture that has a table by their hash."""
    files: dict[str, list[str]] = {}
    rows: dict[str, int] = {}
    for unit in found:
        for arch, names in unit.files.items():
            files.setdefault(arch, []).extend(str(folder / n) for n in names)
            rows[arch] = rows.get(arch, 0) + unit.rows[arch]
    for arch in sorted(files):
        try:
            load_table(arch, tables)
            report.tables[arch] = table_digest(arch, tables)
        except (CapabilityError, InputError):
            report.without_table[arch] = report.instructions[arch]
            del files[arch]
    if report.sample:
        rows, files = _draw(files, folder, report.sample, report.seed)
    out: list[Bucket] = []
    for arch in sorted(files, key=lambda a: (parse_arch(a).number, a)):
        count = min(PREFIXES, -(-rows[arch] // _BUCKET))
        edges = [PREFIXES * n // count for n in range(count + 1)]
        name, held = f"{arch}-{report.tables[arch][:12]}", tuple(files[arch])
        out += [Bucket(f"{name}-{a:04}-{b:04}", arch, held, a, b, str(tables)) for a, b in pairwise(edges)]
    return out


def _draw(files: dict[str, list[str]], folder: Path, count: int, seed: int) -> tuple[dict[str, int], dict[str, list[str]]]:
    """Draw the sample from all architectures together: the words of lowest hash."""
    words: dict[str, Words] = {a: distinct(np.concatenate([np.load(f) for f in names])) for a, names in files.items()}
    ranks = {a: hashes(w, seed, a) for a, w in words.items()}
    limit = np.sort(np.concatenate([*ranks.values(), np.zeros(0, np.uint64)]))[:count]
    drawn: dict[str, list[str]] = {}
    rows: dict[str, int] = {}
    for arch, chosen in ((a, w[ranks[a] <= limit[-1]]) for a, w in words.items() if len(limit)):
        if len(chosen):
            save_words(folder / f"sample-{arch}.npy", chosen)
            drawn[arch], rows[arch] = [str(folder / f"sample-{arch}.npy")], len(chosen)
    return rows, drawn


def _merge(report: Report, folder: Path, buckets: Sequence[Bucket]) -> dict[str, list[int]]:
    """Add the records of all buckets to the report; return the words that are not exact."""
    wrong: dict[str, list[int]] = {}
    examples: dict[tuple[str, str, str], list[Example]] = {}
    for arch, record in load_judged(folder, buckets):
        rows = report.tallies.setdefault(arch, {})
        for mnemonic, counts in record["tallies"].items():
            rows.setdefault(mnemonic, Tally()).add(Tally(*counts))
        for item in record["examples"]:
            example = Example(*item)
            examples.setdefault((arch, example.mnemonic, example.kind), []).append(example)
        if record["illegal"]:
            report.illegal[arch] = report.illegal.get(arch, 0) + record["illegal"]
        wrong.setdefault(arch, []).extend(int(w, 16) for w in record["wrong"])
    for arch, rows in report.tallies.items():
        report.tallies[arch] = dict(sorted(rows.items()))
    for key in sorted(examples):
        report.examples += sorted(examples[key], key=lambda e: e.word)[:SHOWN]
    return wrong


def _write_seeds(folder: Path, seeds: dict[str, list[int]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for arch, words in seeds.items():
        if words:
            (folder / f"{arch}.bin").write_bytes(b"".join(w.to_bytes(16, "little") for w in sorted(words)))
