"""The capture's path from kernels to a file and back, with a driver that computes instead of a GPU."""

import json
import struct
import zipfile

import numpy as np
import pytest

from warpsmith.base.errors import InputError
from warpsmith.hardware import scalar_capture
from warpsmith.hardware.scalar_compare import compare_captured, compare_outputs, report
from warpsmith.hardware.scalar_evaluate import evaluate
from warpsmith.hardware.scalar_forms import ScalarForm, scalar_forms
from warpsmith.hardware.scalar_kernels import groups, kernel_text
from warpsmith.hardware.scalar_store import BLOCK, Capture, Captured, block_hashes
from warpsmith.hardware.scalar_values import code_dtype, edge_count, inputs

NAMES = ("add.rn.f32", "mul.lo.u64", "setp.lt.u16", "addc.cc.u32", "cvt.rni.s8.f32", "min.f64", "lop3.b32#0x96", "not.pred")


@pytest.fixture(scope="module")
def some_forms():
    return [f for f in scalar_forms("sm_90a") if f.key in NAMES]


class FakeFunction:
    def __init__(self, memory, cubin):
        self.memory, self.batch = memory, [ScalarForm.from_json(e) for e in json.loads(cubin)]

    def launch(self, grid, block, arguments):
        *addresses, out = (struct.unpack("<Q", a)[0] for a in arguments[:-1])
        threads = struct.unpack("<I", arguments[-1])[0]
        assert grid[0] * block[0] == threads
        reads = self.batch[0].reads
        ins = [np.frombuffer(self.memory[a], code_dtype(t))[:threads] for a, t in zip(addresses, reads, strict=True)]
        slot = 0
        for form in self.batch:
            for result in evaluate(form, [x.copy() for x in ins]):
                start = 8 * threads * slot
                self.memory[out][start : start + result.nbytes] = result.tobytes()
                slot += 1


class FakeDriver:
    arch, name, version = "sm_90", "a GPU", "13.0"

    def __init__(self):
        self.memory = {}

    def allocate(self, size):
        address = 4096 * (len(self.memory) + 1)
        self.memory[address] = bytearray(size)
        return address

    def free(self, address):
        self.memory[address] = None

    def upload(self, address, data):
        self.memory[address][: len(data)] = data

    def download(self, address, size):
        return bytes(self.memory[address][:size])

    def load(self, cubin, name):
        assert name == "k"
        return FakeFunction(self.memory, cubin)

    def synchronize(self):
        pass


def kernels(folder, forms):
    manifest = [[f.json() for f in batch] for batch in groups(forms)]
    with zipfile.ZipFile(folder / "scalar.zip", "w") as z:
        for i, entries in enumerate(manifest):
            z.writestr(f"{i}.cubin", json.dumps(entries))
        z.writestr("manifest.json", json.dumps({"arch": "sm_90a", "kernels": manifest}))


def test_run_writes_a_capture_that_agrees(some_forms, tmp_path, monkeypatch, capsys):
    assert {f.key for f in some_forms} == set(NAMES)
    kernels(tmp_path, some_forms)
    monkeypatch.setattr(scalar_capture, "driver", FakeDriver)
    assert scalar_capture.main(["run", "--cubins", str(tmp_path), "--out", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out.startswith(f"{len(some_forms)} forms, 0 differ")
    capture = Capture.read(tmp_path / "out" / "scalar.capture")
    assert {c.form.key for c in capture.items} == set(NAMES)
    for captured in capture.items:
        ins, n = inputs(captured.form.reads), edge_count(captured.form.reads)
        for edge, hashes, value in zip(captured.edges, captured.hashes, evaluate(captured.form, ins), strict=True):
            assert (edge == value[:n]).all()
            assert (hashes == block_hashes(value[n:])).all()


def test_a_wrong_result_is_found_with_its_inputs(some_forms):
    form = next(f for f in some_forms if f.key == "add.rn.f32")
    ins = inputs(form.reads)
    values = [v.copy() for v in evaluate(form, ins)]
    values[0][5] ^= 1
    values[0][-1] ^= 1
    difference = compare_outputs(form, ins, values)
    assert difference is not None
    assert (difference.edges, difference.random) == (1, 1)
    assert len(difference.samples) == 2
    assert difference.samples[0].startswith(f"{int(ins[0][5]):x} {int(ins[1][5]):x} -> {int(values[0][5]):x}, simulator ")
    n = edge_count(form.reads)
    captured = Captured(form, [values[0][:n]], [block_hashes(values[0][n:])])
    stored = compare_captured(captured)
    assert stored is not None
    assert (stored.edges, stored.random) == (1, 1)
    assert report([difference], 7).startswith("7 forms, 1 differ\nadd.rn.f32 (f32, f32): 1 edge")


def test_hash_depends_on_value_and_place():
    values = np.arange(4 * BLOCK, dtype=np.uint32)
    hashes = block_hashes(values)
    assert len(set(hashes.tolist())) == 4
    swapped = values.copy()
    swapped[[0, 1]] = swapped[[1, 0]]
    assert (block_hashes(swapped) != hashes).tolist() == [True, False, False, False]


def test_a_file_that_is_no_capture_is_refused(tmp_path):
    path = tmp_path / "x.capture"
    path.write_bytes(b"nothing")
    with pytest.raises(InputError, match="is not a scalar capture"):
        Capture.read(path)
    with pytest.raises(InputError, match="make it with `scalar_capture build`"):
        scalar_capture.open_build(tmp_path / "scalar.zip", "scalar_capture")


def test_kernel_text_holds_every_form_once(some_forms):
    for batch in groups(some_forms):
        text = kernel_text(batch, "sm_90a")
        assert all(text.count(f"\n{f.mnemonic} ") == 1 for f in batch)
