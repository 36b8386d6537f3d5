"""Random programs: the same every time, many forms, kept whole in a capture that finds what was changed."""

from types import SimpleNamespace

import numpy as np
import pytest

from warpsmith.base.errors import InputError
from warpsmith.hardware import differential_capture as capture
from warpsmith.hardware.random_programs import SLOTS, THREADS, generate, module_text, program_inputs
from warpsmith.hardware.random_stream import RandomStream
from warpsmith.hardware.scalar_forms import scalar_forms
from warpsmith.hardware.scalar_store import block_hashes


def programs(n):
    return [generate(i, "sm_90a") for i in range(n)]


def test_a_stream_depends_on_its_number_alone():
    words = [RandomStream(5).word() for _ in range(2)]
    assert words[0] == words[1]
    stream = RandomStream(0)
    assert [stream.word() for _ in range(3)] == [0, 0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4]  # splitmix64's published output


def test_programs_use_every_opcode():
    statements = [x for p in programs(200) for line in p.lines for x in line.split("; ")]
    used = {x.split(" ")[x[0] == "@"].partition(".")[0] for x in statements}
    scalar = {form.mnemonic.partition(".")[0] for form in scalar_forms("sm_90a")}
    assert scalar - used == {"fns", "clmad"}  # a loop of a thousand instructions; newer than the programs' PTX version
    assert all(10 <= len(p.lines) <= 40 for p in programs(20))


def test_generation_repeats():
    assert programs(5) == programs(5)
    assert generate(3, "sm_90a") != generate(4, "sm_90a")


def test_storing_after_every_line_changes_no_result():
    p = generate(11, "sm_90a")
    whole = capture.simulated(p, keep=True).reshape(-1, SLOTS, THREADS)
    assert (whole[-1] == capture.simulated(p)).all()
    assert len(module_text([p], "sm_90a", keep=True)) > len(module_text([p], "sm_90a"))


def test_inputs_fit_their_registers():
    words = program_inputs(7)
    assert words.shape == (SLOTS, THREADS)
    assert words[:4].max() < 1 << 16
    assert words[4:10].max() < 1 << 32
    assert (words[10:14] >= 1 << 32).any()


def test_a_capture_comes_back_and_shows_what_differs(tmp_path):
    some = programs(3)
    results = [capture.simulated(p) for p in some]
    hashes = np.stack([block_hashes(r) for r in results])
    hashes[1, 2] ^= 1
    path = tmp_path / "x.capture"
    capture.DifferentialCapture({"arch": "sm_90a"}, some, hashes, {0: results[0]}).write(path)
    read = capture.DifferentialCapture.read(path)
    assert read.programs == some
    assert (read.whole[0] == results[0]).all()
    assert capture.compare(path) == "3 programs, 1 differ\nprogram 1: h2"


def test_a_file_that_is_none_is_refused(tmp_path):
    path = tmp_path / "x"
    path.write_text("no")
    with pytest.raises(InputError, match=r"^.*x is not a capture of random programs: File is not a zip file$"):
        capture.DifferentialCapture.read(path)


def test_what_differs_is_tried_without_optimisation(monkeypatch):
    right, wrong, never = programs(3)
    expected = {p.number: capture.simulated(p) for p in (right, wrong, never)}

    def executed(gpu, cubin, some, stages=1):
        (p,) = some
        out = capture.simulated(p, keep=True) if stages > 1 else expected[p.number].copy()
        if p is never or (p is wrong and stages > 1):
            out[-SLOTS] ^= np.uint64(1)
        return out[None]

    monkeypatch.setattr(capture, "_execute", executed)
    monkeypatch.setattr(capture, "compile_ptx", lambda *_: SimpleNamespace(cubin=b""))
    said = capture._explained(None, [right, wrong, never], ["first", "second", "third"], "sm_90a")
    assert said[0] == ", 2 of them agree with ptxas -O0"
    assert [line for line in said[1:] if not line.startswith(" ")] == [
        "first; with -O0: agrees", "second; with -O0: agrees", "third; with -O0: differs",
    ]  # fmt: skip
    last = len(wrong.lines) - 1
    assert f"    line {last}, thread 0: {wrong.lines[last]}" in said
