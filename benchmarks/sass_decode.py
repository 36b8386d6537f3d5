"""Speed of decoding and encoding SASS, beside nvdisasm and cuobjdump: `python benchmarks/sass_decode.py [--words FILE] [ARCH]`.

The words are the sample of real libraries in `tests/data/sass`, each once, its control bits plain; or those of a numpy file
of shape (n, 2), unsigned 64-bit halves. "Repeated" is the same code twelve times over, shuffled: real code has each word two
to five times. `find` lists a library, given by `--library` or made by `cubin.py`; its numbers are bytes. All rows are measured
in one run, in turn, three rounds; the best counts. Times are processor time, that of child processes included, so that other
work on the machine disturbs less. Ratios are to nvdisasm in the same run, of `find` to cuobjdump.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from warpsmith import cubin as ws_cubin
from warpsmith.assembly.sass.columns import group_words, join, parts_of
from warpsmith.assembly.sass.control import CONTROL_MASK, NO_CONTROL
from warpsmith.assembly.sass.decode import Decoder
from warpsmith.assembly.sass.encode import Encoder
from warpsmith.assembly.sass.probe.oracle import Oracle
from warpsmith.assembly.sass.table import FOLDER, parse_table
from warpsmith.toolchain.find import find_tool

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
from cubin import made

from cubin_corpus import cubins
from sass_sample import sample

REUSE = 7 << 122
ROUNDS = 3


@dataclass
class Row:
    """One measurement: `prepare` is not timed."""

    name: str
    count: int
    run: Callable[[object], object]
    floor: int = 0
    prepare: Callable[[], object] = lambda: None
    times: list[float] = field(default_factory=list)


def spent() -> float:
    """Return the processor time of this process and of those it has waited for, in seconds."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def plain(word: int) -> int:
    """Return a word with the control bits of `NO_CONTROL`, reuse kept where it is reuse."""
    return word & ~(CONTROL_MASK | 7 << 125) | NO_CONTROL | (word & REUSE if word >> 109 & 1 else 0)


def load(arch: str, path: Path | None, limit: int) -> list[int]:
    """Return distinct words, in random order."""
    draw = random.Random(1)
    if path is None:
        words = [w for w, _ in sample(arch)]
    else:
        halves = np.load(path, mmap_mode="r")
        chosen = sorted(draw.sample(range(len(halves)), min(limit, len(halves))))
        words = [int(low) | int(high) << 64 for low, high in halves[chosen]]
    words = list(dict.fromkeys(map(plain, words)))
    draw.shuffle(words)
    return words


def code_of(words: list[int]) -> bytes:
    """Return words as code."""
    return b"".join(w.to_bytes(16, "little") for w in words)


def columns_and_back(code: bytes, decoder: Decoder) -> None:
    """Take code apart to columns, and put it together."""
    for g in group_words(code, decoder, vector=True):
        if g.row:
            join(g.row, [g.column(bits) for bits in parts_of(g.row)], vector=True)


def our_rows(arch: str, words: list[int]) -> list[Row]:
    """Return what is measured of ours."""
    decoder = Decoder(parse_table(arch, FOLDER))
    encoder = Encoder(decoder.table, decoder)
    repeated = words * 12
    random.Random(2).shuffle(repeated)
    code, again = code_of(words), code_of(repeated)
    texts = [t for w in words if (t := decoder.text(w))]
    n, m = len(words), len(repeated)

    def fresh() -> Decoder:
        return Decoder(decoder.table)

    def warm() -> Decoder:
        d = Decoder(decoder.table)
        for w in words:
            d.form(w)
        return d

    def decode(d: object, which: list[int]) -> None:
        assert isinstance(d, Decoder)
        for w in which:
            d.text(w)

    def encode(e: object) -> None:
        assert isinstance(e, Encoder)
        for t in texts:
            e.word(t)

    return [
        Row("load the table", 1, lambda _: parse_table(arch, FOLDER)),
        Row("fields, numpy, distinct", n, lambda _: [g.fields() for g in group_words(code, decoder, vector=True)]),
        Row("fields, numpy, repeated", m, lambda _: [g.fields() for g in group_words(again, decoder, vector=True)], 3_000_000),
        Row("fields, stdlib, distinct", n, lambda _: [g.fields() for g in group_words(code, decoder, vector=False)]),
        Row("fields, stdlib, repeated", m, lambda _: [g.fields() for g in group_words(again, decoder, vector=False)], 500_000),
        Row("text, nothing known, distinct", n, lambda d: decode(d, words), prepare=fresh),
        Row("text, forms known, distinct", n, lambda d: decode(d, words), 100_000, warm),
        Row("text, nothing known, repeated", m, lambda d: decode(d, repeated), 100_000, fresh),
        Row("encode, nothing known, distinct", len(texts), encode, prepare=lambda: Encoder(decoder.table, decoder)),
        Row("encode, shapes known, distinct", len(texts), encode, 100_000, lambda: _after(encode, encoder)),
        Row("columns and back, numpy, repeated", m, lambda _: columns_and_back(again, decoder), 1_000_000),
    ]


