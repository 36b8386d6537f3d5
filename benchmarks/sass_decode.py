"""Speed of decoding SASS and encoding it, and of nvdisasm on the same bytes: `python benchmarks/sass_decode.py`.

The words are real ones of `tests/data/sass`, repeated and shuffled. Prints words per second, the best of three runs, and the
bounds.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

from warpsmith.assembly.sass.columns import group_words
from warpsmith.assembly.sass.decode import Decoder
from warpsmith.assembly.sass.encode import Encoder
from warpsmith.assembly.sass.probe.oracle import Oracle
from warpsmith.assembly.sass.table import load_table
from warpsmith.toolchain.find import find_tool

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
from sass_sample import sample

ARCH = "sm_90a"
COPIES = 12
TEXT_FLOOR = 100_000
FIELD_FLOOR = 500_000


def best(function: Callable[[], object], runs: int = 3) -> float:
    """Return the shortest time of `runs` calls."""
    times: list[float] = []
    for _ in range(runs):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> int:
    """Measure, print, and return 1 when text is below its floor."""
    words = [w for w, _ in sample(ARCH)] * COPIES
    random.Random(1).shuffle(words)
    table = load_table(ARCH)
    distinct = list(dict.fromkeys(words))

    def fresh() -> None:
        decoder = Decoder(table)
        for word in words:
            decoder.text(word)

    decoder = Decoder(table)
    encoder = Encoder(table, decoder)
    code = b"".join(w.to_bytes(16, "little") for w in words)
    texts = [t for w in distinct[:3000] if (t := decoder.text(w))]
    for text in texts:
        encoder.word(text)
    rows = [
        ("text, from nothing", len(words), best(fresh), TEXT_FLOOR),
        ("text, forms known", len(words), best(lambda: [decoder.text(w) for w in words]), TEXT_FLOOR),
        ("fields, stdlib", len(words), best(lambda: [g.fields() for g in group_words(code, decoder)]), FIELD_FLOOR),
        ("encode", len(texts), best(lambda: [encoder.word(t) for t in texts]), 0),
    ]
    if find_tool("nvdisasm"):
        oracle = Oracle(ARCH)
        rows.append(("nvdisasm", len(words), best(lambda: oracle.texts(words)), 0))
    failed = 0
    for name, count, seconds, floor in rows:
        rate = count / seconds
        failed |= rate < floor
        print(
            f"{name:20}{rate:12,.0f} words/s" + (f"   at least {floor:,}: {'yes' if rate >= floor else 'NO'}" if floor else "")
        )
    return failed


if __name__ == "__main__":
    sys.exit(main())
