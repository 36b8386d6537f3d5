"""Columns of a section say the same as its instructions one by one, with numpy and without; joined they are the words."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import numpy as np
import pytest

from sass_rows import words_of
from sass_sample import code
from warpsmith import sass
from warpsmith.assembly.sass import vector
from warpsmith.assembly.sass.columns import group_words, join, parts_of
from warpsmith.assembly.sass.decode import Decoder
from warpsmith.assembly.sass.row import gather, width_of
from warpsmith.assembly.sass.table import load_table, table_names

ARCH = "sm_90a"


@pytest.mark.parametrize("vector", [False, True])
def test_groups_cover_the_section_and_columns_hold_its_fields(vector: bool) -> None:
    part = code(ARCH)[: 16 * 1500] + (0xFFF).to_bytes(16, "little")
    program = sass.decode(part, ARCH)
    groups = group_words(part, Decoder(load_table(ARCH)), vector=vector)
    assert sorted(int(i) for g in groups for i in g.indexes) == list(range(len(program)))
    assert [int(g.indexes[0]) for g in groups] == sorted(int(min(g.indexes)) for g in groups)
    for g in groups:
        columns = g.fields()
        forms = g.forms
        assert len(forms) == (len(g.indexes) if g.row else 0)
        for n, index in enumerate(g.indexes):
            i = program[int(index)]
            assert int(g.low[n]) | int(g.high[n]) << 64 == i.raw
            assert (g.row.name if g.row else "") == i.form
            if g.row:
                assert [int(c[n]) for c in columns] == [gather(i.raw, f.bits) for f in g.row.fields]
                assert forms[n].text(i.raw, i.address) == i.text


@pytest.mark.parametrize("arch", table_names())
def test_random_words_of_every_row_are_grouped_alike(arch: str) -> None:
    draw = Random(4)
    table = load_table(arch)
    words = [w ^ draw.choice((0, 1 << 109, draw.getrandbits(20) << 105)) for _, w in words_of(table.rows[::3], 2, 9)]
    words += [draw.getrandbits(128) for _ in range(500)]
    part = b"".join(w.to_bytes(16, "little") for w in words)
    decoder = Decoder(table)
    plain = {i: f for g in group_words(part, decoder, vector=False) for i, f in zip(g.indexes, g.forms, strict=False)}
    quick = {int(i): f for g in group_words(part, decoder, vector=True) for i, f in zip(g.indexes, g.forms, strict=False)}
    one = {i: f for i, w in enumerate(words) if (f := decoder.form(w))}
    assert plain == one
    assert quick == one


@pytest.mark.parametrize("vector", [False, True])
@pytest.mark.parametrize("arch", table_names())
def test_columns_joined_are_the_words(arch: str, vector: bool) -> None:
    draw = Random(5)
    table = load_table(arch)
    part = b"".join((w ^ draw.getrandbits(23) << 105).to_bytes(16, "little") for _, w in words_of(table.rows[::3], 2, 10))
    for g in group_words(part, Decoder(table), vector=vector):
        if g.row:
            low, high = join(g.row, [g.column(bits) for bits in parts_of(g.row)], vector=vector)
            assert list(low) == list(g.low)
            assert list(high) == list(g.high)


@pytest.mark.parametrize("vector", [False, True])
def test_values_that_do_not_fit_are_refused(vector: bool) -> None:
    row = load_table(ARCH).by_opcode[0x223][0]
    columns = [np.full(2, 0 if n else 1 << width_of(b), np.uint64) for n, b in enumerate(parts_of(row))]
    given = columns if vector else [c.tolist() for c in columns]
    with pytest.raises(ValueError, match=rf"^a value does not fit the 3 bits \(\(12, 3\),\) of {row.name}$"):
        join(row, given, vector=vector)
    with pytest.raises(ValueError, match=rf"^{row.name} has {len(columns)} parts, 1 columns were given$"):
        join(row, given[:1], vector=vector)


def test_decoding_and_encoding_load_no_numpy() -> None:
    source = "\n".join([
        "import sys",
        "from warpsmith import sass",
        "code = sass.encode('FFMA R1, R2, R3, R4', 'sm_90a')",
        "from warpsmith.assembly.sass.columns import group_words",
        "from warpsmith.assembly.sass.program import tools_of",
        "from warpsmith.assembly.sass.table import FOLDER",
        "groups = group_words(code * 1000, tools_of('sm_90a', FOLDER)[0])",
        "print(sass.decode(code, 'sm_90a')[0].text, len(groups[0].indexes), 'numpy' in sys.modules)",
    ])  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(Path(sass.__file__).parents[2])}
    run = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True, env=environment)
    assert run.stdout == "FFMA R1, R2, R3, R4 1000 False\n"


def test_words_whose_hashes_are_equal_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a hash that says nothing, all keys but a few go elsewhere; the table does not grow for them."""
    monkeypatch.setattr(vector, "_ODD", (np.uint64(0),) * 3)
    decoder = Decoder(load_table(ARCH))
    words = np.frombuffer(code(ARCH)[: 16 * 3000], "<u8").reshape(-1, 2)
    finder = vector.finder_of(decoder)
    size = len(finder._found)
    for _ in range(2):
        numbers = finder.numbers(words[:, 0].copy(), words[:, 1].copy())
        assert [finder.forms[n] for n in numbers] == [decoder.form(low | high << 64) for low, high in words.tolist()]
    assert len(finder._found) == size
    assert len(finder._crowded) > 100


def test_remembered_keys_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector, "_MOST", 512)
    decoder = Decoder(load_table(ARCH))
    finder = vector.finder_of(decoder)
    finder._clear(64)
    words = np.frombuffer(code(ARCH)[: 16 * 4000], "<u8").reshape(-1, 2)
    for part in np.split(words, 16):
        numbers = finder.numbers(part[:, 0].copy(), part[:, 1].copy())
        assert [finder.forms[n] for n in numbers] == [decoder.form(low | high << 64) for low, high in part.tolist()]
    assert len(finder._found) <= 2 * 512


def test_threads_share_a_finder() -> None:
    table = load_table(ARCH)
    words = np.frombuffer(code(ARCH), "<u8").reshape(-1, 2)
    low, high = words[:, 0].copy(), words[:, 1].copy()
    decoder = Decoder(table)
    finder = vector.finder_of(decoder)
    finder._clear(64)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: finder.numbers(low, high), range(4)))
    alone = [decoder.form(a | b << 64) for a, b in words.tolist()]
    for numbers in found:
        assert [finder.forms[n] for n in numbers] == alone


@pytest.mark.parametrize("arch", table_names())
def test_rows_depend_on_what_chooses_them_alone(arch: str) -> None:
    """Predicates that are not `choosing` give other texts, never another row."""
    draw = Random(5)
    decoder = Decoder(load_table(arch))
    for _, word in words_of(decoder.table.rows, 1, 12):
        shape = decoder.shape(word & 0xFFF)
        silent = [m for m, memory in shape.flags if (m, memory) not in shape.choosing]
        form = decoder.form(word)
        row = form.row if form else None
        for mask in silent:
            free = mask & ~shape.mask
            for m, _ in shape.choosing:
                free &= ~m
            for bits in (0, free, draw.getrandbits(128) & free):
                other = decoder.form(word & ~free | bits)
                assert (other.row if other else None) is row