def _after(use: Callable[[object], None], encoder: Encoder) -> Encoder:
    use(encoder)
    return encoder


def their_rows(arch: str, words: list[int]) -> list[Row]:
    """Return what is measured of the tools that are there."""
    rows: list[Row] = []
    if find_tool("nvdisasm"):
        oracle = Oracle(arch)
        rows.append(Row("nvdisasm, distinct", len(words), lambda _: oracle.texts(words)))
    if tool := os.environ.get("CUOBJDUMP") or shutil.which("cuobjdump"):
        folder = tempfile.mkdtemp()
        name, data = max(cubins().items(), key=lambda kv: len(kv[1]))
        path = Path(folder) / f"{name.replace('/', '_')}.cubin"
        path.write_bytes(data)
        model = ws_cubin.open(data)
        count = sum(len(f.code) // 16 for f in model.functions.values())
        rows.append(
            Row("cuobjdump -sass, a cubin", count, lambda _: subprocess.run([tool, "-sass", path], capture_output=True))
        )
    return rows


def find_rows(library: Path) -> list[Row]:
    """Return what is measured on a library: listing what is in it."""
    size = library.stat().st_size
    rows = [Row("find, bytes of a library", size, lambda _: list(ws_cubin.find(library)), 1_000_000_000)]
    if tool := os.environ.get("CUOBJDUMP") or shutil.which("cuobjdump"):
        command = [tool, "-lelf", library]
        rows.append(Row("cuobjdump -lelf, bytes", size, lambda _: subprocess.run(command, capture_output=True)))
    return rows


def main() -> int:
    """Measure, print, and return 1 when something is below its floor."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("arch", nargs="?", default="sm_90a")
    parser.add_argument("--words", type=Path)
    parser.add_argument("--limit", type=int, default=100_000, help="words drawn from --words")
    parser.add_argument("--library", type=Path, help="what `find` lists")
    options = parser.parse_args()
    words = load(options.arch, options.words, options.limit)
    library = options.library or made(Path(tempfile.mkdtemp()))
    rows = our_rows(options.arch, words) + their_rows(options.arch, words) + find_rows(library)
    for _ in range(ROUNDS):
        for row in rows:
            state = row.prepare()
            start = spent()
            row.run(state)
            row.times.append(spent() - start)
    rates = {r.name: r.count / min(r.times) for r in rows}
    failed = 0
    print(f"{options.arch}, {len(words):,} distinct words of {options.words.name if options.words else 'the sample'}")
    for row in rows:
        rate = rates[row.name]
        failed |= rate < row.floor
        tool, theirs = ("cuobjdump", "cuobjdump -lelf, bytes") if "bytes" in row.name else ("nvdisasm", "nvdisasm, distinct")
        ratio = f"{rate / rates[theirs]:9.1f} x {tool}" if theirs in rates and row.count > 1 else ""
        bound = f"   at least {row.floor:,}: {'yes' if rate >= row.floor else 'NO'}" if row.floor else ""
        print(f"{row.name:34}{row.count:10,} {rate:14,.0f}/s{ratio}{bound}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
