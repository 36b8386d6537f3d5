"""Compare decoder, encoder and nvdisasm on words that no compiler made.

    python -m warpsmith.study.sass_random_words [ARCHITECTURE…] [--count N] [--seed S] [--flip FILE]

Half of the words are random, half have an opcode of the table; with `--flip`, they are the 16-byte words of a file with one of
bits 0–104 inverted. Control bits are those that every instruction accepts. Prints a line an architecture, and the classes of
which most words are unknown to the table.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from warpsmith.assembly.sass.probe.oracle import Oracle
from warpsmith.assembly.sass.probe.subject import plain
from warpsmith.assembly.sass.program import tools_of
from warpsmith.assembly.sass.table import FOLDER, load_table, table_names
from warpsmith.base.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Comparison", "compare", "flipped_words", "main", "random_words"]


@dataclass(slots=True)
class Comparison:
    """What both sides say of words, and what they do not agree on."""

    exact: int = 0
    """Words whose text is the disassembler's; all others are counted in one of the next three."""
    rejected: int = 0
    """Words that neither side prints."""
    unknown: list[int] = field(default_factory=list[int])
    """Words that the disassembler alone prints."""
    wrong: list[str] = field(default_factory=list[str])
    """Words that get another text than the disassembler's, that it rejects, or whose text encodes to no word with that text."""

    @property
    def count(self) -> int:
        """How many words were compared."""
        return self.exact + self.rejected + len(self.unknown) + len(self.wrong)


def random_words(arch: str, count: int, seed: int) -> list[int]:
    """Return words of 105 random bits, those of the second half with an opcode of the architecture's table."""
    draw = Random(seed)
    opcodes = list(load_table(arch, FOLDER).by_opcode)
    words = [draw.getrandbits(105) for _ in range(count // 2)]
    words += [draw.getrandbits(105) & ~0xFFF | draw.choice(opcodes) for _ in range(count - count // 2)]
    return [plain(w) for w in words]


def flipped_words(real: Sequence[int], count: int, seed: int) -> list[int]:
    """Return words drawn from `real`, each with one of bits 0–104 inverted."""
    draw = Random(seed)
    return [plain(draw.choice(real)) ^ 1 << draw.randrange(105) for _ in range(count)]


def compare(arch: str, words: Sequence[int]) -> Comparison:
    """Compare the texts of words with nvdisasm's, and encode those that are printed."""
    decoder, encoder = tools_of(arch, FOLDER)
    out = Comparison()
    for word, answer in zip(words, Oracle(arch).texts(words), strict=True):
        at = 0 if answer is None else answer[0]  # not always 16 times the index: some illegal words are found by halving
        text = decoder.text(word, at)
        if text is None and answer is None:
            out.rejected += 1
        elif text is None:
            out.unknown.append(word)
        elif answer is None:
            out.wrong.append(f"{word:#x}: {text!r}, which nvdisasm rejects")
        elif text != answer[1]:
            out.wrong.append(f"{word:#x}: {text!r} instead of {answer[1]!r}")
        elif decoder.text(encoder.word(text, address=at), at) != text:
            out.wrong.append(f"{word:#x}: {text!r} encodes to another text")
        else:
            out.exact += 1
    return out


def _classes(arch: str, words: Sequence[int]) -> Counter[str]:
    return Counter(c[0] if c else "of no class" for c in Oracle(arch).classes(words))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the comparison from the command line; the status is 1 where a text is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("architectures", nargs="*", default=table_names())
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--flip", type=Path)
    options = parser.parse_args(arguments)
    failed = 0
    for arch in options.architectures:
        if options.flip:
            data = options.flip.read_bytes()
            if len(data) % 16 or not data:
                raise InputError(f"{options.flip}: {len(data)} bytes are not whole words of 16")
            real = [int.from_bytes(data[at : at + 16], "little") for at in range(0, len(data), 16)]
            words = flipped_words(real, options.count, options.seed)
        else:
            words = random_words(arch, options.count, options.seed)
        found = compare(arch, words)
        unknown = len(found.unknown)
        sys.stdout.write(
            f"{arch}: {found.exact:,} exact, {found.rejected:,} rejected by both, {unknown:,} unknown"
            f" ({100 * unknown / max(1, found.exact + unknown):.2f} % of what nvdisasm prints), {len(found.wrong):,} wrong\n"
        )
        for name, count in _classes(arch, found.unknown).most_common(10):
            sys.stdout.write(f"    {count:,} of {name}\n")
        for line in found.wrong[:10]:
            sys.stdout.write(f"    {line}\n")
        sys.stdout.flush()
        failed += len(found.wrong)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
