"""The dense capture's packing, and its path through a driver that computes."""

import json
import struct
import zipfile

import numpy as np
import pytest

from warpsmith.base.errors import InputError
from warpsmith.hardware import approx_capture
from warpsmith.hardware.approx_capture import Range

SMALL = [
    Range("a", "rcp.approx.ftz.f32", 0x3F800000, 512),
    Range("a", "sin.approx.ftz.f32", 0x41000000, 512),
    Range("b", "tanh.approx.f16", 0, 65536),
]


def results_of(r):
    codes = np.arange(r.start, r.start + r.count, dtype=np.uint32)
    if r.mnemonic.startswith("tanh"):
        return (codes * 40503 & 0xFFFF).astype(np.uint16)
    x = codes.view(np.float32)
    return (1 / x if r.mnemonic.startswith("rcp") else np.sin(x * 1e6)).astype(np.float32).view(np.uint32)


class FakeDriver:
    arch = "sm_90"

    def __init__(self):
        self.memory = {}

    def allocate(self, size):
        self.memory[4096] = bytes(size)
        return 4096

    def free(self, address):
        del self.memory[address]

    def download(self, address, size):
        return self.memory[address][:size]

    def synchronize(self):
        pass

    def load(self, cubin, name):
        mnemonic = cubin.decode()
        memory = self.memory

        class Function:
            def launch(self, grid, block, arguments):
                start = struct.unpack("<I", arguments[0])[0]
                r = next(r for r in SMALL if (r.mnemonic, r.start) == (mnemonic, start))
                assert grid[0] * block[0] == r.count
                memory[struct.unpack("<Q", arguments[1])[0]] = results_of(r).tobytes()

        return Function()


def test_run_and_read(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(approx_capture, "RANGES", SMALL)
    monkeypatch.setattr(approx_capture, "driver", FakeDriver)
    with zipfile.ZipFile(tmp_path / "approx.zip", "w") as z:
        for r in SMALL:
            z.writestr(f"{r.mnemonic}.cubin", r.mnemonic)
    assert approx_capture.main(["run", "--cubins", str(tmp_path), "--out", str(tmp_path)]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["approx-a.zip", "approx-b.zip"]
    found = {**approx_capture.read(tmp_path / "approx-a.zip"), **approx_capture.read(tmp_path / "approx-b.zip")}
    assert list(found) == SMALL
    for r, values in found.items():
        assert values.tolist() == results_of(r).tolist()


def test_what_is_no_capture_is_refused(tmp_path):
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("index.json", json.dumps({"ranges": []}))
    assert approx_capture.read(path) == {}
    path.write_bytes(b"no")
    with pytest.raises(InputError, match="is no capture of approximate functions"):
        approx_capture.read(path)
